//! Kernels that stay on the GPU: a step costs no launch, only a word in memory that both see.
//!
//! The kernel of an instance waits in a loop (`resident.cuh`) for the number of the next step, which
//! the host writes into page-locked memory; it runs the passes, copies what it sends into such memory,
//! and writes the number back. It ends when it is told to, when nothing was asked of it for a while,
//! and after a time in any case; the next step launches it again. So a GPU is never kept by a host
//! that is gone, and a call of the driver that waits for the device waits for a bounded time.
//!
//! Reading or writing the state ends the kernel first: it may hold words of the state in caches that
//! no copy reaches. All blocks of a resident kernel run at once, so the resident kernels of a GPU
//! share at most half of what it can hold; the other half is for ordinary launches.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::time::{Duration, Instant};

use hopwise_core::abi::{HEADER_WORDS, bytes_to_words, words_to_bytes};
use hopwise_core::error::DeviceError;

use crate::context::{Context, Entered};
use crate::driver::DriverStatus;
use crate::module::Function;
use crate::owned::{DeviceBuffer, PinnedBuffer};
use crate::prelude::{KERNEL_BYTES, KernelEntry};
use crate::stream::Stream;

/// How long a kernel waits for a step before it ends.
const IDLE: Duration = Duration::from_millis(20);

/// How long it stays at most.
const LIFE: Duration = Duration::from_millis(200);

/// How long a step is waited for without a pause.
const BRISK: Duration = Duration::from_micros(50);

/// Part of a GPU, in thousandths, that all resident kernels may hold.
const MOST_PERMILLE: u32 = 500;

/// Part that one counts for at least: few kernels stay at the same time, because streams share the
/// queues of the hardware, eight unless set otherwise, and a kernel that stays keeps its queue.
const LEAST_PERMILLE: u32 = 125;

/// Part of a GPU that one may hold: one in so many.
const SHARES: u32 = 8;

/// How often its blocks go over the invocations of a pass at most. A kernel that is larger gains more
/// from the whole GPU than from the launch that it would save. Chosen, not measured.
const MOST_ROUNDS: u64 = 64;

// Places in the memory that both see, in bytes: `hw_Control` of resident.cuh, then the tables.
const ASKED_AT: usize = 0;
const DONE_AT: usize = 4;
const STOP_AT: usize = 8;
const ENDED_AT: usize = 12;
const IDLE_AT: usize = 16;
const LIFE_AT: usize = 24;
const TABLE_AT: usize = 32;

// Places in the memory of the device, in bytes: `hw_Resident`, its words, then the outbox.
const WORDS_AT: u64 = 48;
const HEADER_AT: u64 = 64;
const SLOTS_AT: u64 = 80;

/// The resident kernel of one instance. One step at a time.
#[derive(Debug)]
pub(crate) struct Resident {
    /// `None` once it is finished.
    parts: Option<Parts>,
    /// Whether it was launched and its end was not seen.
    is_running: AtomicBool,
    /// Whether a step was asked for and its end was not seen.
    is_owed: AtomicBool,
    number: AtomicU32,
}

#[derive(Debug)]
struct Parts {
    context: Arc<Context>,
    function: Function,
    stream: Stream,
    shared: PinnedBuffer,
    /// Where the device sees it.
    seen: u64,
    device: DeviceBuffer,
    layout: Layout,
    blocks: u32,
    threads: u32,
    _share: Share,
}

/// Places in the memory that both see, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    passes: usize,
    header_in: usize,
    outbox: usize,
    inbox: usize,
    whole: usize,
}

impl Layout {
    fn new(passes: usize, outbox_words: usize, inbox_words: usize) -> Self {
        let header_in = TABLE_AT + passes * KERNEL_BYTES;
        let outbox = header_in + HEADER_WORDS * 4;
        let inbox = outbox + outbox_words * 4;
        Self { passes, header_in, outbox, inbox, whole: inbox + inbox_words * 4 }
    }
}

/// What a resident kernel is made for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) passes: usize,
    pub(crate) outbox_words: usize,
    pub(crate) inbox_words: usize,
    /// Invocations of the largest pass.
    pub(crate) invocations: u64,
    pub(crate) multiprocessors: u32,
    /// Most threads of a block that every pass allows.
    pub(crate) block_threads: u32,
}

/// One step of a resident kernel.
pub(crate) struct ResidentStep<'a> {
    pub(crate) inbox: &'a [u32],
    /// Its header is read, then header and slots are written.
    pub(crate) outbox: &'a mut [u32],
    pub(crate) slot_words: usize,
}

/// A part of a GPU, given back when dropped.
#[derive(Debug)]
struct Share {
    context: Arc<Context>,
    permille: u32,
}

impl Share {
    fn take(context: &Arc<Context>, permille: u32) -> Option<Self> {
        let fits = |held: u32| held.checked_add(permille).filter(|sum| *sum <= MOST_PERMILLE);
        let held = context.resident_permille();
        held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        Some(Self { context: Arc::clone(context), permille })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.context.resident_permille().fetch_sub(self.permille, Ordering::Relaxed);
    }
}

impl Resident {
    /// Makes a kernel ready to be launched; `None` where the GPU has no room for one more.
    pub(crate) fn new(
        entered: &Entered<'_>,
        function: Function,
        wanted: Wanted,
    ) -> Result<Option<Self>, DeviceError> {
        let threads = function.block_threads.min(wanted.block_threads);
        let per_multiprocessor = function.blocks_at_once(entered, threads)?;
        let capacity = per_multiprocessor.saturating_mul(wanted.multiprocessors);
        if capacity == 0 {
            return Ok(None);
        }
        let useful = wanted.invocations.div_ceil(threads.into()).max(1);
        let most = (capacity / SHARES).max(1);
        let blocks = u32::try_from(useful).unwrap_or(u32::MAX).min(most);
        if wanted.invocations > u64::from(blocks) * u64::from(threads) * MOST_ROUNDS {
            return Ok(None);
        }
        let permille = (blocks * 1000).div_ceil(capacity).max(LEAST_PERMILLE);
        let Some(share) = Share::take(entered.context, permille) else {
            return Ok(None);
        };
        let layout = Layout::new(wanted.passes, wanted.outbox_words, wanted.inbox_words);
        let device_bytes = SLOTS_AT + (wanted.outbox_words - HEADER_WORDS) as u64 * 4;
        let shared = PinnedBuffer::mapped(entered, layout.whole)?;
        let parts = Parts {
            context: Arc::clone(entered.context),
            function,
            stream: Stream::new(entered)?,
            seen: shared.device_address(entered)?,
            shared,
            device: DeviceBuffer::new(entered, device_bytes)?,
            layout,
            blocks,
            threads,
            _share: share,
        };
        parts.prepare(entered)?;
        let [is_running, is_owed] = [AtomicBool::new(false), AtomicBool::new(false)];
        Ok(Some(Self { parts: Some(parts), is_running, is_owed, number: AtomicU32::new(0) }))
    }

    fn parts(&self) -> &Parts {
        self.parts.as_ref().expect("the parts are taken at the end only")
    }

    /// Asks for a step. `entries` are the tables of the passes, whose boxes this fills in.
    pub(crate) fn begin(
        &self,
        entered: &Entered<'_>,
        entries: &[KernelEntry],
        step: &ResidentStep<'_>,
    ) -> Result<(), DeviceError> {
        let parts = self.parts();
        if self.is_owed.load(Ordering::Relaxed) {
            // Nobody waits for that step any more, but the kernel may still read its boxes.
            self.park(entered)?;
            self.is_owed.store(false, Ordering::Relaxed);
        }
        self.settle(entered)?;
        parts.fill(entries, step);
        let number = self.number.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        if !self.is_running.load(Ordering::Relaxed) {
            // A step that was given up before it began is not done in place of this one.
            let done = parts.word(DONE_AT).load(Ordering::Acquire);
            parts.word(ASKED_AT).store(done, Ordering::SeqCst);
            self.launch(entered)?;
        }
        self.is_owed.store(true, Ordering::Relaxed);
        // What was written before is seen by whoever sees the number.
        fence(Ordering::SeqCst);
        parts.word(ASKED_AT).store(number, Ordering::Release);
        Ok(())
    }

    /// Waits for the step that was asked for and takes what it sent.
    pub(crate) fn end(
        &self,
        entered: &Entered<'_>,
        step: &mut ResidentStep<'_>,
    ) -> Result<(), DeviceError> {
        let parts = self.parts();
        let number = self.number.load(Ordering::Relaxed);
        let started = Instant::now();
        let mut pauses = 0_u32;
        while parts.word(DONE_AT).load(Ordering::Acquire) != number {
            let waited = started.elapsed();
            if waited > entered.context.wait_limit() {
                let seconds = entered.context.wait_limit().as_secs_f64();
                let cause = format!("a resident step did not end within {seconds} seconds");
                let unresponsive = DeviceError::Unresponsive { cause };
                return entered.context.health().watch(Err(unresponsive));
            }
            if waited < BRISK {
                std::hint::spin_loop();
                continue;
            }
            pauses += 1;
            if pauses.is_multiple_of(16) {
                self.look(entered, number)?;
            }
            std::thread::sleep(Duration::from_micros(20));
        }
        fence(Ordering::SeqCst);
        self.is_owed.store(false, Ordering::Relaxed);
        parts.read(step);
        Ok(())
    }

    /// Sees whether the kernel has ended, and launches it again if it did so before the step.
    fn look(&self, entered: &Entered<'_>, number: u32) -> Result<(), DeviceError> {
        let parts = self.parts();
        if !parts.stream.is_idle(entered)? {
            return Ok(());
        }
        // It may have done the step in its last moment.
        if parts.word(DONE_AT).load(Ordering::Acquire) != number {
            self.launch(entered)?;
        }
        Ok(())
    }

    fn launch(&self, entered: &Entered<'_>) -> Result<(), DeviceError> {
        let parts = self.parts();
        parts.word(STOP_AT).store(0, Ordering::SeqCst);
        parts.word(ENDED_AT).store(0, Ordering::SeqCst);
        // SAFETY: the argument was written when the parts were made, and lives until the kernel has
        // ended or is left behind with all that it uses.
        unsafe {
            parts.function.launch_together(
                entered,
                &parts.stream,
                parts.blocks,
                parts.threads,
                parts.device.address(),
            )?;
        }
        self.is_running.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Takes note of a kernel that has ended by itself.
    fn settle(&self, entered: &Entered<'_>) -> Result<(), DeviceError> {
        let parts = self.parts();
        let has_ended = parts.word(ENDED_AT).load(Ordering::Acquire) != 0
            || parts.word(STOP_AT).load(Ordering::Relaxed) != 0;
        if has_ended && self.is_running.load(Ordering::Relaxed) {
            parts.stream.drain(entered)?;
            self.is_running.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Ends the kernel and waits for its end; the next step launches it again.
    pub(crate) fn park(&self, entered: &Entered<'_>) -> Result<(), DeviceError> {
        if self.is_running.load(Ordering::Relaxed) {
            let parts = self.parts();
            parts.word(STOP_AT).store(1, Ordering::SeqCst);
            parts.stream.drain(entered)?;
            self.is_running.store(false, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Parts {
    /// Writes what does not change: limits, and the argument.
    fn prepare(&self, entered: &Entered<'_>) -> Result<(), DeviceError> {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.put(IDLE_AT, &nanoseconds(IDLE).to_le_bytes());
        self.put(LIFE_AT, &nanoseconds(LIFE).to_le_bytes());
        let at = |offset: usize| self.seen + offset as u64;
        let fields = [
            self.seen,
            at(TABLE_AT),
            at(self.layout.header_in),
            at(self.layout.outbox),
            self.device.address() + WORDS_AT,
            0,
        ];
        // The argument goes through the memory that both see: nothing else lies there yet.
        let argument: Vec<u8> = fields.into_iter().flat_map(u64::to_le_bytes).collect();
        let bytes = usize::try_from(WORDS_AT).expect("it is small");
        let mut start = vec![0; usize::try_from(HEADER_AT).expect("it is small")];
        start[..bytes].copy_from_slice(&argument);
        let staging = PinnedBuffer::new(entered, start.len())?;
        // SAFETY: the memory is new; the copy has passed when it is given back.
        unsafe {
            staging.pointer().cast::<u8>().copy_from(start.as_ptr(), start.len());
            let (to, from) = (self.device.address(), staging.pointer().cast_const());
            self.stream.upload(entered, to, from, start.len())?;
        }
        self.stream.wait(entered).or_else(|_| self.stream.drain(entered))
    }

    fn fill(&self, entries: &[KernelEntry], step: &ResidentStep<'_>) {
        debug_assert_eq!(entries.len(), self.layout.passes, "an entry for each pass");
        let inbox = self.seen + self.layout.inbox as u64;
        for (pass, entry) in entries.iter().enumerate() {
            let mut bytes = [0; KERNEL_BYTES];
            let outbox_header = self.device.address() + HEADER_AT;
            let outbox_slots = self.device.address() + SLOTS_AT;
            KernelEntry { inbox, outbox_header, outbox_slots, ..*entry }.write(&mut bytes);
            self.put(TABLE_AT + pass * KERNEL_BYTES, &bytes);
        }
        self.put_words(self.layout.header_in, &step.outbox[..HEADER_WORDS]);
        self.put_words(self.layout.inbox, step.inbox);
    }

    /// Takes header and slots of the outbox.
    fn read(&self, step: &mut ResidentStep<'_>) {
        let (header, slots) = step.outbox.split_at_mut(HEADER_WORDS);
        self.get_words(self.layout.outbox, header);
        let sent = (header[0] as usize).min(slots.len() / step.slot_words.max(1));
        let words = sent * step.slot_words;
        self.get_words(self.layout.outbox + HEADER_WORDS * 4, &mut slots[..words]);
    }

    /// A word that the kernel reads or writes meanwhile.
    fn word(&self, at: usize) -> &AtomicU32 {
        debug_assert!(at < TABLE_AT, "control words come first");
        // SAFETY: the word lies in the allocation, which lives as long as `self`, at a multiple of
        // four; while the kernel runs it is reached through this only.
        unsafe { AtomicU32::from_ptr(self.shared.pointer().cast::<u8>().add(at).cast()) }
    }

    fn put_words(&self, at: usize, words: &[u32]) {
        let mut bytes = vec![0; words.len() * 4];
        words_to_bytes(words, &mut bytes);
        self.put(at, &bytes);
    }

    fn put(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.layout.whole, "the layout has room for it");
        // SAFETY: the range lies in the allocation; no step is under way, so the kernel reads it only
        // after it has seen the next number.
        unsafe { self.place(at).copy_from(bytes.as_ptr(), bytes.len()) };
    }

    fn get_words(&self, at: usize, words: &mut [u32]) {
        assert!(at + words.len() * 4 <= self.layout.whole, "the layout has room for it");
        let mut bytes = vec![0; words.len() * 4];
        // SAFETY: the range lies in the allocation; the step is done, so the kernel does not write.
        unsafe { self.place(at).copy_to(bytes.as_mut_ptr(), bytes.len()) };
        bytes_to_words(&bytes, words);
    }

    fn place(&self, at: usize) -> *mut u8 {
        self.shared.pointer().cast::<u8>().wrapping_add(at)
    }
}

impl Resident {
    /// Ends the kernel for good. `false` when it does not end: what it uses is left behind then, and
    /// so must be the state that it works on.
    pub(crate) fn finish(mut self) -> bool {
        let context = Arc::clone(&self.parts().context);
        let ended = !self.is_running.load(Ordering::Relaxed)
            || context.enter_quietly().and_then(|entered| self.park(&entered)).is_ok();
        let parts = self.parts.take();
        if ended {
            drop(parts);
        } else {
            std::mem::forget(parts);
        }
        ended
    }
}

impl Function {
    /// How many blocks of so many threads a multiprocessor can hold.
    fn blocks_at_once(&self, entered: &Entered<'_>, threads: u32) -> Result<u32, DeviceError> {
        let mut blocks = 0;
        let threads = i32::try_from(threads).expect("a block is small");
        entered.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", |driver| {
            // SAFETY: `blocks` lives until the call returns; the function is loaded.
            unsafe {
                (driver.cuOccupancyMaxActiveBlocksPerMultiprocessor)(
                    &raw mut blocks,
                    self.raw(),
                    threads,
                    0,
                )
            }
        })?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    /// Puts a launch into a stream whose blocks all run at the same time.
    ///
    /// # Safety
    ///
    /// As for [`launch`](Self::launch).
    unsafe fn launch_together(
        &self,
        entered: &Entered<'_>,
        stream: &Stream,
        blocks: u32,
        threads: u32,
        argument: u64,
    ) -> Result<(), DeviceError> {
        let mut argument = argument;
        let mut arguments = [(&raw mut argument).cast::<c_void>()];
        entered.call("cuLaunchCooperativeKernel", |driver| {
            // SAFETY: the function is loaded; the driver copies the argument before it returns; the
            // caller vouches for what it points to.
            unsafe {
                (driver.cuLaunchCooperativeKernel)(
                    self.raw(),
                    blocks,
                    1,
                    1,
                    threads,
                    1,
                    1,
                    0,
                    stream.raw(),
                    arguments.as_mut_ptr(),
                )
            }
        })
    }
}

impl Stream {
    /// Whether all that was put into the stream has ended.
    fn is_idle(&self, entered: &Entered<'_>) -> Result<bool, DeviceError> {
        // SAFETY: the stream is valid.
        let status = entered.status(|driver| unsafe { (driver.cuStreamQuery)(self.raw()) })?;
        match status {
            DriverStatus::SUCCESS => Ok(true),
            DriverStatus::NOT_READY => Ok(false),
            failed => entered.fail(failed, "cuStreamQuery").map(|()| true),
        }
    }
}
