//! Losses, hangs and errors that stay: one GPU falls, the others go on.

#[path = "support/stand_in.rs"]
mod stand_in;

use std::sync::Arc;
use std::time::Duration;

use hopwise_backend_cuda::{CudaBackend, CudaDevice, CudaOptions};
use hopwise_core::backend::Backend;
use hopwise_core::conformance::{Incoming, Kernel, output, programs};
use hopwise_core::device::{Device, StepOutcome};
use hopwise_core::error::DeviceError;
use hopwise_core::fleet::{Fleet, KernelPhase, KernelSpec};
use stand_in::StandIn;

const MACHINE: &str = "
    gpu memory_mib=64
    gpu memory_mib=64
    peers all
";

fn stand_in() -> &'static StandIn {
    StandIn::with_machine(MACHINE)
}

fn open(backend: &CudaBackend) -> [Arc<CudaDevice>; 2] {
    [0, 1].map(|ordinal| backend.open_cuda(ordinal).expect("the stand-in opens"))
}

fn kernel(device: &CudaDevice) -> Kernel {
    Kernel::try_new(device, &programs::fold(), &[], &[0; 16]).expect("there is room")
}

fn step(device: &CudaDevice, kernel: &mut Kernel) -> (Result<(), DeviceError>, StepOutcome) {
    let mut steps = [kernel.step(false, &[Incoming::words(1, &[2])])];
    let ran = device.run_batch(&mut steps);
    if ran.is_ok() {
        output(&kernel.program, &steps[0]).expect("the program is right");
    }
    let [step] = steps;
    (ran, step.outcome)
}

#[test]
fn a_sticky_error_takes_one_gpu_and_no_other() {
    let _alone = stand_in::alone();
    let stand_in = stand_in();
    let backend = stand_in.backend(CudaOptions::new());
    let [sick, well] = open(&backend);
    let (mut on_sick, mut on_well) = (kernel(&sick), kernel(&well));
    assert_eq!(step(&sick, &mut on_sick), (Ok(()), StepOutcome::Applied));
    stand_in.control("sticky 0 700");
    let (ran, outcome) = step(&sick, &mut on_sick);
    let Err(DeviceError::Lost { cause }) = &ran else { panic!("{ran:?}") };
    assert!(cause.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{cause}");
    assert!(cause.contains("compute-sanitizer"), "the remedy is told: {cause}");
    assert_eq!(outcome, StepOutcome::NotStarted, "it was found before the first launch");
    let calls = stand_in.count("cuCtxPushCurrent_v2");
    assert_eq!(sick.memory().map(drop), ran);
    assert_eq!(sick.poll(), ran);
    assert_eq!(stand_in.count("cuCtxPushCurrent_v2"), calls, "a lost device is not called");
    assert_eq!(step(&well, &mut on_well), (Ok(()), StepOutcome::Applied));

    // Opened anew, the GPU is reset, and works beside what was left behind.
    let again = backend.open_cuda(0).expect("a reset makes a new context");
    let mut on_again = kernel(&again);
    assert_eq!(step(&again, &mut on_again), (Ok(()), StepOutcome::Applied));
    assert_eq!(again.info().identity, sick.info().identity);
    drop((on_sick, sick));
    assert_eq!(step(&again, &mut on_again), (Ok(()), StepOutcome::Applied));
}

#[test]
fn a_gpu_off_the_bus_is_lost_and_left_out_of_the_list() {
    let _alone = stand_in::alone();
    let stand_in = stand_in();
    let backend = stand_in.backend(CudaOptions::new());
    let [gone, well] = open(&backend);
    let (_on_gone, mut on_well) = (kernel(&gone), kernel(&well));
    stand_in.control("lose 0 999");
    assert!(matches!(gone.poll(), Err(DeviceError::Lost { .. })), "an idle device hears of it");
    assert_eq!(step(&well, &mut on_well), (Ok(()), StepOutcome::Applied));
    let refused = backend.open_cuda(0).expect_err("it is not there");
    assert!(matches!(refused, DeviceError::Unavailable { .. }), "{refused}");

    // Who looks again finds the other GPU, and reads why the first is not in the list.
    let later = stand_in.backend(CudaOptions::new());
    let listed = later.enumerate().expect("one GPU is left");
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].identity, well.info().identity);
    let [problem] = &later.problems()[..] else { panic!("{:?}", later.problems()) };
    assert!(problem.contains("GPU 0 is left out") && problem.contains("999"), "{problem}");
    assert!(later.open_cuda(0).is_ok(), "what is listed can be opened");
}

#[test]
fn a_step_without_end_makes_the_gpu_unresponsive() {
    let _alone = stand_in::alone();
    let stand_in = stand_in();
    let options = CudaOptions::new().with_wait_limit(Duration::from_millis(200));
    let [hangs, well] = open(&stand_in.backend(options));
    let (mut on_hangs, mut on_well) = (kernel(&hangs), kernel(&well));
    stand_in.control("hang 0");
    let (ran, outcome) = step(&hangs, &mut on_hangs);
    assert!(matches!(ran, Err(DeviceError::Unresponsive { .. })), "{ran:?}");
    assert_eq!(outcome, StepOutcome::Unknown);
    assert_eq!(step(&well, &mut on_well), (Ok(()), StepOutcome::Applied));
    // Freeing would wait for the step; nothing is freed.
    let frees = stand_in.count("cuMemFree_v2");
    drop((on_hangs, hangs));
    assert_eq!(stand_in.count("cuMemFree_v2"), frees);
    stand_in.control("release 0");
}

#[test]
fn what_a_device_lost_on_purpose_left_behind_is_freed_when_it_is_opened_again() {
    let _alone = stand_in::alone();
    let stand_in = stand_in();
    let backend = stand_in.backend(CudaOptions::new());
    let device = backend.open_cuda(0).expect("it opens");
    let left_behind = kernel(&device);
    device.lose("given up by a test");
    drop((left_behind, device));
    assert!(stand_in.count("live memory") > 0, "nothing of a lost device is freed");
    let again = backend.open_cuda(0).expect("it opens again");
    let fresh = stand_in.count("live memory");
    drop(again);
    assert_eq!(stand_in.count("live memory"), 0, "{fresh} were the new device's");
}

#[test]
fn many_open_a_lost_gpu_again_at_once() {
    let _alone = stand_in::alone();
    let stand_in = stand_in();
    let backend = stand_in.backend(CudaOptions::new().with_logical_devices(4));
    let lost = backend.open_cuda(0).expect("it opens");
    stand_in.control("sticky 0 719");
    lost.poll().expect_err("it is lost");
    std::thread::scope(|scope| {
        for ordinal in 0..4 {
            let backend = &backend;
            scope.spawn(move || {
                let device = backend.open_cuda(ordinal).expect("it opens again");
                let mut kernel = kernel(&device);
                for _ in 0..20 {
                    assert_eq!(step(&device, &mut kernel), (Ok(()), StepOutcome::Applied));
                }
            });
        }
    });
}

#[test]
fn a_reset_is_told_to_every_backend_of_the_process() {
    let _alone = stand_in::alone();
    let stand_in = stand_in();
    let backends = [0, 1].map(|_| stand_in.backend(CudaOptions::new()));
    let [first, second] = [0, 1].map(|at| backends[at].open_cuda(0).expect("it opens"));
    let on_second = kernel(&second);
    stand_in.control("sticky 0 719");
    first.poll().expect_err("it is lost");
    let again = backends[0].open_cuda(0).expect("it opens again");
    let Some(DeviceError::Lost { cause }) = second.health().cause() else {
        panic!("what was on the GPU is gone for everybody")
    };
    assert!(cause.contains("reset"), "{cause}");
    drop((on_second, second));
    let mut kernel = kernel(&again);
    assert_eq!(step(&again, &mut kernel), (Ok(()), StepOutcome::Applied));
}

#[test]
fn a_failed_release_is_heard_of_at_the_next_call() {
    let _alone = stand_in::alone();
    let stand_in = stand_in();
    let [device, _] = open(&stand_in.backend(CudaOptions::new()));
    let first = kernel(&device);
    stand_in.control("fail cuMemFree_v2 1 1");
    drop(first);
    let heard = device.memory().map(drop);
    let Err(DeviceError::Driver { message }) = &heard else { panic!("{heard:?}") };
    assert!(message.starts_with("cuMemFree_v2: error 1 (CUDA_ERROR_INVALID_VALUE)"), "{message}");
    assert!(device.memory().is_ok(), "it is told once");
}

#[test]
fn a_fleet_loses_the_kernels_of_one_gpu_and_goes_on_with_the_others() {
    let _alone = stand_in::alone();
    let stand_in = stand_in();
    let backend = stand_in.backend(CudaOptions::new());
    let fleet = Fleet::builder().backend(&backend).expect("it opens").build().expect("it starts");
    let launch = |device| {
        let mut spec = KernelSpec::new(format!("on-{device}"), programs::fold(), 64);
        spec.options = spec.options.with_preferred_devices([device]);
        fleet.launch(spec).expect("there is room")
    };
    let [doomed, safe] = [launch(0), launch(1)];
    stand_in.control("lose 0 719");
    // Nobody calls the device: the idle worker hears of the loss.
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    let phase = |kernel| fleet.status(kernel).expect("it is mapped").phase;
    while !matches!(phase(&doomed), KernelPhase::Lost { .. }) {
        assert!(std::time::Instant::now() < deadline, "the loss is not heard of");
        std::thread::sleep(Duration::from_millis(5));
    }
    fleet.start(&safe).expect("its device works");
    fleet.wait_idle(Duration::from_secs(30)).expect("nothing hangs");
    assert_eq!(phase(&safe), KernelPhase::Ready);
}
