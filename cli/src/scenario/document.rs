//! A scenario as it is written: the keys, each with its place in the text.

use hopwise_core::coordinator::KernelPriority;
use serde::Deserialize;
use toml::Spanned;

use super::problem::Problem;

/// Reads the text. Unknown keys are errors.
pub(crate) fn read(text: &str) -> Result<Document, Problem> {
    toml::from_str(text).map_err(Problem::from)
}

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    pub(crate) step_limit_ms: Option<Spanned<u64>>,
    pub(crate) timeout_s: Option<Spanned<u64>>,
    pub(crate) max_kernels_per_device: Option<Spanned<u64>>,
    #[serde(default)]
    pub(crate) device: Vec<DeviceEntry>,
    #[serde(default)]
    pub(crate) kernel: Vec<KernelEntry>,
    #[serde(default)]
    pub(crate) endpoint: Vec<EndpointEntry>,
    #[serde(default)]
    pub(crate) channel: Vec<ChannelEntry>,
    #[serde(default)]
    pub(crate) send: Vec<SendEntry>,
    #[serde(default)]
    pub(crate) event: Vec<Spanned<EventEntry>>,
}

/// `[[device]]`: one or more devices of a kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeviceEntry {
    pub(crate) kind: Spanned<String>,
    pub(crate) count: Option<Spanned<u64>>,
    pub(crate) workers: Option<Spanned<u64>>,
    pub(crate) memory_bytes: Option<Spanned<u64>>,
}

/// `[[kernel]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KernelEntry {
    pub(crate) name: Spanned<String>,
    pub(crate) program: Spanned<String>,
    pub(crate) version: Option<Spanned<u32>>,
    pub(crate) parameters: Option<Spanned<Vec<u32>>>,
    pub(crate) state_words: Option<Spanned<u64>>,
    pub(crate) state: Option<Spanned<Vec<u32>>>,
    pub(crate) device: Option<Spanned<u64>>,
    pub(crate) mailbox: Option<Spanned<u64>>,
    #[serde(default)]
    pub(crate) start: bool,
    #[serde(default)]
    pub(crate) priority: KernelPriority,
}

/// `[[endpoint]]`: where kernels send to the host.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndpointEntry {
    pub(crate) name: Spanned<String>,
    pub(crate) capacity: Option<Spanned<u64>>,
}

/// `[[channel]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChannelEntry {
    pub(crate) from: Spanned<String>,
    pub(crate) to: Spanned<String>,
}

/// `[[send]]`: messages from the host.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SendEntry {
    pub(crate) to: Spanned<String>,
    #[serde(default)]
    pub(crate) words: Vec<u32>,
    #[serde(default)]
    pub(crate) tag: u32,
    pub(crate) count: Option<Spanned<u64>>,
}

/// `[[event]]`: something done at a mark. One action each.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventEntry {
    pub(crate) after: Spanned<MarkEntry>,
    pub(crate) drain: Option<Spanned<u64>>,
    pub(crate) lose: Option<Spanned<u64>>,
    pub(crate) migrate: Option<Spanned<String>>,
    pub(crate) to: Option<Spanned<u64>>,
    pub(crate) park: Option<Spanned<String>>,
    pub(crate) remove: Option<Spanned<String>>,
}

/// `{ endpoint = "...", messages = N }` or `{ kernel = "...", steps = N }`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MarkEntry {
    pub(crate) endpoint: Option<Spanned<String>>,
    pub(crate) messages: Option<u64>,
    pub(crate) kernel: Option<Spanned<String>>,
    pub(crate) steps: Option<u64>,
}
