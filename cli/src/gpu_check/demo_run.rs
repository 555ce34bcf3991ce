//! The demo across the devices: the first is drained, then the host, so that kernels move both ways.

use std::path::PathBuf;
use std::{env, fmt, fs, process};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::args::DemoArguments;
use crate::demo::{self, Drain, Plan};
use crate::device_list::{DeviceList, Kind};
use crate::failure::Failure;
use crate::output;

/// How long a step may run.
const STEP_LIMIT_MS: u64 = 20_000;

/// What came of the demo.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct DemoRun {
    /// Whether the kernels' result equals a plain loop's, bit for bit.
    verified: bool,
    /// What went wrong on the way.
    failures: Vec<String>,
    /// How long the kernels worked.
    elapsed_ms: u64,
    messages_delivered: u64,
    /// Kernels that moved, by the backends of the devices that they left and came to.
    moves: Vec<MoveCount>,
}

/// Kernels that moved from one backend to another.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct MoveCount {
    from: String,
    to: String,
    kernels: u64,
}

/// Runs the demo in this process.
///
/// # Errors
///
/// [`Failure`] when it could not be started.
pub(super) fn run(devices: &DeviceList, quick: bool) -> Result<DemoRun, Failure> {
    let iterations = if quick { 24 } else { 400 };
    let picture = Picture::new();
    let plan = Plan::new(&DemoArguments {
        image: None,
        kernels: quick.then_some(6),
        iterations,
        contrast: 8.0,
        rate: 0.02,
        devices: Some(devices.clone()),
        drain: drains(devices, iterations),
        lose: Vec::new(),
        no_drain: false,
        output: picture.0.clone(),
        json: true,
        inject: None,
        step_limit_ms: STEP_LIMIT_MS,
    })?;
    let outcome = demo::run(&plan, &picture.0)?;
    DemoRun::read(&output::json(&outcome)?)
}

/// The first device a third of the way; a host device two thirds of it, where others are left.
fn drains(devices: &DeviceList, iterations: u32) -> Vec<Drain> {
    let host = devices.0.iter().rposition(|wanted| wanted.kind == Kind::Host);
    let host = host.filter(|host| *host > 0 && devices.len() > 2);
    let mut drains = Vec::new();
    if devices.len() > 1 {
        drains.push(Drain { device: 0, iteration: iterations / 3 });
    }
    drains.extend(host.map(|device| Drain { device, iteration: iterations * 2 / 3 }));
    drains
}

/// The picture that the demo writes, which nobody keeps.
struct Picture(PathBuf);

impl Picture {
    fn new() -> Self {
        Self(env::temp_dir().join(format!("hopwise-gpu-check-{}.png", process::id())))
    }
}

impl Drop for Picture {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0); // it may not have been written
    }
}

impl DemoRun {
    /// Reads the demo's own report.
    fn read(report: &str) -> Result<Self, Failure> {
        let report: Value = serde_json::from_str(report)
            .map_err(|error| Failure::failed(format!("the demo's report is no JSON: {error}")))?;
        let list = |key: &str| report[key].as_array().cloned().unwrap_or_default();
        let backend = |index: &Value| {
            let index = index.as_u64().and_then(|index| usize::try_from(index).ok());
            let name = index.and_then(|index| report["devices"][index]["backend"].as_str());
            name.unwrap_or("?").to_owned()
        };
        let mut moves: Vec<MoveCount> = Vec::new();
        for one in list("migrations") {
            let (from, to) = (backend(&one["from"]), backend(&one["to"]));
            match moves.iter_mut().find(|known| known.from == from && known.to == to) {
                Some(known) => known.kernels += 1,
                None => moves.push(MoveCount { from, to, kernels: 1 }),
            }
        }
        let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
        Ok(Self {
            verified: report["verified"] == Value::Bool(true),
            failures: list("failures").iter().filter_map(text).collect(),
            elapsed_ms: report["elapsed_ms"].as_u64().unwrap_or(0),
            messages_delivered: report["messages"]["delivered"].as_u64().unwrap_or(0),
            moves,
        })
    }

    /// Every reason to call it a failure.
    pub(super) fn failures(&self) -> Vec<String> {
        let wrong = (!self.verified).then(|| {
            "the demo's result is not what a plain loop gives; `hopwise demo --json` with the same \
             devices shows where"
                .to_owned()
        });
        wrong.into_iter().chain(self.failures.iter().cloned()).collect()
    }
}

impl fmt::Display for DemoRun {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verified, elapsed_ms, messages_delivered, moves, .. } = self;
        let verified = if *verified { "verified" } else { "NOT verified" };
        write!(formatter, "{verified}, {messages_delivered} messages in {elapsed_ms} ms")?;
        for MoveCount { from, to, kernels } in moves {
            write!(formatter, ", moved from {from} to {to}: {kernels}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_leave_the_first_device_and_the_host() {
        let drained = |text: &str| {
            let drains = drains(&text.parse().unwrap(), 30);
            drains.iter().map(|drain| (drain.device, drain.iteration)).collect::<Vec<_>>()
        };
        assert_eq!(drained("cuda:2,host:1"), [(0, 10), (2, 20)]);
        assert_eq!(drained("host:3"), [(0, 10), (2, 20)]);
        assert_eq!(drained("wgpu:1,host:1"), [(0, 10)], "somebody must be left");
        assert_eq!(drained("host:1"), []);
    }

    #[test]
    fn a_result_that_is_not_verified_is_a_failure() {
        let report = r#"{"verified": false, "failures": [], "devices": [{"backend": "cuda"},
            {"backend": "host"}], "migrations": [{"from": 0, "to": 1}, {"from": 0, "to": 1}]}"#;
        let run = DemoRun::read(report).unwrap();
        assert_eq!(run.failures().len(), 1);
        assert_eq!(run.moves, [MoveCount { from: "cuda".into(), to: "host".into(), kernels: 2 }]);
        assert!(run.to_string().starts_with("NOT verified"), "{run}");
    }
}
