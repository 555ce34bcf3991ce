//! Kernels that stay on the GPU: their steps make no launch, they end by themselves and when their
//! state is wanted, and one that hangs is one GPU's trouble.

#[path = "support/stand_in.rs"]
mod stand_in;

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hopwise_backend_cuda::{CudaDevice, CudaOptions, ResidentUse};
use hopwise_core::conformance::{Incoming, Kernel, output, programs};
use hopwise_core::device::{Device, PeerCopy, StepOutcome};
use hopwise_core::error::DeviceError;
use stand_in::StandIn;

/// The last one cannot launch kernels whose blocks wait for each other.
const MACHINE: &str = "
    gpu memory_mib=64
    gpu memory_mib=64
    gpu memory_mib=64 cooperative=0
    peers all
";

/// The stand-in for one test alone: what it counts and how it fails belongs to the whole process.
struct Alone {
    stand_in: &'static StandIn,
    _turn: MutexGuard<'static, ()>,
}

impl Alone {
    fn new() -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        Self { stand_in: StandIn::with_machine(MACHINE), _turn: turn }
    }
}

impl Deref for Alone {
    type Target = StandIn;

    fn deref(&self) -> &StandIn {
        self.stand_in
    }
}

/// A test that failed leaves no GPU that hangs, for which the others would wait for ever.
impl Drop for Alone {
    fn drop(&mut self) {
        for command in ["heal", "release 0", "release 1", "release 2"] {
            self.stand_in.control(command);
        }
    }
}

fn options() -> CudaOptions {
    CudaOptions::new().with_resident_kernels(ResidentUse::WherePossible)
}

fn open(ordinal: usize) -> Arc<CudaDevice> {
    StandIn::with_machine(MACHINE).backend(options()).open_cuda(ordinal).expect("it opens")
}

fn kernel(device: &CudaDevice) -> Kernel {
    Kernel::try_new(device, &programs::fold(), &[], &[0; 16]).expect("there is room")
}

fn step(device: &CudaDevice, kernel: &mut Kernel) -> Result<(), DeviceError> {
    let mut steps = [kernel.step(false, &[Incoming::words(1, &[2])])];
    device.run_batch(&mut steps)?;
    assert_eq!(steps[0].outcome, StepOutcome::Applied);
    let sent = output(&kernel.program, &steps[0]).expect("the program does no wrong");
    assert_eq!(sent.messages.len(), 1);
    Ok(())
}

#[test]
fn steps_of_a_kernel_that_stays_make_no_launch() {
    let stand_in = Alone::new();
    let device = open(0);
    let mut kernel = kernel(&device);
    assert_eq!(device.resident_kernels(), 1);
    step(&device, &mut kernel).expect("it works");
    let launches = stand_in.count("cuLaunchKernel");
    for _ in 0..50 {
        step(&device, &mut kernel).expect("it works");
    }
    assert_eq!(stand_in.count("cuLaunchKernel"), launches);
    assert_eq!(kernel.state()[0], 51);
    drop(kernel);
    assert_eq!(device.resident_kernels(), 0);
}

#[test]
fn a_kernel_that_nothing_is_asked_of_ends_and_comes_back() {
    let stand_in = Alone::new();
    let device = open(0);
    let mut kernel = kernel(&device);
    step(&device, &mut kernel).expect("it works");
    let launches = stand_in.count("cuLaunchCooperativeKernel");
    let deadline = Instant::now() + Duration::from_secs(30);
    while stand_in.count("busy streams") > 0 {
        assert!(Instant::now() < deadline, "the watchdog does not end it");
        std::thread::sleep(Duration::from_millis(5));
    }
    step(&device, &mut kernel).expect("it works again");
    assert!(stand_in.count("cuLaunchCooperativeKernel") > launches);
    assert_eq!(kernel.state()[0], 2);
}

#[test]
fn a_kernel_does_not_stay_for_ever_however_much_is_asked_of_it() {
    let stand_in = Alone::new();
    let device = open(0);
    let mut kernel = kernel(&device);
    step(&device, &mut kernel).expect("it works");
    let launches = stand_in.count("cuLaunchCooperativeKernel");
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(600) {
        step(&device, &mut kernel).expect("it works");
    }
    assert!(stand_in.count("cuLaunchCooperativeKernel") > launches, "it ends between steps");
}

#[test]
fn state_is_read_written_and_copied_between_steps() {
    let _alone = Alone::new();
    let device = open(0);
    let other = open(1);
    let (mut here, there) = (kernel(&device), kernel(&other));
    step(&device, &mut here).expect("it works");
    here.instance.write_state(0, &7_u32.to_le_bytes()).expect("the kernel ends first");
    step(&device, &mut here).expect("it works");
    assert_eq!(here.state()[0], 8, "the step saw what was written");
    device.copy_state(&*here.instance, &*there.instance, 0, 64).expect("they reach each other");
    assert_eq!(there.state(), here.state());
    let digests = here.instance.chunk_digests(64).expect("it can be digested");
    assert_eq!(digests, there.instance.chunk_digests(64).expect("it can be digested"));
}

#[test]
fn some_stay_and_the_others_are_launched() {
    let stand_in = Alone::new();
    let device = open(0);
    let mut kernels: Vec<_> = (0..12).map(|_| kernel(&device)).collect();
    let staying = device.resident_kernels();
    assert!(staying > 0 && staying < 12, "{staying} stay: half of the GPU is for launches");
    let before = stand_in.count("cuLaunchKernel");
    for _ in 0..5 {
        let mut steps: Vec<_> = kernels
            .iter_mut()
            .map(|kernel| kernel.step(false, &[Incoming::words(1, &[2])]))
            .collect();
        device.run_batch(&mut steps).expect("it works");
        assert!(steps.iter().all(|step| step.outcome == StepOutcome::Applied));
    }
    assert_eq!(stand_in.count("cuLaunchKernel") - before, 5);
    assert!(kernels.iter().all(|kernel| kernel.state()[0] == 5));
}

#[test]
fn a_gpu_that_cannot_do_it_launches_every_step() {
    let stand_in = Alone::new();
    let device = open(2);
    let mut kernel = kernel(&device);
    assert_eq!(device.resident_kernels(), 0);
    step(&device, &mut kernel).expect("it works");
    let plain = stand_in.backend(CudaOptions::new());
    let device = plain.open_cuda(0).expect("it opens");
    let _kernel = Kernel::try_new(&*device, &programs::fold(), &[], &[0; 16]).expect("room");
    assert_eq!(device.resident_kernels(), 0, "not unless it is asked for");
}

#[test]
fn a_kernel_that_hangs_is_one_gpus_trouble() {
    let stand_in = Alone::new();
    let options = options().with_wait_limit(Duration::from_millis(300));
    let backend = stand_in.backend(options);
    let [hangs, well] = [0, 1].map(|ordinal| backend.open_cuda(ordinal).expect("it opens"));
    let (mut on_hangs, mut on_well) = (kernel(&hangs), kernel(&well));
    stand_in.control("hang 0");
    let ended = step(&hangs, &mut on_hangs);
    assert!(matches!(ended, Err(DeviceError::Unresponsive { .. })), "{ended:?}");
    step(&well, &mut on_well).expect("the other GPU works");
    drop((on_hangs, hangs));
    stand_in.control("release 0");
}

#[test]
fn a_lost_gpu_takes_its_staying_kernels() {
    let stand_in = Alone::new();
    let backend = stand_in.backend(options());
    let device = backend.open_cuda(1).expect("it opens");
    let mut on_lost = kernel(&device);
    step(&device, &mut on_lost).expect("it works");
    stand_in.control("sticky 1 719");
    let mut ended = Ok(());
    for _ in 0..2000 {
        ended = step(&device, &mut on_lost);
        if ended.is_err() {
            break;
        }
    }
    assert!(matches!(ended, Err(DeviceError::Lost { .. })), "{ended:?}");
    drop((on_lost, device));
    let again = backend.open_cuda(1).expect("a reset makes a new context");
    let mut kernel = kernel(&again);
    step(&again, &mut kernel).expect("it works again");
}

#[test]
fn few_stay_however_small_they_are() {
    let _alone = Alone::new();
    let device = open(0);
    let kernels: Vec<_> = (0..12).map(|_| kernel(&device)).collect();
    assert_eq!(device.resident_kernels(), 4, "a GPU has few queues for streams");
    drop(kernels);
    assert_eq!(device.resident_kernels(), 0);
}

/// The kernel is told to end before it has begun a step whose wait failed; nobody knows whether that
/// step was done. The next launch returns when the kernel runs already, with what it was asked last.
#[test]
fn a_step_that_was_given_up_is_not_done_with_the_next() {
    let stand_in = Alone::new();
    let device = open(0);
    let mut kernel = kernel(&device);
    stand_in.control("hang 0");
    stand_in.control("fail cuStreamQuery 12345 1");
    let ended = step(&device, &mut kernel);
    assert!(matches!(ended, Err(DeviceError::Driver { .. })), "{ended:?}");
    let before = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(200)); // the state is asked for by then
            stand_in.stand_in.control("release 0");
        });
        kernel.state()[0]
    });
    stand_in.control("late 0");
    step(&device, &mut kernel).expect("the GPU is well");
    assert_eq!(kernel.state()[0], before + 1, "one step was asked for");
}
