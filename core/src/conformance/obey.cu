// One invocation: commands are obeyed in their order.

const hw_u32 ADD = 0u;
const hw_u32 SEND = 1u;
const hw_u32 SEND_RAW = 2u;
const hw_u32 FAULT = 3u;
const hw_u32 RUN_AGAIN = 4u;

HW_FUNCTION void send(const hw_Kernel &hw, hw_u32 count, hw_u32 port) {
    for (hw_u32 left = count; left > 0u; left--) {
        const hw_u32 key = left - 1u;
        const hw_u32 sent = hw_send(hw, port, key, key ^ 0x55u, 4u);
        hw_put(hw, sent, 0u, key * 7u);
    }
}

HW_PASS(obey) {
    if (hw_index(hw) != 0u) return;
    hw_set_state(hw, 1u, hw_state(hw, 1u) + 1u);
    for (hw_u32 message = 0u; message < hw_message_count(hw); message++) {
        const hw_u32 first = hw_payload(hw, message, 1u);
        const hw_u32 second = hw_payload(hw, message, 2u);
        switch (hw_payload(hw, message, 0u)) {
            case ADD:
                hw_set_state(hw, 0u, hw_state(hw, 0u) + first);
                break;
            case SEND:
                send(hw, first, second);
                break;
            case SEND_RAW:
                hw_send(hw, first, 0u, 0u, second);
                break;
            case FAULT:
                hw_fault(hw, first < 65535u ? first : 65535u);
                return;
            case RUN_AGAIN:
                hw_run_again(hw);
                break;
            default:
                break;
        }
    }
}
