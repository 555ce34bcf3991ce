//! Workers: each gathers runnable kernels of one device, runs a batch of steps, commits.

use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;

use super::commit::{BatchEnd, Boxes, Ticket};
use super::kernel::{KernelCell, RunState};
use super::output::Output;
use super::pace::Pace;
use super::runtime::Runtime;
use crate::device::{Device, Step, StepOutcome};
use crate::error::DeviceError;

/// How long a worker is idle before it asks whether its device is still there.
const IDLE_CHECK: Duration = Duration::from_millis(250);

/// How often a worker looks whether a message has come for a kernel that has just run, before it lets
/// the kernel sleep: from about a microsecond to some fifteen. The longer waits are for kernels whose
/// sleeps turn out to be short, since waking them costs others about as much.
const LINGER_LOOKS: RangeInclusive<u32> = 32..=512;

/// A sleep, counted from the last step, that a longer look might have saved.
const SHORT_SLEEP: Duration = Duration::from_micros(30);

/// How long steps of one kernel are run in a row before they are committed.
const LONGEST_CHAIN: Duration = Duration::from_micros(20);

/// Whether a worker goes on with the kernel that it has just run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    No,
    /// There is work for it.
    Run,
    /// There may be some in a moment.
    Linger,
}

/// A device with its queue of runnable kernels and the threads that serve it.
#[derive(Debug)]
pub(crate) struct DeviceRuntime {
    pub(crate) index: usize,
    pub(crate) device: Arc<dyn Device>,
    /// Set once, when the device's kernels have been marked as lost.
    pub(crate) lost: AtomicBool,
    /// Steps committed on the device.
    pub(crate) steps: CachePadded<AtomicU64>,
    /// See [`Device::takes_device_payloads`].
    pub(crate) keeps_payloads: bool,
    /// See [`Device::reads_payloads_in_place`].
    pub(crate) reads_in_place: bool,
    /// Set when the workers are to end; they look at it before every batch.
    stopping: AtomicBool,
    tasks: Sender<Task>,
    queue: Receiver<Task>,
    workers: Mutex<Vec<Arc<Worker>>>,
}

#[derive(Debug)]
enum Task {
    Run(Arc<KernelCell>),
    /// Look at the flag.
    Wake,
}

/// What the watchdog knows about one worker thread.
#[derive(Debug, Default)]
struct Worker {
    state: Mutex<WorkerState>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct WorkerState {
    /// When the present batch began, and whose steps it runs; nobody's while an idle device is asked
    /// whether it is still there.
    running: Option<(Instant, Vec<Arc<KernelCell>>)>,
    /// The list's memory between batches.
    spare: Vec<Arc<KernelCell>>,
    /// The watchdog has given the thread up; it must touch nothing any more.
    abandoned: bool,
}

impl DeviceRuntime {
    pub(crate) fn new(index: usize, device: Arc<dyn Device>) -> Self {
        let (tasks, queue) = unbounded();
        Self {
            index,
            keeps_payloads: device.takes_device_payloads(),
            reads_in_place: device.reads_payloads_in_place(),
            device,
            lost: AtomicBool::new(false),
            steps: CachePadded::default(),
            stopping: AtomicBool::new(false),
            tasks,
            queue,
            workers: Mutex::default(),
        }
    }

    /// Puts a kernel into the queue. Never blocks.
    pub(crate) fn enqueue(&self, cell: &Arc<KernelCell>) {
        // The queue lives as long as its sender, which is here.
        let _ = self.tasks.send(Task::Run(Arc::clone(cell)));
    }

    /// Whether the worker that has just run a kernel goes on with it, where that takes nothing away
    /// from others: the kernel then counts as queued, and need not go through the queue, or to sleep
    /// and be woken again. The caller holds the kernel's lock.
    pub(crate) fn keep(&self, cell: &KernelCell, run: &mut RunState, is_free: bool) -> Keep {
        let stays = run.device() == self.index && run.queued_on.is_none() && run.can_run();
        if !is_free || !stays || !self.queue.is_empty() {
            return Keep::No;
        }
        run.queued_on = Some(self.index);
        if run.has_work(&cell.mailbox) { Keep::Run } else { Keep::Linger }
    }

    /// Waits a moment for a message to a kernel that was kept, unless something else comes up.
    /// Returns whether one came.
    fn linger(&self, cell: &KernelCell, looks: u32) -> bool {
        for _ in 0..looks {
            if cell.mailbox.len() > 0 {
                return true;
            }
            if !self.queue.is_empty() || self.stopping.load(Ordering::Relaxed) {
                return false;
            }
            std::hint::spin_loop();
        }
        false
    }

    /// Starts as many workers as the device runs steps at a time.
    pub(crate) fn start_workers(self: &Arc<Self>, runtime: &Arc<Runtime>) -> std::io::Result<()> {
        (0..self.device.info().workers.max(1)).try_for_each(|_| self.start_worker(runtime))
    }

    /// Starts one worker, unless the workers are to end.
    pub(crate) fn start_worker(self: &Arc<Self>, runtime: &Arc<Runtime>) -> std::io::Result<()> {
        let mut workers = self.workers.lock();
        if self.stopping.load(Ordering::Acquire) {
            return Ok(());
        }
        let worker = Arc::new(Worker::default());
        let (device, runtime, record) =
            (Arc::clone(self), Arc::clone(runtime), Arc::clone(&worker));
        let thread = std::thread::Builder::new()
            .name(format!("hopwise-{}", self.index))
            .spawn(move || work(&runtime, &device, &record))?;
        *worker.thread.lock() = Some(thread);
        workers.push(worker);
        Ok(())
    }

    /// Asks the workers to end after the batch that they run.
    pub(crate) fn ask_to_stop(&self) {
        let workers = self.workers.lock();
        self.stopping.store(true, Ordering::Release);
        for _ in workers.iter() {
            let _ = self.tasks.send(Task::Wake);
        }
    }

    /// Joins the workers that end until `deadline`, after [`ask_to_stop`](Self::ask_to_stop).
    /// Returns how many did not: their threads are left behind.
    pub(crate) fn join_workers(&self, deadline: Instant) -> usize {
        let workers = std::mem::take(&mut *self.workers.lock());
        let mut left_behind = 0;
        for worker in workers {
            let Some(thread) = worker.thread.lock().take() else { continue };
            while !thread.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(1));
            }
            if thread.is_finished() {
                // A panic of a worker is reported when it happens; joining only frees the thread.
                let _ = thread.join();
            } else {
                worker.state.lock().abandoned = true;
                left_behind += 1;
            }
        }
        left_behind
    }

    /// Forgets what is queued: entries hold kernels, and kernels hold this device.
    pub(crate) fn empty_queue(&self) {
        while self.queue.try_recv().is_ok() {}
    }

    /// Gives up every worker whose batch has run for longer than `limit`; returns the kernels of
    /// those batches, a list a worker.
    pub(crate) fn abandon_overdue(&self, limit: Duration) -> Vec<Vec<Arc<KernelCell>>> {
        let mut overdue = Vec::new();
        self.workers.lock().retain(|worker| {
            let mut state = worker.state.lock();
            match state.running.take_if(|(since, _)| since.elapsed() > limit) {
                Some((_, cells)) => {
                    state.abandoned = true;
                    overdue.push(cells);
                    false
                }
                None => true,
            }
        });
        overdue
    }

    /// The next kernel, or `None` when the workers are to end, or this one was given up.
    fn next(&self, worker: &Worker) -> Option<Arc<KernelCell>> {
        loop {
            let task = match self.queue.recv_timeout(IDLE_CHECK) {
                Ok(task) => task,
                Err(RecvTimeoutError::Timeout) if self.check_idle(worker) => continue,
                Err(_) => return None,
            };
            if self.stopping.load(Ordering::Acquire) {
                return None;
            }
            if let Task::Run(cell) = task {
                return Some(cell);
            }
        }
    }

    /// Lets an idle device say that it is lost: whoever listens to its latch hears of it. `false`
    /// when the driver was silent for so long that the watchdog gave this thread up.
    fn check_idle(&self, worker: &Worker) -> bool {
        if self.lost.load(Ordering::Acquire) {
            return true;
        }
        worker.begin(Instant::now(), &[]);
        let _ = catch_unwind(AssertUnwindSafe(|| self.device.poll()));
        worker.end()
    }

    fn try_next(&self) -> Option<Arc<KernelCell>> {
        match self.queue.try_recv() {
            Ok(Task::Run(cell)) => Some(cell),
            Ok(Task::Wake) => {
                let _ = self.tasks.send(Task::Wake); // for the blocking call to see
                None
            }
            Err(_) => None,
        }
    }
}

impl Worker {
    fn begin(&self, since: Instant, tickets: &[Ticket]) {
        let mut state = self.state.lock();
        let WorkerState { running, spare, .. } = &mut *state;
        let mut cells = std::mem::take(spare);
        cells.extend(tickets.iter().map(|ticket| Arc::clone(&ticket.cell)));
        *running = Some((since, cells));
    }

    /// `false` when the watchdog has given this thread up.
    fn end(&self) -> bool {
        let mut state = self.state.lock();
        if let Some((_, mut cells)) = state.running.take() {
            cells.clear();
            state.spare = cells;
        }
        !state.abandoned
    }
}

fn work(runtime: &Arc<Runtime>, device: &Arc<DeviceRuntime>, worker: &Worker) {
    let mut batch = Batch::new(runtime);
    let mut clock = None;
    loop {
        let Some(first) = batch.next(device, worker, &mut clock) else { return };
        batch.gather(runtime, device, first);
        if batch.steps.is_empty() {
            continue;
        }
        for ticket in &mut batch.tickets {
            if !ticket.effects.is_empty() {
                runtime.follow(std::mem::take(&mut ticket.effects));
            }
        }
        let started = clock.take().unwrap_or_else(Instant::now);
        worker.begin(started, &batch.tickets);
        let mut result = run_batch(device, &mut batch.steps);
        let mut ended = Instant::now();
        while result.is_ok() && batch.chain(device, ended.saturating_duration_since(started)) {
            result = run_batch(device, &mut batch.steps);
            ended = Instant::now();
        }
        batch.pace.learn(batch.steps.len(), ended.saturating_duration_since(started));
        if !worker.end() {
            return;
        }
        if let Err(error) = &result
            && error.is_fatal()
        {
            runtime.lose_device(device, error);
        }
        batch.conclude(runtime, device, ended, result.as_ref().err());
        clock = Some(ended);
    }
}

/// A worker's batch, with the memory that it uses again.
struct Batch {
    pace: Pace,
    tickets: Vec<Ticket>,
    steps: Vec<Step>,
    boxes: Boxes,
    output: Output,
    /// For how many looks the next wait for a kept kernel's message lasts.
    linger_looks: u32,
    /// Since when no message has come for the kernel that ran last.
    idle_since: Option<Instant>,
    /// The kernel that comes first in the next batch: one that wants a batch of its own, or one that
    /// has just run.
    carried: Option<(Arc<KernelCell>, Keep)>,
}

impl Batch {
    fn new(runtime: &Runtime) -> Self {
        Self {
            pace: Pace::new(runtime.step_limit),
            tickets: Vec::new(),
            steps: Vec::new(),
            boxes: Boxes::default(),
            output: Output::default(),
            linger_looks: *LINGER_LOOKS.start(),
            idle_since: None,
            carried: None,
        }
    }

    /// The kernel that comes first; `None` when the worker is to end. Forgets the time unless the
    /// next batch follows at once.
    fn next(
        &mut self,
        device: &DeviceRuntime,
        worker: &Worker,
        clock: &mut Option<Instant>,
    ) -> Option<Arc<KernelCell>> {
        if device.stopping.load(Ordering::Acquire) {
            return None;
        }
        if let Some((cell, keep)) = self.carried.take() {
            if keep == Keep::Linger {
                self.idle_since = clock.take();
                let has_come = device.linger(&cell, self.linger_looks);
                if has_come {
                    self.idle_since = None;
                }
            }
            return Some(cell);
        }
        *clock = None;
        let next = device.next(worker);
        if let Some(since) = self.idle_since.take() {
            let now = Instant::now();
            let was_short = now.saturating_duration_since(since) < SHORT_SLEEP;
            let looks = if was_short { self.linger_looks * 2 } else { self.linger_looks / 2 };
            self.linger_looks = looks.clamp(*LINGER_LOOKS.start(), *LINGER_LOOKS.end());
            *clock = Some(now);
        }
        next
    }

    /// Begins the steps of `first` and of what else is in the queue. A kernel whose step the device
    /// did not start before comes alone: it may be what keeps its neighbours from starting.
    fn gather(&mut self, runtime: &Runtime, device: &DeviceRuntime, first: Arc<KernelCell>) {
        let most = self.pace.most_kernels(device.device.limits().max_batch_kernels);
        let mut next = Some(first);
        while let Some(cell) = next {
            let alone = cell.retries.load(Ordering::Relaxed);
            if alone && !self.steps.is_empty() {
                self.carried = Some((cell, Keep::Run));
                return;
            }
            if let Some((ticket, step)) = runtime.begin_step(device, &cell, &mut self.boxes) {
                self.tickets.push(ticket);
                self.steps.push(step);
                if alone {
                    return;
                }
            }
            next = if self.steps.len() < most { device.try_next() } else { None };
        }
    }

    /// Prepares one more step of a kernel that is alone in its batch and asked to run again: quick
    /// steps in a row are committed together. Nobody waits long for them: the time is bounded, and a
    /// message for the kernel, another kernel in the queue or the end of the fleet ends the chain.
    fn chain(&mut self, device: &DeviceRuntime, took: Duration) -> bool {
        let ([ticket], [step]) = (&mut self.tickets[..], &mut self.steps[..]) else { return false };
        ticket.read(step, &mut self.output);
        let goes_on = took < LONGEST_CHAIN
            && ticket.may_chain(step, &self.output)
            && device.queue.is_empty()
            && !device.stopping.load(Ordering::Relaxed);
        if goes_on {
            ticket.chain(step);
        }
        goes_on
    }

    /// Concludes every step of the batch.
    fn conclude(
        &mut self,
        runtime: &Runtime,
        device: &Arc<DeviceRuntime>,
        at: Instant,
        failure: Option<&DeviceError>,
    ) {
        let Self { tickets, steps, boxes, output, carried, .. } = self;
        for (mut ticket, mut step) in tickets.drain(..).zip(steps.drain(..)) {
            let end = BatchEnd { at, failure, is_free: carried.is_none() };
            let keep = runtime.end_step(device, &mut ticket, &mut step, &end, output);
            boxes.push((step.inbox, step.outbox));
            if keep != Keep::No {
                *carried = Some((ticket.cell, keep));
            }
        }
    }
}

/// Runs a batch. After a loss drivers go on to return success, so the latch has the last word.
/// A panic of the backend leaves every step that it did not conclude unknown.
fn run_batch(device: &DeviceRuntime, steps: &mut [Step]) -> Result<(), DeviceError> {
    let run = AssertUnwindSafe(|| device.device.run_batch(steps));
    let result = catch_unwind(run).unwrap_or_else(|_| {
        for step in steps {
            if step.outcome == StepOutcome::NotStarted {
                step.outcome = StepOutcome::Unknown;
            }
        }
        Err(DeviceError::Driver { message: "the backend panicked in a batch".to_owned() })
    });
    device.device.health().watch(result)
}
