// The prelude of hopwise: what a WGSL program sees of its kernel. Follows the program's own text,
// so that line numbers in errors are the program's. Every name begins with `hw_` or `HW_`.
//
// In front of this stand declarations that depend on the program and on the size of the state:
//   const HW_PARAMETER_VECTORS, HW_INBOX_WORDS, HW_INBOX_SLOT_WORDS,
//         HW_OUTBOX_SLOTS, HW_OUTBOX_SLOT_WORDS, HW_OUTBOX_WORDS: u32;
//   the bindings of the state's segments, fn hw_state and fn hw_set_state,
//   and, in programs that name one of them, fn hw_state_add, hw_state_max and hw_state_or.

// What is set once for each instance.
struct hw_Instance {
    state_words: u32,
    parameter_words: u32,
    reserved_0: u32,
    reserved_1: u32,
    parameters: array<vec4<u32>, HW_PARAMETER_VECTORS>,
}

// Outbox and inbox in one block. The outbox's header stands behind its slots, in front of the
// inbox: so the host fetches the outbox, and sends a header with an inbox, as one range each.
struct hw_Boxes {
    outbox_slots: array<u32, HW_OUTBOX_WORDS>,
    sent: atomic<u32>,
    capacity: u32,
    overflow: atomic<u32>,
    flags: atomic<u32>,
    message_count: u32,
    slot_words: u32,
    step_number: u32,
    started: u32,
    inbox_slots: array<u32, HW_INBOX_WORDS>,
}

@group(0) @binding(0) var<uniform> hw_instance: hw_Instance;
@group(0) @binding(1) var<storage, read_write> hw_boxes: hw_Boxes;

// Words of a slot in front of its payload, in both boxes.
const HW_SLOT_HEADER_WORDS: u32 = 4u;

// What hw_send gives when the outbox is full.
const HW_NO_SLOT: u32 = 0xffffffffu;

// The linear index of an invocation. Grids are folded into three dimensions; an index can exceed
// the count that was asked for. Workgroups have one dimension.
fn hw_index(id: vec3<u32>, groups: vec3<u32>, workgroup_size: u32) -> u32 {
    return id.x + groups.x * workgroup_size * (id.y + groups.y * id.z);
}

// One word of the parameters; 0 beyond their end.
fn hw_parameter(i: u32) -> u32 {
    if (i >= hw_instance.parameter_words) { return 0u; }
    return hw_instance.parameters[i / 4u][i % 4u];
}

// The size of the state in words.
fn hw_state_words() -> u32 { return hw_instance.state_words; }

// How many messages the inbox holds.
fn hw_message_count() -> u32 { return hw_boxes.message_count; }

// The number of this step, low 32 bits. The first is 1.
fn hw_step_number() -> u32 { return hw_boxes.step_number; }

// Whether the step was asked for by start or run again.
fn hw_started() -> bool { return hw_boxes.started != 0u; }

// One word of the header of a message's slot; 0 for a message that is not there.
fn hw_inbox_word(message: u32, word: u32) -> u32 {
    if (message >= hw_boxes.message_count) { return 0u; }
    return hw_boxes.inbox_slots[message * HW_INBOX_SLOT_WORDS + word];
}

// The in-port that a message came through.
fn hw_in_port(message: u32) -> u32 { return hw_inbox_word(message, 0u); }

// The sender's tag.
fn hw_tag(message: u32) -> u32 { return hw_inbox_word(message, 1u); }

// The length of a message's payload in bytes.
fn hw_length(message: u32) -> u32 { return hw_inbox_word(message, 2u); }

// The sender's channel, low 32 bits.
fn hw_channel(message: u32) -> u32 { return hw_inbox_word(message, 3u); }

// One word of a message's payload; zeros follow its length, and 0 is beyond the slot.
fn hw_payload(message: u32, word: u32) -> u32 {
    if (message >= hw_boxes.message_count || word >= HW_INBOX_SLOT_WORDS - HW_SLOT_HEADER_WORDS) {
        return 0u;
    }
    return hw_boxes.inbox_slots[message * HW_INBOX_SLOT_WORDS + HW_SLOT_HEADER_WORDS + word];
}

// Takes a slot of the outbox and returns its handle, or HW_NO_SLOT when there is none left; then
// the overflow is counted and stops the kernel when the step ends. The payload is undefined until
// hw_put sets it.
fn hw_send(port: u32, key: u32, tag: u32, length_bytes: u32) -> u32 {
    let slot = atomicAdd(&hw_boxes.sent, 1u);
    if (slot >= HW_OUTBOX_SLOTS) {
        atomicAdd(&hw_boxes.overflow, 1u);
        return HW_NO_SLOT;
    }
    let at = slot * HW_OUTBOX_SLOT_WORDS;
    hw_boxes.outbox_slots[at] = port;
    hw_boxes.outbox_slots[at + 1u] = key;
    hw_boxes.outbox_slots[at + 2u] = tag;
    hw_boxes.outbox_slots[at + 3u] = length_bytes;
    return slot;
}

// Sets one word of a message that hw_send began. Does nothing for HW_NO_SLOT and beyond the slot.
fn hw_put(handle: u32, word: u32, value: u32) {
    if (handle >= HW_OUTBOX_SLOTS || word >= HW_OUTBOX_SLOT_WORDS - HW_SLOT_HEADER_WORDS) { return; }
    hw_boxes.outbox_slots[handle * HW_OUTBOX_SLOT_WORDS + HW_SLOT_HEADER_WORDS + word] = value;
}

// Asks for one more step even if no message comes.
fn hw_run_again() { atomicOr(&hw_boxes.flags, 1u); }

// Gives up with a code of 16 bits. Of several codes the largest counts, in whatever order they come.
fn hw_fault(code: u32) { atomicMax(&hw_boxes.flags, 0x80000000u | ((code & 0xffffu) << 8u)); }

// Whether the program has given up: passes after a fault still run.
fn hw_faulted() -> bool { return (atomicLoad(&hw_boxes.flags) & 0x80000000u) != 0u; }

// a / b, and 0 when b is 0.
fn hw_divide(a: u32, b: u32) -> u32 {
    if (b == 0u) { return 0u; }
    return a / b;
}

// a % b, and 0 when b is 0.
fn hw_remainder(a: u32, b: u32) -> u32 {
    if (b == 0u) { return 0u; }
    return a % b;
}
