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

struct Ring {
    kernels: u32,
    laps: u32,
    index: u32,
    tokens: u32,
}

@compute @workgroup_size(1)
fn circulate() {
    let ring = Ring(hw_parameter(0u), hw_parameter(1u), hw_parameter(2u), hw_parameter(3u));
    if (!is_right(ring)) {
        hw_fault(FAULT_PARAMETERS);
        return;
    }
    if (hw_state_words() < STATE_WORDS) {
        hw_fault(FAULT_STATE);
        return;
    }
    if (hw_state(0u) == 0u) {
        hw_set_state(0u, 1u);
        for (var number = 0u; number < ring.tokens; number++) {
            send(OUT_NEXT, number, Token(ring.index, number, 0u, 0u));
        }
    }
    for (var message = 0u; message < hw_message_count(); message++) {
        if (hw_in_port(message) != IN_TOKEN || hw_length(message) != TOKEN_BYTES) {
            hw_fault(FAULT_MESSAGE);
            return;
        }
        let sent = token_in(message);
        let token = sent + Token(0u, 0u, 1u, 0u);
        if (sent.z >= ring.kernels * ring.laps || !has_reached(token, ring)) {
            hw_fault(FAULT_TOKEN_MISROUTED);
            return;
        }
        forward(message, token, ring);
    }
}

fn is_right(ring: Ring) -> bool {
    // An index below the number of kernels means that there are some.
    return ring.index < ring.kernels && ring.laps > 0u && ring.tokens <= MAX_TOKENS
        && ring.laps <= hw_divide(0xffffffffu, ring.kernels);
}

fn token_in(message: u32) -> Token {
    var token: Token;
    for (var word = 0u; word < 4u; word++) {
        token[word] = hw_payload(message, word);
    }
    return token;
}

// Whether a token can be at this kernel after its hops.
fn has_reached(token: Token, ring: Ring) -> bool {
    if (token.x >= ring.kernels) {
        return false;
    }
    let hops = hw_remainder(token.z, ring.kernels);
    // origin + hops could exceed 32 bits, so the gap to the end of the ring decides.
    let gap = ring.kernels - token.x;
    return ring.index == select(hops - gap, token.x + hops, hops < gap);
}

// Counts a token, mixes token and kernel, and passes it on.
fn forward(message: u32, token: Token, ring: Ring) {
    let is_done = token.z == ring.kernels * ring.laps;
    let low = hw_state(1u) + 1u;
    hw_set_state(1u, low);
    hw_set_state(2u, hw_state(2u) + select(0u, 1u, low == 0u));
    let hash = fold(fold(fold(fold(hw_state(3u), token.x), token.y), token.z), token.w);
    hw_set_state(3u, hash);
    hw_set_state(4u, hw_state(4u) + select(0u, 1u, is_done));
    send(
        select(OUT_NEXT, OUT_DONE, is_done),
        select(MAX_TOKENS + message, message, is_done),
        Token(token.xyz, fold(token.w, hash)),
    );
}

fn fold(hash: u32, word: u32) -> u32 {
    return (((hash << 5u) | (hash >> 27u)) ^ word) * 0x9e3779b1u;
}

fn send(port: u32, key: u32, token: Token) {
    var words = token;
    let sent = hw_send(port, key, token.y, TOKEN_BYTES);
    for (var word = 0u; word < 4u; word++) {
        hw_put(sent, word, words[word]);
    }
}
