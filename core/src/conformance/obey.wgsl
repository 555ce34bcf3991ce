// One invocation: commands are obeyed in their order.

const ADD = 0u;
const SEND = 1u;
const SEND_RAW = 2u;
const FAULT = 3u;
const RUN_AGAIN = 4u;

@compute @workgroup_size(1)
fn obey() {
    hw_set_state(1u, hw_state(1u) + 1u);
    for (var message = 0u; message < hw_message_count(); message++) {
        let first = hw_payload(message, 1u);
        let second = hw_payload(message, 2u);
        switch hw_payload(message, 0u) {
            case ADD: {
                hw_set_state(0u, hw_state(0u) + first);
            }
            case SEND: {
                send(first, second);
            }
            case SEND_RAW: {
                hw_send(first, 0u, 0u, second);
            }
            case FAULT: {
                hw_fault(min(first, 65535u));
                return;
            }
            case RUN_AGAIN: {
                hw_run_again();
            }
            default: {
            }
        }
    }
}

fn send(count: u32, port: u32) {
    for (var left = count; left > 0u; left--) {
        let key = left - 1u;
        let sent = hw_send(port, key, key ^ 0x55u, 4u);
        hw_put(sent, 0u, key * 7u);
    }
}
