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
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use hopwise_core::device::{KernelInstance, Step};
use hopwise_core::error::DeviceError;
use parking_lot::Mutex;

use crate::context::Entered;
use crate::core::DeviceCore;
use crate::graph::{Graphs, Way};
use crate::options::GraphUse;
use crate::owned::{DeviceBuffer, PinnedBuffer};
use crate::stream::Stream;
use launches::Launch;
use payloads::{HeldPayload, fetched, held_payloads, note_ways};
use plan::Plan;
use residents::ResidentSteps;

mod launches;
mod payloads;
mod plan;
mod residents;

/// Smallest memory of a batch: 64 KiB.
const SMALLEST_BYTES: usize = 64 << 10;

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
    use_graphs: GraphUse,
    /// Whether another GPU may write its memory at any time: it is left behind then.
    is_tainted: AtomicBool,
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
    pub(crate) fn run(
        &self,
        core: &Arc<DeviceCore>,
        steps: &mut [Step],
    ) -> Result<(), DeviceError> {
        let instances: Vec<Arc<dyn KernelInstance>> =
            steps.iter().map(|step| Arc::clone(&step.instance)).collect();
        let entered = core.context.enter()?;
        // Those that stay on the GPU work while the others are launched.
        let residents = ResidentSteps::begin(core, &entered, &instances, steps);
        let launched = self.run_launched(core, &entered, &instances, steps);
        let stayed = residents.end(&entered, steps);
        launched.and(stayed)
    }

    /// Runs the steps that are launched.
    fn run_launched(
        &self,
        core: &Arc<DeviceCore>,
        entered: &Entered<'_>,
        instances: &[Arc<dyn KernelInstance>],
        steps: &mut [Step],
    ) -> Result<(), DeviceError> {
        let plan = Plan::new(core, instances, steps)?;
        if plan.planned.is_empty() {
            return plan.busy.map_or(Ok(()), Err);
        }
        let mut bench = self.take(entered, &plan)?;
        let held = held_payloads(steps);
        let ran = bench.run(entered, core, &plan, steps, &held);
        match ran {
            Ok(()) => self.put(bench),
            // The device may go on with what was launched, in memory that must stay then.
            Err(ref error) if error.is_fatal() || bench.is_tainted.load(Ordering::Relaxed) => {
                std::mem::forget((bench, held));
            }
            // Nothing has run, and nothing more can with this stream.
            Err(_) if bench.stream.is_recording() => drop(bench),
            Err(_) => match bench.stream.drain(entered) {
                Ok(()) => self.put(bench),
                Err(_) => std::mem::forget((bench, held)),
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
                use_graphs: self.use_graphs,
                is_tainted: AtomicBool::new(false),
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

impl Bench {
    fn run(
        &mut self,
        entered: &Entered<'_>,
        core: &Arc<DeviceCore>,
        plan: &Plan<'_>,
        steps: &mut [Step],
        held: &[HeldPayload],
    ) -> Result<(), DeviceError> {
        // SAFETY: no batch is under way on this bench.
        plan.fill(self.arena.address(), steps, unsafe { self.upload.bytes_mut() });
        let fetched = fetched(plan, core, held);
        let shape = plan.launches.iter().map(|launch| launch.function.key()).collect();
        // What comes from other GPUs differs from batch to batch, and is no part of a graph.
        let use_graphs = if fetched.is_empty() { self.use_graphs } else { GraphUse::Never };
        let started = Instant::now();
        let mut ways = Vec::new();
        match self.graphs.way(&shape, use_graphs) {
            Way::Plain => {
                ways = self.bring(entered, plan, &fetched)?;
                self.issue(entered, plan, |launch| plan.mark_unknown(launch, steps))?;
            }
            Way::Graph => {
                // Recording starts nothing, so no step is unknown until the graph is launched.
                let graph = self.stream.capture(entered, || {
                    self.bring(entered, plan, &[])?;
                    self.issue(entered, plan, |_| ())
                })?;
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
        note_ways(steps, &fetched, ways);
        self.keep_payloads(entered, core, plan, steps)
    }

    /// Puts the launches and the download into the stream. `begun` is told of each launch that can
    /// have begun.
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
