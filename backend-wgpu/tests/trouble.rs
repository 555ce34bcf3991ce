//! Trouble that is real: a step that never ends, a driver without memory, a device that is
//! destroyed under a fleet.
#![cfg(unix)]

#[path = "support/child.rs"]
mod child;
#[path = "support/kernels.rs"]
mod kernels;

use std::sync::Arc;
use std::time::Duration;

use hopwise_backend_wgpu::{AdapterKind, WgpuBackend, WgpuDevice, WgpuOptions};
use hopwise_core::conformance::within;
use hopwise_core::coordinator::LaunchOptions;
use hopwise_core::device::{Device, InitialState, InstanceRequest};
use hopwise_core::error::{DeviceError, InstanceError, TransferError};
use hopwise_core::fleet::{Fleet, KernelPhase, KernelSpec};
use hopwise_core::host::{HostBackend, HostOptions};
use hopwise_core::message::Message;
use hopwise_core::program::{Grid, Program};
use kernels::{Kernel, open, over_state};

const PATIENCE: Duration = Duration::from_secs(30);

fn on(device: usize) -> LaunchOptions {
    LaunchOptions::new().with_preferred_devices([device])
}

/// Runs for hours: far more invocations than any device has, each as long as drivers let loops be.
fn endless() -> Arc<Program> {
    let wgsl = "@compute @workgroup_size(64)
        fn main(
            @builtin(global_invocation_id) id: vec3<u32>,
            @builtin(num_workgroups) groups: vec3<u32>,
        ) {
            var x = hw_index(id, groups, 64u);
            for (var i = 0u; i < 60000u; i += 1u) { x = x * 1664525u + 1013904223u; }
            if (x == 12345u) { hw_set_state(0u, x); }
        }";
    let program = Program::builder("endless").pass("main", Grid::Fixed(1 << 31)).wgsl(wgsl);
    program.build().expect("nothing is in the way yet")
}

/// Counts its messages, on any device.
fn tally() -> Arc<Program> {
    Program::builder("tally")
        .in_port("in", 4)
        .pass("main", Grid::Fixed(1))
        .wgsl(
            "@compute @workgroup_size(1)
            fn main() { hw_set_state(0u, hw_state(0u) + hw_message_count()); }",
        )
        .host(|step| {
            step.state[0] += u32::try_from(step.inbox.len()).unwrap_or(0);
            Ok(())
        })
        .build()
        .expect("nothing is in the way yet")
}

fn send(fleet: &Fleet, kernel: &hopwise_core::id::KernelId, count: u32) {
    let sender = fleet.sender("test", kernel, "in").expect("nothing is in the way yet");
    for tag in 0..count {
        sender.send(Message::from_words(tag, &[])).expect("nothing is in the way yet");
    }
}

/// Two devices on the first adapter, and one of host threads.
fn mixed_fleet(step_limit: Duration) -> Option<(Fleet, [Arc<WgpuDevice>; 2])> {
    let backend =
        WgpuBackend::new(WgpuOptions::new().with_logical_devices(2).with_memory_bytes(16 << 20));
    let Ok(first) = backend.open_wgpu(0) else {
        eprintln!("not tried: there is no adapter");
        return None;
    };
    let second = backend.open_wgpu(1).expect("nothing is in the way yet");
    let host = HostBackend::new(HostOptions::new(1).with_workers(1));
    let builder = Fleet::builder().device(Arc::clone(&first) as _).device(Arc::clone(&second) as _);
    let fleet = builder
        .backend(&host)
        .expect("nothing is in the way yet")
        .step_limit(step_limit)
        .build()
        .expect("nothing is in the way yet");
    Some((fleet, [first, second]))
}

#[test]
fn a_step_without_end_takes_its_adapter_and_nothing_else() {
    const NAME: &str = "a_step_without_end_takes_its_adapter_and_nothing_else";
    if !child::is(NAME) {
        return child::run(NAME, "");
    }
    let Some((fleet, devices)) = mixed_fleet(Duration::from_millis(500)) else { return };
    let on_card = fleet.launch(KernelSpec::new("card", tally(), 4).with_options(on(1))).unwrap();
    let on_host = fleet.launch(KernelSpec::new("host", tally(), 4).with_options(on(2))).unwrap();
    send(&fleet, &on_card, 5);
    fleet.wait_idle(PATIENCE).unwrap();
    let spec = KernelSpec::new("endless", endless(), 4).with_options(on(0)).started();
    let endless = fleet.launch(spec).unwrap();
    within(PATIENCE, {
        let health = devices[1].health().clone();
        move || {
            while health.is_working() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    });
    // Every call to either device answers at once with the cause, though one thread is stuck.
    for device in &devices {
        let device = Arc::clone(device);
        let answer = within(PATIENCE, move || device.memory());
        assert!(matches!(answer, Err(DeviceError::Unresponsive { .. })), "{answer:?}");
    }
    assert!(!devices[0].lose("it is gone already"));
    send(&fleet, &on_host, 50);
    fleet.wait_idle(PATIENCE).unwrap();
    assert_eq!(fleet.read_state(&on_host).unwrap(), 50u32.to_le_bytes());
    assert!(fleet.read_state(&on_card).is_err(), "the adapter's other device fell with it");
    for kernel in [&endless, &on_card] {
        let status = fleet.status(kernel).unwrap();
        assert!(matches!(status.phase, KernelPhase::Lost { .. }), "{status:?}");
    }
    fleet.remove(&endless).unwrap();
    within(PATIENCE, move || {
        fleet.shutdown(Duration::from_secs(1));
        drop(devices);
    });
    eprintln!("the fleet went on");
}

#[test]
fn a_wait_without_a_fleet_ends_too() {
    const NAME: &str = "a_wait_without_a_fleet_ends_too";
    if !child::is(NAME) {
        return child::run(NAME, "");
    }
    let Some(device) = open(WgpuOptions::new().with_wait_limit(Duration::from_millis(300))) else {
        return;
    };
    let mut resting = Kernel::new(&*device, &tally(), 4, InitialState::Zeroed);
    resting.run(&*device).unwrap();
    let mut kernel = Kernel::new(&*device, &endless(), 4, InitialState::Zeroed);
    let mut steps = [kernel.step()];
    let running = Arc::clone(&device);
    let (result, outcome) = within(PATIENCE, move || {
        let result = running.run_batch(&mut steps);
        (result, steps[0].outcome.clone())
    });
    assert!(matches!(result, Err(DeviceError::Unresponsive { .. })), "{result:?}");
    assert_eq!(outcome, hopwise_core::device::StepOutcome::Unknown);
    let instance = Arc::clone(&resting.instance);
    let read = within(PATIENCE, move || instance.read_state(0, &mut [0; 4]));
    let gone = matches!(read, Err(TransferError::Device(DeviceError::Unresponsive { .. })));
    assert!(gone, "{read:?}");
    within(PATIENCE, move || drop((kernel, resting, device)));
}

#[test]
fn a_driver_without_memory_refuses_an_instance_and_goes_on() {
    const NAME: &str = "a_driver_without_memory_refuses_an_instance_and_goes_on";
    if !child::is(NAME) {
        return child::run(NAME, "ulimit -v 4000000;");
    }
    let backend = WgpuBackend::new(WgpuOptions::new().with_memory_bytes(1 << 40));
    if backend.adapters().next().map(|facts| facts.adapter.kind) != Some(AdapterKind::Cpu) {
        eprintln!("not tried: the limit on this process is none on a GPU's memory");
        return;
    }
    let device = backend.open_wgpu(0).unwrap();
    let program = over_state("count", "hw_set_state(i, hw_state(i) + 1u);").build().unwrap();
    let mut small = Kernel::new(&*device, &program, 1024, InitialState::Zeroed);
    let compiled = device.compile(&program).unwrap();
    let state_bytes = 128 << 20;
    let request = InstanceRequest { parameters: &[], state_bytes, initial: InitialState::Zeroed };
    let mut live = Vec::new();
    let refusal = loop {
        match device.create_instance(&compiled, &request) {
            Ok(instance) => live.push(instance),
            Err(refusal) => break refusal,
        }
        assert!(live.len() < 100, "the memory of this process is limited");
    };
    assert!(refusal.to_string().contains("though the quota allows them"), "{refusal}");
    let InstanceError::Device(DeviceError::OutOfMemory { requested_bytes, available_bytes }) =
        refusal
    else {
        panic!("{refusal}");
    };
    // The quota had room for thousands: nobody knows how much the driver had.
    assert_eq!((requested_bytes, available_bytes), (state_bytes, None));
    eprintln!("refused after {} instances", live.len());
    small.run(&*device).unwrap();
    assert_eq!(small.words(0, 256), [1; 256], "the others go on");
    live.pop();
    assert!(device.create_instance(&compiled, &request).is_ok(), "memory that is freed comes back");
}

#[test]
fn a_loss_of_an_idle_device_is_heard_of_though_nobody_asks() {
    within(PATIENCE * 2, || {
        let Some((fleet, devices)) = mixed_fleet(PATIENCE) else { return };
        let on_card = fleet.launch(KernelSpec::new("card", tally(), 4).with_options(on(1)));
        let on_card = on_card.unwrap();
        fleet.wait_idle(PATIENCE).unwrap();
        devices[0].destroy();
        let cause = loop {
            // Neither calls a device.
            if let KernelPhase::Lost { cause } = fleet.status(&on_card).unwrap().phase {
                break cause;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        assert!(cause.contains("it was destroyed"), "{cause}");
    });
}

#[test]
fn a_device_destroyed_under_a_fleet_loses_its_kernels_and_no_others() {
    within(PATIENCE * 2, || {
        let Some((fleet, devices)) = mixed_fleet(PATIENCE) else { return };
        let on_card = fleet.launch(KernelSpec::new("card", tally(), 4).with_options(on(0)));
        let on_card = on_card.unwrap();
        let on_host = fleet.launch(KernelSpec::new("host", tally(), 4).with_options(on(2)));
        let on_host = on_host.unwrap();
        send(&fleet, &on_card, 5);
        fleet.wait_idle(PATIENCE).unwrap();
        assert_eq!(fleet.read_state(&on_card).unwrap(), 5u32.to_le_bytes());
        devices[0].destroy();
        // The loss is heard of when the device is used next.
        assert!(fleet.read_state(&on_card).is_err());
        send(&fleet, &on_host, 50);
        fleet.wait_idle(PATIENCE).unwrap();
        assert_eq!(fleet.read_state(&on_host).unwrap(), 50u32.to_le_bytes());
        let status = fleet.status(&on_card).unwrap();
        let KernelPhase::Lost { cause } = &status.phase else { panic!("{status:?}") };
        assert!(cause.contains("it was destroyed"), "{cause}");
        assert_eq!(fleet.status(&on_host).unwrap().phase, KernelPhase::Ready);
    });
}
