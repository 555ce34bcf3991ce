//! The driver and NVML together: each GPU is the same in both by its UUID, whatever their orders are,
//! and what NVML reports of one is told of no other.

#[path = "support/stand_in.rs"]
mod stand_in;

use std::sync::Mutex;

use hopwise_backend_cuda::{CudaBackend, CudaOptions};
use hopwise_core::backend::Backend;
use hopwise_core::conformance::{Incoming, Kernel, programs};
use hopwise_core::device::Device;
use hopwise_core::device_info::PcieLink;
use hopwise_core::error::DeviceError;
use hopwise_core::health::DegradationKind;
use libloading::Library;
use stand_in::StandIn;

/// The GPUs of the stand-in for NVML, in another order: 2, an instance of 1, 0.
const MACHINE: &str = "
    gpu uuid=00000002000000000000000000000000 pci=0000:22:00.0 memory_mib=64
    gpu uuid=00000000000000000000000000000000 parent=00000001000000000000000000000000 pci=0000:21:00.0 memory_mib=64
    gpu uuid=00000000000000000000000000000000 pci=0000:20:00.0 memory_mib=64
";

/// NVML has one state in a process.
static ALONE: Mutex<()> = Mutex::new(());

fn backend() -> CudaBackend {
    StandIn::with_machine(MACHINE).backend(CudaOptions::new())
}

/// Changes the stand-in for NVML: 0 loses a GPU, 1 reports an Xid of GPU 0.
fn nvml(what: u32, value: u64) {
    type Function = unsafe extern "C" fn(u32, u64) -> u32;
    let path = StandIn::build().folder.join("libnvidia-ml.so.1");
    // SAFETY: the library was compiled by the support, and is loaded already.
    let library = unsafe { Library::new(path) }.expect("it is there");
    // SAFETY: the stand-in declares the function with this type, and takes any numbers.
    unsafe { library.get::<Function>("hw_nvml_control").expect("it is there")(what, value) };
}

fn works(device: &dyn Device) {
    let mut kernel = Kernel::try_new(device, &programs::fold(), &[], &[0; 8]).expect("room");
    let mut steps = [kernel.step(false, &[Incoming::words(1, &[2])])];
    device.run_batch(&mut steps).expect("it works");
}

#[test]
fn facts_are_joined_by_uuid() {
    let _alone = ALONE.lock();
    let infos = backend().enumerate().expect("the stand-in lists them");
    assert_eq!(infos[0].numa_node, Some(65), "GPU 2 of NVML is the first of CUDA");
    assert_eq!(infos[2].pcie, Some(PcieLink { generation: 5, lanes: 16 }));
    assert!(infos[1].failure_domain.as_deref().is_some_and(|domain| domain.contains("21:00.0")));
}

#[test]
fn links_have_the_ordinals_of_the_backend() {
    let _alone = ALONE.lock();
    let listed = backend();
    for link in listed.links().expect("NVML tells them") {
        assert!([0, 2].contains(&link.from) && [0, 2].contains(&link.to), "{link:?}");
    }
    let doubled = CudaOptions::new().with_logical_devices(2);
    for link in StandIn::with_machine(MACHINE).backend(doubled).links().expect("as before") {
        assert!([0, 4].contains(&link.from) && [0, 4].contains(&link.to), "{link:?}");
    }
}

#[test]
fn what_makes_a_gpu_worse_is_told_of_it_alone() {
    let _alone = ALONE.lock();
    let backend = backend();
    let devices = [0, 1, 2].map(|ordinal| backend.open_cuda(ordinal).expect("it opens"));
    let kinds = |at: usize| {
        let found = devices[at].degradations().expect("it works");
        found.iter().map(|one| one.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(0), [DegradationKind::Pcie]);
    assert_eq!(kinds(1), [DegradationKind::Memory], "the instance has the troubles of its card");
    assert_eq!(kinds(2), []);
    nvml(1, 48);
    devices[0].poll().expect("it works");
    assert_eq!(kinds(2), [DegradationKind::Memory], "an event is told to whom it concerns");
    devices.iter().for_each(|device| works(&**device));
}

#[test]
fn a_gpu_that_nvml_reports_off_the_bus_is_lost_before_anybody_calls_it() {
    let _alone = ALONE.lock();
    let backend = backend();
    let devices = [0, 1, 2].map(|ordinal| backend.open_cuda(ordinal).expect("it opens"));
    nvml(1, 79);
    devices[0].poll().expect("another GPU's worker hears of it");
    let lost = devices[2].health().cause();
    let Some(DeviceError::Lost { cause }) = &lost else { panic!("{lost:?}") };
    assert!(cause.contains("79"), "{cause}");
    works(&*devices[0]);
    works(&*devices[1]);
    assert_eq!(devices[2].degradations().expect_err("it is lost"), lost.expect("as above"));
}
