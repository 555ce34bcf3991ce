//! Sizes of states, quotas, and memory that comes back.

use super::subject::Subject;
use super::{SMALL_MEMORY_BYTES, programs};
use crate::device::{Device, InitialState, InstanceRequest, KernelInstance};
use crate::error::{DeviceError, InstanceError};

/// Instances that are tried before a device must be out of memory.
const MOST_INSTANCES: usize = 64;

pub(super) fn figures_are_sane(subject: &Subject) {
    let device = &*subject.device;
    let before = device.memory().expect("the device works");
    assert!(before.available_bytes <= before.total_bytes, "{before:?}");
    assert!(subject.listed.available_memory_bytes <= subject.listed.total_memory_bytes);
    let kept = create(device, 4096).expect("there is room for one page");
    let during = device.memory().expect("the device works");
    assert_eq!(during.total_bytes, before.total_bytes);
    assert!(during.available_bytes <= during.total_bytes, "{during:?}");
    drop(kept);
}

pub(super) fn state_sizes_are_checked(subject: &Subject) {
    for state_bytes in [0, 1, 2, 6, u64::MAX] {
        let refused = create(&*subject.device, state_bytes).map(|_| ());
        assert_eq!(refused, Err(InstanceError::StateSize { state_bytes }));
    }
    let max_state_bytes = subject.device.limits().max_state_bytes;
    let largest = max_state_bytes - max_state_bytes % 4;
    if let Some(state_bytes) = largest.checked_add(4) {
        let refused = create(&*subject.device, state_bytes).map(|_| ());
        assert_eq!(refused, Err(InstanceError::StateTooLarge { state_bytes, max_state_bytes }));
    }
}

pub(super) fn memory_runs_out_and_comes_back(subject: &Subject) {
    let device = &*subject.device;
    let before = device.memory().expect("the device works");
    if before.total_bytes > SMALL_MEMORY_BYTES {
        eprintln!("exhaustion not tried: {} bytes are not a small quota", before.total_bytes);
        return;
    }
    let state_bytes = (before.available_bytes / 8).min(device.limits().max_state_bytes) / 4 * 4;
    let (live, refusal) = fill(device, state_bytes);
    let Some(InstanceError::Device(DeviceError::OutOfMemory { requested_bytes, available_bytes })) =
        refusal
    else {
        panic!("{} instances of {state_bytes} bytes, then {refusal:?}", live.len());
    };
    assert!(requested_bytes >= state_bytes, "{requested_bytes} bytes asked for");
    let during = device.memory().expect("running out of memory is no loss");
    if let Some(available_bytes) = available_bytes {
        assert!(
            available_bytes < requested_bytes,
            "{available_bytes} bytes would have been enough"
        );
        assert_eq!(available_bytes, during.available_bytes, "it is what is left");
    }
    let used = live.len() as u64 * state_bytes;
    assert!(before.available_bytes - during.available_bytes >= used, "{used} bytes are in use");

    let count = live.len();
    drop(live);
    let after = device.memory().expect("the device works");
    assert_eq!(after, before, "dropped instances free their memory");
    assert_eq!(fill(device, state_bytes).0.len(), count, "memory can be used again");
}

type Instance = std::sync::Arc<dyn KernelInstance>;

fn create(device: &dyn Device, state_bytes: u64) -> Result<Instance, InstanceError> {
    let compiled = device.compile(&programs::fold()).expect("the suite's programs fit");
    let request = InstanceRequest { parameters: &[], state_bytes, initial: InitialState::Zeroed };
    device.create_instance(&compiled, &request)
}

/// Creates instances until one is refused.
fn fill(device: &dyn Device, state_bytes: u64) -> (Vec<Instance>, Option<InstanceError>) {
    let mut live = Vec::new();
    while live.len() < MOST_INSTANCES {
        match create(device, state_bytes) {
            Ok(instance) => live.push(instance),
            Err(refusal) => return (live, Some(refusal)),
        }
    }
    (live, None)
}
