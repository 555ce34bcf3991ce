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
        let drains = drains(arguments)?;
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
            devices: arguments.devices.clone(),
            drains,
            fault: arguments.inject.map(|injection| injection.fault),
            step_limit: Duration::from_millis(arguments.step_limit_ms),
        })
    }

    /// The device that a strip starts on: neighbours share one where they can.
    pub(crate) fn device_of(&self, strip: usize) -> usize {
        strip * self.devices.len() / self.strips.len()
    }
}

fn drains(arguments: &DemoArguments) -> Result<Vec<Drain>, Failure> {
    let devices = arguments.devices.len();
    if arguments.drain.is_empty() {
        // With one device there is nowhere to go.
        let is_possible = devices > 1 && !arguments.no_drain;
        let midway = Drain { device: 0, iteration: arguments.iterations / 2 };
        return Ok(is_possible.then_some(midway).into_iter().collect());
    }
    let mut drains = arguments.drain.clone();
    drains.sort_by_key(|drain| drain.iteration);
    for (index, &Drain { device, iteration }) in drains.iter().enumerate() {
        let refuse =
            |reason: String| Err(Failure::usage(format!("--drain {device}@{iteration}: {reason}")));
        if device >= devices {
            let last = devices - 1;
            return refuse(format!("there is no device {device}; the devices are 0 to {last}"));
        }
        if iteration >= arguments.iterations {
            let last = arguments.iterations - 1;
            return refuse(format!("the work ends before that; drain at iteration 0 to {last}"));
        }
        if drains[..index].iter().any(|earlier| earlier.device == device) {
            return refuse(format!("device {device} is drained twice; a drained device is gone"));
        }
    }
    if drains.len() == devices {
        return Err(Failure::usage(format!(
            "--drain: all {devices} devices are to be drained; leave at least one for the kernels"
        )));
    }
    Ok(drains)
}
