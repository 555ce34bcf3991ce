//! A batch of steps: one upload, few launches, one download.
//!
//! All that the kernels of a batch receive and send lies in one piece of device memory:
//!
//! ```text
//! | tables of hw_Kernel | inboxes | outbox headers | outbox slots |
//! |---------- one upload -------------------------|
//!                                 |-------- one download ---------|
//! ```
//!
//! Kernels that run the same function in the same pass share a launch, each with an entry of the
//! launch's table: so the number of driver calls depends on the number of programs, not on the number
//! of kernels. Launches of a stream run one after the other, so each pass sees what the one before it
//! wrote.

use std::sync::Arc;
use std::time::Instant;

use hopwise_core::abi::{HEADER_WORDS, bytes_to_words, words_to_bytes};
use hopwise_core::device::{KernelInstance, Step, StepOutcome};
use hopwise_core::error::{DeviceError, StepFault, TransferError};
use hopwise_core::implementing::Ongoing;
use parking_lot::Mutex;

use crate::context::Entered;
use crate::core::DeviceCore;
use crate::graph::{Graphs, Way};
use crate::instance::CudaInstance;
use crate::module::{Function, MAX_BLOCKS};
use crate::options::GraphUse;
use crate::owned::{DeviceBuffer, PinnedBuffer};
use crate::prelude::{KERNEL_BYTES, KernelEntry};
use crate::stream::Stream;
use launches::{Launch, launches};

mod launches;

/// Smallest memory of a batch: 64 KiB.
const SMALLEST_BYTES: usize = 64 << 10;

/// Where parts of a batch's memory begin: multiples of so many bytes.
const ALIGNMENT: usize = 16;

/// What batches run with, while none does.
#[derive(Debug)]
pub(crate) struct Batches {
    use_graphs: GraphUse,
    spare: Mutex<Option<Bench>>,
}

/// A stream with the memory of a batch.
#[derive(Debug)]
struct Bench {
    stream: Stream,
    upload: PinnedBuffer,
    download: PinnedBuffer,
    arena: DeviceBuffer,
    graphs: Graphs,
}

/// One step of a batch.
struct Planned<'a> {
    /// Its place in the batch.
    position: usize,
    instance: &'a CudaInstance,
    messages: u32,
    inbox_at: usize,
    header_at: usize,
    slots_at: usize,
    _ongoing: Ongoing<'a>,
}

/// The steps of a batch that can run, and where their boxes lie.
struct Plan<'a> {
    planned: Vec<Planned<'a>>,
    launches: Vec<Launch<'a>>,
    /// Where what is uploaded ends, and where what is downloaded begins and ends.
    upload_bytes: usize,
    download_at: usize,
    whole_bytes: usize,
    /// Why a step could not begin; the others run without it.
    busy: Option<DeviceError>,
}

impl Batches {
    pub(crate) fn new(use_graphs: GraphUse) -> Self {
        Self { use_graphs, spare: Mutex::default() }
    }

    /// What was measured of graphs and of plain launches.
    pub(crate) fn graph_trials(&self) -> Vec<crate::graph::GraphTrial> {
        self.spare.lock().as_ref().map(|bench| bench.graphs.trials()).unwrap_or_default()
    }

    /// Runs one step of every instance named; all have been found to be of this device.
    ///
    /// What fails before a step's first launch leaves it not started. After that it is unknown,
    /// until what it sent has been read.
    pub(crate) fn run(&self, core: &DeviceCore, steps: &mut [Step]) -> Result<(), DeviceError> {
        let instances: Vec<Arc<dyn KernelInstance>> =
            steps.iter().map(|step| Arc::clone(&step.instance)).collect();
        let plan = Plan::new(core, &instances, steps)?;
        if plan.planned.is_empty() {
            return plan.busy.map_or(Ok(()), Err);
        }
        let entered = core.context.enter()?;
        let mut bench = self.take(&entered, &plan)?;
        let ran = bench.run(&entered, &plan, steps, self.use_graphs);
        match ran {
            Ok(()) => self.put(bench),
            // The device may go on with what was launched, in memory that must stay then.
            Err(ref error) if error.is_fatal() => std::mem::forget(bench),
            // Nothing has run, and nothing more can with this stream.
            Err(_) if bench.stream.is_recording() => drop(bench),
            Err(_) => match bench.stream.drain(&entered) {
                Ok(()) => self.put(bench),
                Err(_) => std::mem::forget(bench),
            },
        }
        ran?;
        plan.busy.map_or(Ok(()), Err)
    }

    /// Memory of at least these sizes, each as large as any batch needed.
    fn take(&self, entered: &Entered<'_>, plan: &Plan<'_>) -> Result<Bench, DeviceError> {
        let size = |bytes: usize| bytes.next_power_of_two().max(SMALLEST_BYTES);
        let (upload, whole) = (size(plan.upload_bytes), size(plan.whole_bytes));
        let download = size(plan.whole_bytes - plan.download_at);
        let spare = self.spare.lock().take();
        let Some(mut bench) = spare else {
            return Ok(Bench {
                stream: Stream::new(entered)?,
                upload: PinnedBuffer::new(entered, upload)?,
                download: PinnedBuffer::new(entered, download)?,
                arena: DeviceBuffer::new(entered, whole as u64)?,
                graphs: Graphs::default(),
            });
        };
        if bench.upload.length() < upload {
            bench.upload = PinnedBuffer::new(entered, upload)?;
        }
        if bench.download.length() < download {
            bench.download = PinnedBuffer::new(entered, download)?;
        }
        if bench.arena.bytes() < whole as u64 {
            bench.arena = DeviceBuffer::new(entered, whole as u64)?;
        }
        Ok(bench)
    }

    fn put(&self, bench: Bench) {
        let before = self.spare.lock().replace(bench);
        drop(before); // not under the lock: it calls the driver
    }
}

impl<'a> Plan<'a> {
    /// Begins every step and gives it a place. A step that cannot run stops its kernel alone, one
    /// whose state is being read or written for too long is left out of the batch.
    fn new(
        core: &DeviceCore,
        instances: &'a [Arc<dyn KernelInstance>],
        steps: &mut [Step],
    ) -> Result<Self, DeviceError> {
        let started = Instant::now();
        let mut planned = Vec::with_capacity(steps.len());
        let mut busy = None;
        for (position, (instance, step)) in instances.iter().zip(steps.iter_mut()).enumerate() {
            let instance = instance.as_any().downcast_ref::<CudaInstance>();
            let instance = instance.expect("instances were checked before the batch");
            let messages = step.inbox[0];
            if let Some(fault) = too_large(instance, messages) {
                step.outcome = StepOutcome::Faulted(fault);
                continue;
            }
            let wait = core.transfer_wait.saturating_sub(started.elapsed());
            let _ongoing = match instance.begin_step(wait) {
                Ok(ongoing) => ongoing,
                Err(TransferError::Device(error)) => return Err(error),
                Err(error) => {
                    let message = format!("step {position} of the batch could not begin: {error}");
                    busy = Some(DeviceError::Driver { message });
                    continue;
                }
            };
            let (inbox_at, header_at, slots_at) = (0, 0, 0);
            planned.push(Planned {
                position,
                instance,
                messages,
                inbox_at,
                header_at,
                slots_at,
                _ongoing,
            });
        }
        Ok(Self::lay_out(planned, steps, busy))
    }

    fn lay_out(mut planned: Vec<Planned<'a>>, steps: &[Step], busy: Option<DeviceError>) -> Self {
        let (launches, mut end) = launches(&planned);
        let mut next = |words: usize| {
            let at = end;
            end = (end + words * 4).next_multiple_of(ALIGNMENT);
            at
        };
        for planned in &mut planned {
            planned.inbox_at = next(steps[planned.position].inbox.len());
        }
        let download_at = next(0);
        for planned in &mut planned {
            planned.header_at = next(HEADER_WORDS);
        }
        let upload_bytes = next(0);
        for planned in &mut planned {
            planned.slots_at = next(planned.instance.program.boxes.outbox_slots);
        }
        let whole_bytes = next(0);
        Self { planned, launches, upload_bytes, download_at, whole_bytes, busy }
    }

    /// Writes tables, inboxes and headers as they will lie in an arena at this address.
    fn fill(&self, arena: u64, steps: &[Step], into: &mut [u8]) {
        for launch in &self.launches {
            let table = &mut into[launch.table_at..][..launch.kernels.len() * KERNEL_BYTES];
            let entries = table.chunks_exact_mut(KERNEL_BYTES).zip(&launch.kernels);
            for (entry, (kernel, invocations)) in entries {
                self.planned[*kernel].entry(arena, *invocations).write(entry);
            }
        }
        for planned in &self.planned {
            let step = &steps[planned.position];
            words_to_bytes(&step.inbox, &mut into[planned.inbox_at..][..step.inbox.len() * 4]);
            let header = &mut into[planned.header_at..][..HEADER_WORDS * 4];
            words_to_bytes(&step.outbox[..HEADER_WORDS], header);
        }
    }

    /// Takes over what every step sent.
    fn read(&self, steps: &mut [Step], download: &[u8]) {
        let part = |at: usize, words: usize| &download[at - self.download_at..][..words * 4];
        for planned in &self.planned {
            let step = &mut steps[planned.position];
            let (header, slots) = step.outbox.split_at_mut(HEADER_WORDS);
            bytes_to_words(part(planned.header_at, HEADER_WORDS), header);
            let program = &planned.instance.program.program;
            let sent = header[0].min(program.outbox_slots()) as usize;
            let words = sent * program.outbox_slot_words();
            bytes_to_words(part(planned.slots_at, words), &mut slots[..words]);
            step.outcome = StepOutcome::Applied;
        }
    }

    fn mark_unknown(&self, launch: &Launch<'_>, steps: &mut [Step]) {
        for (kernel, _) in &launch.kernels {
            steps[self.planned[*kernel].position].outcome = StepOutcome::Unknown;
        }
    }
}

impl Planned<'_> {
    fn entry(&self, arena: u64, invocations: u64) -> KernelEntry {
        let at = |offset: usize| arena + offset as u64;
        KernelEntry {
            state: self.instance.state(),
            state_words: self.instance.state_bytes() / 4,
            parameters: self.instance.parameter_block(),
            inbox: at(self.inbox_at),
            outbox_header: at(self.header_at),
            outbox_slots: at(self.slots_at),
            invocations,
        }
    }
}

impl Bench {
    fn run(
        &mut self,
        entered: &Entered<'_>,
        plan: &Plan<'_>,
        steps: &mut [Step],
        use_graphs: GraphUse,
    ) -> Result<(), DeviceError> {
        // SAFETY: no batch is under way on this bench.
        plan.fill(self.arena.address(), steps, unsafe { self.upload.bytes_mut() });
        let shape = plan.launches.iter().map(|launch| launch.function.key()).collect();
        let started = Instant::now();
        match self.graphs.way(&shape, use_graphs) {
            Way::Plain => self.issue(entered, plan, |launch| plan.mark_unknown(launch, steps))?,
            Way::Graph => {
                // Recording starts nothing, so no step is unknown until the graph is launched.
                let graph = self.stream.capture(entered, || self.issue(entered, plan, |_| ()))?;
                let ready = self.graphs.prepare(entered, &shape, graph)?;
                let launched = ready.launch(entered, &self.stream);
                if can_have_begun(&launched) {
                    for launch in &plan.launches {
                        plan.mark_unknown(launch, steps);
                    }
                }
                launched?;
            }
        }
        self.stream.wait(entered)?;
        self.graphs.note(&shape, started.elapsed());
        // SAFETY: the stream has passed every copy.
        plan.read(steps, unsafe { self.download.bytes() });
        Ok(())
    }

    /// Puts a batch into the stream. `begun` is told of each launch that can have begun.
    fn issue<'a>(
        &self,
        entered: &Entered<'_>,
        plan: &Plan<'a>,
        mut begun: impl FnMut(&Launch<'a>),
    ) -> Result<(), DeviceError> {
        let arena = self.arena.address();
        // SAFETY: arena and page-locked memory are large enough, belong to this batch, and are not
        // touched until the stream has passed; tables are in the arena, and what they point to
        // lives as long as the steps go on.
        unsafe {
            self.stream.upload(entered, arena, self.upload.pointer(), plan.upload_bytes)?;
            for launch in &plan.launches {
                let table = arena + launch.table_at as u64;
                let (grid, threads) = (launch.grid(), launch.threads);
                let launched = launch.function.launch(entered, &self.stream, grid, threads, table);
                if can_have_begun(&launched) {
                    begun(launch);
                }
                launched?;
            }
            let download = plan.whole_bytes - plan.download_at;
            let from = arena + plan.download_at as u64;
            self.stream.download(entered, self.download.pointer(), from, download)
        }
    }
}

/// The driver refuses a launch before it begins, unless the device is lost meanwhile.
fn can_have_begun(launched: &Result<(), DeviceError>) -> bool {
    launched.as_ref().err().is_none_or(DeviceError::is_fatal)
}

/// A grid that no device can index.
fn too_large(instance: &CudaInstance, messages: u32) -> Option<StepFault> {
    let passes = instance.program.program.passes().iter().zip(&instance.program.passes);
    for (pass, function) in passes {
        let wanted = instance.invocations(pass.grid, messages);
        let most = MAX_BLOCKS * u64::from(threads_of(function));
        if wanted > most {
            let message = format!(
                "pass `{}` asks for {wanted} invocations, {most} are possible; use several passes",
                pass.entry_point
            );
            return Some(StepFault::Device(DeviceError::Driver { message }));
        }
    }
    None
}

/// Threads of a block of many: what HW_PASS allows, or less where the program does.
fn threads_of(function: &Function) -> u32 {
    function.block_threads.min(256)
}
