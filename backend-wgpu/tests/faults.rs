//! Faults injected into a real driver's device: each call fails once, and everything is free after.

#[path = "support/kernels.rs"]
mod kernels;

use std::sync::Arc;

use hopwise_backend_wgpu::{WgpuBackend, WgpuOptions};
use hopwise_core::backend::Backend;
use hopwise_core::device::{InitialState, InstanceRequest};
use hopwise_core::error::DeviceError;
use hopwise_core::fault::{FaultAction, FaultPlan, FaultRule, FaultyBackend};
use kernels::{Kernel, over_state};

const MEMORY_BYTES: u64 = 4 << 20;

fn injected(fatal: bool) -> DeviceError {
    let text = "injected".to_owned();
    if fatal { DeviceError::Lost { cause: text } } else { DeviceError::Driver { message: text } }
}

/// Every operation once, in an order in which each needs what came before.
fn tour(backend: &FaultyBackend) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    backend.enumerate().map_err(|error| text(&error))?;
    backend.links().map_err(|error| text(&error))?;
    let device = backend.open(0).map_err(|error| text(&error))?;
    device.memory().map_err(|error| text(&error))?;
    let program = over_state("count", "hw_set_state(i, hw_state(i) + 1u);");
    let program = program.build().map_err(|error| text(&error))?;
    let compiled = device.compile(&program).map_err(|error| text(&error))?;
    let initial = InitialState::Bytes(&[0; 64]);
    let request = InstanceRequest { parameters: &[], state_bytes: 64, initial };
    let instance = device.create_instance(&compiled, &request).map_err(|error| text(&error))?;
    let mut kernel = Kernel::of(&program, instance);
    device.run_batch(&mut [kernel.step()]).map_err(|error| text(&error))?;
    let mut word = [0; 4];
    kernel.instance.read_state(60, &mut word).map_err(|error| text(&error))?;
    assert_eq!(word, [1, 0, 0, 0], "what goes well is right");
    kernel.instance.write_state(0, &[1; 64]).map_err(|error| text(&error))?;
    kernel.instance.chunk_digests(16).map_err(|error| text(&error))?;
    Ok(())
}

#[test]
fn every_call_of_a_run_can_fail_and_leaves_nothing_behind() {
    let options = WgpuOptions::new().with_memory_bytes(MEMORY_BYTES).with_logical_devices(2);
    let wgpu = Arc::new(WgpuBackend::new(options));
    if let Err(error) = wgpu.enumerate() {
        eprintln!("not tried: {error}");
        return;
    }
    let plan = FaultPlan::new();
    let backend = FaultyBackend::new(Arc::clone(&wgpu) as _, Arc::clone(&plan));
    tour(&backend).expect("nothing is armed");
    let total = plan.calls(None, None);
    assert_eq!(total, 10, "one call of each operation");
    for fatal in [false, true] {
        for action in [FaultAction::Fail(injected(fatal)), FaultAction::FailAfter(injected(fatal))]
        {
            for call in 1..=total {
                plan.disarm();
                plan.reset_counts();
                plan.arm(FaultRule::new(action.clone()).at_call(call));
                let failed = tour(&backend).expect_err("a fault is armed");
                assert!(failed.contains("injected"), "{failed}");
                assert_eq!(plan.fired(), 1);
                tour(&backend).expect("a rule disturbs one call, and a lost device opens anew");
            }
        }
    }
    let untouched = wgpu.open(1).and_then(|device| device.memory());
    assert_eq!(untouched.map(|memory| memory.available_bytes), Ok(MEMORY_BYTES));
}
