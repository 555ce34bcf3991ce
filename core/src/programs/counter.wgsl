// `counter`: one invocation goes through the messages in their order.

const STATE_WORDS = 4u;
const MAX_VALUE_BYTES = 8u;

const IN_ADD = 0u;
const IN_QUERY = 1u;
const OUT_TOTAL = 0u;
const OUT_REPORT = 1u;

const FAULT_STATE = 1u;
const FAULT_MESSAGE = 3u;

@compute @workgroup_size(1)
fn count() {
    if (hw_state_words() < STATE_WORDS) {
        hw_fault(FAULT_STATE);
        return;
    }
    for (var message = 0u; message < hw_message_count(); message++) {
        if (hw_in_port(message) == IN_QUERY) {
            report(message);
        } else if (hw_in_port(message) == IN_ADD && hw_length(message) <= MAX_VALUE_BYTES) {
            add(message);
        } else {
            hw_fault(FAULT_MESSAGE);
            return;
        }
    }
}

fn add(message: u32) {
    let value = vec2(hw_payload(message, 0u), hw_payload(message, 1u));
    let sum = add_wide(vec2(hw_state(0u), hw_state(1u)), value);
    let values = add_wide(vec2(hw_state(2u), hw_state(3u)), vec2(1u, 0u));
    hw_set_state(0u, sum.x);
    hw_set_state(1u, sum.y);
    hw_set_state(2u, values.x);
    hw_set_state(3u, values.y);
    let total = hw_send(OUT_TOTAL, message, hw_tag(message), 8u);
    hw_put(total, 0u, sum.x);
    hw_put(total, 1u, sum.y);
}

fn report(message: u32) {
    let report = hw_send(OUT_REPORT, message, hw_tag(message), 16u);
    for (var word = 0u; word < STATE_WORDS; word++) {
        hw_put(report, word, hw_state(word));
    }
}

// Adds two 64-bit numbers given as low and high word, wrapping.
fn add_wide(left: vec2<u32>, right: vec2<u32>) -> vec2<u32> {
    let low = left.x + right.x;
    return vec2(low, left.y + right.y + select(0u, 1u, low < left.x));
}
