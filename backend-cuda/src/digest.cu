// Digests of a state's chunks, as docs/kernel-abi.md defines them. `blockIdx.y` is the chunk; the
// blocks of a chunk share its words, and add up what they find.

typedef unsigned int hw_u32;
typedef unsigned long long hw_u64;

// 40 bytes.
struct hw_Digest {
    const hw_u32 *state;   // byte  0
    hw_u64 first_word;     // byte  8: of the first chunk of this launch
    hw_u64 end_word;       // byte 16: of the state
    hw_u64 chunk_words;    // byte 24
    hw_u32 *sums;          // byte 32: for each chunk low and high sum, zeroed before
};

static __device__ __forceinline__ hw_u32 hw_mix(hw_u32 h) {
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    return h ^ (h >> 16);
}

extern "C" __global__ void __launch_bounds__(256) hw_digest(const hw_Digest *hw_table) {
    const hw_Digest job = *hw_table;
    const hw_u64 begin = job.first_word + blockIdx.y * job.chunk_words;
    hw_u64 end = begin + job.chunk_words;
    if (end > job.end_word) end = job.end_word;
    hw_u32 low = 0u;
    hw_u32 high = 0u;
    hw_u64 at = begin + (hw_u64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; at < end; at += (hw_u64)gridDim.x * blockDim.x) {
        const hw_u32 word = job.state[at];
        const hw_u32 i = (hw_u32)(at - begin);
        low += hw_mix(hw_mix(word + 0x9e3779b9u) ^ (i * 0x85ebca77u));
        high += hw_mix(hw_mix(word ^ 0x27d4eb2fu) + i * 0x165667b1u);
    }
    if (low != 0u) atomicAdd(job.sums + 2u * blockIdx.y, low);
    if (high != 0u) atomicAdd(job.sums + 2u * blockIdx.y + 1u, high);
}
