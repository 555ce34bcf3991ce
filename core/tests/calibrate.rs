//! Calibration: its shape, its units, and devices that fail meanwhile. No test asks for a speed.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use hopwise_core::backend::Backend;
use hopwise_core::calibrate::{
    Calibration, CalibrationOptions, Outcome, Progress, SizeTime, Way, calibrate,
};
use hopwise_core::device::Device;
use hopwise_core::error::DeviceError;
use hopwise_core::fault::{FaultAction, FaultPlan, FaultRule, FaultyBackend, Operation};
use hopwise_core::host::{HostBackend, HostOptions};
use hopwise_topology::{GpuTopology, InterconnectType, Machine, Provenance, Quality};

fn options() -> CalibrationOptions {
    CalibrationOptions {
        sizes_bytes: vec![1, 4096, 40_001],
        least_time: Duration::ZERO,
        samples: 3,
    }
}

fn host_devices(count: usize) -> Vec<Arc<dyn Device>> {
    let backend = HostBackend::new(HostOptions::new(count));
    (0..count).map(|ordinal| backend.open(ordinal).unwrap()).collect()
}

/// Devices that a plan disturbs.
fn faulty_devices(count: usize) -> (Vec<Arc<dyn Device>>, Arc<FaultPlan>) {
    let plan = FaultPlan::new();
    let host = Arc::new(HostBackend::new(HostOptions::new(count)));
    let backend = FaultyBackend::new(host, Arc::clone(&plan));
    ((0..count).map(|ordinal| backend.open(ordinal).unwrap()).collect(), plan)
}

fn all(devices: &[Arc<dyn Device>]) -> Calibration {
    calibrate(devices, &options(), &mut |_| ControlFlow::Continue(()))
}

fn fail(operation: Operation) -> FaultRule {
    let error = DeviceError::Driver { message: "refused".to_owned() };
    FaultRule::new(FaultAction::Fail(error)).on(operation)
}

/// Every figure is there, positive and finite, for the sizes that were asked for in whole words.
fn check(outcome: &Outcome) {
    let measured = outcome.measured().unwrap_or_else(|| panic!("{outcome:?}"));
    let sizes: Vec<u64> = measured.sizes.iter().map(|size| size.bytes).collect();
    assert_eq!(sizes, [16, 4096, 40_004], "ascending, words, not below the least state");
    for SizeTime { median_us, transfers, .. } in &measured.sizes {
        assert!(*median_us > 0.0 && median_us.is_finite());
        assert_eq!(*transfers, 3, "one for each sample where there is no least time");
    }
    assert_eq!(measured.latency_us(), measured.sizes[0].median_us);
    let expected = 40_004.0 / 1000.0 / measured.sizes[2].median_us;
    assert!((measured.bandwidth_gb_per_s() - expected).abs() <= expected * 1e-12);
}

#[test]
fn every_device_and_every_ordered_pair_is_measured() {
    let devices = host_devices(3);
    let before: Vec<_> = devices.iter().map(|device| device.memory().unwrap()).collect();
    let mut seen = Vec::new();
    let calibration = calibrate(&devices, &options(), &mut |progress| {
        seen.push(*progress);
        ControlFlow::Continue(())
    });
    assert!(calibration.is_complete);
    let pairs: Vec<_> = calibration.pairs.iter().map(|pair| (pair.from, pair.to)).collect();
    assert_eq!(pairs, [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]);
    for pair in &calibration.pairs {
        assert_eq!((pair.way, &pair.peer_error), (Way::PeerCopy, &None));
        check(&pair.outcome);
    }
    for device in &calibration.devices {
        check(&device.to_host);
        check(&device.from_host);
    }
    assert_eq!(seen.len(), 9);
    assert_eq!(seen[0], Progress { done: 0, total: 9, next: (0, None) });
    assert_eq!(seen[8], Progress { done: 8, total: 9, next: (2, Some(1)) });
    let after: Vec<_> = devices.iter().map(|device| device.memory().unwrap()).collect();
    assert_eq!(after, before, "all memory is free again");
}

#[test]
fn a_transfer_is_repeated_until_the_least_time_has_passed() {
    let options = CalibrationOptions {
        sizes_bytes: vec![16],
        least_time: Duration::from_millis(20),
        samples: 1,
    };
    let calibration = calibrate(&host_devices(1), &options, &mut |_| ControlFlow::Continue(()));
    let measured = calibration.devices[0].to_host.measured().unwrap();
    let [SizeTime { median_us, transfers, .. }] = measured.sizes[..] else { panic!("one size") };
    let whole_us = median_us * u32::try_from(transfers).map(f64::from).unwrap();
    assert!(whole_us >= 19_999.0, "{transfers} transfers of {median_us} us");
}

#[test]
fn what_was_measured_is_measured_in_the_topology() {
    let calibration = all(&host_devices(2));
    let machine = Machine::merge(&[calibration.reading()]);
    let names: Vec<_> = machine.gpus().iter().map(|&gpu| machine.name(gpu)).collect();
    assert_eq!(names, ["host 0", "host 1"]);
    let measured = |provenance: &Provenance| {
        *provenance == Provenance::Measured { unix_seconds: calibration.unix_seconds }
    };
    let link = machine.topology().connection(0, 1).unwrap();
    assert_eq!(link.kind, InterconnectType::HostMemory);
    assert!(measured(link.bandwidth.provenance()) && measured(link.latency.provenance()));
    let host = machine.topology().host_link(1).unwrap();
    for figures in [&host.to_host, &host.from_host] {
        assert!(measured(figures.bandwidth.provenance()), "{host:?}");
    }

    let mut topology = GpuTopology::new(0..2);
    calibration.apply(&mut topology).unwrap();
    assert_eq!(topology.connection(1, 0).unwrap().latency.quality(), Quality::Measured);
    let due = calibration.devices[1].from_host.measured().unwrap().bandwidth_gb_per_s();
    assert_eq!(topology.host_link(1).unwrap().from_host.bandwidth.value(), Some(due));
    assert!(calibration.apply(&mut GpuTopology::new([0])).is_err(), "device 1 is not in it");
}

#[test]
fn it_is_a_value_that_can_be_kept() {
    let (devices, plan) = faulty_devices(2);
    plan.arm(fail(Operation::PeerCopy));
    let calibration = all(&devices);
    let text = serde_json::to_string(&calibration).unwrap();
    assert_eq!(serde_json::from_str::<Calibration>(&text).unwrap(), calibration);
    assert!(text.contains("\"through_host\"") && text.contains("\"peer_copy\""), "{text}");
}

#[test]
fn a_copy_between_peers_that_fails_goes_through_the_host_and_says_so() {
    let (devices, plan) = faulty_devices(2);
    plan.arm(fail(Operation::PeerCopy).at_device(0));
    let calibration = all(&devices);
    let [there, back] = &calibration.pairs[..] else { panic!("two pairs") };
    assert_eq!(there.way, Way::ThroughHost);
    let error = there.peer_error.as_deref().unwrap();
    assert!(error.contains("device 0 (host 0)") && error.contains("refused"), "{error}");
    check(&there.outcome);
    assert_eq!(back.way, Way::PeerCopy);
    let machine = Machine::merge(&[calibration.reading()]);
    let stated = |from, to| machine.statements(from, to).count();
    assert_eq!((stated(0, 1), stated(1, 0)), (0, 3), "a way through the host is no connection");
    assert_eq!(calibration.connections(&GpuTopology::new(0..2)).len(), 1);
}

#[test]
fn bytes_that_arrive_changed_have_no_figure() {
    let (devices, plan) = faulty_devices(2);
    let corrupt = FaultRule::new(FaultAction::Corrupt).at_device(0).times(u64::MAX);
    plan.arm(corrupt.on(Operation::PeerCopy));
    let calibration = all(&devices);
    let error = calibration.pairs[0].peer_error.as_deref().unwrap();
    assert!(error.contains("is not what was sent"), "{error}");
    check(&calibration.pairs[0].outcome);

    let (devices, plan) = faulty_devices(1);
    plan.arm(FaultRule::new(FaultAction::Corrupt).on(Operation::ReadState).times(u64::MAX));
    let calibration = all(&devices);
    let Outcome::Failed { error } = &calibration.devices[0].to_host else { panic!("changed") };
    assert!(error.contains("is not what was sent"), "{error}");
}

#[test]
fn a_device_that_is_lost_is_an_entry_and_the_others_go_on() {
    let (devices, plan) = faulty_devices(3);
    let cause = "pulled out".to_owned();
    let lose = FaultRule::new(FaultAction::Lose { cause }).on(Operation::WriteState).at_device(1);
    plan.arm(lose);
    let calibration = all(&devices);
    assert!(calibration.is_complete);
    check(&calibration.devices[0].to_host);
    let Outcome::Failed { error } = &calibration.devices[1].from_host else { panic!("lost") };
    assert!(error.contains("device 1 (host 1), writing its state"), "{error}");
    assert!(error.contains("pulled out"), "{error}");
    for pair in &calibration.pairs {
        match &pair.outcome {
            Outcome::Failed { error } => {
                assert!(pair.from == 1 || pair.to == 1);
                assert!(error.contains("device 1"), "{error}");
            }
            other => {
                assert!(pair.from != 1 && pair.to != 1);
                check(other);
            }
        }
    }
    Machine::merge(&[calibration.reading()]);
}

#[test]
fn every_call_may_fail_at_any_time() {
    let (devices, plan) = faulty_devices(2);
    plan.reset_counts();
    all(&devices);
    let calls = plan.calls(None, None);
    assert!(calls > 50, "{calls}");
    for call in 1..=calls {
        let (devices, plan) = faulty_devices(2);
        let before = devices[1].memory().unwrap();
        let error = DeviceError::Driver { message: "refused".to_owned() };
        plan.arm(FaultRule::new(FaultAction::Fail(error)).at_call(call));
        let calibration = all(&devices);
        assert_eq!(plan.fired(), 1);
        assert_eq!((calibration.pairs.len(), calibration.devices.len()), (2, 2));
        let pairs = calibration.pairs.iter().filter(|pair| pair.outcome.measured().is_some());
        assert!(pairs.count() >= 1, "call {call} took more than one pair down");
        assert_eq!(devices[1].memory().unwrap(), before, "call {call} kept memory");
    }
}

#[test]
fn what_is_cancelled_keeps_what_was_measured() {
    let devices = host_devices(3);
    for after in 0..=9 {
        let calibration = calibrate(&devices, &options(), &mut |progress| {
            if progress.done == after { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(calibration.is_complete, after == 9);
        let with_host =
            calibration.devices.iter().filter(|device| device.to_host.measured().is_some());
        assert_eq!(with_host.count() + calibration.pairs.len(), after);
        Machine::merge(&[calibration.reading()]);
    }
}

#[test]
fn sizes_without_room_are_left_out() {
    let options = CalibrationOptions { sizes_bytes: vec![1 << 10, 1 << 30], ..options() };
    let backend = HostBackend::new(HostOptions::new(0).with_device(1, 1 << 20).with_device(1, 64));
    let devices: Vec<_> = (0..2).map(|ordinal| backend.open(ordinal).unwrap()).collect();
    let calibration = calibrate(&devices, &options, &mut |_| ControlFlow::Continue(()));
    let measured = calibration.devices[0].to_host.measured().unwrap();
    assert_eq!(measured.sizes.iter().map(|size| size.bytes).collect::<Vec<_>>(), [1 << 10]);
    let Outcome::Failed { error } = &calibration.devices[1].to_host else { panic!("no room") };
    assert!(error.contains("device 1") && error.contains("smaller sizes"), "{error}");
}
