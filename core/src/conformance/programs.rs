//! The suite's own programs: simple integer code, so that every form computes the same bits.
//!
//! Host functions are plain functions; the WGSL and the CUDA C of a program are
//! files beside this one. A backend
//! for which a form is missing here cannot pass the suite; its form is added beside the others.

use std::sync::Arc;

use crate::abi::HEADER_WORDS;
use crate::error::StepFault;
use crate::program::{Grid, HostStep, Program, ProgramBuilder};

/// Words that [`capture`] keeps for parameters: what five words are padded to.
pub const CAPTURED_PARAMETER_WORDS: usize = 8;

/// Slots of the outbox of [`obey`].
pub const OBEY_OUTBOX_SLOTS: u32 = 8;

/// What [`obey`] does: the first word of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Command {
    /// Adds the second word to state word 0.
    Add = 0,
    /// Sends as many messages as the second word says on the port that the third word names, the
    /// largest key first, each with its key, tag and payload derived from the key.
    Send = 1,
    /// Sends one message with key 0 on the port that the second word names, of the length that the
    /// third word says.
    SendRaw = 2,
    /// Gives up with the code that the second word says.
    Fault = 3,
    /// Asks for one more step.
    RunAgain = 4,
}

/// Writes what it sees into its state: the parameters, then the number of words of the inbox, then
/// the inbox. Words of state past that become zero.
///
/// # Panics
///
/// When built wrongly, which a test of the suite would show.
#[must_use]
pub fn capture() -> Arc<Program> {
    build(
        Program::builder("conformance-capture")
            .in_port("small", 4)
            .in_port("large", 18)
            .inbox_slots(8)
            .outbox_slots(1)
            .parameter_words(5)
            .host(capture_host)
            .pass("capture", Grid::StateWords)
            .wgsl(include_str!("capture.wgsl"))
            .cuda_c(include_str!("capture.cu")),
    )
}

fn capture_host(step: &mut HostStep<'_>) -> Result<(), StepFault> {
    let used = HEADER_WORDS + (step.inbox.words()[0] * step.inbox.words()[1]) as usize;
    let (parameters, rest) = step.state.split_at_mut(CAPTURED_PARAMETER_WORDS);
    parameters.copy_from_slice(step.parameters);
    rest.fill(0);
    rest[0] = step.inbox.words()[0] * step.inbox.words()[1] + 4;
    rest[1..=used].copy_from_slice(&step.inbox.words()[..used]);
    Ok(())
}

/// Three passes over its state, of which each reads what other invocations wrote in the one before.
/// With `n` words of state, an even number, and `h` = n / 2:
///
/// 1. word `h + i` = word `i` * 3 + parameter 0
/// 2. word `i` = word `i` ^ word `n - 1 - i`
/// 3. word `h + i` = word `h + i` + word `(i + 1) % h`
///
/// # Panics
///
/// When built wrongly, which a test of the suite would show.
#[must_use]
pub fn passes() -> Arc<Program> {
    build(
        Program::builder("conformance-passes")
            .parameter_words(1)
            .host(passes_host)
            .pass("scale", Grid::StateWords)
            .pass("mirror", Grid::StateWords)
            .pass("rotate", Grid::StateWords)
            .wgsl(include_str!("passes.wgsl"))
            .cuda_c(include_str!("passes.cu")),
    )
}

fn passes_host(step: &mut HostStep<'_>) -> Result<(), StepFault> {
    let (low, high) = step.state.split_at_mut(step.state.len() / 2);
    for (high, low) in high.iter_mut().zip(&*low) {
        *high = low.wrapping_mul(3).wrapping_add(step.parameters[0]);
    }
    for (low, high) in low.iter_mut().zip(high.iter().rev()) {
        *low ^= high;
    }
    for (index, high) in high.iter_mut().enumerate() {
        *high = high.wrapping_add(low[(index + 1) % low.len()]);
    }
    Ok(())
}

/// Folds its messages, in their order, into a hash, and sends one message for each, on port `even`
/// or `odd`. State word 0 counts messages, word 1 is the hash, the others are sums; there are at
/// least three.
///
/// # Panics
///
/// When built wrongly, which a test of the suite would show.
#[must_use]
pub fn fold() -> Arc<Program> {
    build(
        Program::builder("conformance-fold")
            .in_port("in", 16)
            .out_port("even", 8)
            .out_port("odd", 8)
            .inbox_slots(32)
            .outbox_slots(32)
            .host(fold_host)
            .pass("fold", Grid::Fixed(1))
            .wgsl(include_str!("fold.wgsl"))
            .cuda_c(include_str!("fold.cu")),
    )
}

fn fold_host(step: &mut HostStep<'_>) -> Result<(), StepFault> {
    for (key, message) in (0..).zip(step.inbox.messages()) {
        let mut hash = step.state[1].wrapping_mul(31).wrapping_add(message.tag);
        hash = hash.wrapping_mul(31).wrapping_add(message.length_bytes);
        for word in message.words {
            hash = hash.wrapping_mul(31).wrapping_add(*word);
        }
        step.state[0] = step.state[0].wrapping_add(1);
        step.state[1] = hash;
        let sum = 2 + hash as usize % (step.state.len() - 2);
        step.state[sum] = step.state[sum].wrapping_add(message.words[0]);
        step.outbox.send(hash & 1, key, step.state[0], &[hash, step.state[sum]]);
    }
    Ok(())
}

/// Does what its messages say: see [`Command`]. Counts its steps in state word 1.
///
/// # Panics
///
/// When built wrongly, which a test of the suite would show.
#[must_use]
pub fn obey() -> Arc<Program> {
    build(
        Program::builder("conformance-obey")
            .in_port("in", 12)
            .out_port("narrow", 4)
            .out_port("wide", 8)
            .inbox_slots(8)
            .outbox_slots(OBEY_OUTBOX_SLOTS)
            .host(obey_host)
            .pass("obey", Grid::Fixed(1))
            .wgsl(include_str!("obey.wgsl"))
            .cuda_c(include_str!("obey.cu")),
    )
}

fn obey_host(step: &mut HostStep<'_>) -> Result<(), StepFault> {
    step.state[1] = step.state[1].wrapping_add(1);
    for message in step.inbox.messages() {
        let (command, first, second) = (message.words[0], message.words[1], message.words[2]);
        if command == Command::Add as u32 {
            step.state[0] = step.state[0].wrapping_add(first);
        } else if command == Command::Send as u32 {
            for key in (0..first).rev() {
                step.outbox.send(second, key, key ^ 0x55, &[key.wrapping_mul(7)]);
            }
        } else if command == Command::SendRaw as u32 {
            step.outbox.slot(first, 0, 0, second);
        } else if command == Command::Fault as u32 {
            let code = u16::try_from(first).unwrap_or(u16::MAX);
            return Err(StepFault::Program { code, reason: "as told".to_owned() });
        } else if command == Command::RunAgain as u32 {
            step.outbox.run_again();
        }
    }
    Ok(())
}

/// Two programs of one name: they set state word 0 to 1 and to 2.
///
/// # Panics
///
/// When built wrongly, which a test of the suite would show.
#[must_use]
pub fn namesakes() -> [Arc<Program>; 2] {
    let namesake = |wgsl, cuda_c| {
        let builder = Program::builder("conformance-namesake").pass("set_word", Grid::Fixed(1));
        builder.wgsl(wgsl).cuda_c(cuda_c)
    };
    let one = namesake(include_str!("namesake_one.wgsl"), include_str!("namesake_one.cu"));
    let two = namesake(include_str!("namesake_two.wgsl"), include_str!("namesake_two.cu"));
    [build(one.host(set_one)), build(two.host(set_two))]
}

fn set_one(step: &mut HostStep<'_>) -> Result<(), StepFault> {
    step.state[0] = 1;
    Ok(())
}

fn set_two(step: &mut HostStep<'_>) -> Result<(), StepFault> {
    step.state[0] = 2;
    Ok(())
}

fn build(builder: ProgramBuilder) -> Arc<Program> {
    builder.build().expect("the suite's programs are declared rightly")
}
