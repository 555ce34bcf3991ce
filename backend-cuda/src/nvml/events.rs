//! What happens to GPUs while they work: the driver's errors, memory errors, losses.

use std::fmt;

use hopwise_core::health::{Degradation, DegradationKind};

use super::management::{Answer, Status};
use super::xid::{Xid, XidEffect};

/// Events of one GPU that one poll takes, at most: a GPU that reports without end keeps no other
/// from being heard.
const MOST_EVENTS: usize = 64;

/// Where events come from.
pub(super) trait EventSource: Send {
    /// The next event of a GPU, without waiting; [`Status::Timeout`] where there is none.
    fn next(&mut self, gpu: u32) -> Answer<RawEvent>;
}

/// An event as NVML tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RawEvent {
    Xid(u64),
    Corrected,
    Uncorrected,
    /// Something else.
    Other,
}

/// Something that happened to a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GpuEvent {
    /// UUID of the GPU; that of the whole GPU where it is divided.
    pub uuid: String,
    /// What happened.
    pub what: Happening,
}

/// What can happen to a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Happening {
    /// The driver reported an error.
    Xid(Xid),
    /// A memory error was corrected.
    CorrectedMemoryError,
    /// A memory error could not be corrected.
    UncorrectedMemoryError,
    /// It is lost. Told once.
    Lost {
        /// What NVML said, and the remedy.
        cause: String,
    },
    /// No events of it can be heard any more. Told once.
    Unheard {
        /// Why, and the remedy.
        why: String,
    },
}

/// What an event means for its device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// The device is lost.
    Lost {
        /// What happened, and the remedy.
        cause: String,
    },
    /// The device works on, worse than it should.
    Degraded(Degradation),
    /// A program was ended, or did wrong.
    ProcessOnly,
    /// Worth knowing, and no more.
    Informative,
}

impl GpuEvent {
    /// What it means for the device.
    #[must_use]
    pub fn effect(&self) -> Effect {
        let degraded = |kind, what: String, remedy: &str| {
            Effect::Degraded(Degradation { kind, what, remedy: remedy.to_owned() })
        };
        match &self.what {
            Happening::Xid(xid) => match xid.effect() {
                XidEffect::DeviceLost => Effect::Lost { cause: format!("{xid}; {}", xid.remedy()) },
                XidEffect::Degraded(kind) => degraded(kind, xid.to_string(), xid.remedy()),
                XidEffect::ProcessOnly => Effect::ProcessOnly,
                XidEffect::Informative => Effect::Informative,
            },
            Happening::UncorrectedMemoryError => degraded(
                DegradationKind::Memory,
                "a memory error could not be corrected".to_owned(),
                "drain the device and reset the GPU; if it comes again, have the card replaced",
            ),
            Happening::Lost { cause } => Effect::Lost { cause: cause.clone() },
            Happening::CorrectedMemoryError | Happening::Unheard { .. } => Effect::Informative,
        }
    }
}

impl fmt::Display for GpuEvent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.uuid)?;
        match &self.what {
            Happening::Xid(xid) => write!(formatter, "{xid}; {}", xid.remedy()),
            Happening::CorrectedMemoryError => formatter.write_str("a memory error was corrected"),
            Happening::UncorrectedMemoryError => {
                formatter.write_str("a memory error could not be corrected")
            }
            Happening::Lost { cause } => write!(formatter, "lost: {cause}"),
            Happening::Unheard { why } => write!(formatter, "no events can be heard: {why}"),
        }
    }
}

/// Listens to the events of GPUs.
///
/// Each GPU is listened to by itself, so that a dead one takes none of the others along.
pub struct EventWatcher {
    source: Box<dyn EventSource>,
    /// Index and UUID of each GPU that is still heard.
    heard: Vec<(u32, String)>,
    /// Told at the next poll.
    waiting: Vec<GpuEvent>,
}

impl fmt::Debug for EventWatcher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("EventWatcher").field("heard", &self.heard).finish_non_exhaustive()
    }
}

impl EventWatcher {
    pub(super) fn new(source: Box<dyn EventSource>, heard: Vec<(u32, String)>) -> Self {
        Self { source, heard, waiting: Vec::new() }
    }

    /// Tells at the next poll that a GPU cannot be listened to.
    pub(super) fn give_up(&mut self, uuid: String, why: String) {
        self.waiting.push(GpuEvent { uuid, what: Happening::Unheard { why } });
    }

    /// What happened since the last call, by GPU and then in its order. Never waits.
    ///
    /// Of several errors between two calls the driver tells the number of the last one only.
    pub fn poll(&mut self) -> Vec<GpuEvent> {
        let mut events = std::mem::take(&mut self.waiting);
        let source = &mut self.source;
        self.heard.retain(|(gpu, uuid)| {
            for _ in 0..MOST_EVENTS {
                let (what, is_end) = match source.next(*gpu) {
                    Ok(RawEvent::Xid(number)) => (Happening::Xid(Xid(number)), false),
                    Ok(RawEvent::Corrected) => (Happening::CorrectedMemoryError, false),
                    Ok(RawEvent::Uncorrected) => (Happening::UncorrectedMemoryError, false),
                    Ok(RawEvent::Other) => continue,
                    Err(fault) => {
                        let text = format!("{fault}; {}", fault.status.remedy());
                        match fault.status {
                            Status::Timeout => return true,
                            status if status.is_loss() => (Happening::Lost { cause: text }, true),
                            _ => (Happening::Unheard { why: text }, true),
                        }
                    }
                };
                events.push(GpuEvent { uuid: uuid.clone(), what });
                if is_end {
                    return false;
                }
            }
            true
        });
        events
    }

    /// UUIDs of the GPUs that are still heard.
    pub fn heard(&self) -> impl Iterator<Item = &str> {
        self.heard.iter().map(|(_, uuid)| uuid.as_str())
    }
}
