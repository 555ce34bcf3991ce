//! Launching a kernel: checks, placement, its instance and its record.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex, RwLock};

use super::Fleet;
use super::error::{FleetError, LaunchError};
use super::handover::{Blueprint, create_home};
use super::kernel::{KernelCell, KernelSpec, RunState};
use super::mailbox::Mailbox;
use crate::abi::padded_parameters;
use crate::device::{Device, InitialState};
use crate::device_info::BackendKind;
use crate::error::InstanceError;
use crate::id::KernelId;
use crate::program::Program;

impl Fleet {
    /// Places a kernel, compiles its program there and creates its instance.
    ///
    /// Devices for which the program has no form, or whose largest state is too small, are left out
    /// of the choice, now and when the kernel is moved. The memory asked for is at least that of
    /// state and parameters.
    ///
    /// # Errors
    ///
    /// [`LaunchError`]; nothing of the kernel is left then.
    pub fn launch(&self, mut spec: KernelSpec) -> Result<KernelId, LaunchError> {
        let name = spec.name.clone();
        check_spec(&spec)?;
        self.exclude_unsuitable(&mut spec)?;
        let id = KernelId::new(&spec.name);
        let coordinator = &self.runtime.coordinator;
        let placement = coordinator
            .place_managed(id, &spec.options)
            .map_err(|source| LaunchError::Place { kernel: name.clone(), source })?;
        let device = placement.device;
        let launched = self.create_kernel(id, spec, device);
        if launched.is_err() {
            // The record was made a moment ago and nobody else can have removed it.
            let _ = coordinator.remove_managed(&id);
        }
        launched.map_err(|error| match error {
            FleetError::Compile(source) => LaunchError::Compile { kernel: name, device, source },
            FleetError::Instance(source) => LaunchError::Instance { kernel: name, device, source },
            FleetError::Device(source) => {
                LaunchError::Instance { kernel: name, device, source: InstanceError::from(source) }
            }
            other => LaunchError::Spec { kernel: name, reason: other.to_string() },
        })
    }

    fn create_kernel(
        &self,
        id: KernelId,
        spec: KernelSpec,
        device: usize,
    ) -> Result<KernelId, FleetError> {
        let runtime = self.runtime.device(device)?;
        let state_bytes = spec.state.len() as u64;
        let blueprint =
            Blueprint { program: &spec.program, parameters: &spec.parameters, state_bytes };
        let home = create_home(&runtime, &blueprint, InitialState::Bytes(&spec.state))?;
        let outputs = vec![None; spec.program.out_ports().len()];
        let cell = Arc::new(KernelCell {
            id,
            program: spec.program,
            parameters: spec.parameters,
            state_bytes,
            priority: spec.options.priority,
            mailbox: Arc::new(Mailbox::new(spec.mailbox_capacity, self.runtime.pulse())),
            run: Mutex::new(RunState::new(home, spec.start)),
            quiet: Condvar::new(),
            outputs: RwLock::new(outputs),
            home_device: AtomicUsize::new(device),
            retries: AtomicBool::new(false),
            steps: AtomicU64::new(0),
            last_step_ms: AtomicU64::new(0),
        });
        cell.mailbox.belongs_to(&cell);
        self.runtime.kernels.write().insert(id, Arc::clone(&cell));
        if runtime.lost.load(Ordering::Acquire)
            && let Some(cause) = runtime.device.health().cause()
        {
            // The device went between placing and inserting, so its loss did not see the kernel.
            self.runtime.lose_kernel(&cell, device, &cause.to_string());
        }
        self.runtime.settle(&cell, &mut cell.run.lock());
        Ok(id)
    }

    /// Adds to the spec's options what the fleet knows: devices that cannot run the kernel, and the
    /// memory that it takes.
    fn exclude_unsuitable(&self, spec: &mut KernelSpec) -> Result<(), LaunchError> {
        let devices = self.runtime.all_devices();
        let mut reasons = Vec::new();
        for runtime in &devices {
            if let Some(reason) =
                unsuitable(&*runtime.device, &spec.program, spec.state.len() as u64)
            {
                spec.options.excluded_devices.push(runtime.index);
                reasons.push(format!("device {}: {reason}", runtime.index));
            }
        }
        if devices.is_empty() {
            reasons.push("the fleet has no device; add one".to_owned());
        }
        if reasons.len() >= devices.len() {
            let kernel = spec.name.clone();
            return Err(LaunchError::Unsuitable { kernel, reasons: reasons.join("; ") });
        }
        let words = padded_parameters(&vec![0; spec.program.parameter_words() as usize]).len();
        let bytes = (spec.state.len() + words * 4) as u64;
        let asked = &mut spec.options.required_memory_bytes;
        *asked = bytes.max(*asked);
        Ok(())
    }
}

/// Why a device can never run a kernel; `None` when it can.
fn unsuitable(device: &dyn Device, program: &Program, state_bytes: u64) -> Option<String> {
    let backend = device.info().backend;
    let has_form = match backend {
        BackendKind::Host => program.host_function().is_some(),
        BackendKind::Wgpu => program.wgsl().is_some(),
        BackendKind::Cuda => program.cuda_c().or(program.ptx()).is_some(),
    };
    if !has_form {
        let (name, forms) = (program.name(), program.forms());
        return Some(format!(
            "program `{name}` has no form for {backend} devices; it has: {forms}"
        ));
    }
    let max_state_bytes = device.limits().max_state_bytes;
    (state_bytes > max_state_bytes)
        .then(|| InstanceError::StateTooLarge { state_bytes, max_state_bytes }.to_string())
}

fn check_spec(spec: &KernelSpec) -> Result<(), LaunchError> {
    let wrong = |reason: String| Err(LaunchError::Spec { kernel: spec.name.clone(), reason });
    let (given, declared) = (spec.parameters.len(), spec.program.parameter_words() as usize);
    if spec.state.is_empty() || !spec.state.len().is_multiple_of(4) {
        let bytes = spec.state.len();
        return wrong(format!("a state of {bytes} bytes; it must be a positive multiple of 4"));
    }
    if given > declared {
        let program = spec.program.name();
        return wrong(format!("{given} parameter words, program `{program}` declares {declared}"));
    }
    if spec.mailbox_capacity == 0 {
        return wrong("a mailbox of 0 messages; it must hold at least 1".to_owned());
    }
    Ok(())
}
