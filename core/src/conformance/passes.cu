// Each pass has one invocation for each word of state; half of them have something to do.

HW_PASS(scale) {
    const hw_u64 i = hw_index(hw);
    const hw_u64 half = hw_state_words(hw) / 2u;
    if (i < half) hw_set_state(hw, half + i, hw_state(hw, i) * 3u + hw_parameter(hw, 0u));
}

HW_PASS(mirror) {
    const hw_u64 i = hw_index(hw);
    const hw_u64 words = hw_state_words(hw);
    if (i < words / 2u) hw_set_state(hw, i, hw_state(hw, i) ^ hw_state(hw, words - 1u - i));
}

HW_PASS(rotate) {
    const hw_u64 i = hw_index(hw);
    const hw_u64 half = hw_state_words(hw) / 2u;
    if (i < half) {
        hw_set_state(hw, half + i, hw_state(hw, half + i) + hw_state(hw, (i + 1u) % half));
    }
}
