// One invocation: each message is folded into what the ones before it left.

const PAYLOAD_WORDS = 4u;
const FIRST_SUM = 2u;

@compute @workgroup_size(1)
fn fold() {
    for (var message = 0u; message < hw_message_count(); message++) {
        var hash = hw_state(1u) * 31u + hw_tag(message);
        hash = hash * 31u + hw_length(message);
        for (var word = 0u; word < PAYLOAD_WORDS; word++) {
            hash = hash * 31u + hw_payload(message, word);
        }
        let count = hw_state(0u) + 1u;
        hw_set_state(0u, count);
        hw_set_state(1u, hash);
        let at = FIRST_SUM + hash % (hw_state_words() - FIRST_SUM);
        let sum = hw_state(at) + hw_payload(message, 0u);
        hw_set_state(at, sum);
        let sent = hw_send(hash & 1u, message, count, 8u);
        hw_put(sent, 0u, hash);
        hw_put(sent, 1u, sum);
    }
}
