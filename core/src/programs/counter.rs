//! `counter`: adds up its messages.
//!
//! Numbers of 64 bits are two words, the low one first, and wrap.
//!
//! # Parameters
//!
//! None.
//!
//! # State
//!
//! At least [`STATE_WORDS`] words, zeros at first. A larger state is allowed, so that a counter can
//! stand in for a kernel of any size.
//!
//! | word | meaning |
//! |---|---|
//! | 0, 1 | sum of all values |
//! | 2, 3 | number of values |
//!
//! # Ports
//!
//! | port | index | payload | meaning |
//! |---|---|---|---|
//! | in `add` | 0 | up to 8 bytes, zero-padded: a 64-bit value | add it; the sum is sent on `total` |
//! | in `query` | 1 | empty | the state is sent on `report` |
//! | out `total` | 0 | 2 words: the sum | one message for each value, with the value's tag |
//! | out `report` | 1 | 4 words: state words 0 to 3 | one message for each query, with its tag |
//!
//! A message is answered with what was delivered before it and itself, so grouping changes nothing.
//! `total` fits the port `add` of another counter. Keys are positions in the inbox.
//!
//! # Passes
//!
//! One, of one invocation, which goes through at most [`INBOX_SLOTS`] messages.
//!
//! # Faults
//!
//! [`STATE`](fault_code::STATE) when the state is too small, [`MESSAGE`](fault_code::MESSAGE) when a
//! message fits no port.

use std::sync::Arc;

use crate::abi::inbox::InboxMessage;
use crate::error::StepFault;
use crate::program::{Grid, HostStep, Program};

use super::{add_wide, build_constant, fault, fault_code};

/// The program's name.
pub const NAME: &str = "counter";

/// Words of state that the program uses.
pub const STATE_WORDS: usize = 4;

/// Most messages of one step.
pub const INBOX_SLOTS: u32 = 64;

/// Index of the in-port `add`.
pub const ADD: u32 = 0;

/// Index of the in-port `query`.
pub const QUERY: u32 = 1;

/// Index of the out-port `total`.
pub const TOTAL: u32 = 0;

/// Index of the out-port `report`.
pub const REPORT: u32 = 1;

/// Largest message on `add`.
const MAX_VALUE_BYTES: u32 = 8;

/// The program.
#[must_use]
pub fn counter() -> Arc<Program> {
    let builder = Program::builder(NAME)
        .in_port("add", MAX_VALUE_BYTES)
        .in_port("query", 0)
        .out_port("total", 8)
        .out_port("report", 16)
        .inbox_slots(INBOX_SLOTS)
        .outbox_slots(INBOX_SLOTS)
        .host(step)
        .pass("count", Grid::Fixed(1))
        .wgsl(include_str!("counter.wgsl"))
        .cuda_c(include_str!("counter.cu"));
    build_constant(builder)
}

fn step(step: &mut HostStep<'_>) -> Result<(), StepFault> {
    let words = step.state.len();
    let Some(state) = step.state.first_chunk_mut::<STATE_WORDS>() else {
        let reason = format!("a counter needs {STATE_WORDS} words of state, this one has {words}");
        return Err(fault(fault_code::STATE, reason));
    };
    for (key, message) in (0..).zip(step.inbox.messages()) {
        if message.in_port == QUERY {
            step.outbox.send(REPORT, key, message.tag, state);
            continue;
        }
        let value = value_of(&message)?;
        let [sum_low, sum_high, count_low, count_high] = *state;
        let sum = add_wide([sum_low, sum_high], value);
        let count = add_wide([count_low, count_high], [1, 0]);
        *state = [sum[0], sum[1], count[0], count[1]];
        step.outbox.send(TOTAL, key, message.tag, &sum);
    }
    Ok(())
}

fn value_of(message: &InboxMessage<'_>) -> Result<[u32; 2], StepFault> {
    let value = message.words.first_chunk::<2>();
    match value {
        Some(value) if message.in_port == ADD && message.length_bytes <= MAX_VALUE_BYTES => {
            Ok(*value)
        }
        _ => {
            let (bytes, port) = (message.length_bytes, message.in_port);
            let reason =
                format!("a message of {bytes} bytes on in-port {port} is not for a counter");
            Err(fault(fault_code::MESSAGE, reason))
        }
    }
}
