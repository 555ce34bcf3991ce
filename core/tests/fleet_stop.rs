//! Stopping a fleet: what is abandoned is listed, what can end ends, all memory is freed.

#[path = "support/fleet_programs.rs"]
mod support;
#[path = "support/test_device.rs"]
mod test_device;

use std::sync::Arc;
use std::time::Duration;

use hopwise_core::backend::Backend;
use hopwise_core::coordinator::LaunchOptions;
use hopwise_core::fleet::{Fleet, KernelSpec, ReceiveError, SendReason};
use hopwise_core::host::{HostBackend, HostOptions};
use hopwise_core::message::{Message, Payload};
use hopwise_core::program::Program;
use support::{PATIENCE, gives_up, host_fleet, relay, touchy, within_time};
use test_device::TestDevice;

/// Runs again and again.
fn restless() -> Arc<Program> {
    let program = Program::builder("restless").host(|step| {
        step.outbox.run_again();
        Ok(())
    });
    program.build().expect("a well-formed program")
}

fn available_bytes(backend: &HostBackend) -> u64 {
    backend.enumerate().expect("host devices are listed")[0].available_memory_bytes
}

#[test]
fn a_fleet_dropped_in_the_middle_of_its_work_frees_its_memory() {
    within_time(|| {
        let backend = HostBackend::new(HostOptions::new(1).with_workers(1));
        let before = available_bytes(&backend);
        let fleet = Fleet::builder().backend(&backend).unwrap().build().unwrap();
        for _ in 0..3 {
            fleet.launch(KernelSpec::new("restless", restless(), 1 << 20).started()).unwrap();
        }
        while fleet.steps() < 10 {
            std::thread::yield_now();
        }
        assert!(available_bytes(&backend) < before);
        drop(fleet);
        assert_eq!(available_bytes(&backend), before);
    });
}

#[test]
fn senders_and_endpoints_that_live_on_keep_no_device_memory() {
    within_time(|| {
        let backend = HostBackend::new(HostOptions::new(1).with_workers(1));
        let before = available_bytes(&backend);
        let fleet = Fleet::builder().backend(&backend).unwrap().build().unwrap();
        let kernel = fleet.launch(KernelSpec::new("k", relay(), 1 << 20)).unwrap();
        let sender = fleet.sender("s", &kernel, "in").unwrap();
        let (out, unbound) = (fleet.endpoint("out", 4), fleet.endpoint("unbound", 4));
        fleet.connect_endpoint(&kernel, "out", &out).unwrap();
        sender.send(Message::from_words(7, &[])).unwrap();
        let report = fleet.shutdown(PATIENCE);
        assert!(report.abandoned.is_empty());
        assert_eq!(available_bytes(&backend), before);
        let error = sender.send(Message::default()).unwrap_err();
        assert!(matches!(error.reason, SendReason::Closed(_)), "{error}");
        assert_eq!(out.recv().unwrap().message.tag, 7, "what came can still be received");
        for endpoint in [out, unbound] {
            assert!(matches!(endpoint.recv(), Err(ReceiveError::Closed(_))));
        }
    });
}

#[test]
fn messages_that_a_stopped_kernel_kept_go_with_the_fleet() {
    within_time(|| {
        let fleet = host_fleet(1, 1);
        let kernel = fleet.launch(KernelSpec::new("k", gives_up(), 8)).unwrap();
        let sender = fleet.sender("s", &kernel, "in").unwrap();
        let bytes: Arc<[u8]> = vec![0; 8].into();
        sender.send(Message::new(13, Payload::from(Arc::clone(&bytes)))).unwrap();
        fleet.wait_idle(PATIENCE).unwrap();
        assert_eq!(Arc::strong_count(&bytes), 2, "the kernel keeps it");
        drop((fleet, sender));
        assert_eq!(Arc::strong_count(&bytes), 1);
    });
}

#[test]
fn kernels_that_never_rest_do_not_keep_a_worker_from_ending() {
    within_time(|| {
        let mut device = TestDevice::new();
        device.limits.max_batch_kernels = 8;
        let fleet = Fleet::builder().device(Arc::new(device)).build().unwrap();
        for _ in 0..3 {
            fleet.launch(KernelSpec::new("restless", restless(), 4).started()).unwrap();
        }
        while fleet.steps() < 10 {
            std::thread::yield_now();
        }
        let report = fleet.shutdown(Duration::ZERO);
        assert_eq!(report.threads_left_behind, 0);
        assert_eq!(report.abandoned.len(), 3, "each would have run again");
    });
}

#[test]
fn only_a_stuck_thread_is_left_behind() {
    within_time(|| {
        let endless = touchy("endless", |_| {
            loop {
                std::thread::park();
            }
        });
        let backend = HostBackend::new(HostOptions::new(3).with_workers(2));
        let builder = Fleet::builder().backend(&backend).unwrap();
        let fleet = builder.step_limit(Duration::from_millis(500)).build().unwrap();
        let options = LaunchOptions::new().with_preferred_devices([0]);
        let spec = KernelSpec::new("endless", endless, 4).with_options(options);
        let kernel = fleet.launch(spec).unwrap();
        let sender = fleet.sender("s", &kernel, "in").unwrap();
        sender.send(Message::from_words(13, &[])).unwrap();
        while fleet.status(&kernel).unwrap().mailbox_depth > 0 {
            std::thread::yield_now();
        }
        let report = fleet.shutdown(Duration::ZERO);
        assert_eq!(report.threads_left_behind, 1);
        assert_eq!(report.abandoned.len(), 1);
    });
}
