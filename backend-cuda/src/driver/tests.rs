//! Versions, codes and texts; `tests/fake_driver.rs` tests the calls.

use super::*;

#[test]
fn a_version_is_read_from_the_drivers_number() {
    assert_eq!(CudaVersion::from_driver(12_040), CudaVersion { major: 12, minor: 4 });
    assert_eq!(CudaVersion::from_driver(13_000).to_string(), "13.0");
    assert_eq!(CudaVersion::from_driver(-1), CudaVersion { major: 0, minor: 0 });
}

#[test]
fn codes_are_named() {
    assert_eq!(DriverStatus(803).to_string(), "error 803 (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)");
    assert_eq!(DriverStatus(7).to_string(), "error 7");
    assert_eq!(DriverStatus(7).name(), None);
}

#[test]
fn every_outcome_but_ready_has_a_remedy_in_its_text() {
    let version = CudaVersion { major: 12, minor: 4 };
    let library = String::from("libcuda.so.1");
    let failed = DriverOutcome::Failed {
        library: library.clone(),
        version: Some(version),
        call: "cuInit",
        status: DriverStatus(999),
    };
    assert!(failed.to_string().contains("cuInit of libcuda.so.1 failed: error 999"), "{failed}");
    assert!(failed.to_string().contains("remedy: look for an Xid"), "{failed}");
    let none = DriverOutcome::NoDevice { library: library.clone(), version, hidden_by: None };
    assert!(none.to_string().contains("CUDA 12.4 sees no device\n  remedy: check"), "{none}");
    let ready = DriverOutcome::Ready { library, version, device_count: 1 };
    assert_eq!(ready.to_string(), "libcuda.so.1 for CUDA 12.4, 1 device");
}
