//! The fleet of a scenario: devices opened, kernels launched, ports bound, nothing started.

use hopwise_core::coordinator::MultiGpuConfig;
use hopwise_core::fleet::{Endpoint, Fleet, HostSender};
use hopwise_core::id::KernelId;

use crate::device_list::open::open;
use crate::failure::Failure;
use crate::report::DeviceRow;
use crate::scenario::plan::{LinkEnd, Scenario};

/// A fleet that is ready to run.
#[derive(Debug)]
pub(crate) struct Assembly {
    pub(crate) fleet: Fleet,
    /// As in the scenario.
    pub(crate) kernels: Vec<KernelId>,
    /// The device that each kernel was launched on.
    pub(crate) homes: Vec<usize>,
    /// As in the scenario.
    pub(crate) endpoints: Vec<Endpoint>,
    /// One for each send of the scenario.
    pub(crate) senders: Vec<HostSender>,
    /// The devices, with the kernels that were launched on them.
    pub(crate) devices: Vec<DeviceRow>,
}

impl Assembly {
    /// Builds the fleet.
    ///
    /// # Errors
    ///
    /// [`Failure::Failed`] when a device has no room for what is to be on it.
    pub(crate) fn build(scenario: &Scenario) -> Result<Self, Failure> {
        let opened = open(&scenario.devices).map_err(failed)?;
        let config = MultiGpuConfig::builder()
            .max_kernels_per_device(scenario.max_kernels_per_device)
            .build();
        let builder = Fleet::builder().config(config).step_limit(scenario.step_limit);
        let builder =
            opened.iter().fold(builder, |builder, device| builder.device(device.device()));
        let fleet = builder.build().map_err(failed)?;
        let specs = scenario.kernels.iter().cloned();
        let kernels = specs.map(|spec| fleet.launch(spec)).collect::<Result<Vec<_>, _>>();
        let kernels = kernels.map_err(failed)?;
        let home = |kernel| fleet.status(kernel).map_or(0, |status| status.device);
        let homes = kernels.iter().map(home).collect();
        let endpoints = scenario.endpoints.iter();
        let endpoints =
            endpoints.map(|(name, capacity)| fleet.endpoint(name.clone(), *capacity)).collect();
        let devices = DeviceRow::at_start(&fleet, scenario.devices.len());
        let mut assembly = Self { fleet, kernels, homes, endpoints, senders: Vec::new(), devices };
        assembly.wire(scenario)?;
        Ok(assembly)
    }

    fn wire(&mut self, scenario: &Scenario) -> Result<(), Failure> {
        for link in &scenario.channels {
            let (kernel, port) = (&self.kernels[link.from.0], &link.from.1);
            let bound = match &link.to {
                LinkEnd::Kernel(to, in_port) => {
                    self.fleet.connect(kernel, port, &self.kernels[*to], in_port)
                }
                LinkEnd::Endpoint(to) => {
                    self.fleet.connect_endpoint(kernel, port, &self.endpoints[*to])
                }
            };
            bound.map_err(failed)?;
        }
        for send in &scenario.sends {
            let (kernel, port) = (&self.kernels[send.to.0], &send.to.1);
            self.senders.push(self.fleet.sender("scenario", kernel, port).map_err(failed)?);
        }
        Ok(())
    }

    /// Lets the kernels begin that begin without a message.
    pub(crate) fn start(&self, scenario: &Scenario) -> Result<(), Failure> {
        let starts = scenario.starts.iter();
        starts
            .map(|kernel| &self.kernels[*kernel])
            .try_for_each(|kernel| self.fleet.start(kernel).map_err(failed))
    }
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::failed(error.to_string())
}
