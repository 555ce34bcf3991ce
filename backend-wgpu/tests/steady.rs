//! Batches that go on for long, alone in their process so that its memory is theirs.

#[path = "support/kernels.rs"]
mod kernels;

use std::sync::{Mutex, PoisonError};

use hopwise_backend_wgpu::WgpuOptions;
use hopwise_core::abi::inbox;
use hopwise_core::device::{Device, InitialState, Step, StepOutcome};
use kernels::{Kernel, open, over_state};

/// One test at a time, so that the memory of the process is that of one.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn a_steady_state_creates_no_buffer_and_keeps_its_memory() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(device) = open(WgpuOptions::new().with_memory_bytes(64 << 20)) else { return };
    let program = over_state("count", "hw_set_state(i, hw_state(i) + 1u);").build().unwrap();
    let mut kernels: Vec<_> =
        (0..8).map(|_| Kernel::new(&*device, &program, 1024, InitialState::Zeroed)).collect();
    let mut steps: Vec<Step> = Vec::new();
    let mut run = |rounds: u32| {
        for _ in 0..rounds {
            let mut boxes = steps.drain(..).map(|step| (step.inbox, step.outbox));
            let next = kernels.iter_mut().map(|kernel| {
                let (inbox, outbox) = boxes.next().unwrap_or_default();
                kernel.step_in(inbox, outbox)
            });
            let mut next: Vec<_> = next.collect();
            device.run_batch(&mut next).unwrap();
            drop(boxes);
            steps = next;
        }
    };
    run(200);
    let (buffers, memory) = (device.buffers_created(), resident_bytes());
    run(1000);
    assert_eq!(device.buffers_created(), buffers);
    let grown = resident_bytes().saturating_sub(memory);
    assert!(grown < 4 << 20, "{grown} bytes more after 8000 steps");
    assert!(kernels.iter().all(|kernel| kernel.words(0, 256) == [1200; 256]));
}

#[test]
fn batches_of_changing_shape_create_no_buffer() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(device) = open(WgpuOptions::new().with_memory_bytes(64 << 20)) else { return };
    // What these send needs more than the smallest buffer, and what these receive does.
    let sends = over_state("sends", "").out_port("out", 4000).outbox_slots(64).build().unwrap();
    let hears = over_state("hears", "").in_port("in", 4000).inbox_slots(64).build().unwrap();
    let kernel = |program| Kernel::new(&*device, program, 4, InitialState::Zeroed);
    let (mut sends, mut hears) = (kernel(&sends), kernel(&hears));
    let mut run = |rounds: u32| {
        for _ in 0..rounds {
            device.run_batch(&mut [sends.step()]).unwrap();
            let mut step = hears.step();
            for tag in 0..64 {
                inbox::push(&mut step.inbox, 0, tag, 1, &[7; 4000]);
            }
            let mut steps = [step];
            device.run_batch(&mut steps).unwrap();
            assert_eq!(steps[0].outcome, StepOutcome::Applied);
        }
    };
    run(2);
    let buffers = device.buffers_created();
    run(100);
    assert_eq!(device.buffers_created(), buffers);
}

/// Memory of this process that is present; 0 where the system does not say.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}
