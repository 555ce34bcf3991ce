//! Joins a program's CUDA C with the prelude and the constants that depend on the program.

use hopwise_core::abi::HEADER_WORDS;
use hopwise_core::program::Program;

/// The part that is the same for every program.
const PRELUDE: &str = include_str!("prelude.cuh");

/// What follows a program whose kernels stay on the GPU.
const RESIDENT: &str = include_str!("resident.cuh");

/// What the prelude is called in errors.
pub(crate) const PRELUDE_FILE: &str = "prelude.cuh";

/// What the program's own text is called in errors.
pub(crate) const PROGRAM_FILE: &str = "program.cu";

/// Bytes of the prelude's `hw_Kernel`.
pub(crate) const KERNEL_BYTES: usize = 64;

/// Words of parameters that an instance has on the device, at least one.
pub(crate) fn parameter_words(program: &Program) -> usize {
    (program.parameter_words() as usize).max(1)
}

/// The whole CUDA C of a program: constants, prelude, and its own text, whose lines count from 1.
/// To make PTX ahead of time, compile this.
pub fn assemble(program: &Program, cuda_c: &str) -> String {
    let constants = [
        ("PARAMETER_WORDS", program.parameter_words() as usize),
        ("INBOX_SLOT_WORDS", program.inbox_slot_words()),
        ("OUTBOX_SLOTS", program.outbox_slots() as usize),
        ("OUTBOX_SLOT_WORDS", program.outbox_slot_words()),
    ];
    let constants = constants.map(|(name, value)| format!("#define HW_{name} {value}u\n")).concat();
    format!(
        "{constants}#line 1 \"{PRELUDE_FILE}\"\n{PRELUDE}#line 1 \"{PROGRAM_FILE}\"\n{cuda_c}\n"
    )
}

/// The same with the entry point `hw_resident` of a kernel that stays on the GPU.
pub fn assemble_resident(program: &Program, cuda_c: &str) -> String {
    let passes = program.passes().iter().map(|pass| format!(" HW_RUN({})", pass.entry_point));
    let passes: String = passes.collect();
    let own = assemble(program, cuda_c);
    format!("{own}\n#define HW_PASSES{passes}\n#line 1 \"resident.cuh\"\n{RESIDENT}")
}

/// Where what belongs to one step lies in a batch's memory, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BoxWords {
    /// Words of the outbox's slots.
    pub(crate) outbox_slots: usize,
}

impl BoxWords {
    pub(crate) fn of(program: &Program) -> Self {
        Self { outbox_slots: program.outbox_words() - HEADER_WORDS }
    }
}

/// The bytes of the prelude's `hw_Kernel`, as prelude.cuh lays them out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelEntry {
    pub(crate) state: u64,
    pub(crate) state_words: u64,
    pub(crate) parameters: u64,
    pub(crate) inbox: u64,
    pub(crate) outbox_header: u64,
    pub(crate) outbox_slots: u64,
    pub(crate) invocations: u64,
}

impl KernelEntry {
    /// Writes the entry into its [`KERNEL_BYTES`].
    pub(crate) fn write(self, into: &mut [u8]) {
        let fields = [
            self.state,
            self.state_words,
            self.parameters,
            self.inbox,
            self.outbox_header,
            self.outbox_slots,
            self.invocations,
            0,
        ];
        for (into, field) in into.chunks_exact_mut(8).zip(fields) {
            into.copy_from_slice(&field.to_le_bytes());
        }
    }
}
