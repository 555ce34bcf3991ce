//! Programs that misbehave on purpose, so that anybody can see what a fleet does with them.
//!
//! | name | its misdeed |
//! |---|---|
//! | `test-panic` | panics |
//! | `test-loop` | never ends its step |
//! | `test-overflow` | sends more messages than its outbox has slots |
//! | `test-equal-keys` | sends two messages with one key |
//!
//! Each takes messages of up to 8 bytes on `in` and sends them on through `out`. The state's word 0
//! counts them; once it has reached the parameter's word 0, the next message is answered with the
//! misdeed. Without a message nothing happens.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use hopwise_core::error::StepFault;
use hopwise_core::program::{HostStep, Program};

#[cfg(test)]
mod tests;

/// The names of all of them.
pub(crate) const NAMES: [&str; 4] = ["test-panic", "test-loop", "test-overflow", "test-equal-keys"];

/// Slots of inbox and outbox.
const SLOTS: u32 = 16;

/// Largest message.
const MESSAGE_BYTES: u32 = 8;

type Misdeed = fn(&mut HostStep<'_>);

/// The program with this name, if it is one of [`NAMES`].
pub(crate) fn by_name(name: &str) -> Option<Arc<Program>> {
    let misdeed: Misdeed = match name {
        "test-panic" => panics,
        "test-loop" => never_ends,
        "test-overflow" => overflows,
        "test-equal-keys" => repeats_a_key,
        _ => return None,
    };
    let builder = Program::builder(name)
        .in_port("in", MESSAGE_BYTES)
        .out_port("out", MESSAGE_BYTES)
        .inbox_slots(SLOTS)
        .outbox_slots(SLOTS)
        .parameter_words(1)
        .host(move |step| behave_until(step, misdeed));
    builder.build().ok()
}

fn behave_until(step: &mut HostStep<'_>, misdeed: Misdeed) -> Result<(), StepFault> {
    for (key, message) in (0..).zip(step.inbox.messages()) {
        if step.state[0] >= step.parameters[0] {
            misdeed(step);
            return Ok(());
        }
        step.state[0] += 1;
        let words = message.length_bytes.div_ceil(4) as usize;
        step.outbox.send(0, key, message.tag, &message.words[..words]);
    }
    Ok(())
}

fn panics(_: &mut HostStep<'_>) {
    panic!("test-panic panics as it was told to");
}

fn never_ends(_: &mut HostStep<'_>) {
    // It sleeps, so that it takes no processor from those that are watched.
    loop {
        thread::sleep(Duration::from_secs(1));
    }
}

fn overflows(step: &mut HostStep<'_>) {
    // Keys of their own, so that the overflow is all that is wrong.
    (SLOTS..=3 * SLOTS).for_each(|key| step.outbox.send(0, key, 0, &[]));
}

fn repeats_a_key(step: &mut HostStep<'_>) {
    (0..2).for_each(|tag| step.outbox.send(0, SLOTS, tag, &[]));
}
