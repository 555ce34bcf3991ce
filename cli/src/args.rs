//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use hopwise_topology::Format;

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
    /// Read what machines print about their links, or look at this machine, and show it
    Topo(TopoArguments),
    /// The best way for a message from one GPU to another, and why
    Route(RouteArguments),
    /// Run kernels as a scenario file says
    Run(RunArguments),
    /// Smooth an image on several devices, drain one of them meanwhile, check the result
    Demo(DemoArguments),
    /// Check copies from one GPU to another in this process, which may hang
    #[command(hide = true)]
    VerifyPair(VerifyPairArguments),
    /// Check devices by the law for backends, run the demo across them, measure them
    #[cfg(feature = "gpu-check")]
    #[command(hide = true)]
    GpuCheck(crate::gpu_check::Arguments),
}

/// Arguments of `devices`.
#[derive(Debug, Args)]
pub(crate) struct DevicesArguments {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Copy a pattern between each two CUDA devices, in a process of its own for each pair, and see
    /// whether it arrives. On a machine whose bus is set up wrongly this can hang a GPU, or all
    #[arg(long)]
    pub(crate) verify_peers: bool,
}

/// Arguments of `verify-pair`.
#[derive(Debug, Args)]
pub(crate) struct VerifyPairArguments {
    /// UUID of the GPU that is copied from
    pub(crate) from: String,
    /// UUID of the GPU that is copied to
    pub(crate) to: String,
}

/// Arguments of `topo`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct TopoArguments {
    #[command(subcommand)]
    pub(crate) command: Option<TopoCommand>,
    #[command(flatten)]
    pub(crate) show: ShowArguments,
}

/// A subcommand of `topo`.
#[derive(Debug, Subcommand)]
pub(crate) enum TopoCommand {
    /// What changed between two descriptions of one machine; exit code 1 if something got worse
    Diff(DiffArguments),
}

/// What `topo` reads, and how it shows it.
#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// What a tool printed, a directory such as a recorded sysfs, or an archive of one; `-` reads
    /// standard input [default: this machine]
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Several files are about one machine: join them
    #[arg(long)]
    pub(crate) merge: bool,
    /// The format of the files [default: what they look like]
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    pub(crate) from: Option<Format>,
    /// How to show it
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: TopologyFormat,
    /// Print one JSON object for programs
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    /// Write to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) measure: MeasureArguments,
}

/// What `topo` measures.
#[derive(Debug, Args)]
pub(crate) struct MeasureArguments {
    /// Measure how long transfers between this machine's devices and with host memory take. As a
    /// table, the figures alone; in all other formats, the machine with them
    #[arg(long, conflicts_with_all = ["files", "merge", "from"])]
    pub(crate) measure: bool,
    /// The devices to measure: KIND:COUNT, separated by commas, as in wgpu:2,host:1 [default: the
    /// GPUs of this machine and a host device, or host:3 without a GPU]
    #[arg(long, value_name = "KIND:COUNT", requires = "measure")]
    pub(crate) devices: Option<DeviceList>,
    /// Size of the largest transfer, which gives the bandwidth: bytes, or with a unit as in 16MiB
    #[arg(long, value_name = "N", default_value = "64MiB", value_parser = parse_transfer_bytes,
        requires = "measure")]
    pub(crate) bytes: u64,
}

/// How `topo` shows a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopologyFormat {
    /// Tables, as nvidia-smi prints them
    Table,
    /// What hangs on what
    Tree,
    /// Our own JSON, which keeps everything and can be read again
    Json,
    /// Graphviz
    Dot,
    /// A drawing
    Svg,
}

/// Arguments of `topo diff`.
#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// The older description
    #[arg(value_name = "OLD")]
    pub(crate) old: PathBuf,
    /// The newer description
    #[arg(value_name = "NEW")]
    pub(crate) new: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `route`.
#[derive(Debug, Args)]
pub(crate) struct RouteArguments {
    /// A description of the machine, as `topo` takes it; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Where the bytes are: a GPU by number, name, PCI address or UUID
    #[arg(value_name = "A")]
    pub(crate) from: String,
    /// Where they go
    #[arg(value_name = "B")]
    pub(crate) to: String,
    /// Size of the message, in bytes or with a unit: kB, MB, GB (powers of 1000), KiB, MiB, GiB
    #[arg(long, value_name = "N", default_value = "1MiB", value_parser = parse_bytes)]
    pub(crate) bytes: u64,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

fn parse_format(text: &str) -> Result<Format, String> {
    Format::ALL.into_iter().find(|format| format.name() == text).ok_or_else(|| {
        let names: Vec<_> = Format::ALL.iter().map(|format| format.name()).collect();
        format!("not a format; give one of {}", names.join(", "))
    })
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let unit: u64 = match text[digits..].trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "K" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        _ => return Err("not a size; write it as 4096, 64KiB or 1GB".to_owned()),
    };
    let number: u64 = text[..digits].parse().map_err(|_| "not a size; begin with a number")?;
    number.checked_mul(unit).ok_or_else(|| "more bytes than can be counted".to_owned())
}

/// A size that a transfer can have: larger ones only take longer.
fn parse_transfer_bytes(text: &str) -> Result<u64, String> {
    const ALLOWED: std::ops::RangeInclusive<u64> = (64 << 10)..=(4 << 30);
    let bytes = parse_bytes(text)?;
    if ALLOWED.contains(&bytes) { Ok(bytes) } else { Err("must be 64KiB to 4GiB".to_owned()) }
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
