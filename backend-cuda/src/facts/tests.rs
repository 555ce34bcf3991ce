//! Texts and shares; `tests/devices.rs` asks a driver.

use super::*;
use crate::options::GpuFilter;

fn gpu() -> GpuFacts {
    GpuFacts {
        ordinal: 1,
        name: "NVIDIA H100 80GB HBM3".to_owned(),
        uuid: "GPU-5a4f0001-0000-0000-0000-000000000001".to_owned(),
        parent_uuid: None,
        pci_address: Some("0000:3b:00.0".to_owned()),
        memory_bytes: 80 << 30,
        compute_capability: ComputeCapability { major: 9, minor: 0 },
        multiprocessors: 132,
        clock_khz: Some(1_980_000),
        memory_clock_khz: None,
        cooperative_launch: true,
        is_integrated: false,
        has_ecc: true,
        has_display_watchdog: false,
        device: 1,
    }
}

#[test]
fn a_uuid_is_printed_as_nvidia_smi_does() {
    let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 255];
    assert_eq!(uuid_text("MIG", bytes), "MIG-01020304-0506-0708-090a-0b0c0d0e0fff");
}

#[test]
fn logical_devices_share_memory_and_fate() {
    let options = CudaOptions::new().with_logical_devices(2).with_memory_bytes_of(1, 5);
    let infos = [0, 1].map(|logical| gpu().device_info(logical, logical, &options, None));
    assert_eq!(infos[0].total_memory_bytes, 40 << 30);
    assert_eq!(infos[1].total_memory_bytes, 5);
    assert_ne!(infos[0].identity, infos[1].identity);
    assert!(infos[0].shares_failure_domain(&infos[1]));
}

#[test]
fn gpus_are_chosen_by_uuid_address_name_or_place() {
    let fits = |text: &str| CudaOptions::new().with_gpu(GpuFilter::parse(text)).fits(&gpu());
    for text in ["1", "h100", "GPU-5a4f", "gpu-5A4F0001", "0000:3b:00.0", "3B:00.0"] {
        assert!(fits(text), "{text}");
    }
    for text in ["0", "H200", "GPU-6", "MIG-5a4f", "0001:3b:00.0"] {
        assert!(!fits(text), "{text}");
    }
}
