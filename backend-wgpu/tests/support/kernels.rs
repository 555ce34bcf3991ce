//! A device, kernels on it, and their steps.

#![allow(dead_code, reason = "every test file uses its own part")]

use std::sync::Arc;

use hopwise_backend_wgpu::{WgpuBackend, WgpuDevice, WgpuOptions};
use hopwise_core::abi::outbox::{self, StepOutput};
use hopwise_core::abi::{bytes_to_words, inbox, words_to_bytes};
use hopwise_core::device::{
    Device, InitialState, InstanceRequest, KernelInstance, Step, StepOutcome,
};
use hopwise_core::error::{DeviceError, StepFault};
use hopwise_core::program::{Grid, Program, ProgramBuilder};

/// Opens the first adapter; says so where there is none.
pub(crate) fn open(options: WgpuOptions) -> Option<Arc<WgpuDevice>> {
    match WgpuBackend::new(options).open_wgpu(0) {
        Ok(device) => Some(device),
        Err(DeviceError::Unavailable { reason }) => {
            eprintln!("not tried: {reason}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A program with one pass over the state's words.
pub(crate) fn over_state(name: &str, body: &str) -> ProgramBuilder {
    let wgsl = format!(
        "@compute @workgroup_size(64)
        fn main(
            @builtin(global_invocation_id) id: vec3<u32>,
            @builtin(num_workgroups) groups: vec3<u32>,
        ) {{
            let i = hw_index(id, groups, 64u);
            if (i >= hw_state_words()) {{ return; }}
            {body}
        }}"
    );
    Program::builder(name).pass("main", Grid::StateWords).wgsl(wgsl)
}

/// One kernel.
pub(crate) struct Kernel {
    pub(crate) program: Arc<Program>,
    pub(crate) instance: Arc<dyn KernelInstance>,
    steps: u64,
}

impl Kernel {
    pub(crate) fn new(
        device: &dyn Device,
        program: &Arc<Program>,
        state_bytes: u64,
        initial: InitialState<'_>,
    ) -> Self {
        let compiled = device.compile(program).expect("the program fits");
        let request = InstanceRequest { parameters: &[], state_bytes, initial };
        Self::of(program, device.create_instance(&compiled, &request).expect("there is room"))
    }

    pub(crate) fn of(program: &Arc<Program>, instance: Arc<dyn KernelInstance>) -> Self {
        Self { program: Arc::clone(program), instance, steps: 0 }
    }

    /// The next step of the kernel, without messages.
    pub(crate) fn step(&mut self) -> Step {
        self.step_in(Vec::new(), Vec::new())
    }

    /// The same in memory that is used again.
    pub(crate) fn step_in(&mut self, mut inbox: Vec<u32>, mut outbox: Vec<u32>) -> Step {
        self.steps += 1;
        inbox::begin(&mut inbox, self.program.inbox_slot_words(), self.steps, true);
        outbox::begin(&mut outbox, &self.program);
        let instance = Arc::clone(&self.instance);
        Step::new(instance, inbox, outbox)
    }

    pub(crate) fn run(&mut self, device: &dyn Device) -> Result<StepOutput, StepFault> {
        let mut steps = [self.step()];
        device.run_batch(&mut steps).expect("the device works");
        match &steps[0].outcome {
            StepOutcome::Applied => outbox::read(&steps[0].outbox, &self.program),
            StepOutcome::Faulted(fault) => Err(fault.clone()),
            other => panic!("a batch that went well left a step as {other:?}"),
        }
    }

    pub(crate) fn words(&self, offset_bytes: u64, count: usize) -> Vec<u32> {
        let mut bytes = vec![0; count * 4];
        self.instance.read_state(offset_bytes, &mut bytes).expect("the state can be read");
        let mut words = vec![0; count];
        bytes_to_words(&bytes, &mut words);
        words
    }
}

pub(crate) fn to_bytes(words: &[u32]) -> Vec<u8> {
    let mut bytes = vec![0; words.len() * 4];
    words_to_bytes(words, &mut bytes);
    bytes
}
