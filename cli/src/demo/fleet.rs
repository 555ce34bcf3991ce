//! The kernels of the demo: one for each strip of the image, wired to their neighbours.

use hopwise_core::coordinator::{LaunchOptions, MultiGpuConfig};
use hopwise_core::error::DeviceError;
use hopwise_core::fleet::{Endpoint, Fleet, KernelSpec};
use hopwise_core::id::KernelId;
use hopwise_core::programs::diffuse::{Strip, diffuse};

use super::{Plan, result};
use crate::device_list::open::{OpenDevice, open};
use crate::failure::Failure;
use crate::report::DeviceRow;

/// Progress messages that wait for the host, for each kernel: a kernel whose progress finds no room
/// does not run.
const PROGRESS_PER_KERNEL: usize = 64;

/// A fleet whose kernels smooth an image.
#[derive(Debug)]
pub(crate) struct StripFleet {
    pub(crate) fleet: Fleet,
    /// A kernel for each strip, from top to bottom.
    pub(crate) kernels: Vec<KernelId>,
    /// Where the kernels report their progress.
    pub(crate) progress: Endpoint,
    /// The devices, with the kernels that were launched on them.
    pub(crate) devices: Vec<DeviceRow>,
    /// The same devices, as what they are.
    pub(crate) opened: Vec<OpenDevice>,
}

impl StripFleet {
    /// Opens the devices, launches and wires the kernels. None has been started.
    ///
    /// # Errors
    ///
    /// [`Failure::Failed`] when the devices cannot hold the image.
    pub(crate) fn launch(plan: &Plan) -> Result<Self, Failure> {
        let opened = open(&plan.devices.0).map_err(|error| cannot_open(&error))?;
        // One device may have to take all kernels when the others are drained.
        let config = MultiGpuConfig::builder().max_kernels_per_device(plan.strips.len()).build();
        let builder = Fleet::builder().config(config).step_limit(plan.step_limit);
        let builder = match plan.fault {
            Some(fault) => builder.message_fault(fault),
            None => builder,
        };
        let builder =
            opened.iter().fold(builder, |builder, device| builder.device(device.device()));
        let fleet = builder.build().map_err(|error| cannot_open(&error))?;
        let kernels = launch_kernels(&fleet, plan)?;
        let progress = fleet.endpoint("progress", kernels.len() * PROGRESS_PER_KERNEL);
        wire(&fleet, &plan.strips, &kernels, &progress)?;
        let devices = DeviceRow::at_start(&fleet, plan.devices.len());
        Ok(Self { fleet, kernels, progress, devices, opened })
    }

    /// Lets all kernels begin. Their ports are bound by now, so nothing that they send is lost.
    pub(crate) fn start(&self) -> Result<(), Failure> {
        for kernel in &self.kernels {
            self.fleet.start(kernel).map_err(|error| Failure::failed(error.to_string()))?;
        }
        Ok(())
    }
}

fn cannot_open(error: &DeviceError) -> Failure {
    Failure::failed(format!("cannot open the devices: {error}"))
}

fn launch_kernels(fleet: &Fleet, plan: &Plan) -> Result<Vec<KernelId>, Failure> {
    let fail = |error: &dyn std::fmt::Display| Failure::failed(error.to_string());
    let program = diffuse(plan.image.width).map_err(|error| fail(&error))?;
    let mut kernels = Vec::with_capacity(plan.strips.len());
    for (index, strip) in plan.strips.iter().enumerate() {
        let grey = &plan.image.pixels[strip.pixel_range()];
        let state = strip.initial_state(grey).map_err(|error| fail(&error))?;
        let device = plan.device_of(index);
        let spec = KernelSpec::new(result::name(strip.index()), program.clone(), 0)
            .with_state(state)
            .with_parameters(strip.parameters(&plan.settings))
            .with_options(LaunchOptions::new().with_preferred_devices([device]));
        kernels.push(fleet.launch(spec).map_err(|error| fail(&error))?);
    }
    Ok(kernels)
}

fn wire(
    fleet: &Fleet,
    strips: &[Strip],
    kernels: &[KernelId],
    progress: &Endpoint,
) -> Result<(), Failure> {
    let wired = strips.iter().zip(kernels).try_for_each(|(strip, kernel)| {
        let index = strip.index() as usize;
        if strip.has_above() {
            fleet.connect(kernel, "to_above", &kernels[index - 1], "from_below")?;
        }
        if strip.has_below() {
            fleet.connect(kernel, "to_below", &kernels[index + 1], "from_above")?;
        }
        fleet.connect_endpoint(kernel, "progress", progress).map(drop)
    });
    wired.map_err(|error| Failure::failed(error.to_string()))
}
