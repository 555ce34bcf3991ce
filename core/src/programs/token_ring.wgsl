// `token_ring`: one invocation injects tokens, then goes through the messages in their order.

const STATE_WORDS = 5u;
const MAX_TOKENS = 64u;
const TOKEN_BYTES = 16u;

const IN_TOKEN = 0u;
const OUT_NEXT = 0u;
const OUT_DONE = 1u;

const FAULT_STATE = 1u;
const FAULT_PARAMETERS = 2u;
const FAULT_MESSAGE = 3u;
const FAULT_TOKEN_MISROUTED = 16u;

// A token is a vector: origin, number, hops, checksum.
alias Token = vec4<u32>;

@compute @workgroup_size(1)
fn circulate() {
    if (!are_parameters_right()) {
        hw_fault(FAULT_PARAMETERS);
        return;
    }
    if (hw_state_words() < STATE_WORDS) {
        hw_fault(FAULT_STATE);
        return;
    }
    if (hw_state(0u) == 0u) {
        hw_set_state(0u, 1u);
        inject();
    }
    for (var message = 0u; message < hw_message_count(); message++) {
        if (hw_in_port(message) != IN_TOKEN || hw_length(message) != TOKEN_BYTES) {
            hw_fault(FAULT_MESSAGE);
            return;
        }
        if (!forward(message)) {
            hw_fault(FAULT_TOKEN_MISROUTED);
            return;
        }
    }
}

fn kernels() -> u32 {
    return hw_parameter(0u);
}

fn laps() -> u32 {
    return hw_parameter(1u);
}

fn kernel_index() -> u32 {
    return hw_parameter(2u);
}

fn tokens() -> u32 {
    return hw_parameter(3u);
}

fn are_parameters_right() -> bool {
    // An index below the number of kernels means that there are some.
    return kernel_index() < kernels() && laps() > 0u && tokens() <= MAX_TOKENS
        && laps() <= hw_divide(0xffffffffu, kernels());
}

fn inject() {
    for (var number = 0u; number < tokens(); number++) {
        send(OUT_NEXT, number, Token(kernel_index(), number, 0u, 0u));
    }
}

// Passes on the token in a message; false if it cannot be here after that many hops.
fn forward(message: u32) -> bool {
    var token = Token(
        hw_payload(message, 0u),
        hw_payload(message, 1u),
        hw_payload(message, 2u),
        hw_payload(message, 3u),
    );
    let all_hops = kernels() * laps();
    if (token.z >= all_hops || token.x >= kernels()) {
        return false;
    }
    token.z += 1u;
    if (index_after_hops(token) != kernel_index()) {
        return false;
    }
    token.w = fold(token.w, receive(token));
    if (token.z == all_hops) {
        hw_set_state(4u, hw_state(4u) + 1u);
        send(OUT_DONE, message, token);
    } else {
        send(OUT_NEXT, MAX_TOKENS + message, token);
    }
    return true;
}

// The kernel that a token has reached whose origin is in the ring.
fn index_after_hops(token: Token) -> u32 {
    let hops = hw_remainder(token.z, kernels());
    // origin + hops could exceed 32 bits, so the gap to the end of the ring decides.
    let gap = kernels() - token.x;
    return select(hops - gap, token.x + hops, hops < gap);
}

// Counts the token and returns the hash after it.
fn receive(token: Token) -> u32 {
    let low = hw_state(1u) + 1u;
    hw_set_state(1u, low);
    hw_set_state(2u, hw_state(2u) + select(0u, 1u, low == 0u));
    var hash = hw_state(3u);
    hash = fold(hash, token.x);
    hash = fold(hash, token.y);
    hash = fold(hash, token.z);
    hash = fold(hash, token.w);
    hw_set_state(3u, hash);
    return hash;
}

fn fold(hash: u32, word: u32) -> u32 {
    return (((hash << 5u) | (hash >> 27u)) ^ word) * 0x9e3779b1u;
}

fn send(port: u32, key: u32, token: Token) {
    let sent = hw_send(port, key, token.y, TOKEN_BYTES);
    hw_put(sent, 0u, token.x);
    hw_put(sent, 1u, token.y);
    hw_put(sent, 2u, token.z);
    hw_put(sent, 3u, token.w);
}
