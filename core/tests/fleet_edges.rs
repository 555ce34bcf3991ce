//! A fleet at its edges: removal with output under way, losses at awkward moments, odd arguments.

#[path = "support/fleet_programs.rs"]
mod support;
#[path = "support/test_device.rs"]
mod test_device;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hopwise_core::coordinator::{DeviceState, LaunchOptions};
use hopwise_core::device::Device;
use hopwise_core::device_info::Overrun;
use hopwise_core::fleet::{Fleet, FleetError, KernelPhase, KernelSpec, MessageTotals};
use hopwise_core::host::{HostBackend, HostOptions};
use hopwise_core::message::Message;
use support::{PATIENCE, host_fleet, relay, touchy, within_time, words};
use test_device::TestDevice;

fn on(device: usize) -> LaunchOptions {
    LaunchOptions::new().with_preferred_devices([device])
}

#[test]
fn what_a_removed_kernel_committed_is_still_delivered() {
    within_time(|| {
        let fleet = host_fleet(1, 1);
        let kernel = fleet.launch(KernelSpec::new("k", relay(), 8)).unwrap();
        let out = fleet.endpoint("out", 1);
        fleet.connect_endpoint(&kernel, "out", &out).unwrap();
        let sender = fleet.sender("s", &kernel, "in").unwrap();
        let held = fleet.hold(&kernel, PATIENCE).unwrap();
        for tag in 1..=5 {
            sender.send(Message::from_words(tag, &[])).unwrap();
        }
        held.release();
        while fleet.status(&kernel).unwrap().pending_output != 4 {
            std::thread::yield_now();
        }
        fleet.remove(&kernel).unwrap();
        assert_eq!(fleet.status(&kernel), None);
        let totals = MessageTotals::of(&fleet.ledgers());
        assert_eq!((totals.lost, totals.waiting), (0, 5), "under way, not lost");
        for tag in 1..=5 {
            assert_eq!(out.recv_timeout(PATIENCE).unwrap().message.tag, tag);
        }
        fleet.wait_idle(PATIENCE).unwrap();
        assert!(MessageTotals::of(&fleet.ledgers()).is_clean());
    });
}

#[test]
fn a_device_lost_while_it_is_drained_loses_its_kernels() {
    within_time(|| {
        let backend = HostBackend::new(HostOptions::new(1).with_workers(1));
        let device = backend.open_host(0).unwrap();
        let builder = Fleet::builder().device(Arc::clone(&device) as Arc<dyn Device>);
        let fleet = builder.build().unwrap();
        let kernel = fleet.launch(KernelSpec::new("k", relay(), 8)).unwrap();
        assert_eq!(fleet.coordinator().unregister_device(0).orphans.len(), 1);
        device.lose("pulled out");
        let status = fleet.status(&kernel).unwrap();
        assert!(matches!(status.phase, KernelPhase::Lost { .. }), "{status:?}");
        assert_eq!(fleet.coordinator().get_kernel_device(&kernel), Some(0));
        fleet.remove(&kernel).unwrap();
    });
}

#[test]
fn a_leaving_device_that_hangs_loses_all_its_kernels() {
    within_time(|| {
        let mut device = TestDevice::new();
        device.limits.overrun = Overrun::LosesDevice;
        let endless = touchy("endless", |_| {
            loop {
                std::thread::park();
            }
        });
        let builder = Fleet::builder().device(Arc::new(device));
        let fleet = builder.step_limit(Duration::from_millis(100)).build().unwrap();
        let stuck = fleet.launch(KernelSpec::new("stuck", endless, 4)).unwrap();
        let other = fleet.launch(KernelSpec::new("other", relay(), 8)).unwrap();
        assert_eq!(fleet.coordinator().unregister_device(0).orphans.len(), 2);
        let message = |tag| Message::from_words(tag, &[]);
        fleet.sender("s", &stuck, "in").unwrap().send(message(13)).unwrap();
        while fleet.status(&stuck).unwrap().phase == KernelPhase::Ready {
            std::thread::yield_now();
        }
        let _ = fleet.sender("s", &other, "in").unwrap().send(message(1));
        fleet.wait_idle(PATIENCE).unwrap();
        for status in fleet.statuses() {
            assert!(matches!(status.phase, KernelPhase::Lost { .. }), "{status:?}");
            assert_eq!(status.mailbox_depth, 1, "its message is kept: {status:?}");
        }
    });
}

#[test]
fn a_loss_that_the_user_reports_reaches_the_fleet() {
    within_time(|| {
        let fleet = host_fleet(2, 1);
        let kernel = fleet.launch(KernelSpec::new("k", relay(), 8).with_options(on(0))).unwrap();
        fleet.coordinator().set_device_state(0, DeviceState::Lost).unwrap();
        let status = fleet.status(&kernel).unwrap();
        assert!(matches!(status.phase, KernelPhase::Lost { .. }), "{status:?}");
        assert!(!fleet.device(0).unwrap().health().is_working());
    });
}

#[test]
fn a_step_is_not_repeated_when_the_backend_panics() {
    within_time(|| {
        let device = Arc::new(TestDevice::new());
        let builder = Fleet::builder().device(Arc::clone(&device) as Arc<dyn Device>);
        let fleet = builder.build().unwrap();
        let kernel = fleet.launch(KernelSpec::new("k", relay(), 8)).unwrap();
        let sender = fleet.sender("s", &kernel, "in").unwrap();
        device.panics_after_batch.store(true, Ordering::SeqCst);
        sender.send(Message::from_words(1, &[])).unwrap();
        fleet.wait_idle(PATIENCE).unwrap();
        let status = fleet.status(&kernel).unwrap();
        let KernelPhase::Lost { cause } = &status.phase else { panic!("{status:?}") };
        assert!(cause.contains("nobody knows") && cause.contains("panicked"), "{cause}");
        let other = fleet.launch(KernelSpec::new("other", relay(), 8)).unwrap();
        fleet.start(&other).unwrap();
        fleet.wait_idle(PATIENCE).unwrap();
        assert_eq!(fleet.status(&other).unwrap().steps, 1, "the worker goes on");
    });
}

#[test]
fn steps_that_take_long_are_not_put_into_one_batch() {
    within_time(|| {
        let mut device = TestDevice::new();
        device.limits.max_batch_kernels = 8;
        let device = Arc::new(device);
        let builder = Fleet::builder().device(Arc::clone(&device) as Arc<dyn Device>);
        let fleet = builder.build().unwrap();
        let slow = touchy("slow", |_| std::thread::sleep(Duration::from_millis(60)));
        for _ in 0..4 {
            let kernel = fleet.launch(KernelSpec::new("slow", Arc::clone(&slow), 4)).unwrap();
            let sender = fleet.sender("s", &kernel, "in").unwrap();
            sender.send(Message::from_words(13, &[])).unwrap();
        }
        fleet.wait_idle(PATIENCE).unwrap();
        assert_eq!(device.largest_batch.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn an_idle_device_that_does_not_answer_is_given_up_like_a_step() {
    within_time(|| {
        let mut device = TestDevice::new();
        device.limits.overrun = Overrun::LosesDevice;
        let device = Arc::new(device);
        let builder = Fleet::builder().device(Arc::clone(&device) as Arc<dyn Device>);
        let fleet = builder.step_limit(Duration::from_millis(200)).build().unwrap();
        let kernel = fleet.launch(KernelSpec::new("k", relay(), 8)).unwrap();
        device.hangs_when_idle.store(true, Ordering::SeqCst);
        let cause = loop {
            if let KernelPhase::Lost { cause } = fleet.status(&kernel).unwrap().phase {
                break cause;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        assert!(cause.contains("idle, it did not answer within 200 ms"), "{cause}");
    });
}

#[test]
fn a_held_lost_kernel_cannot_be_removed_behind_its_mover() {
    within_time(|| {
        let backend = HostBackend::new(HostOptions::new(2).with_workers(1));
        let source = backend.open_host(0).unwrap();
        let builder = Fleet::builder().device(Arc::clone(&source) as Arc<dyn Device>);
        let fleet = builder.device(backend.open_host(1).unwrap()).build().unwrap();
        let kernel = fleet.launch(KernelSpec::new("k", relay(), 8).with_options(on(0))).unwrap();
        let held = fleet.hold(&kernel, PATIENCE).unwrap();
        source.lose("pulled out");
        let error = fleet.remove(&kernel).unwrap_err();
        assert!(matches!(error, FleetError::HeldAlready { .. }), "{error}");
        held.release();
        fleet.remove(&kernel).unwrap();
    });
}

#[test]
fn time_outs_may_be_as_long_as_a_duration_can_say() {
    within_time(|| {
        let backend = HostBackend::new(HostOptions::new(1));
        let builder = Fleet::builder().backend(&backend).unwrap().step_limit(Duration::MAX);
        let fleet = builder.build().unwrap();
        let kernel = fleet.launch(KernelSpec::new("k", relay(), 8)).unwrap();
        let sender = fleet.sender("s", &kernel, "in").unwrap();
        let out = fleet.endpoint("out", 4);
        fleet.connect_endpoint(&kernel, "out", &out).unwrap();
        sender.send_timeout(Message::from_words(1, &[]), Duration::MAX).unwrap();
        assert_eq!(out.recv_timeout(Duration::MAX).unwrap().message.tag, 1);
        drop(fleet.hold(&kernel, Duration::MAX).unwrap());
        fleet.wait_idle(Duration::MAX).unwrap();
        assert_eq!(words(&fleet.read_state(&kernel).unwrap())[0], 1);
        assert_eq!(fleet.shutdown(Duration::MAX).threads_left_behind, 0);
    });
}

#[test]
fn a_ring_that_runs_is_not_named_a_deadlock() {
    within_time(|| {
        let fleet = host_fleet(2, 1);
        let launch = |device| {
            let spec = KernelSpec::new("ring", relay(), 8).with_mailbox_capacity(2);
            fleet.launch(spec.with_options(on(device))).unwrap()
        };
        let kernels = [launch(0), launch(1)];
        fleet.connect(&kernels[0], "out", &kernels[1], "in").unwrap();
        fleet.connect(&kernels[1], "out", &kernels[0], "in").unwrap();
        for kernel in &kernels {
            let sender = fleet.sender("s", kernel, "in").unwrap();
            sender.send(Message::from_words(1, &[])).unwrap();
        }
        for _ in 0..500 {
            let error = fleet.wait_idle(Duration::from_micros(300)).unwrap_err();
            assert!(error.cycle.is_empty(), "{error}");
        }
    });
}

#[test]
fn a_refused_device_leaves_nothing_behind() {
    within_time(|| {
        let fleet = host_fleet(1, 1);
        let mut device = TestDevice::new();
        device.info.available_memory_bytes = device.info.total_memory_bytes + 1;
        assert!(fleet.add_device(Arc::new(device)).is_err());
        assert!(matches!(fleet.device(1), Err(FleetError::UnknownDevice { .. })));
        fleet.close_device(0).unwrap();
        let error = fleet.launch(KernelSpec::new("k", relay(), 8)).unwrap_err();
        assert!(error.to_string().ends_with("the fleet has no device; add one"), "{error}");
    });
}
