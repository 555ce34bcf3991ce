// Each pass has one invocation for each word of state; half of them have something to do.

@compute @workgroup_size(64)
fn scale(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let i = hw_index(id, groups, 64u);
    let half = hw_state_words() / 2u;
    if (i < half) {
        hw_set_state(half + i, hw_state(i) * 3u + hw_parameter(0u));
    }
}

@compute @workgroup_size(64)
fn mirror(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let i = hw_index(id, groups, 64u);
    let words = hw_state_words();
    if (i < words / 2u) {
        hw_set_state(i, hw_state(i) ^ hw_state(words - 1u - i));
    }
}

@compute @workgroup_size(64)
fn rotate(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let i = hw_index(id, groups, 64u);
    let half = hw_state_words() / 2u;
    if (i < half) {
        hw_set_state(half + i, hw_state(half + i) + hw_state((i + 1u) % half));
    }
}
