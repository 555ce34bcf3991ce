// `token_ring`: one invocation injects tokens, then goes through the messages in their order.

const hw_u32 STATE_WORDS = 5u;
const hw_u32 MAX_TOKENS = 64u;
const hw_u32 TOKEN_BYTES = 16u;

const hw_u32 IN_TOKEN = 0u;
const hw_u32 OUT_NEXT = 0u;
const hw_u32 OUT_DONE = 1u;

const hw_u32 FAULT_STATE = 1u;
const hw_u32 FAULT_PARAMETERS = 2u;
const hw_u32 FAULT_MESSAGE = 3u;
const hw_u32 FAULT_TOKEN_MISROUTED = 16u;

struct Token {
    hw_u32 origin;
    hw_u32 number;
    hw_u32 hops;
    hw_u32 checksum;
};

struct Ring {
    hw_u32 kernels;
    hw_u32 laps;
    hw_u32 index;
    hw_u32 tokens;
};

HW_FUNCTION bool is_right(const Ring &ring) {
    // An index below the number of kernels means that there are some.
    return ring.index < ring.kernels && ring.laps > 0u && ring.tokens <= MAX_TOKENS
        && ring.laps <= hw_divide(0xffffffffu, ring.kernels);
}

HW_FUNCTION Token token_in(const hw_Kernel &hw, hw_u32 message) {
    return Token{
        hw_payload(hw, message, 0u),
        hw_payload(hw, message, 1u),
        hw_payload(hw, message, 2u),
        hw_payload(hw, message, 3u),
    };
}

// Whether a token can be at this kernel after its hops.
HW_FUNCTION bool has_reached(const Token &token, const Ring &ring) {
    if (token.origin >= ring.kernels) return false;
    const hw_u32 hops = hw_remainder(token.hops, ring.kernels);
    // origin + hops could exceed 32 bits, so the gap to the end of the ring decides.
    const hw_u32 gap = ring.kernels - token.origin;
    return ring.index == (hops < gap ? token.origin + hops : hops - gap);
}

HW_FUNCTION hw_u32 fold(hw_u32 hash, hw_u32 word) {
    return (((hash << 5) | (hash >> 27)) ^ word) * 0x9e3779b1u;
}

HW_FUNCTION void send(const hw_Kernel &hw, hw_u32 port, hw_u32 key, const Token &token) {
    const hw_u32 sent = hw_send(hw, port, key, token.number, TOKEN_BYTES);
    hw_put(hw, sent, 0u, token.origin);
    hw_put(hw, sent, 1u, token.number);
    hw_put(hw, sent, 2u, token.hops);
    hw_put(hw, sent, 3u, token.checksum);
}

// Counts a token, mixes token and kernel, and passes it on.
HW_FUNCTION void forward(const hw_Kernel &hw, hw_u32 message, Token token, const Ring &ring) {
    const bool is_done = token.hops == ring.kernels * ring.laps;
    const hw_u32 low = hw_state(hw, 1u) + 1u;
    hw_set_state(hw, 1u, low);
    hw_set_state(hw, 2u, hw_state(hw, 2u) + (low == 0u ? 1u : 0u));
    hw_u32 hash = hw_state(hw, 3u);
    hash = fold(fold(fold(fold(hash, token.origin), token.number), token.hops), token.checksum);
    hw_set_state(hw, 3u, hash);
    hw_set_state(hw, 4u, hw_state(hw, 4u) + (is_done ? 1u : 0u));
    token.checksum = fold(token.checksum, hash);
    send(hw, is_done ? OUT_DONE : OUT_NEXT, is_done ? message : MAX_TOKENS + message, token);
}

HW_PASS(circulate) {
    if (hw_index(hw) != 0u) return;
    const Ring ring = {
        hw_parameter(hw, 0u), hw_parameter(hw, 1u), hw_parameter(hw, 2u), hw_parameter(hw, 3u),
    };
    if (!is_right(ring)) {
        hw_fault(hw, FAULT_PARAMETERS);
        return;
    }
    if (hw_state_words(hw) < STATE_WORDS) {
        hw_fault(hw, FAULT_STATE);
        return;
    }
    if (hw_state(hw, 0u) == 0u) {
        hw_set_state(hw, 0u, 1u);
        for (hw_u32 number = 0u; number < ring.tokens; number++) {
            send(hw, OUT_NEXT, number, Token{ring.index, number, 0u, 0u});
        }
    }
    for (hw_u32 message = 0u; message < hw_message_count(hw); message++) {
        if (hw_in_port(hw, message) != IN_TOKEN || hw_length(hw, message) != TOKEN_BYTES) {
            hw_fault(hw, FAULT_MESSAGE);
            return;
        }
        Token token = token_in(hw, message);
        const bool is_over = token.hops >= ring.kernels * ring.laps;
        token.hops += 1u;
        if (is_over || !has_reached(token, ring)) {
            hw_fault(hw, FAULT_TOKEN_MISROUTED);
            return;
        }
        forward(hw, message, token, ring);
    }
}
