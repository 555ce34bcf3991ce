// One invocation: each message is folded into what the ones before it left.

const hw_u32 PAYLOAD_WORDS = 4u;
const hw_u32 FIRST_SUM = 2u;

HW_PASS(fold) {
    if (hw_index(hw) != 0u) return;
    for (hw_u32 message = 0u; message < hw_message_count(hw); message++) {
        hw_u32 hash = hw_state(hw, 1u) * 31u + hw_tag(hw, message);
        hash = hash * 31u + hw_length(hw, message);
        for (hw_u32 word = 0u; word < PAYLOAD_WORDS; word++) {
            hash = hash * 31u + hw_payload(hw, message, word);
        }
        const hw_u32 count = hw_state(hw, 0u) + 1u;
        hw_set_state(hw, 0u, count);
        hw_set_state(hw, 1u, hash);
        const hw_u64 at = FIRST_SUM + hash % (hw_state_words(hw) - FIRST_SUM);
        const hw_u32 sum = hw_state(hw, at) + hw_payload(hw, message, 0u);
        hw_set_state(hw, at, sum);
        const hw_u32 sent = hw_send(hw, hash & 1u, message, count, 8u);
        hw_put(hw, sent, 0u, hash);
        hw_put(hw, sent, 1u, sum);
    }
}
