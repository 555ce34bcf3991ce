// The first of two programs of one name.

@compute @workgroup_size(1)
fn set_word() {
    hw_set_state(0u, 1u);
}
