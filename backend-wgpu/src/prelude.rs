//! Joins a program's WGSL with the prelude and the declarations that depend on program and state.

use std::fmt::Write;

use hopwise_core::abi::{HEADER_WORDS, PARAMETER_ALIGN_WORDS};
use hopwise_core::program::Program;

#[cfg(test)]
mod tests;

/// The part that is the same for every program.
const PRELUDE: &str = include_str!("prelude.wgsl");

/// The binding of the first segment of state; the bindings before it are the prelude's blocks.
pub(crate) const FIRST_SEGMENT_BINDING: u32 = 2;

/// Words in front of the parameters in the block of an instance.
pub(crate) const INSTANCE_HEADER_WORDS: usize = 4;

/// Names whose use makes a program access all of its state atomically.
const ATOMIC_NAMES: [&str; 3] = ["hw_state_add", "hw_state_max", "hw_state_or"];

/// How a state is cut into bindings of a power of two of words each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Segments {
    /// How many there are, at least one.
    pub(crate) count: u32,
    /// Binary logarithm of the words of each but the last.
    pub(crate) shift: u32,
}

impl Segments {
    /// Words of each segment but the last.
    pub(crate) fn words(self) -> u64 {
        1 << self.shift
    }
}

/// Where the parts of the block that holds both boxes of an instance lie, in words.
///
/// The outbox's slots come first, then its header, then the inbox: what the host sends and what it
/// fetches is one range each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoxLayout {
    /// Words of the outbox's slots.
    pub(crate) outbox_slots: usize,
    /// Words of the whole block.
    pub(crate) whole: usize,
}

impl BoxLayout {
    pub(crate) fn of(program: &Program) -> Self {
        let outbox_slots = program.outbox_words() - HEADER_WORDS;
        Self { outbox_slots, whole: outbox_slots + HEADER_WORDS + program.inbox_words() }
    }

    /// What the host fetches: slots and header of the outbox, from the block's start.
    pub(crate) fn fetched_words(self) -> usize {
        self.outbox_slots + HEADER_WORDS
    }
}

/// Vectors of four words that hold a program's parameters.
pub(crate) fn parameter_vectors(program: &Program) -> usize {
    (program.parameter_words() as usize).max(1).div_ceil(PARAMETER_ALIGN_WORDS)
}

/// The whole shader: the program's own text first, so that positions in errors are its own.
pub(crate) fn assemble(program: &Program, wgsl: &str, segments: Segments) -> String {
    let mut shader = String::with_capacity(wgsl.len() + PRELUDE.len() + 4096);
    shader.push_str(wgsl);
    shader.push('\n');
    let constants = [
        ("PARAMETER_VECTORS", parameter_vectors(program)),
        ("INBOX_WORDS", program.inbox_words() - HEADER_WORDS),
        ("INBOX_SLOT_WORDS", program.inbox_slot_words()),
        ("OUTBOX_SLOTS", program.outbox_slots() as usize),
        ("OUTBOX_SLOT_WORDS", program.outbox_slot_words()),
        ("OUTBOX_WORDS", program.outbox_words() - HEADER_WORDS),
    ];
    for (name, value) in constants {
        line(&mut shader, format_args!("const HW_{name}: u32 = {value}u;"));
    }
    let is_atomic = ATOMIC_NAMES.iter().any(|name| wgsl.contains(name));
    add_state(&mut shader, segments, is_atomic);
    shader.push_str(PRELUDE);
    shader
}

/// The segments' bindings and the accessors over them.
fn add_state(shader: &mut String, segments: Segments, is_atomic: bool) {
    let word = if is_atomic { "atomic<u32>" } else { "u32" };
    for segment in 0..segments.count {
        let binding = FIRST_SEGMENT_BINDING + segment;
        line(
            shader,
            format_args!(
                "@group(0) @binding({binding}) \
                 var<storage, read_write> hw_state_{segment}: array<{word}>;"
            ),
        );
    }
    let (get, set) = if is_atomic {
        ("return atomicLoad(&hw_state_#[at]);", "atomicStore(&hw_state_#[at], value);")
    } else {
        ("return hw_state_#[at];", "hw_state_#[at] = value;")
    };
    accessor(shader, "fn hw_state(i: u32) -> u32", get, "return 0u;", segments);
    accessor(shader, "fn hw_set_state(i: u32, value: u32)", set, "return;", segments);
    if is_atomic {
        for (name, operation) in ATOMIC_NAMES.iter().zip(["Add", "Max", "Or"]) {
            let body = format!("return atomic{operation}(&hw_state_#[at], value);");
            let head = format!("fn {name}(i: u32, value: u32) -> u32");
            accessor(shader, &head, &body, "return 0u;", segments);
        }
    }
}

/// A function that does `body` with the segment that holds word `i`, or `otherwise` beyond the end.
/// In the body `#` stands for the segment's number.
fn accessor(shader: &mut String, head: &str, body: &str, otherwise: &str, segments: Segments) {
    line(shader, format_args!("{head} {{"));
    line(shader, format_args!("    if (i >= hw_instance.state_words) {{ {otherwise} }}"));
    if segments.count == 1 {
        line(shader, format_args!("    let at = i;\n    {}", body.replace('#', "0")));
    } else {
        let (mask, shift) = (segments.words() - 1, segments.shift);
        line(shader, format_args!("    let at = i & {mask}u;\n    switch (i >> {shift}u) {{"));
        for segment in 0..segments.count {
            let body = body.replace('#', &segment.to_string());
            line(shader, format_args!("        case {segment}u: {{ {body} }}"));
        }
        line(shader, format_args!("        default: {{ {otherwise} }}\n    }}"));
    }
    shader.push_str("}\n");
}

fn line(shader: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(shader, "{text}").expect("a string takes every text");
}
