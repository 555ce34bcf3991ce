//! Shaders that the prelude makes are valid for every shape of program and state.

use wgpu::naga::front::wgsl::parse_str;
use wgpu::naga::valid::{Capabilities, ValidationFlags, Validator};

use super::*;

const EVERYTHING: &str = "
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = hw_index(id, groups, 64u);
    if (i >= hw_message_count() || i >= hw_state_words() || hw_faulted()) { return; }
    hw_set_state(i, hw_state(i) + hw_parameter(i) + hw_step_number() + u32(hw_started()));
    let sum = hw_in_port(i) + hw_tag(i) + hw_length(i) + hw_channel(i) + hw_payload(i, 0u);
    let handle = hw_send(0u, i, sum, 4u);
    hw_put(handle, 0u, hw_divide(sum, i) + hw_remainder(sum, i));
    if (handle == HW_NO_SLOT) { hw_fault(7u); } else { hw_run_again(); }
}
";

const ATOMIC: &str = "
@compute @workgroup_size(1)
fn main() { hw_set_state(hw_state_add(0u, 1u), hw_state_max(1u, 2u) + hw_state_or(2u, 3u)); }
";

#[test]
fn shaders_are_valid_for_every_shape() {
    for (wgsl, parameters, slots, bytes) in
        [(EVERYTHING, 0, 1, 0), (EVERYTHING, 4, 1, 3), (EVERYTHING, 4096, 7, 65), (ATOMIC, 5, 2, 4)]
    {
        let program = Program::builder("shape")
            .in_port("in", bytes)
            .out_port("out", bytes)
            .parameter_words(parameters)
            .inbox_slots(slots)
            .outbox_slots(slots)
            .pass("main", hopwise_core::program::Grid::StateWords)
            .wgsl(wgsl)
            .build()
            .unwrap();
        for count in [1, 2, 31] {
            let shader = assemble(&program, wgsl, Segments { count, shift: 25 });
            let module = parse_str(&shader).unwrap_or_else(|error| {
                panic!("{}", error.emit_to_string(&shader));
            });
            Validator::new(ValidationFlags::all(), Capabilities::empty())
                .validate(&module)
                .unwrap_or_else(|error| panic!("{}", error.emit_to_string(&shader)));
        }
    }
}

#[test]
fn only_programs_that_ask_for_it_pay_for_atomic_state() {
    let program = Program::builder("plain").host(|_| Ok(())).build().unwrap();
    let segments = Segments { count: 1, shift: 25 };
    assert!(assemble(&program, EVERYTHING, segments).contains("hw_state_0: array<u32>;"));
    assert!(assemble(&program, ATOMIC, segments).contains("hw_state_0: array<atomic<u32>>;"));
}
