//! `hopwise topo --measure`: how long transfers between the devices really take.

use std::ops::ControlFlow;
use std::sync::Arc;

use hopwise_core::calibrate::{
    Calibration, CalibrationOptions, Measured, Outcome, PairCalibration, Way, calibrate,
};
use hopwise_core::device::Device;

use crate::args::MeasureArguments;
use crate::device_list::DeviceList;
use crate::device_list::open::open;
use crate::failure::Failure;
use crate::progress;
use crate::report::table;

/// Opens the devices and measures them. Nothing is measured unless all of them open.
pub(super) fn measure(arguments: &MeasureArguments) -> Result<Calibration, Failure> {
    let wanted = arguments.devices.clone().unwrap_or_else(DeviceList::of_this_machine);
    let opened = open(&wanted.0)
        .map_err(|error| Failure::failed(format!("cannot open the devices: {error}")))?;
    let devices: Vec<Arc<dyn Device>> = opened.iter().map(|device| device.device()).collect();
    let bar = progress::bar(0, "measurements");
    let calibration = calibrate(&devices, &options(arguments.bytes), &mut |progress| {
        bar.set_length(progress.total as u64);
        bar.set_position(progress.done as u64);
        bar.set_message(match progress.next {
            (device, None) => format!("device {device} and host memory"),
            (from, Some(to)) => format!("device {from} to {to}"),
        });
        ControlFlow::Continue(())
    });
    bar.finish_and_clear();
    Ok(calibration)
}

/// The usual sizes up to the largest one.
fn options(largest_bytes: u64) -> CalibrationOptions {
    let mut options = CalibrationOptions::default();
    options.sizes_bytes.retain(|&size| size < largest_bytes);
    options.sizes_bytes.push(largest_bytes);
    options
}

/// The figures for a person.
pub(super) fn text(calibration: &Calibration) -> String {
    let devices = calibration.devices.iter().enumerate().map(|(at, device)| {
        let cells = [at.to_string(), device.name.clone(), device.backend.to_string()];
        let figures = [&device.to_host, &device.from_host].map(figures).concat();
        cells.into_iter().chain(figures).collect()
    });
    let header = [
        "device",
        "name",
        "backend",
        "to host GB/s",
        "to host us",
        "from host GB/s",
        "from host us",
    ];
    let mut text = table(&header, 3, &devices.collect::<Vec<_>>());
    if !calibration.pairs.is_empty() {
        let rows = calibration.pairs.iter().map(|pair| {
            let cells = [way(pair).to_owned(), pair.from.to_string(), pair.to.to_string()];
            cells.into_iter().chain(figures(&pair.outcome)).collect()
        });
        let header = ["way", "from", "to", "GB/s", "us"];
        text.push_str("\n\n");
        text.push_str(&table(&header, 1, &rows.collect::<Vec<_>>()));
    }
    let (smallest, largest) = sizes(calibration);
    if largest > 0 {
        text.push_str(&format!(
            "\n\nGB/s (10^9 bytes per second) of transfers of {largest} bytes at most, us for \
             {smallest} bytes; measured at {} (seconds since 1970)",
            calibration.unix_seconds
        ));
    }
    text
}

/// What failed, or went another way than it should.
pub(super) fn problems(calibration: &Calibration) -> Vec<String> {
    let mut problems = failures(calibration);
    problems.extend(calibration.pairs.iter().filter_map(|pair| {
        let error = pair.peer_error.as_ref()?;
        let PairCalibration { from, to, .. } = pair;
        Some(format!("from device {from} to {to} the bytes went through the host: {error}"))
    }));
    problems
}

/// A failure if something could not be measured.
pub(super) fn check(calibration: &Calibration) -> Result<(), Failure> {
    match failures(calibration).len() {
        0 => Ok(()),
        count => Err(Failure::failed(format!(
            "{count} measurements failed; look at the warnings, or leave the device out with \
             --devices"
        ))),
    }
}

fn failures(calibration: &Calibration) -> Vec<String> {
    outcomes(calibration)
        .filter_map(|outcome| match outcome {
            Outcome::Failed { error } => Some(error.clone()),
            _ => None,
        })
        .collect()
}

fn outcomes(calibration: &Calibration) -> impl Iterator<Item = &Outcome> {
    let devices =
        calibration.devices.iter().flat_map(|device| [&device.to_host, &device.from_host]);
    devices.chain(calibration.pairs.iter().map(|pair| &pair.outcome))
}

/// The smallest and the largest size of all that was measured.
fn sizes(calibration: &Calibration) -> (u64, u64) {
    let sizes = || {
        let measured = outcomes(calibration).filter_map(Outcome::measured);
        measured.flat_map(|measured| measured.sizes.iter().map(|size| size.bytes))
    };
    (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0))
}

const fn way(pair: &PairCalibration) -> &'static str {
    match pair.way {
        Way::PeerCopy => "peer copy",
        Way::ThroughHost => "through host",
    }
}

fn figures(outcome: &Outcome) -> [String; 2] {
    let figure = |figure: fn(&Measured) -> f64, digits: usize| match outcome {
        Outcome::Measured(measured) => format!("{:.digits$}", figure(measured)),
        Outcome::Failed { .. } => "failed".to_owned(),
        Outcome::NotMeasured => "-".to_owned(),
    };
    [figure(Measured::bandwidth_gb_per_s, 3), figure(Measured::latency_us, 1)]
}
