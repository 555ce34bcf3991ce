// The second of two programs of one name.

HW_PASS(set_word) {
    if (hw_index(hw) == 0u) hw_set_state(hw, 0u, 2u);
}
