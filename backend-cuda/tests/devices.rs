//! Which device is which: UUIDs and addresses, not places; instances of a partitioned GPU; what
//! `CUDA_VISIBLE_DEVICES` leaves.

#[path = "support/child.rs"]
mod child;
#[path = "support/stand_in.rs"]
mod stand_in;

use hopwise_backend_cuda::{CudaBackend, CudaOptions, DriverOutcome, GpuFilter, Probe};
use hopwise_core::backend::Backend;
use hopwise_core::conformance::{Incoming, Kernel, programs};
use hopwise_core::device::Device;
use hopwise_core::device_info::{ComputeCapability, DeviceIdentity};
use stand_in::StandIn;

/// A whole GPU, and one of which two instances were made.
const MACHINE: &str = "
    gpu name=Stand-in_A uuid=0a000000000000000000000000000001 pci=0000:3B:00.0 memory_mib=64 capability=8.6
    gpu name=Stand-in_B_MIG_1g.10gb uuid=0b000000000000000000000000000002 parent=0c000000000000000000000000000003 pci=0000:5E:00.0 memory_mib=32 capability=9.0
    gpu name=Stand-in_B_MIG_2g.20gb uuid=0b000000000000000000000000000004 parent=0c000000000000000000000000000003 pci=0000:5E:00.0 memory_mib=48 capability=9.0
";

fn backend(options: CudaOptions) -> CudaBackend {
    StandIn::with_machine(MACHINE).backend(options)
}

#[test]
fn identities_are_uuids_and_instances_have_a_parent() {
    let _alone = stand_in::alone();
    let backend = backend(CudaOptions::new());
    let infos = backend.enumerate().expect("the stand-in lists them");
    let uuids = [
        "GPU-0a000000-0000-0000-0000-000000000001",
        "MIG-0b000000-0000-0000-0000-000000000002",
        "MIG-0b000000-0000-0000-0000-000000000004",
    ];
    let identities: Vec<_> = infos.iter().map(|info| info.identity.clone()).collect();
    assert_eq!(identities, uuids.map(|uuid| DeviceIdentity::Uuid(uuid.to_owned())));
    let gpus: Vec<_> = backend.gpus().collect();
    let parent = Some("GPU-0c000000-0000-0000-0000-000000000003".to_owned());
    assert_eq!(gpus[0].parent_uuid, None);
    assert_eq!([&gpus[1].parent_uuid, &gpus[2].parent_uuid], [&parent, &parent]);
    assert_eq!(gpus[0].pci_address.as_deref(), Some("0000:3b:00.0"));
    assert!(!infos[0].shares_failure_domain(&infos[1]));
    assert!(infos[1].shares_failure_domain(&infos[2]), "one card");
    assert_eq!(infos[2].total_memory_bytes, 48 << 20);
    assert_eq!(infos[0].compute_capability, Some(ComputeCapability { major: 8, minor: 6 }));
    assert_eq!((gpus[0].multiprocessors, gpus[0].clock_khz), (16, Some(1_500_000)));
}

#[test]
fn instances_run_kernels_of_their_own() {
    let _alone = stand_in::alone();
    let backend = backend(CudaOptions::new());
    for ordinal in 0..3 {
        let device = backend.open_cuda(ordinal).expect("it opens");
        let mut kernel = Kernel::try_new(&*device, &programs::fold(), &[], &[0; 8]).expect("room");
        let mut steps = [kernel.step(false, &[Incoming::words(1, &[2])])];
        device.run_batch(&mut steps).expect("it works");
        assert_eq!(kernel.state()[0], 1);
    }
}

#[test]
fn a_gpu_is_chosen_by_what_it_is() {
    let _alone = stand_in::alone();
    let chosen = |text: &str| {
        let backend = backend(CudaOptions::new().with_gpu(GpuFilter::parse(text)));
        backend.gpus().map(|gpu| gpu.ordinal).collect::<Vec<_>>()
    };
    assert_eq!(chosen("GPU-0a"), [0]);
    assert_eq!(chosen("MIG-0b000000-0000-0000-0000-000000000004"), [2]);
    assert_eq!(chosen("5e:00.0"), [1, 2]);
    assert_eq!(chosen("stand-in a"), [0]);
    let none = backend(CudaOptions::new().with_gpu(GpuFilter::parse("GPU-ff")));
    let error = none.enumerate().expect_err("no such GPU").to_string();
    assert!(error.contains("lists 3") && error.contains("with UUID GPU-ff"), "{error}");
}

#[test]
fn one_gpu_that_does_not_answer_leaves_the_others() {
    let _alone = stand_in::alone();
    let stand_in = StandIn::with_machine(MACHINE);
    for call in ["cuDeviceGetName", "cuDeviceGetUuid_v2", "cuDeviceTotalMem_v2"] {
        stand_in.control(&format!("fail {call} 999 2"));
        let backend = stand_in.backend(CudaOptions::new());
        assert_eq!(backend.gpus().map(|gpu| gpu.ordinal).collect::<Vec<_>>(), [0, 2], "{call}");
        assert!(backend.problems()[0].contains(call), "{:?}", backend.problems());
    }
}

/// What `CUDA_VISIBLE_DEVICES` leaves, by the last digit of the UUIDs; none for no device.
fn visible(list: &str, expected: &str) {
    let backend = backend(CudaOptions::new());
    let last = |gpu: &hopwise_backend_cuda::GpuFacts| gpu.uuid.chars().last();
    let found: String = backend.gpus().filter_map(last).collect();
    assert_eq!(found, expected, "CUDA_VISIBLE_DEVICES={list}");
}

#[test]
fn visible_devices_are_honoured() {
    let _alone = stand_in::alone();
    let cases = [
        ("2,0", "41"),
        ("GPU-0a,MIG-0b000000-0000-0000-0000-000000000002", "12"),
        ("0,7,1", "1"),
        ("", ""),
        ("-1", ""),
    ];
    for (list, expected) in cases {
        if child::is(&format!("visible {list}")) {
            return visible(list, expected);
        }
    }
    if child::is_any() {
        return;
    }
    for (list, _) in cases {
        let environment = [("CUDA_VISIBLE_DEVICES", list)];
        child::run("visible_devices_are_honoured", &format!("visible {list}"), &environment);
    }
}

#[test]
fn a_hidden_gpu_and_a_driver_without_gpus_are_told_apart() {
    let _alone = stand_in::alone();
    let part = "a_hidden_gpu_and_a_driver_without_gpus_are_told_apart";
    if child::is(part) {
        let probe = Probe::with_libraries(&StandIn::with_machine(MACHINE).libraries());
        let DriverOutcome::NoDevice { hidden_by, .. } = &probe.driver else { panic!("{probe}") };
        assert_eq!(hidden_by.as_deref(), Some(""));
        assert!(probe.to_string().contains("unset CUDA_VISIBLE_DEVICES"), "{probe}");
        let error = backend(CudaOptions::new()).enumerate().expect_err("all are hidden");
        assert!(error.to_string().contains("CUDA_VISIBLE_DEVICES is ``"), "{error}");
    } else if !child::is_any() {
        child::run(part, part, &[("CUDA_VISIBLE_DEVICES", "")]);
    }
}
