//! What is to be run, checked before anything is.

use std::time::Duration;

use hopwise_core::fleet::MessageFault;
use hopwise_core::programs::diffuse::{Settings, Strip};

use super::args::Drain;
use super::chart;
use super::image::{self, GreyImage};
use crate::args::DemoArguments;
use crate::device_list::DeviceList;
use crate::failure::Failure;

#[cfg(test)]
mod tests;

/// Kernels unless the command line says otherwise or the image has fewer rows.
const DEFAULT_KERNELS: u32 = 48;

/// A demo that can be run.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) image: GreyImage,
    /// Where the image comes from, for the report.
    pub(crate) image_source: String,
    pub(crate) strips: Vec<Strip>,
    pub(crate) settings: Settings,
    pub(crate) devices: DeviceList,
    /// In the order in which they happen.
    pub(crate) drains: Vec<Drain>,
    /// Devices that are lost on purpose, in the order in which it happens.
    pub(crate) losses: Vec<Drain>,
    pub(crate) fault: Option<MessageFault>,
    pub(crate) step_limit: Duration,
}

impl Plan {
    /// Checks the arguments, reads the image or makes the chart.
    ///
    /// # Errors
    ///
    /// [`Failure::Usage`] for arguments that make no sense, [`Failure::Failed`] for the image.
    pub(crate) fn new(arguments: &DemoArguments) -> Result<Self, Failure> {
        let settings = Settings::new(arguments.iterations, arguments.contrast, arguments.rate)
            .map_err(|error| Failure::usage(error.to_string()))?;
        let devices = arguments.devices.clone().unwrap_or_else(DeviceList::of_this_machine);
        let drains = drains(arguments, devices.len())?;
        let losses = sorted(&arguments.lose);
        for loss in &losses {
            check_mark("lose", loss, devices.len(), arguments.iterations)?;
        }
        let (image, image_source) = match &arguments.image {
            Some(file) => (image::read(file)?, file.display().to_string()),
            None => (chart::noisy(), "test chart".to_owned()),
        };
        let kernels = arguments.kernels.unwrap_or(DEFAULT_KERNELS.min(image.height));
        if kernels > image.height {
            let GreyImage { height, .. } = image;
            return Err(Failure::usage(format!(
                "--kernels {kernels}: the image has {height} rows and a kernel needs at least \
                 one; ask for 1 to {height}"
            )));
        }
        let strips = Strip::split(image.width, image.height, kernels)
            .map_err(|error| Failure::usage(error.to_string()))?;
        Ok(Self {
            image,
            image_source,
            strips,
            settings,
            devices,
            drains,
            losses,
            fault: arguments.inject.map(|injection| injection.fault),
            step_limit: Duration::from_millis(arguments.step_limit_ms),
        })
    }

    /// The device that a strip starts on: neighbours share one where they can.
    pub(crate) fn device_of(&self, strip: usize) -> usize {
        strip * self.devices.len() / self.strips.len()
    }
}

fn drains(arguments: &DemoArguments, devices: usize) -> Result<Vec<Drain>, Failure> {
    if arguments.drain.is_empty() {
        // With one device there is nowhere to go, and a loss is to be seen by itself.
        let is_possible = devices > 1 && !arguments.no_drain && arguments.lose.is_empty();
        let midway = Drain { device: 0, iteration: arguments.iterations / 2 };
        return Ok(is_possible.then_some(midway).into_iter().collect());
    }
    let drains = sorted(&arguments.drain);
    for (index, drain) in drains.iter().enumerate() {
        check_mark("drain", drain, devices, arguments.iterations)?;
        if drains[..index].iter().any(|earlier| earlier.device == drain.device) {
            let Drain { device, iteration } = drain;
            return Err(Failure::usage(format!(
                "--drain {device}@{iteration}: device {device} is drained twice; a drained device \
                 is gone"
            )));
        }
    }
    if drains.len() == devices {
        return Err(Failure::usage(format!(
            "--drain: all {devices} devices are to be drained; leave at least one for the kernels"
        )));
    }
    Ok(drains)
}

fn sorted(marks: &[Drain]) -> Vec<Drain> {
    let mut marks = marks.to_vec();
    marks.sort_by_key(|mark| mark.iteration);
    marks
}

/// Checks that there is such a device and such an iteration.
fn check_mark(option: &str, mark: &Drain, devices: usize, iterations: u32) -> Result<(), Failure> {
    let Drain { device, iteration } = *mark;
    let refuse =
        |reason: String| Err(Failure::usage(format!("--{option} {device}@{iteration}: {reason}")));
    if device >= devices {
        let last = devices - 1;
        return refuse(format!("there is no device {device}; the devices are 0 to {last}"));
    }
    if iteration >= iterations {
        let last = iterations - 1;
        return refuse(format!("the work ends before that; {option} at iteration 0 to {last}"));
    }
    Ok(())
}
