// The prelude of hopwise: what a CUDA C program sees of its kernel. Stands in front of the program's
// own text; errors count the program's lines. Every name begins with `hw_` or `HW_`.
//
// In front of this stand constants that depend on the program:
//   HW_PARAMETER_WORDS, HW_INBOX_SLOT_WORDS, HW_OUTBOX_SLOTS, HW_OUTBOX_SLOT_WORDS

typedef unsigned int hw_u32;
typedef unsigned long long hw_u64;

// One kernel of a launch: 64 bytes. The host fills a table of them, one for each kernel of a batch
// that runs the same program; `blockIdx.y` is the place in the table.
struct hw_Kernel {
    hw_u32 *state;            // byte  0
    hw_u64 state_words;       // byte  8
    const hw_u32 *parameters; // byte 16: HW_PARAMETER_WORDS words
    const hw_u32 *inbox;      // byte 24: header, then slots
    hw_u32 *outbox_header;    // byte 32: sent, capacity, overflow, flags
    hw_u32 *outbox_slots;     // byte 40
    hw_u64 invocations;       // byte 48: how many this kernel asked for
    hw_u64 first;             // byte 56: index of the block's first invocation, set on the device
};

// Words of a slot in front of its payload, in both boxes.
#define HW_SLOT_HEADER_WORDS 4u

// Words of a box in front of its slots.
#define HW_BOX_HEADER_WORDS 4u

// What hw_send gives when the outbox is full.
#define HW_NO_SLOT 0xffffffffu

// Most threads of a block of HW_PASS.
#define HW_BLOCK_THREADS 256

// Begins a pass: `HW_PASS(name) { ... }`. In the body `hw` is the kernel. Blocks that no invocation
// of this kernel falls into end at once, as a whole; so __syncthreads() may be used.
#define HW_PASS(name) HW_PASS_OF(name, HW_BLOCK_THREADS)

// The same with another largest number of threads in a block.
#define HW_PASS_OF(name, threads)                                                     \
    static __device__ void hw_body_##name(const hw_Kernel &hw);                       \
    extern "C" __global__ void __launch_bounds__(threads, 1) name(                      \
        const hw_Kernel *hw_table                                                     \
    ) {                                                                               \
        hw_Kernel hw = hw_table[blockIdx.y];                                          \
        hw.first = (hw_u64)blockIdx.x * blockDim.x;                                   \
        if (hw.first < hw.invocations) hw_body_##name(hw);                            \
    }                                                                                 \
    static __device__ void hw_body_##name(const hw_Kernel &hw)

#define HW_FUNCTION static __device__ __forceinline__

// A program without parameters or payloads compares indices with a size of 0, which is meant.
#pragma nv_diagnostic push
#pragma nv_diag_suppress 186

// The linear index of the invocation. Indices past the count occur and are to be ignored.
HW_FUNCTION hw_u64 hw_index(const hw_Kernel &hw) { return hw.first + threadIdx.x; }

// One word of the parameters; 0 beyond their end.
HW_FUNCTION hw_u32 hw_parameter(const hw_Kernel &hw, hw_u32 i) {
    return i < HW_PARAMETER_WORDS ? hw.parameters[i] : 0u;
}

// The size of the state in words.
HW_FUNCTION hw_u64 hw_state_words(const hw_Kernel &hw) { return hw.state_words; }

// A word of state; 0 beyond the end.
HW_FUNCTION hw_u32 hw_state(const hw_Kernel &hw, hw_u64 i) {
    return i < hw.state_words ? hw.state[i] : 0u;
}

// Sets a word of state; does nothing beyond the end.
HW_FUNCTION void hw_set_state(const hw_Kernel &hw, hw_u64 i, hw_u32 value) {
    if (i < hw.state_words) hw.state[i] = value;
}

// Atomic changes of a word of state; give the old value, 0 beyond the end.
HW_FUNCTION hw_u32 hw_state_add(const hw_Kernel &hw, hw_u64 i, hw_u32 value) {
    return i < hw.state_words ? atomicAdd(hw.state + i, value) : 0u;
}
HW_FUNCTION hw_u32 hw_state_max(const hw_Kernel &hw, hw_u64 i, hw_u32 value) {
    return i < hw.state_words ? atomicMax(hw.state + i, value) : 0u;
}
HW_FUNCTION hw_u32 hw_state_or(const hw_Kernel &hw, hw_u64 i, hw_u32 value) {
    return i < hw.state_words ? atomicOr(hw.state + i, value) : 0u;
}

// How many messages the inbox holds.
HW_FUNCTION hw_u32 hw_message_count(const hw_Kernel &hw) { return hw.inbox[0]; }

// The number of this step, low 32 bits. The first is 1.
HW_FUNCTION hw_u32 hw_step_number(const hw_Kernel &hw) { return hw.inbox[2]; }

// Whether the step was asked for by start or run again.
HW_FUNCTION bool hw_started(const hw_Kernel &hw) { return hw.inbox[3] != 0u; }

// One word of a message's slot; 0 for a message that is not there.
HW_FUNCTION hw_u32 hw_inbox_word(const hw_Kernel &hw, hw_u32 message, hw_u32 word) {
    if (message >= hw.inbox[0] || word >= HW_INBOX_SLOT_WORDS) return 0u;
    return hw.inbox[HW_BOX_HEADER_WORDS + (hw_u64)message * HW_INBOX_SLOT_WORDS + word];
}

// The in-port that a message came through.
HW_FUNCTION hw_u32 hw_in_port(const hw_Kernel &hw, hw_u32 message) {
    return hw_inbox_word(hw, message, 0u);
}

// The sender's tag.
HW_FUNCTION hw_u32 hw_tag(const hw_Kernel &hw, hw_u32 message) {
    return hw_inbox_word(hw, message, 1u);
}

// The length of a message's payload in bytes.
HW_FUNCTION hw_u32 hw_length(const hw_Kernel &hw, hw_u32 message) {
    return hw_inbox_word(hw, message, 2u);
}

// The sender's channel, low 32 bits.
HW_FUNCTION hw_u32 hw_channel(const hw_Kernel &hw, hw_u32 message) {
    return hw_inbox_word(hw, message, 3u);
}

// One word of a message's payload; zeros follow its length, and 0 is beyond the slot.
HW_FUNCTION hw_u32 hw_payload(const hw_Kernel &hw, hw_u32 message, hw_u32 word) {
    if (word >= HW_INBOX_SLOT_WORDS - HW_SLOT_HEADER_WORDS) return 0u;
    return hw_inbox_word(hw, message, HW_SLOT_HEADER_WORDS + word);
}

// Takes a slot of the outbox and returns its handle, or HW_NO_SLOT when there is none left; then
// the overflow is counted and stops the kernel when the step ends. The payload is undefined until
// hw_put sets it.
HW_FUNCTION hw_u32 hw_send(
    const hw_Kernel &hw, hw_u32 port, hw_u32 key, hw_u32 tag, hw_u32 length_bytes
) {
    const hw_u32 slot = atomicAdd(hw.outbox_header, 1u);
    if (slot >= HW_OUTBOX_SLOTS) {
        atomicAdd(hw.outbox_header + 2, 1u);
        return HW_NO_SLOT;
    }
    hw_u32 *words = hw.outbox_slots + (hw_u64)slot * HW_OUTBOX_SLOT_WORDS;
    words[0] = port;
    words[1] = key;
    words[2] = tag;
    words[3] = length_bytes;
    return slot;
}

// Sets one word of a message that hw_send began. Does nothing for HW_NO_SLOT and beyond the slot.
HW_FUNCTION void hw_put(const hw_Kernel &hw, hw_u32 handle, hw_u32 word, hw_u32 value) {
    if (handle >= HW_OUTBOX_SLOTS || word >= HW_OUTBOX_SLOT_WORDS - HW_SLOT_HEADER_WORDS) return;
    hw.outbox_slots[(hw_u64)handle * HW_OUTBOX_SLOT_WORDS + HW_SLOT_HEADER_WORDS + word] = value;
}

// Asks for one more step even if no message comes.
HW_FUNCTION void hw_run_again(const hw_Kernel &hw) { atomicOr(hw.outbox_header + 3, 1u); }

// Gives up with a code of 16 bits. Of several codes the largest counts, in whatever order they come.
HW_FUNCTION void hw_fault(const hw_Kernel &hw, hw_u32 code) {
    atomicMax(hw.outbox_header + 3, 0x80000000u | ((code & 0xffffu) << 8));
}

// Whether the program has given up: passes after a fault still run.
HW_FUNCTION bool hw_faulted(const hw_Kernel &hw) {
    return (atomicOr(hw.outbox_header + 3, 0u) & 0x80000000u) != 0u;
}

// a / b, and 0 when b is 0.
HW_FUNCTION hw_u32 hw_divide(hw_u32 a, hw_u32 b) { return b == 0u ? 0u : a / b; }

// a % b, and 0 when b is 0.
HW_FUNCTION hw_u32 hw_remainder(hw_u32 a, hw_u32 b) { return b == 0u ? 0u : a % b; }

#pragma nv_diagnostic pop
