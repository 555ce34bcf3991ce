//! The law for backends, topic by topic, on every device that the list names.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hopwise_backend_cuda::{CudaBackend, CudaOptions};
use hopwise_backend_wgpu::{WgpuBackend, WgpuOptions};
use hopwise_core::backend::Backend;
use hopwise_core::conformance::{SMALL_MEMORY_BYTES, Subject, TOPICS, Topic, within};
use hopwise_core::device::Device;
use hopwise_core::device_info::DeviceInfo;
use hopwise_core::host::{HostBackend, HostOptions};
use serde::{Deserialize, Serialize};

use super::tell;
use crate::device_list::{DeviceList, Kind};
use crate::report::table;

/// The topics that have nothing to check on a device that copies to no other.
const OF_PEERS: [&str; 2] = ["peer_copies_are_exact", "opposite_peer_copies_end"];

/// What became of every topic on every device.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Conformance {
    topics: Vec<TopicRow>,
    /// Devices that could not be listed.
    not_listed: Vec<String>,
}

/// A topic on a device.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TopicRow {
    device: String,
    topic: String,
    outcome: TopicOutcome,
    /// What is broken, or why there was nothing to check.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    time_ms: u64,
}

/// How a topic ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TopicOutcome {
    Passed,
    Failed,
    Skipped,
}

/// Checks every topic. Each has a backend of its own, since some lose its devices.
pub(super) fn run(devices: &DeviceList, limit: Duration) -> Conformance {
    let mut found = Conformance { topics: Vec::new(), not_listed: Vec::new() };
    let mut kinds: Vec<&Kind> = Vec::new();
    for wanted in &devices.0 {
        if !kinds.contains(&&wanted.kind) {
            kinds.push(&wanted.kind);
        }
    }
    for kind in kinds {
        let listed = match backend(kind).enumerate() {
            Ok(listed) => listed,
            Err(error) => {
                found.not_listed.push(format!("{kind}: {error}"));
                continue;
            }
        };
        for info in listed {
            for topic in TOPICS {
                let row = check(kind, &info, *topic, limit);
                tell(&format!("{row}"));
                found.topics.push(row);
            }
        }
    }
    found
}

/// All devices that a kind fits, with so little memory that they are driven out of it.
fn backend(kind: &Kind) -> Arc<dyn Backend> {
    match kind {
        Kind::Host => {
            Arc::new(HostBackend::new(HostOptions::new(1).with_memory_bytes(SMALL_MEMORY_BYTES)))
        }
        Kind::Wgpu(filter) => {
            let options = WgpuOptions::new().with_memory_bytes(SMALL_MEMORY_BYTES);
            let options = filter.iter().cloned().fold(options, WgpuOptions::with_adapter);
            Arc::new(WgpuBackend::new(options))
        }
        Kind::Cuda(filter) => {
            let options = CudaOptions::new().with_memory_bytes(SMALL_MEMORY_BYTES);
            let options = filter.iter().cloned().fold(options, CudaOptions::with_gpu);
            Arc::new(CudaBackend::new(options))
        }
    }
}

fn check(kind: &Kind, info: &DeviceInfo, topic: Topic, limit: Duration) -> TopicRow {
    let (kind, index) = (kind.clone(), info.index);
    let begun = Instant::now();
    // On a thread of its own with a limit; its panic comes back here.
    let checked = catch_unwind(AssertUnwindSafe(|| {
        within(limit, move || {
            // Listed and opened by one backend, as the law has it.
            let backend = backend(&kind);
            let again = backend.enumerate().expect("the devices were listed before");
            let listed = again.into_iter().find(|again| again.index == index);
            let listed = listed.expect("the device was listed before");
            let subject = Subject::open(backend, listed);
            (topic.check)(&subject);
            skipped(&kind, index, topic)
        })
    }));
    let time_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (outcome, reason) = match checked {
        Ok(None) => (TopicOutcome::Passed, None),
        Ok(skipped) => (TopicOutcome::Skipped, skipped),
        Err(panic) => (TopicOutcome::Failed, Some(words_of(&*panic))),
    };
    TopicRow {
        device: format!("{} {} ({})", info.backend, info.index, info.name),
        topic: topic.name.to_owned(),
        outcome,
        reason,
        time_ms,
    }
}

/// Why the topic had nothing to check on the device.
fn skipped(kind: &Kind, index: usize, topic: Topic) -> Option<String> {
    if !OF_PEERS.contains(&topic.name) {
        return None;
    }
    let device: Arc<dyn Device> = backend(kind).open(index).ok()?;
    device.peer_copy().is_none().then(|| "it offers no copies between devices".to_owned())
}

/// What a panic said.
fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").to_owned()
}

impl Conformance {
    fn count(&self, outcome: TopicOutcome) -> usize {
        self.topics.iter().filter(|row| row.outcome == outcome).count()
    }

    /// The whole in one line.
    pub(super) fn summary(&self) -> String {
        let [passed, failed, skipped] =
            [TopicOutcome::Passed, TopicOutcome::Failed, TopicOutcome::Skipped]
                .map(|outcome| self.count(outcome));
        format!("{passed} topics passed, {failed} failed, {skipped} had nothing to check")
    }

    /// Everything that is broken.
    pub(super) fn failures(&self) -> Vec<String> {
        let broken = self.topics.iter().filter(|row| row.outcome == TopicOutcome::Failed);
        let broken = broken.map(ToString::to_string);
        let nothing = (self.topics.is_empty() && self.not_listed.is_empty())
            .then(|| "no device was checked; name some with --devices".to_owned());
        self.not_listed.iter().cloned().chain(broken).chain(nothing).collect()
    }
}

impl fmt::Display for TopicRow {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, topic, outcome, reason, time_ms } = self;
        write!(formatter, "{device}: {topic} {outcome} in {time_ms} ms")?;
        reason.iter().try_for_each(|reason| write!(formatter, ": {reason}"))
    }
}

impl fmt::Display for TopicOutcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::Skipped => "skipped",
        })
    }
}

impl fmt::Display for Conformance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.topics.iter().map(|row| {
            let TopicRow { device, topic, outcome, time_ms, .. } = row;
            vec![device.clone(), topic.clone(), outcome.to_string(), time_ms.to_string()]
        });
        writeln!(
            formatter,
            "{}",
            table(&["device", "topic", "outcome", "ms"], 3, &rows.collect::<Vec<_>>())
        )?;
        self.not_listed.iter().try_for_each(|reason| writeln!(formatter, "{reason}"))?;
        write!(formatter, "{}", self.summary())
    }
}
