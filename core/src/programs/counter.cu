// `counter`: one invocation goes through the messages in their order.

const hw_u32 STATE_WORDS = 4u;
const hw_u32 MAX_VALUE_BYTES = 8u;

const hw_u32 IN_ADD = 0u;
const hw_u32 IN_QUERY = 1u;
const hw_u32 OUT_TOTAL = 0u;
const hw_u32 OUT_REPORT = 1u;

const hw_u32 FAULT_STATE = 1u;
const hw_u32 FAULT_MESSAGE = 3u;

// A 64-bit number, low word first.
struct Wide {
    hw_u32 low;
    hw_u32 high;
};

HW_FUNCTION Wide add_wide(Wide left, Wide right) {
    const hw_u32 low = left.low + right.low;
    return Wide{low, left.high + right.high + (low < left.low ? 1u : 0u)};
}

HW_FUNCTION void add(const hw_Kernel &hw, hw_u32 message) {
    const Wide value = {hw_payload(hw, message, 0u), hw_payload(hw, message, 1u)};
    const Wide sum = add_wide(Wide{hw_state(hw, 0u), hw_state(hw, 1u)}, value);
    const Wide values = add_wide(Wide{hw_state(hw, 2u), hw_state(hw, 3u)}, Wide{1u, 0u});
    hw_set_state(hw, 0u, sum.low);
    hw_set_state(hw, 1u, sum.high);
    hw_set_state(hw, 2u, values.low);
    hw_set_state(hw, 3u, values.high);
    const hw_u32 total = hw_send(hw, OUT_TOTAL, message, hw_tag(hw, message), 8u);
    hw_put(hw, total, 0u, sum.low);
    hw_put(hw, total, 1u, sum.high);
}

HW_FUNCTION void report(const hw_Kernel &hw, hw_u32 message) {
    const hw_u32 report = hw_send(hw, OUT_REPORT, message, hw_tag(hw, message), 16u);
    for (hw_u32 word = 0u; word < STATE_WORDS; word++) {
        hw_put(hw, report, word, hw_state(hw, word));
    }
}

HW_PASS(count) {
    if (hw_index(hw) != 0u) return;
    if (hw_state_words(hw) < STATE_WORDS) {
        hw_fault(hw, FAULT_STATE);
        return;
    }
    for (hw_u32 message = 0u; message < hw_message_count(hw); message++) {
        if (hw_in_port(hw, message) == IN_QUERY) {
            report(hw, message);
        } else if (hw_in_port(hw, message) == IN_ADD && hw_length(hw, message) <= MAX_VALUE_BYTES) {
            add(hw, message);
        } else {
            hw_fault(hw, FAULT_MESSAGE);
            return;
        }
    }
}
