// One invocation for each word of state, which writes down what that word stands for.

const PARAMETER_WORDS = 8u;
const HEADER_WORDS = 4u;
const SLOT_HEADER_WORDS = 4u;
// Its own header and the 18 bytes of the largest message.
const SLOT_WORDS = 9u;

@compute @workgroup_size(64)
fn capture(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let index = hw_index(id, groups, 64u);
    if (index >= hw_state_words()) {
        return;
    }
    let used = HEADER_WORDS + hw_message_count() * SLOT_WORDS;
    var value = 0u;
    if (index < PARAMETER_WORDS) {
        value = hw_parameter(index);
    } else if (index == PARAMETER_WORDS) {
        value = used;
    } else if (index - PARAMETER_WORDS - 1u < used) {
        value = inbox_word(index - PARAMETER_WORDS - 1u);
    }
    hw_set_state(index, value);
}

fn inbox_word(word: u32) -> u32 {
    switch word {
        case 0u: {
            return hw_message_count();
        }
        case 1u: {
            return SLOT_WORDS;
        }
        case 2u: {
            return hw_step_number();
        }
        case 3u: {
            return select(0u, 1u, hw_started());
        }
        default: {
            let slot = word - HEADER_WORDS;
            return slot_word(slot / SLOT_WORDS, slot % SLOT_WORDS);
        }
    }
}

fn slot_word(message: u32, word: u32) -> u32 {
    switch word {
        case 0u: {
            return hw_in_port(message);
        }
        case 1u: {
            return hw_tag(message);
        }
        case 2u: {
            return hw_length(message);
        }
        case 3u: {
            return hw_channel(message);
        }
        default: {
            return hw_payload(message, word - SLOT_HEADER_WORDS);
        }
    }
}
