//! What can be typed behind `gpu-check`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::device_list::DeviceList;

/// Arguments of `gpu-check`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The devices, as `demo` takes them; a host device is added where none is named [default: all
    /// GPUs of the CUDA driver, at least two devices, and a host device]
    #[arg(long, value_name = "KIND:COUNT")]
    pub(super) devices: Option<DeviceList>,
    /// Few runs of small sizes: shows that the command works, and gives no figure for the docs
    #[arg(long)]
    pub(super) quick: bool,
    /// Run one part alone, in this process
    #[arg(long, value_enum, value_name = "PART")]
    pub(super) only: Option<Part>,
    /// Run the conformance part a second time under this compute-sanitizer
    #[arg(long, value_name = "PROGRAM", conflicts_with = "only")]
    pub(super) sanitizer: Option<PathBuf>,
    /// How long a topic of the conformance part may take on one device, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300,
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) topic_limit_s: u64,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

/// A part of the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// The law for backends, on every device
    Conformance,
    /// The demo across the devices, with drains
    Demo,
    /// Steps, messages, copies, live moves and CUDA graphs
    Measure,
}

impl Part {
    /// As it is typed.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Conformance => "conformance",
            Self::Demo => "demo",
            Self::Measure => "measure",
        }
    }

    /// How long its process may take: far more than it needs, far less than for ever.
    pub(super) fn limit(self) -> Duration {
        Duration::from_secs(match self {
            Self::Conformance | Self::Measure => 3600,
            Self::Demo => 900,
        })
    }
}

impl Arguments {
    pub(super) fn topic_limit(&self) -> Duration {
        Duration::from_secs(self.topic_limit_s)
    }
}
