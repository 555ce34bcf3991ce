//! `hopwise devices`: what this machine has, through every backend, and what is missing.

use std::fs;
use std::thread;

use serde::Serialize;

use crate::args::DevicesArguments;
use crate::failure::Failure;
use crate::output;
use cuda::Cuda;
use wgpu::Wgpu;

pub(crate) mod cuda;
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
    let (wgpu, cuda) = (Wgpu::now(), Cuda::now(arguments.verify_peers)?);
    let host = Host::now();
    let is_unsound = cuda.is_any_pair_unsound();
    if arguments.json {
        output::print_json(&Machine { host, wgpu, cuda })?;
    } else {
        output::print(&format!(
            "host: {}\n\nwgpu:\n{}\n\ncuda:\n{}",
            host.describe(),
            indent(&wgpu.to_string()),
            indent(&cuda.describe())
        ))?;
    }
    if is_unsound {
        let reason = "copies between GPUs lose bytes that the driver promises to keep; see above";
        return Err(Failure::failed(reason.to_owned()));
    }
    Ok(())
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
