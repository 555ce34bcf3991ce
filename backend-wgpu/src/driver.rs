//! One open wgpu device and its queue: calls whose errors are caught, waits that end.
//!
//! # Who polls
//!
//! The thread that waits. A thread of its own would add a change of threads to every batch, and
//! would be one more to leave behind when a device hangs. Between polls the latch is read: a wait for
//! a step that never ends is over soon after the watchdog closed the latch.
//!
//! wgpu 30 panics when a wait for a submission runs out of time while another thread's poll clears
//! the queue. So only the thread of a batch waits inside the driver, as long as any call may take:
//! when that runs out the device is given up anyway, and a thread that hangs there is the one that
//! the watchdog leaves behind. Others poll, pause, and poll again; the pauses grow with the time that
//! the work takes, and end when any thread's poll brings what is waited for.
//!
//! # What callbacks do
//!
//! wgpu calls back under its own locks. So callbacks only note what they hear; the thread that made
//! the call latches it when the call is over. An error that comes up outside of any call is kept for
//! who asks, and fails no call: what a call did is known from its own scopes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use hopwise_core::error::DeviceError;
use hopwise_core::health::DeviceHealth;
use hopwise_core::implementing::Held;
use parking_lot::Mutex;

use crate::mapping::{Mapping, not_mapped};
use crate::ready::block_on;

/// How long a wait polls without a pause: a batch of one small kernel is done by then.
const BRISK: Duration = Duration::from_micros(120);

/// Pauses between polls after that.
const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// A wgpu device with its queue.
#[derive(Debug)]
pub(crate) struct Handles {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
}

/// What everything of one logical device shares.
#[derive(Debug)]
pub(crate) struct Driver {
    handles: Held<Handles>,
    health: DeviceHealth,
    heard: Arc<Heard>,
    wait_limit: Duration,
    buffers_created: AtomicU64,
}

/// What callbacks noted.
#[derive(Debug, Default)]
struct Heard {
    lost: OnceLock<String>,
    /// The first error that no scope caught. No call is blamed for it.
    stray: Mutex<Option<String>>,
}

/// What the scopes of one call caught.
#[derive(Debug)]
struct Caught {
    validation: Option<wgpu::Error>,
    internal: Option<wgpu::Error>,
    memory: Option<wgpu::Error>,
}

impl Caught {
    fn into_error(self) -> Option<DeviceError> {
        if self.memory.is_some() {
            return Some(DeviceError::OutOfMemory { requested_bytes: 0, available_bytes: None });
        }
        let error = self.validation.or(self.internal)?;
        Some(DeviceError::Driver { message: message_of(&error) })
    }
}

/// A submission that failed.
#[derive(Debug)]
pub(crate) struct SubmitError {
    pub(crate) error: DeviceError,
    pub(crate) can_have_begun: bool,
}

impl Driver {
    pub(crate) fn new(handles: Handles, health: DeviceHealth, wait_limit: Duration) -> Self {
        let heard = Arc::new(Heard::default());
        let lost = Arc::clone(&heard);
        handles.device.set_device_lost_callback(move |reason, message| {
            // The first report counts; wgpu makes one only.
            let _ = lost.lost.set(describe_loss(reason, &message));
        });
        let stray = Arc::clone(&heard);
        handles.device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            stray.stray.lock().get_or_insert_with(|| message_of(&error));
        }));
        let handles = Held::new(handles, &health);
        Self { handles, health, heard, wait_limit, buffers_created: AtomicU64::new(0) }
    }

    pub(crate) fn health(&self) -> &DeviceHealth {
        &self.health
    }

    /// How many buffers were created so far.
    pub(crate) fn buffers_created(&self) -> u64 {
        self.buffers_created.load(Ordering::Relaxed)
    }

    /// `Ok` while the device works. Latches a loss that a callback noted.
    pub(crate) fn check(&self) -> Result<(), DeviceError> {
        if let Some(cause) = self.heard.lost.get() {
            self.health.latch(DeviceError::Lost { cause: cause.clone() });
        }
        self.health.check()
    }

    /// Calls the driver and returns what it did, or the first error that this call raised.
    ///
    /// Scopes of errors belong to their thread, so what others raise meanwhile is theirs.
    pub(crate) fn call<T>(&self, work: impl FnOnce(&Handles) -> T) -> Result<T, DeviceError> {
        self.check()?;
        let (value, caught) = self.scoped(work);
        self.check()?;
        caught.into_error().map_or(Ok(value), Err)
    }

    /// Submits commands, or says whether the driver can have begun them all the same.
    pub(crate) fn submit(
        &self,
        commands: wgpu::CommandBuffer,
    ) -> Result<wgpu::SubmissionIndex, SubmitError> {
        self.check().map_err(|error| SubmitError { error, can_have_begun: false })?;
        let (index, caught) = self.scoped(|handles| handles.queue.submit([commands]));
        // wgpu validates before it calls the driver; whatever else fails can have failed after that.
        let can_have_begun = caught.validation.is_none();
        let failed = self.check().err().or_else(|| caught.into_error());
        failed.map_or(Ok(index), |error| Err(SubmitError { error, can_have_begun }))
    }

    /// Works within scopes of its own, which catch what the work raises.
    fn scoped<T>(&self, work: impl FnOnce(&Handles) -> T) -> (T, Caught) {
        let device = &self.handles.device;
        let memory = device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let internal = device.push_error_scope(wgpu::ErrorFilter::Internal);
        let validation = device.push_error_scope(wgpu::ErrorFilter::Validation);
        let value = work(&self.handles);
        let validation = block_on(validation.pop());
        let internal = block_on(internal.pop());
        let memory = block_on(memory.pop());
        (value, Caught { validation, internal, memory })
    }

    /// The first error that was of no call's.
    pub(crate) fn stray_error(&self) -> Option<String> {
        self.heard.stray.lock().clone()
    }

    /// Keeps an error that changes nothing for the call in which it came up.
    pub(crate) fn note_stray(&self, error: &DeviceError) {
        self.heard.stray.lock().get_or_insert_with(|| error.to_string());
    }

    /// Creates a buffer, or says how much memory was asked for in vain.
    pub(crate) fn create_buffer(
        &self,
        label: &str,
        size: u64,
        usage: wgpu::BufferUsages,
    ) -> Result<Held<wgpu::Buffer>, DeviceError> {
        let descriptor =
            wgpu::BufferDescriptor { label: Some(label), size, usage, mapped_at_creation: false };
        let created = self.call(|handles| handles.device.create_buffer(&descriptor));
        self.buffers_created.fetch_add(1, Ordering::Relaxed);
        match created {
            Ok(buffer) => Ok(Held::new(buffer, &self.health)),
            Err(DeviceError::OutOfMemory { available_bytes, .. }) => {
                Err(DeviceError::OutOfMemory { requested_bytes: size, available_bytes })
            }
            Err(error) => Err(error),
        }
    }

    /// Creates a buffer that is mapped for writing, as a whole.
    pub(crate) fn create_mapped_buffer(
        &self,
        label: &str,
        size: u64,
        usage: wgpu::BufferUsages,
    ) -> Result<Held<wgpu::Buffer>, DeviceError> {
        let buffer = self.create_buffer(label, size, usage)?;
        self.map_idle(&buffer, wgpu::MapMode::Write, 0..size)?;
        Ok(buffer)
    }

    /// Maps a range of a buffer that no submission under way uses.
    pub(crate) fn map_idle(
        &self,
        buffer: &wgpu::Buffer,
        mode: wgpu::MapMode,
        range: std::ops::Range<u64>,
    ) -> Result<(), DeviceError> {
        let mapping = self.call(|_| Mapping::of(buffer.slice(range), mode))?;
        let started = Instant::now();
        self.poll_once()?;
        while !mapping.wait(Duration::from_millis(1)) {
            self.check_waited(started)?;
            self.poll_once()?;
        }
        if mapping.is_mapped() { Ok(()) } else { Err(not_mapped()) }
    }

    /// Waits for a batch, on the thread that runs it and may be left behind in it: inside the driver,
    /// which costs no processor time. Then for the batch's mappings.
    ///
    /// When the device makes no end of it within the wait limit it is taken for unresponsive.
    pub(crate) fn wait_for_batch(
        &self,
        submission: wgpu::SubmissionIndex,
        mappings: &[&Mapping],
    ) -> Result<(), DeviceError> {
        self.check()?;
        let started = Instant::now();
        let timeout = Some(self.wait_limit);
        let wait = wgpu::PollType::Wait { submission_index: Some(submission), timeout };
        self.health.watch(self.raw_poll(wait))?;
        self.check_waited(started)?;
        self.wait(mappings)
    }

    /// Waits until mappings are there, and with them the submissions that their buffers belong to.
    ///
    /// When the device makes no end of it within the wait limit it is taken for unresponsive.
    pub(crate) fn wait(&self, mappings: &[&Mapping]) -> Result<(), DeviceError> {
        let started = Instant::now();
        for mapping in mappings {
            let mut pause = Duration::ZERO;
            loop {
                self.poll_once()?;
                // Whoever polls calls back for everybody, so this can end early.
                if mapping.wait(pause) {
                    break;
                }
                // A software driver works on the threads' own processors, so a wait that goes on must
                // leave them to it; a tenth of its time is all that a pause can add to it.
                let waited = started.elapsed();
                if waited > BRISK {
                    pause = (waited / 10).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
                } else {
                    std::thread::yield_now();
                }
                self.check_waited(started)?;
            }
        }
        if mappings.iter().all(|mapping| mapping.is_mapped()) { Ok(()) } else { Err(not_mapped()) }
    }

    /// Takes the device for unresponsive when a wait lasts too long.
    fn check_waited(&self, started: Instant) -> Result<(), DeviceError> {
        if started.elapsed() > self.wait_limit {
            let seconds = self.wait_limit.as_secs_f64();
            let cause = format!("it made no end of its work within {seconds} seconds");
            self.health.latch(DeviceError::Unresponsive { cause });
        }
        self.health.check()
    }

    /// Lets the driver make progress and hear of a loss. Never waits.
    pub(crate) fn poll_once(&self) -> Result<(), DeviceError> {
        self.check()?;
        let polled = self.raw_poll(wgpu::PollType::Poll);
        self.check()?;
        self.health.watch(polled)
    }

    /// Destroys the driver's device, for a loss that is real; it is heard of through the callback.
    pub(crate) fn destroy(&self) {
        // wgpu destroys nothing while work is queued, and says so when the queue is empty.
        self.handles.device.destroy();
        let started = Instant::now();
        while self.heard.lost.get().is_none() && started.elapsed() < self.wait_limit {
            if matches!(self.raw_poll(wgpu::PollType::Poll), Err(DeviceError::Lost { .. })) {
                return;
            }
            std::thread::sleep(LONGEST_PAUSE);
        }
    }

    /// wgpu panics when the driver reports a loss to a poll.
    fn raw_poll(&self, how: wgpu::PollType) -> Result<(), DeviceError> {
        match catch_unwind(AssertUnwindSafe(|| self.handles.device.poll(how))) {
            Ok(Ok(_) | Err(wgpu::PollError::Timeout)) => Ok(()),
            Ok(Err(error)) => Err(DeviceError::Driver { message: error.to_string() }),
            Err(_) => Err(DeviceError::Lost { cause: "wgpu panicked in a poll".to_owned() }),
        }
    }
}

fn describe_loss(reason: wgpu::DeviceLostReason, message: &str) -> String {
    match reason {
        wgpu::DeviceLostReason::Destroyed => "it was destroyed".to_owned(),
        wgpu::DeviceLostReason::Unknown if message.is_empty() => {
            "the driver gives no reason".to_owned()
        }
        wgpu::DeviceLostReason::Unknown => format!("the driver says: {message}"),
    }
}

/// wgpu's words in one line.
fn message_of(error: &wgpu::Error) -> String {
    let text = error.to_string();
    let text = text.trim_start_matches("Validation Error").trim_start();
    let lines = text.trim_start_matches("Caused by:").lines().map(str::trim);
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(": ")
}
