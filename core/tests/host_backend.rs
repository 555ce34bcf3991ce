//! What only host devices do: quotas, caching by function, panics, copies between devices.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use hopwise_core::abi::{inbox, outbox};
use hopwise_core::backend::Backend;
use hopwise_core::conformance::within;
use hopwise_core::device::{
    Device, InitialState, InstanceRequest, KernelInstance, Step, StepOutcome,
};
use hopwise_core::error::{DeviceError, InstanceError, StepFault, TransferError};
use hopwise_core::host::{HostBackend, HostDevice, HostOptions};
use hopwise_core::program::{HostStep, Program};

const QUOTA: u64 = 1 << 20;

/// After this a test counts as deadlocked.
const LIMIT: Duration = Duration::from_secs(120);

fn backend(devices: usize) -> HostBackend {
    HostBackend::new(HostOptions::new(devices).with_workers(1).with_memory_bytes(QUOTA))
}

fn program<F>(function: F) -> Arc<Program>
where
    F: Fn(&mut HostStep<'_>) -> Result<(), StepFault> + Send + Sync + 'static,
{
    Program::builder("test").host(function).build().expect("the declaration is right")
}

fn instance(
    device: &HostDevice,
    program: &Arc<Program>,
    state_bytes: u64,
) -> Result<Arc<dyn KernelInstance>, InstanceError> {
    let compiled = device.compile(program).expect("there is a host form");
    let request = InstanceRequest { parameters: &[], state_bytes, initial: InitialState::Zeroed };
    device.create_instance(&compiled, &request)
}

fn step(program: &Program, instance: &Arc<dyn KernelInstance>) -> Step {
    let (mut inbox, mut outbox) = (Vec::new(), Vec::new());
    inbox::begin(&mut inbox, program.inbox_slot_words(), 1, true);
    outbox::begin(&mut outbox, program);
    let instance = Arc::clone(instance);
    Step::new(instance, inbox, outbox)
}

fn first_word(instance: &Arc<dyn KernelInstance>) -> u32 {
    let mut bytes = [0; 4];
    instance.read_state(0, &mut bytes).expect("no step runs");
    u32::from_le_bytes(bytes)
}

#[test]
fn devices_differ_in_identity_and_fail_alone() {
    let first = HostBackend::new(HostOptions::new(1).with_workers(3).with_device(2, 4096));
    let second = backend(1);
    let mut infos = first.enumerate().unwrap();
    infos.extend(second.enumerate().unwrap());
    for (position, info) in infos.iter().enumerate() {
        assert!(!info.identity.is_stable());
        for other in &infos[..position] {
            assert_ne!(info.identity, other.identity);
            assert_ne!(info.failure_domain, other.failure_domain);
        }
    }
    assert_eq!((infos[0].workers, infos[1].workers), (3, 2));
    assert_eq!((infos[0].index, infos[1].index), (0, 1));
    assert_eq!(infos[1].total_memory_bytes, 4096);
}

#[test]
fn a_device_opened_twice_shares_quota_and_fate() {
    let backend = backend(1);
    let (first, second) = (backend.open_host(0).unwrap(), backend.open_host(0).unwrap());
    assert_ne!(first.info().identity, second.info().identity);
    assert_eq!(first.info().failure_domain, second.info().failure_domain);
    let kept = instance(&first, &program(|_| Ok(())), 4096).unwrap();
    let available = second.memory().unwrap().available_bytes;
    assert!(available <= QUOTA - 4096);

    assert!(second.lose("pulled out"));
    assert!(!second.lose("again"));
    let lost = DeviceError::Lost { cause: "pulled out".to_owned() };
    assert_eq!(first.memory(), Err(lost));
    assert!(backend.open_host(1).is_err(), "there is one device");

    let third = backend.open_host(0).unwrap();
    let memory = third.memory().expect("a device opened anew works");
    assert_eq!(memory.available_bytes, available, "the lost device's instance still lives");
    drop(kept);
    assert_eq!(third.memory().unwrap().available_bytes, QUOTA);
}

#[test]
fn threads_cannot_exceed_the_quota() {
    within(LIMIT, || {
        const STATE: u64 = 60_000;
        let device = backend(1).open_host(0).unwrap();
        let program = program(|_| Ok(()));
        let fits = QUOTA / (STATE + 16);
        for _ in 0..20 {
            let created: Vec<_> = thread::scope(|scope| {
                let create = || {
                    let many = || instance(&device, &program, STATE);
                    (0..fits).map(|_| many()).collect::<Vec<_>>()
                };
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(create)).collect();
                threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
            });
            let (live, refused): (Vec<_>, Vec<_>) = created.into_iter().partition(Result::is_ok);
            assert_eq!(live.len() as u64, fits);
            let available = QUOTA - fits * (STATE + 16);
            assert_eq!(device.memory().unwrap().available_bytes, available);
            for error in refused {
                let Err(InstanceError::Device(DeviceError::OutOfMemory {
                    requested_bytes, ..
                })) = error
                else {
                    panic!("out of memory expected")
                };
                assert_eq!(requested_bytes, STATE + 16);
            }
            drop(live);
            assert_eq!(device.memory().unwrap().available_bytes, QUOTA);
        }
    });
}

#[test]
fn programs_of_one_digest_keep_their_functions() {
    let device = backend(1).open_host(0).unwrap();
    let make = |value: u32| {
        program(move |step| {
            step.state[0] = value;
            Ok(())
        })
    };
    let programs = [make(1), make(2)];
    assert_eq!(programs[0].digest(), programs[1].digest(), "no digest covers a function");
    for (program, value) in programs.iter().zip(1..) {
        let created = instance(&device, program, 4).unwrap();
        let mut steps = [step(program, &created)];
        device.run_batch(&mut steps).unwrap();
        assert_eq!(first_word(&created), value);
    }
}

#[test]
fn a_panic_stops_its_kernel_only() {
    let device = backend(1).open_host(0).unwrap();
    let with_number = program(|step| {
        step.state[0] = 7;
        panic!("no luck with {}", step.state[0])
    });
    let with_text = program(|_| panic!("plain"));
    let with_value = program(|_| std::panic::panic_any(PanicsWhenDropped));
    let calm = program(|step| {
        step.state[0] += 1;
        Ok(())
    });
    let programs = [&calm, &with_number, &calm, &with_text, &with_value, &calm];
    let mut steps: Vec<_> = programs
        .map(|program| step(program, &instance(&device, program, 8).unwrap()))
        .into_iter()
        .collect();
    device.run_batch(&mut steps).unwrap();

    let panicked =
        |message: &str| StepOutcome::Faulted(StepFault::Panicked { message: message.to_owned() });
    assert_eq!(steps[1].outcome, panicked("no luck with 7"));
    assert_eq!(steps[3].outcome, panicked("plain"));
    assert_eq!(steps[4].outcome, panicked("the panic carries no text"));
    for calm in [0, 2, 5] {
        assert_eq!(steps[calm].outcome, StepOutcome::Applied);
        assert_eq!(first_word(&steps[calm].instance), 1);
    }
    assert_eq!(first_word(&steps[1].instance), 7, "a faulted kernel's state can be read");
}

/// A panic value that bites whoever drops it.
struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[test]
fn a_loss_during_a_step_leaves_its_outcome_unknown() {
    let device = backend(1).open_host(0).unwrap();
    let health = device.health().clone();
    let lost = DeviceError::Lost { cause: "power cut".to_owned() };
    let cause = lost.clone();
    let loses = program(move |_| {
        health.latch(cause.clone());
        Ok(())
    });
    let calm = program(|_| Ok(()));
    let mut steps = [&calm, &loses, &calm]
        .map(|program| step(program, &instance(&device, program, 4).unwrap()));
    assert_eq!(device.run_batch(&mut steps), Err(lost));
    let outcomes = steps.map(|step| step.outcome);
    assert_eq!(outcomes, [StepOutcome::Applied, StepOutcome::Unknown, StepOutcome::NotStarted]);
}

#[test]
fn steps_of_another_device_are_refused_before_any_runs() {
    let backend = backend(2);
    let (device, other) = (backend.open_host(0).unwrap(), backend.open_host(1).unwrap());
    let program = program(|step| {
        step.state[0] = 1;
        Ok(())
    });
    let own = instance(&device, &program, 4).unwrap();
    let foreign = instance(&other, &program, 4).unwrap();
    let mut steps = [step(&program, &own), step(&program, &foreign)];
    assert!(matches!(device.run_batch(&mut steps), Err(DeviceError::Driver { .. })));
    assert!(steps.iter().all(|step| step.outcome == StepOutcome::NotStarted));
    assert_eq!(first_word(&own), 0);
}

#[test]
fn copies_in_opposite_directions_and_around_a_ring_end() {
    within(LIMIT, || {
        let backend = backend(3);
        let devices: Vec<_> = (0..3).map(|ordinal| backend.open_host(ordinal).unwrap()).collect();
        let program = program(|step| {
            step.state[0] += 1;
            Ok(())
        });
        let instances: Vec<_> =
            devices.iter().map(|device| instance(device, &program, 4096).unwrap()).collect();
        let peer = devices[0].peer_copy().unwrap();
        thread::scope(|scope| {
            for (from, to) in [(0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (0, 2), (0, 0)] {
                let (from, to) = (&*instances[from], &*instances[to]);
                scope.spawn(move || {
                    for _ in 0..500 {
                        peer.copy_state(from, to, 4, 4092).unwrap();
                    }
                });
            }
            for (device, instance) in devices.iter().zip(&instances) {
                let program = &program;
                scope.spawn(move || {
                    for _ in 0..500 {
                        device.run_batch(&mut [step(program, instance)]).unwrap();
                    }
                });
            }
        });
        for instance in &instances {
            assert_eq!(first_word(instance), 500, "copies of the rest never undo a step");
        }
    });
}

#[test]
fn a_copy_needs_two_working_devices() {
    let backend = backend(2);
    let (device, other) = (backend.open_host(0).unwrap(), backend.open_host(1).unwrap());
    let program = program(|_| Ok(()));
    let (from, to) = (instance(&device, &program, 8).unwrap(), instance(&other, &program, 8));
    let to = to.unwrap();
    let peer = device.peer_copy().unwrap();
    assert!(peer.reaches(&*other));
    other.lose("pulled out");
    assert!(!peer.reaches(&*other));
    let lost = DeviceError::Lost { cause: "pulled out".to_owned() };
    assert_eq!(peer.copy_state(&*from, &*to, 0, 8), Err(TransferError::Device(lost)));
    assert!(device.memory().is_ok(), "the other device goes on");
}

#[test]
fn memory_that_the_machine_lacks_is_an_error() {
    let options = HostOptions::new(1).with_memory_bytes(u64::MAX);
    let device = HostBackend::new(options).open_host(0).unwrap();
    let refused = instance(&device, &program(|_| Ok(())), 1 << 62).unwrap_err();
    assert!(matches!(refused, InstanceError::Device(DeviceError::OutOfMemory { .. })));
    assert_eq!(device.memory().unwrap().available_bytes, u64::MAX, "nothing stays reserved");
}

#[test]
fn a_runaway_step_keeps_nothing_but_itself() {
    within(LIMIT, || {
        let wait = Duration::from_millis(20);
        let options = HostOptions::new(1).with_memory_bytes(QUOTA).with_transfer_wait(wait);
        let device = HostBackend::new(options).open_host(0).unwrap();
        let (entered, started) = std::sync::mpsc::sync_channel(1);
        let endless = program(move |_| {
            entered.send(()).unwrap();
            loop {
                thread::park();
            }
        });
        let stuck = instance(&device, &endless, 4096).unwrap();
        let twin = instance(&device, &endless, 4096).unwrap();
        let mut runaway = step(&endless, &stuck);
        let behind = Arc::clone(&device);
        // The thread is left behind: nothing can end it.
        thread::spawn(move || behind.run_batch(std::slice::from_mut(&mut runaway)));
        started.recv_timeout(Duration::from_secs(60)).expect("the step starts");

        let busy = TransferError::Busy { waited_ms: 20 };
        assert_eq!(stuck.read_state(0, &mut [0; 4]), Err(busy.clone()));
        assert_eq!(stuck.write_state(0, &[0; 4]), Err(busy.clone()));
        assert_eq!(stuck.chunk_digests(64), Err(busy.clone()));
        let peer = device.peer_copy().unwrap();
        assert_eq!(peer.copy_state(&*stuck, &*twin, 0, 8), Err(busy.clone()));
        assert_eq!(peer.copy_state(&*twin, &*stuck, 0, 8), Err(busy));
        let again = device.run_batch(&mut [step(&endless, &stuck)]);
        assert!(matches!(again, Err(DeviceError::Driver { .. })), "one step at a time: {again:?}");

        let calm = program(|step| {
            step.state[0] = 9;
            Ok(())
        });
        let neighbour = instance(&device, &calm, 4).unwrap();
        device.run_batch(&mut [step(&calm, &neighbour)]).unwrap();
        assert_eq!(first_word(&neighbour), 9);
        let used = QUOTA - device.memory().unwrap().available_bytes;
        drop((stuck, twin, neighbour));
        let still_used = QUOTA - device.memory().unwrap().available_bytes;
        assert_eq!((used, still_used), (2 * 4112 + 20, 4112), "a runaway step keeps its memory");
        assert!(device.health().is_working());
    });
}

#[test]
fn a_transfer_that_waits_hears_of_a_loss() {
    let wait = Duration::from_secs(1);
    let options = HostOptions::new(1).with_memory_bytes(QUOTA).with_transfer_wait(wait);
    let device = HostBackend::new(options).open_host(0).unwrap();
    let health = device.health().clone();
    let (entered, started) = std::sync::mpsc::sync_channel(1);
    let lost = DeviceError::Lost { cause: "pulled out".to_owned() };
    let cause = lost.clone();
    let endless = program(move |_| {
        entered.send(()).unwrap();
        // Later than the read below begins, or before: the answer is the same.
        health.latch(cause.clone());
        loop {
            thread::park();
        }
    });
    let stuck = instance(&device, &endless, 64).unwrap();
    let mut runaway = step(&endless, &stuck);
    thread::spawn(move || device.run_batch(std::slice::from_mut(&mut runaway)));
    started.recv_timeout(LIMIT).expect("the step starts");
    assert_eq!(stuck.read_state(0, &mut [0; 4]), Err(TransferError::Device(lost)));
}

#[test]
fn a_transfer_waits_for_the_step_to_end() {
    within(LIMIT, || {
        let device = backend(1).open_host(0).unwrap();
        let (entered, started) = std::sync::mpsc::sync_channel(1);
        let (allow, allowed) = std::sync::mpsc::sync_channel::<()>(1);
        let allowed = std::sync::Mutex::new(allowed);
        let slow = program(move |step| {
            entered.send(()).unwrap();
            allowed.lock().unwrap().recv().unwrap();
            step.state[0] = 5;
            Ok(())
        });
        let running = instance(&device, &slow, 4).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| device.run_batch(&mut [step(&slow, &running)]).unwrap());
            started.recv().unwrap();
            let reader = scope.spawn(|| first_word(&running));
            allow.send(()).unwrap();
            assert_eq!(reader.join().unwrap(), 5, "a read beside a step sees its end");
        });
    });
}
