//! A scenario that has been checked: names have become indices, programs have been found.

use std::time::Duration;

use hopwise_core::fleet::KernelSpec;
use hopwise_core::message::Message;

use crate::device_list::Wanted;

/// What can be run.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) step_limit: Duration,
    pub(crate) timeout: Duration,
    pub(crate) max_kernels_per_device: usize,
    pub(crate) devices: Vec<Wanted>,
    /// None is started; `starts` says which are to be.
    pub(crate) kernels: Vec<KernelSpec>,
    /// Indices of the kernels that begin without a message.
    pub(crate) starts: Vec<usize>,
    /// Names and capacities.
    pub(crate) endpoints: Vec<(String, usize)>,
    pub(crate) channels: Vec<Link>,
    pub(crate) sends: Vec<Send>,
    pub(crate) events: Vec<Event>,
}

/// A channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// Index of the sending kernel, and its out-port.
    pub(crate) from: (usize, String),
    pub(crate) to: LinkEnd,
}

/// Where a channel ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LinkEnd {
    /// Index of a kernel, and its in-port.
    Kernel(usize, String),
    /// Index of an endpoint.
    Endpoint(usize),
}

/// Messages from the host.
#[derive(Clone, Debug)]
pub(crate) struct Send {
    /// Index of the kernel, and its in-port.
    pub(crate) to: (usize, String),
    pub(crate) message: Message,
    pub(crate) count: u64,
}

/// Something done at a mark.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) mark: Mark,
    pub(crate) action: Action,
    /// Both in words, for the report.
    pub(crate) text: String,
}

/// How far the work has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// So many messages have come to the endpoint with this index.
    Messages { endpoint: usize, messages: u64 },
    /// The kernel with this index has made so many steps.
    Steps { kernel: usize, steps: u64 },
}

/// What is done. Kernels by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Drain { device: usize },
    Lose { device: usize },
    Migrate { kernel: usize, device: usize },
    Park { kernel: usize },
    Remove { kernel: usize },
}
