//! Every question fails once, in every way: nothing panics and the rest is told.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use super::scripted::{Scripted, lane};
use crate::library::Libraries;
use crate::nvml::management::{Remote, Status};
use crate::nvml::{Condition, Nvml, NvmlError};

fn statuses() -> [Status; 6] {
    [
        Status::NotSupported,
        Status::NotFound,
        Status::Lost,
        Status::ResetRequired,
        Status::NoFunction,
        Status::Other("an internal driver error occurred".to_owned()),
    ]
}

#[test]
fn one_failure_leaves_all_but_one_gpu() {
    for status in statuses() {
        for answered in 0.. {
            let left = Arc::new(AtomicI64::new(i64::MAX));
            let mut scripted = Scripted::new(3).with_lanes(|_| vec![lane(Remote::Switch, None); 2]);
            scripted.fails_after = Some((Arc::clone(&left), status.clone()));
            let nvml = scripted.nvml();
            left.store(answered, std::sync::atomic::Ordering::SeqCst);
            let said = nvml.links();
            let gpus = said.nodes.iter().filter(|node| node.pci.is_some()).count();
            assert!(gpus >= 2, "{status:?} after {answered} answers left {gpus} GPUs");
            let uuids = said.nodes.iter().filter(|node| node.uuid.is_some()).count();
            assert!(uuids >= 2, "{status:?} after {answered} answers left {uuids} UUIDs");
            let is_silent = matches!(status, Status::NotSupported | Status::NotFound);
            let was_reached = left.load(std::sync::atomic::Ordering::SeqCst) < 0;
            assert!(
                is_silent || !was_reached || !said.warnings.is_empty(),
                "{status:?} after {answered} answers was not told"
            );
            if !was_reached {
                assert!(answered > 30, "only {answered} questions were asked");
                break;
            }
        }
    }
}

#[test]
fn without_nvml_nothing_is_known() {
    let names = vec!["libhopwise-no-such-library.so".to_owned()];
    // SAFETY: there is no library of this name.
    let libraries = unsafe { Libraries::custom(Vec::new(), Vec::new(), names) };
    let Err(error @ NvmlError::Missing { .. }) = Nvml::open(&libraries) else {
        panic!("there is no such library")
    };
    let text = error.to_string();
    assert!(text.contains("libhopwise-no-such-library.so"), "{text}");
    assert!(text.contains("remedy: NVML comes with the NVIDIA driver"), "{text}");
}

#[test]
fn a_gpu_that_nvml_does_not_know_is_neither_sound_nor_sick() {
    let condition = Scripted::new(1).nvml().condition("GPU-unknown");
    let Condition::Unknown { why } = condition else { panic!("{condition:?}") };
    assert!(why.contains("GPU-unknown") && why.contains("nvidia-smi -L"), "{why}");
}
