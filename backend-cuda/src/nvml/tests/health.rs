//! How well GPUs are.

use hopwise_core::health::DegradationKind::{self, Fabric, Memory, Pcie, Power, Temperature};

use super::scripted::{Gpu, Lane, Scripted, lane};
use crate::nvml::Condition;
use crate::nvml::management::{Instance, Load, Remote, Rows, Status};

/// The condition of a GPU that a test changes.
fn condition(change: impl FnOnce(&mut Gpu)) -> Condition {
    let mut scripted = Scripted::new(1);
    change(&mut scripted.gpus[0]);
    let uuid = scripted.gpus[0].uuid.clone();
    scripted.nvml().condition(&uuid)
}

/// What of the GPU is degraded; each with what was seen and a remedy.
fn kinds(change: impl FnOnce(&mut Gpu)) -> Vec<DegradationKind> {
    match condition(change) {
        Condition::Sound => Vec::new(),
        Condition::Degraded(found) => {
            assert!(found.iter().all(|one| !one.what.is_empty() && !one.remedy.is_empty()));
            found.iter().map(|one| one.kind).collect()
        }
        other => panic!("{other:?}"),
    }
}

const BUSY: Load = Load { busy_percent: 97, performance_state: Some(0) };

#[test]
fn a_gpu_that_idles_or_is_limited_on_purpose_is_sound() {
    assert_eq!(condition(|_| ()), Condition::Sound);
    // Idle, application clocks, power cap, sync boost, display clocks; the general hardware bit.
    for bit in [0x1, 0x2, 0x4, 0x10, 0x100, 0x8] {
        assert_eq!(kinds(|gpu| gpu.throttle_reasons = Some(bit)), [], "bit {bit:#x}");
    }
}

#[test]
fn heat_and_lack_of_power_degrade() {
    assert_eq!(kinds(|gpu| gpu.throttle_reasons = Some(0x20)), [Temperature]);
    assert_eq!(kinds(|gpu| gpu.throttle_reasons = Some(0x8 | 0x40)), [Temperature]);
    assert_eq!(kinds(|gpu| gpu.throttle_reasons = Some(0x88)), [Power]);
}

#[test]
fn a_narrow_pcie_link_degrades_and_a_slow_one_under_load() {
    assert_eq!(kinds(|gpu| gpu.pcie.lanes_now = Some(8)), [Pcie]);
    assert_eq!(kinds(|gpu| gpu.pcie.generation_now = Some(1)), [], "it idles");
    let slow = |load| {
        move |gpu: &mut Gpu| {
            gpu.pcie.generation_now = Some(2);
            gpu.load = load;
        }
    };
    assert_eq!(kinds(slow(BUSY)), [Pcie]);
    assert_eq!(kinds(slow(Load { performance_state: None, ..BUSY })), [Pcie]);
    assert_eq!(kinds(slow(Load { performance_state: Some(8), ..BUSY })), [], "it has just ended");
    assert_eq!(kinds(slow(Load { busy_percent: 3, ..BUSY })), []);
    let unknown = |gpu: &mut Gpu| gpu.pcie.lanes_max = None;
    assert_eq!(kinds(unknown), [], "what is unknown is not bad");
}

#[test]
fn memory_errors_degrade() {
    assert_eq!(kinds(|gpu| gpu.uncorrected_errors = Some(2)), [Memory]);
    let pending = Rows { is_pending: true, ..Rows::default() };
    assert_eq!(kinds(|gpu| gpu.rows = Some(pending)), [Memory]);
    let failed = Rows { has_failed: true, ..Rows::default() };
    assert_eq!(kinds(|gpu| gpu.rows = Some(failed)), [Memory]);
    let replaced = Rows { after_uncorrected: 3, ..Rows::default() };
    assert_eq!(kinds(|gpu| gpu.rows = Some(replaced)), [], "they are replaced");
    let retired = |waits| {
        move |gpu: &mut Gpu| {
            gpu.rows = None;
            gpu.pages_wait = Some(waits);
        }
    };
    assert_eq!(kinds(retired(true)), [Memory]);
    assert_eq!(kinds(retired(false)), []);
}

#[test]
fn lanes_that_are_down_degrade_only_beside_others_that_are_up() {
    let lanes = |up: usize, down: usize| {
        let one = lane(Remote::Switch, None);
        let is_down = Lane { is_up: false, ..one.clone() };
        Some([vec![one; up], vec![is_down; down]].concat())
    };
    assert_eq!(kinds(|gpu| gpu.lanes = lanes(17, 1)), [Fabric]);
    assert_eq!(kinds(|gpu| gpu.lanes = lanes(18, 0)), []);
    assert_eq!(kinds(|gpu| gpu.lanes = lanes(0, 4)), [], "no bridge is fitted");
    assert_eq!(kinds(|gpu| gpu.lanes = None), [], "the card has no NVLink");
}

#[test]
fn all_that_is_wrong_is_told() {
    let found = kinds(|gpu| {
        gpu.throttle_reasons = Some(0x60);
        gpu.pcie.lanes_now = Some(4);
        gpu.uncorrected_errors = Some(1);
    });
    assert_eq!(found, [Temperature, Temperature, Pcie, Memory]);
}

#[test]
fn a_gpu_that_tells_nothing_is_unknown() {
    let mut scripted = Scripted::new(1);
    scripted.gpus[0].throttle_reasons = None;
    let uuid = scripted.gpus[0].uuid.clone();
    assert_eq!(scripted.clone().nvml().condition(&uuid), Condition::Sound, "the rest is sound");
    scripted.refuses = Some(Status::NoPermission);
    let condition = scripted.nvml().condition(&uuid);
    assert!(
        matches!(&condition, Condition::Unknown { why } if why.contains("no permission")),
        "{condition:?}"
    );
}

#[test]
fn a_lost_gpu_is_lost_and_the_other_is_sound() {
    let mut scripted = Scripted::new(2);
    let uuids = [0, 1].map(|index: usize| scripted.gpus[index].uuid.clone());
    scripted.refuses = Some(Status::Lost);
    let nvml = scripted.nvml();
    let condition = nvml.condition(&uuids[0]);
    let Condition::Lost { cause } = &condition else { panic!("{condition:?}") };
    assert!(
        cause.contains("the GPU is lost") && cause.contains("power the machine off"),
        "{cause}"
    );
    assert_eq!(nvml.condition(&uuids[1].to_uppercase()), Condition::Sound);
}

#[test]
fn an_instance_is_as_well_as_its_card() {
    let mut scripted = Scripted::new(1);
    let gpu = &mut scripted.gpus[0];
    gpu.is_divided = Some(true);
    gpu.instances = vec![None, Some(Instance { uuid: "MIG-7".to_owned(), memory_bytes: None })];
    gpu.uncorrected_errors = Some(1);
    let condition = scripted.nvml().condition("mig-7");
    assert!(matches!(condition, Condition::Degraded(_)), "{condition:?}");
}
