// Digests of chunks of state (docs/kernel-abi.md), added up by many invocations. Loops are short:
// some software drivers cut long ones off.

struct Span {
    // First word of the segment that counts, and how many do.
    first_word: u32,
    word_count: u32,
    // The place of the first word among the words of all chunks that are digested together.
    place: u32,
    chunk_words: u32,
}

@group(0) @binding(0) var<uniform> span: Span;
// Low and high half of each chunk's digest.
@group(0) @binding(1) var<storage, read_write> sums: array<atomic<u32>>;
@group(1) @binding(0) var<storage, read> words: array<u32>;

const GROUP_SIZE: u32 = 64u;
const WORDS_PER_INVOCATION: u32 = 64u;

fn mix(value: u32) -> u32 {
    var hash = value;
    hash ^= hash >> 16u;
    hash *= 0x85ebca6bu;
    hash ^= hash >> 13u;
    hash *= 0xc2b2ae35u;
    return hash ^ (hash >> 16u);
}

fn add(chunk: u32, low: u32, high: u32) {
    if (low != 0u) { atomicAdd(&sums[2u * chunk], low); }
    if (high != 0u) { atomicAdd(&sums[2u * chunk + 1u], high); }
}

@compute @workgroup_size(64)
fn digest(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    // Neighbours read neighbouring words.
    var at = (group.x + groups.x * group.y) * GROUP_SIZE * WORDS_PER_INVOCATION + lane;
    if (at >= span.word_count) { return; }
    var chunk = (span.place + at) / span.chunk_words;
    var index = (span.place + at) % span.chunk_words;
    var low = 0u;
    var high = 0u;
    for (var k = 0u; k < WORDS_PER_INVOCATION && at < span.word_count; k += 1u) {
        if (index >= span.chunk_words) {
            add(chunk, low, high);
            low = 0u;
            high = 0u;
            chunk = (span.place + at) / span.chunk_words;
            index = (span.place + at) % span.chunk_words;
        }
        let word = words[span.first_word + at];
        low += mix(mix(word + 0x9e3779b9u) ^ (index * 0x85ebca77u));
        high += mix(mix(word ^ 0x27d4eb2fu) + index * 0x165667b1u);
        at += GROUP_SIZE;
        index += GROUP_SIZE;
    }
    add(chunk, low, high);
}
