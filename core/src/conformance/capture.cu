// One invocation for each word of state, which writes down what that word stands for.

const hw_u32 PARAMETER_WORDS = 8u;
const hw_u32 HEADER_WORDS = 4u;
const hw_u32 SLOT_HEADER_WORDS = 4u;
// Its own header and the 18 bytes of the largest message.
const hw_u32 SLOT_WORDS = 9u;

HW_FUNCTION hw_u32 slot_word(const hw_Kernel &hw, hw_u32 message, hw_u32 word) {
    switch (word) {
        case 0u: return hw_in_port(hw, message);
        case 1u: return hw_tag(hw, message);
        case 2u: return hw_length(hw, message);
        case 3u: return hw_channel(hw, message);
        default: return hw_payload(hw, message, word - SLOT_HEADER_WORDS);
    }
}

HW_FUNCTION hw_u32 inbox_word(const hw_Kernel &hw, hw_u32 word) {
    switch (word) {
        case 0u: return hw_message_count(hw);
        case 1u: return SLOT_WORDS;
        case 2u: return hw_step_number(hw);
        case 3u: return hw_started(hw) ? 1u : 0u;
        default: break;
    }
    const hw_u32 slot = word - HEADER_WORDS;
    return slot_word(hw, slot / SLOT_WORDS, slot % SLOT_WORDS);
}

HW_PASS(capture) {
    const hw_u64 index = hw_index(hw);
    if (index >= hw_state_words(hw)) return;
    const hw_u32 used = HEADER_WORDS + hw_message_count(hw) * SLOT_WORDS;
    hw_u32 value = 0u;
    if (index < PARAMETER_WORDS) {
        value = hw_parameter(hw, (hw_u32)index);
    } else if (index == PARAMETER_WORDS) {
        value = used;
    } else if (index - PARAMETER_WORDS - 1u < used) {
        value = inbox_word(hw, (hw_u32)index - PARAMETER_WORDS - 1u);
    }
    hw_set_state(hw, index, value);
}
