//! Parking a kernel on a host device, where it goes on answering.

use hopwise_core::coordinator::{DeviceState, DeviceStatus};
use hopwise_core::device_info::BackendKind;
use hopwise_core::fleet::{FleetError, KernelStatus};
use hopwise_core::id::KernelId;

use crate::error::{MigrationCause, MigrationError, Remains};
use crate::execute::{KernelMigrator, remains};
use crate::options::CancelToken;
use crate::report::{MigrationReport, Phase};

impl KernelMigrator<'_> {
    /// Moves a kernel to the least loaded host device that has room and memory for it, other than
    /// the one that it may be on.
    ///
    /// # Errors
    ///
    /// As [`migrate`](Self::migrate), and [`MigrationCause::NoHostDevice`], which names every other
    /// host device, why it cannot take the kernel, and the remedy.
    pub fn park(&self, kernel: &KernelId) -> Result<MigrationReport, MigrationError> {
        self.park_with(kernel, &CancelToken::new())
    }

    /// [`park`](Self::park), unless somebody cancels before the hand-over.
    ///
    /// # Errors
    ///
    /// As [`park`](Self::park), and [`MigrationCause::Cancelled`].
    pub fn park_with(
        &self,
        kernel: &KernelId,
        cancel: &CancelToken,
    ) -> Result<MigrationReport, MigrationError> {
        let Some(status) = self.fleet().status(kernel) else {
            let cause = MigrationCause::Fleet(FleetError::UnknownKernel { kernel: *kernel });
            return Err(nowhere(*kernel, cause, Remains::Removed));
        };
        let mut refusals = Vec::new();
        for device in self.host_devices_but(status.device) {
            let index = device.index();
            if let Some(obstacle) = self.obstacle(&device, &status) {
                refusals.push(format!("device {index} {obstacle}"));
                continue;
            }
            match self.migrate_with(kernel, index, cancel) {
                // Somebody else took the room a moment ago.
                Err(error) if error.source_running() && error.world_changed() => {
                    refusals.push(format!("device {index}: {}", error.cause));
                }
                outcome => return outcome,
            }
        }
        if refusals.is_empty() {
            refusals.push("there is none besides the kernel's own".to_owned());
        }
        let refusals = refusals.join("; ");
        let cause = MigrationCause::NoHostDevice { bytes: status.state_bytes, refusals };
        Err(nowhere(*kernel, cause, remains(self.fleet(), kernel)))
    }

    /// The host devices but one, the best first: active ones, then by load, then by index.
    fn host_devices_but(&self, own: usize) -> Vec<DeviceStatus> {
        let mut devices = self.fleet().coordinator().get_all_status();
        devices
            .retain(|device| device.info.backend == BackendKind::Host && device.info.index != own);
        let is_worse = |device: &DeviceStatus| device.state != DeviceState::Active;
        devices.sort_by(|first, second| {
            let by_state = is_worse(first).cmp(&is_worse(second));
            by_state.then(first.load().total_cmp(&second.load()))
        });
        devices
    }

    /// Why a device cannot take a kernel, as far as can be seen without trying.
    fn obstacle(&self, device: &DeviceStatus, kernel: &KernelStatus) -> Option<String> {
        if !device.state.accepts_kernels() {
            return Some(format!("is {}", device.state));
        }
        if device.room() == 0 {
            return Some(format!("is full ({} kernels at most)", device.capacity));
        }
        let open = self.fleet().device(device.index()).ok()?;
        match open.memory() {
            Ok(memory) if memory.available_bytes < kernel.state_bytes => {
                Some(format!("has {} bytes of memory left", memory.available_bytes))
            }
            Ok(_) => None,
            Err(error) => Some(format!("does not say how much memory it has: {error}")),
        }
    }
}

fn nowhere(kernel: KernelId, cause: MigrationCause, remains: Remains) -> MigrationError {
    let (phase, cause) = (Phase::Reserve, Box::new(cause));
    MigrationError { kernel, target_device: None, phase, cause, remains }
}
