//! Steps a second: batches of kernels that each have one message.

use std::sync::Arc;

use hopwise_backend_cuda::{CudaBackend, CudaOptions, GpuFilter};
use hopwise_core::abi::{inbox, outbox};
use hopwise_core::device::{Device, InitialState, InstanceRequest, Step, StepOutcome};
use hopwise_core::program::Program;
use hopwise_core::programs::counter::{self, counter};

use super::{Measuring, Miss, Sizes, failed};
use crate::device_list::open::OpenDevice;
use crate::gpu_check::figure::{Figure, Limit, Quantity, Times};

/// Batches before anything is timed: in these a CUDA device finds out whether graphs pay.
const WARM_UP: usize = 48;

/// Kernels of `counter`, which run a batch at a time.
struct Batch {
    device: Arc<dyn Device>,
    program: Arc<Program>,
    steps: Vec<Step>,
    number: u64,
}

/// Batches of so many kernels, and on a CUDA device the same as graphs and without.
pub(super) fn measure(
    opened: &OpenDevice,
    on: &str,
    kernels: usize,
    sizes: Sizes,
) -> Measuring<Vec<Figure>> {
    let opened = &fresh(opened)?;
    let device = opened.device();
    let most = device.limits().max_batch_kernels;
    if most < kernels {
        let reason = format!("batches of {kernels} kernels: at most {most} are taken");
        return Err(Miss::LeftOut(reason));
    }
    let mut batch = Batch::new(device, kernels)?;
    for _ in 0..WARM_UP {
        batch.run()?;
    }
    let ours = Times::measure(sizes.runs, || (0..sizes.batches).try_for_each(|_| batch.run()))?;
    batch.check()?;
    let steps = Quantity::Steps((kernels * sizes.batches) as u64);
    let what = format!("steps in batches of {kernels}");
    let figure = Figure { what, on: on.to_owned(), quantity: steps, ours, limit: None };
    Ok(std::iter::once(figure).chain(graphs(opened, on, kernels)).collect())
}

/// A CUDA device that has run no batch yet: of those of one shape it keeps one time, however many
/// kernels they had. Other devices keep none.
fn fresh(opened: &OpenDevice) -> Measuring<OpenDevice> {
    let OpenDevice::Cuda(device) = opened else { return Ok(opened.clone()) };
    let options = CudaOptions::new().with_gpu(GpuFilter::Ordinal(device.facts().ordinal));
    CudaBackend::new(options).open_cuda(0).map(OpenDevice::Cuda).map_err(failed)
}

/// What the CUDA device itself timed of its batches: the quickest as a graph, beside the quickest
/// whose calls were made one by one.
fn graphs(opened: &OpenDevice, on: &str, kernels: usize) -> Option<Figure> {
    let OpenDevice::Cuda(device) = opened else { return None };
    let trials = device.graph_trials();
    let trial = trials.iter().max_by_key(|trial| trial.launches)?;
    let (graph_us, plain_us) = (trial.graph_us?, trial.plain_us?);
    let limit = Times::of(vec![plain_us])?;
    Some(Figure {
        what: format!("quickest batch of {kernels} as a CUDA graph"),
        on: on.to_owned(),
        quantity: Quantity::Time,
        ours: Times::of(vec![graph_us])?,
        limit: Some(Limit { what: "launches one by one".to_owned(), times: limit }),
    })
}

impl Batch {
    fn new(device: Arc<dyn Device>, kernels: usize) -> Measuring<Self> {
        let program = counter();
        let compiled = device.compile(&program).map_err(failed)?;
        let request = InstanceRequest {
            parameters: &[],
            state_bytes: counter::STATE_WORDS as u64 * 4,
            initial: InitialState::Zeroed,
        };
        let mut steps = Vec::new();
        for _ in 0..kernels {
            let instance = device.create_instance(&compiled, &request).map_err(failed)?;
            steps.push(Step::new(instance, Vec::new(), Vec::new()));
        }
        Ok(Self { device, program, steps, number: 0 })
    }

    fn run(&mut self) -> Measuring<()> {
        self.number += 1;
        for step in &mut self.steps {
            inbox::begin(&mut step.inbox, self.program.inbox_slot_words(), self.number, false);
            inbox::push(&mut step.inbox, counter::ADD, 1, 1, &[1, 0, 0, 0]);
            outbox::begin(&mut step.outbox, &self.program);
            step.outcome = StepOutcome::NotStarted;
        }
        self.device.run_batch(&mut self.steps).map_err(failed)
    }

    /// Every kernel has counted every batch, and answered the last.
    fn check(&self) -> Measuring<()> {
        for step in &self.steps {
            let mut count = [0; 8];
            step.instance.read_state(0, &mut count).map_err(failed)?;
            let counted = u64::from_le_bytes(count);
            let is_right = step.outcome == StepOutcome::Applied && step.outbox[0] == 1;
            if !is_right || counted != self.number {
                let Self { number, .. } = self;
                let reason = format!("a kernel counted {counted} of {number} messages");
                return Err(Miss::Failed(reason));
            }
        }
        Ok(())
    }
}
