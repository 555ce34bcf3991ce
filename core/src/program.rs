//! Programs: what a kernel runs, in one or more forms.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::abi::inbox::InboxView;
use crate::abi::outbox::OutboxWriter;
use crate::abi::{HEADER_WORDS, slot_words};
use crate::error::StepFault;

mod builder;
mod registry;

pub use builder::ProgramBuilder;
pub use registry::{ProgramRegistry, RegistryError};

/// Largest message that a port may declare: 1 GiB.
pub const MAX_MESSAGE_BYTES: u32 = 1 << 30;

/// A program: ports, sizes, passes, and its forms for one or more backends.
///
/// Known by name, version and digest. Made with [`Program::builder`], immutable afterwards.
#[derive(Clone, Debug)]
pub struct Program {
    name: String,
    version: u32,
    in_ports: Vec<Port>,
    out_ports: Vec<Port>,
    inbox_slots: u32,
    outbox_slots: u32,
    parameter_words: u32,
    passes: Vec<Pass>,
    forms: Forms,
    digest: ProgramDigest,
}

/// A named end of channels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// Unique among the program's ports of that direction.
    pub name: String,
    /// Largest message, in bytes.
    pub max_message_bytes: u32,
}

/// One dispatch of a step on devices that run grids; host functions do all passes in one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pass {
    /// Name of the entry point in the program's source.
    pub entry_point: String,
    /// How many invocations.
    pub grid: Grid,
}

/// The number of invocations of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grid {
    /// Always this many.
    Fixed(u32),
    /// One for each word of state.
    StateWords,
    /// The value of one parameter word.
    Parameter(u32),
    /// One for each message in the inbox.
    Messages,
}

/// The forms of a program. At least one is present.
#[derive(Clone, Default)]
struct Forms {
    host: Option<HostFunction>,
    wgsl: Option<Arc<str>>,
    cuda_c: Option<Arc<str>>,
    ptx: Option<Arc<str>>,
}

impl fmt::Debug for Forms {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.names().join(", "))
    }
}

impl Forms {
    /// The forms that are texts, in the order in which the digest has them.
    fn sources(&self) -> [&Option<Arc<str>>; 3] {
        [&self.wgsl, &self.cuda_c, &self.ptx]
    }

    fn have_source(&self) -> bool {
        self.sources().into_iter().any(Option::is_some)
    }

    fn names(&self) -> Vec<&'static str> {
        let present = [
            (self.host.is_some(), "host function"),
            (self.wgsl.is_some(), "WGSL"),
            (self.cuda_c.is_some(), "CUDA C"),
            (self.ptx.is_some(), "PTX"),
        ];
        present.into_iter().filter(|(is, _)| *is).map(|(_, name)| name).collect()
    }
}

/// The host form of a program: runs one whole step. It may panic; that stops its kernel only.
pub type HostFunction = Arc<dyn Fn(&mut HostStep<'_>) -> Result<(), StepFault> + Send + Sync>;

/// What a host function works on during one step.
#[derive(Debug)]
pub struct HostStep<'a> {
    /// The instance's parameters, padded with zeros.
    pub parameters: &'a [u32],
    /// The instance's state.
    pub state: &'a mut [u32],
    /// The messages of the step.
    pub inbox: InboxView<'a>,
    /// Where messages go.
    pub outbox: OutboxWriter<'a>,
}

/// Digest over everything of a program that can be digested: not the code of a host function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProgramDigest([u8; 32]);

impl fmt::Debug for ProgramDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in &self.0[..8] {
            write!(formatter, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// A program was declared wrongly.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// The program has no form.
    #[error("program `{program}` has no form: give it a host function, WGSL, CUDA C or PTX")]
    NoForm {
        /// The program's name.
        program: String,
    },
    /// A source form needs passes that name its entry points.
    #[error("program `{program}` has source code but no pass: name its entry points")]
    NoPass {
        /// The program's name.
        program: String,
    },
    /// Two ports of one direction have the same name.
    #[error("program `{program}` declares port `{port}` twice")]
    DuplicatePort {
        /// The program's name.
        program: String,
        /// The port's name.
        port: String,
    },
    /// A size makes no sense.
    #[error("program `{program}`: {what} is {value}, allowed is {allowed}")]
    Size {
        /// The program's name.
        program: String,
        /// Which size.
        what: String,
        /// What was declared.
        value: u64,
        /// What is allowed.
        allowed: String,
    },
}

impl Program {
    /// Starts a program called `name`, version 1.
    ///
    /// ```
    /// use hopwise_core::program::Program;
    ///
    /// let echo = Program::builder("echo")
    ///     .in_port("in", 64)
    ///     .out_port("out", 64)
    ///     .inbox_slots(16)
    ///     .outbox_slots(16)
    ///     .host(|step| {
    ///         for (key, message) in (0..).zip(step.inbox.messages()) {
    ///             let words = message.length_bytes.div_ceil(4) as usize;
    ///             step.outbox.send(0, key, message.tag, &message.words[..words]);
    ///         }
    ///         Ok(())
    ///     })
    ///     .build()?;
    /// assert_eq!(echo.in_port("in"), Some(0));
    /// # Ok::<(), hopwise_core::program::ProgramError>(())
    /// ```
    #[must_use]
    pub fn builder(name: impl Into<String>) -> ProgramBuilder {
        ProgramBuilder::new(name.into())
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version: raised when the meaning of state, parameters or messages changes.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The digest.
    #[must_use]
    pub fn digest(&self) -> ProgramDigest {
        self.digest
    }

    /// In-ports, in the order of their indices.
    #[must_use]
    pub fn in_ports(&self) -> &[Port] {
        &self.in_ports
    }

    /// Out-ports, in the order of their indices.
    #[must_use]
    pub fn out_ports(&self) -> &[Port] {
        &self.out_ports
    }

    /// Index of the in-port called `name`.
    #[must_use]
    pub fn in_port(&self, name: &str) -> Option<u32> {
        port_index(&self.in_ports, name)
    }

    /// Index of the out-port called `name`.
    #[must_use]
    pub fn out_port(&self, name: &str) -> Option<u32> {
        port_index(&self.out_ports, name)
    }

    /// Most messages that one step takes.
    #[must_use]
    pub fn inbox_slots(&self) -> u32 {
        self.inbox_slots
    }

    /// Most messages that one step sends.
    #[must_use]
    pub fn outbox_slots(&self) -> u32 {
        self.outbox_slots
    }

    /// Words of parameters that an instance is given.
    #[must_use]
    pub fn parameter_words(&self) -> u32 {
        self.parameter_words
    }

    /// The passes of a step.
    #[must_use]
    pub fn passes(&self) -> &[Pass] {
        &self.passes
    }

    /// The host form.
    #[must_use]
    pub fn host_function(&self) -> Option<&HostFunction> {
        self.forms.host.as_ref()
    }

    /// The WGSL form, without the prelude.
    #[must_use]
    pub fn wgsl(&self) -> Option<&str> {
        self.forms.wgsl.as_deref()
    }

    /// The CUDA C form, without the prelude.
    #[must_use]
    pub fn cuda_c(&self) -> Option<&str> {
        self.forms.cuda_c.as_deref()
    }

    /// The PTX form.
    #[must_use]
    pub fn ptx(&self) -> Option<&str> {
        self.forms.ptx.as_deref()
    }

    /// Names of the forms that the program carries, for messages.
    #[must_use]
    pub fn forms(&self) -> String {
        self.forms.names().join(", ")
    }

    /// Words of one inbox slot.
    #[must_use]
    pub fn inbox_slot_words(&self) -> usize {
        slot_words(largest(&self.in_ports))
    }

    /// Words of one outbox slot.
    #[must_use]
    pub fn outbox_slot_words(&self) -> usize {
        slot_words(largest(&self.out_ports))
    }

    /// Words of a full inbox with its header.
    #[must_use]
    pub fn inbox_words(&self) -> usize {
        HEADER_WORDS + self.inbox_slots as usize * self.inbox_slot_words()
    }

    /// Words of the outbox with its header.
    #[must_use]
    pub fn outbox_words(&self) -> usize {
        HEADER_WORDS + self.outbox_slots as usize * self.outbox_slot_words()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a builder refuses more than 65,535 ports")]
fn port_index(ports: &[Port], name: &str) -> Option<u32> {
    ports.iter().position(|port| port.name == name).map(|index| index as u32)
}

fn largest(ports: &[Port]) -> u32 {
    ports.iter().map(|port| port.max_message_bytes).max().unwrap_or(0)
}

#[cfg(test)]
mod tests;
