//! `hopwise devices`: what this machine has, through every backend, and what is missing.

use std::fs;
use std::thread;

use hopwise_backend_cuda::DriverOutcome;
use serde::Serialize;

use crate::args::DevicesArguments;
use crate::failure::Failure;
use crate::output;
use wgpu::Wgpu;

mod wgpu;

#[cfg(test)]
mod tests;

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Machine {
    host: Host,
    wgpu: Wgpu,
    cuda: Cuda,
}

/// The machine itself, which host devices share.
#[derive(Debug, Serialize)]
struct Host {
    /// Threads that can run at once; none when the system does not say.
    threads: Option<usize>,
    /// Memory that can be used without swapping; none when the system does not say.
    available_memory_bytes: Option<u64>,
    total_memory_bytes: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Cuda {
    device_count: u32,
    /// The newest CUDA version that the driver supports.
    cuda_version: Option<String>,
    missing: Vec<Missing>,
}

/// Something that is not there.
#[derive(Debug, Serialize)]
struct Missing {
    /// What.
    what: String,
    /// What was looked for, and what to do about it.
    explanation: String,
}

/// Asks every backend.
pub(crate) fn run(arguments: &DevicesArguments) -> Result<(), Failure> {
    let (wgpu, cuda) = (Wgpu::now(), hopwise_backend_cuda::probe());
    let host = Host::now();
    if arguments.json {
        return output::print_json(&Machine { host, wgpu, cuda: Cuda::from(&cuda) });
    }
    output::print(&format!(
        "host: {}\n\nwgpu:\n{}\n\ncuda:\n{}",
        host.describe(),
        indent(&wgpu.to_string()),
        indent(&cuda.to_string())
    ))
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

impl Host {
    fn now() -> Self {
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        Self {
            threads: thread::available_parallelism().ok().map(usize::from),
            available_memory_bytes: meminfo_bytes(&memory, "MemAvailable:"),
            total_memory_bytes: meminfo_bytes(&memory, "MemTotal:"),
        }
    }

    fn describe(&self) -> String {
        let threads = self.threads.map_or("an unknown number of".to_owned(), |n| n.to_string());
        let memory = match (self.total_memory_bytes, self.available_memory_bytes) {
            (Some(total), Some(free)) => format!("{} memory, {} available", gib(total), gib(free)),
            _ => "memory unknown: this system has no /proc/meminfo".to_owned(),
        };
        format!("{threads} threads, {memory}; --devices host:N makes N devices of them")
    }
}

/// Bytes in GiB, with one digit behind the point, rounded down.
fn gib(bytes: u64) -> String {
    format!("{}.{} GiB", bytes >> 30, ((bytes % (1 << 30)) * 10) >> 30)
}

/// A line of Linux's `/proc/meminfo`, which counts in KiB.
fn meminfo_bytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

impl From<&hopwise_backend_cuda::Probe> for Cuda {
    fn from(probe: &hopwise_backend_cuda::Probe) -> Self {
        let cuda_version = match &probe.driver {
            DriverOutcome::Ready { version, .. } | DriverOutcome::NoDevice { version, .. } => {
                Some(version.to_string())
            }
            _ => None,
        };
        let mut missing = Vec::new();
        let mut note = |what: &str, explanation: String| {
            missing.push(Missing { what: what.to_owned(), explanation });
        };
        if probe.driver.remedy().is_some() {
            note("CUDA driver", probe.driver.to_string());
        }
        for (what, library) in [("NVRTC", &probe.nvrtc), ("NVML", &probe.nvml)] {
            if library.is_missing() {
                note(what, library.to_string());
            }
        }
        Self { device_count: probe.device_count(), cuda_version, missing }
    }
}
