//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::demo::{Drain, Injection};
use crate::device_list::DeviceList;

/// Places GPU kernels on devices, carries their messages, and moves them live.
///
/// Exit codes: 0 done, 1 failed, 2 wrong usage.
#[derive(Debug, Parser)]
#[command(name = "hopwise", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// A subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// What this machine has, through every backend, and what is missing
    Devices(DevicesArguments),
    /// Read a topology and show it
    Topo(TopoArguments),
    /// Run kernels as a scenario file says
    Run(RunArguments),
    /// Smooth an image on several devices, drain one of them meanwhile, check the result
    Demo(DemoArguments),
}

/// Arguments of `devices`.
#[derive(Debug, Args)]
pub(crate) struct DevicesArguments {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `topo`.
#[derive(Debug, Args)]
pub(crate) struct TopoArguments {
    /// A topology as JSON (docs/topology-json.md); `-` reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// How to show it
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: TopologyFormat,
    /// Short for `--format json`
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
}

/// How `topo` shows a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopologyFormat {
    /// Tables for a person
    Table,
    /// Our own JSON
    Json,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// A scenario (docs/scenario.md)
    #[arg(value_name = "SCENARIO.toml")]
    pub(crate) scenario: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// The image to smooth: PNG, 8 or 16 bits. Colours become grey, transparency is dropped.
    /// Without it a noisy test chart of 512 x 512 pixels is made
    #[arg(long, value_name = "FILE.png")]
    pub(crate) image: Option<PathBuf>,
    /// Kernels to cut the image into, at most one a row [default: 48, or one a row]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) kernels: Option<u32>,
    /// Iterations of smoothing
    #[arg(long, value_name = "N", default_value_t = 400,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) iterations: u32,
    /// Differences of neighbours far above this many grey levels are edges and stay, 1 to 255
    #[arg(long, value_name = "LEVELS", default_value_t = 8.0)]
    pub(crate) contrast: f64,
    /// Share of a difference that flows in one iteration, 0.0005 to 0.25
    #[arg(long, value_name = "RATE", default_value_t = 0.02)]
    pub(crate) rate: f64,
    /// The devices: KIND:COUNT, separated by commas, as in wgpu:2,host:1; an adapter can be named
    /// with wgpu[NAME, INDEX or PCI ADDRESS]:1 [default: the GPUs of this machine and a host
    /// device, or host:3 without a GPU]
    #[arg(long, value_name = "KIND:COUNT")]
    pub(crate) devices: Option<DeviceList>,
    /// Drain device D once every kernel has finished iteration ITERATION, while they go on; can be
    /// given several times [default: device 0 midway]
    #[arg(long, value_name = "D@ITERATION")]
    pub(crate) drain: Vec<Drain>,
    /// Lose device D on purpose once every kernel has finished iteration ITERATION; its adapter's
    /// other devices fall with it
    #[arg(long, value_name = "D@ITERATION")]
    pub(crate) lose: Vec<Drain>,
    /// Drain no device
    #[arg(long, conflicts_with = "drain")]
    pub(crate) no_drain: bool,
    /// Where the smoothed image goes
    #[arg(long, value_name = "FILE.png", default_value = "hopwise-demo.png")]
    pub(crate) output: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Do something to the N-th message on purpose, to see the report notice it: lose@N,
    /// duplicate@N or reorder@N
    #[arg(long, value_name = "FAULT@N")]
    pub(crate) inject: Option<Injection>,
    /// How long a step may run, in milliseconds; a kernel whose step runs longer is lost
    #[arg(long, value_name = "MS", default_value_t = 5000,
        value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub(crate) step_limit_ms: u64,
}
