//! Declaring a program and checking the declaration.

use std::sync::Arc;

use super::{
    Forms, Grid, HostStep, MAX_MESSAGE_BYTES, Pass, Port, Program, ProgramDigest, ProgramError,
};
use crate::error::StepFault;

/// Most ports of one direction.
const MAX_PORTS: usize = 65_535;

/// Most slots of a box: what one dispatch can index comfortably.
const MAX_SLOTS: u32 = 1 << 20;

/// Most bytes of a whole inbox or outbox: 1 GiB.
const MAX_BOX_BYTES: u64 = 1 << 30;

/// Collects the declaration of a [`Program`].
#[derive(Clone, Debug)]
pub struct ProgramBuilder {
    program: Program,
}

impl ProgramBuilder {
    pub(super) fn new(name: String) -> Self {
        Self {
            program: Program {
                name,
                version: 1,
                in_ports: Vec::new(),
                out_ports: Vec::new(),
                inbox_slots: 64,
                outbox_slots: 64,
                parameter_words: 0,
                passes: Vec::new(),
                forms: Forms::default(),
                digest: ProgramDigest([0; 32]),
            },
        }
    }

    /// Sets the version; 1 if not called.
    #[must_use]
    pub fn version(mut self, version: u32) -> Self {
        self.program.version = version;
        self
    }

    /// Declares the next in-port.
    #[must_use]
    pub fn in_port(mut self, name: impl Into<String>, max_message_bytes: u32) -> Self {
        self.program.in_ports.push(Port { name: name.into(), max_message_bytes });
        self
    }

    /// Declares the next out-port.
    #[must_use]
    pub fn out_port(mut self, name: impl Into<String>, max_message_bytes: u32) -> Self {
        self.program.out_ports.push(Port { name: name.into(), max_message_bytes });
        self
    }

    /// Sets how many messages one step takes at most; 64 if not called.
    #[must_use]
    pub fn inbox_slots(mut self, slots: u32) -> Self {
        self.program.inbox_slots = slots;
        self
    }

    /// Sets how many messages one step sends at most; 64 if not called.
    #[must_use]
    pub fn outbox_slots(mut self, slots: u32) -> Self {
        self.program.outbox_slots = slots;
        self
    }

    /// Sets how many words of parameters an instance is given; none if not called.
    #[must_use]
    pub fn parameter_words(mut self, words: u32) -> Self {
        self.program.parameter_words = words;
        self
    }

    /// Appends a pass; only source forms have passes.
    #[must_use]
    pub fn pass(mut self, entry_point: impl Into<String>, grid: Grid) -> Self {
        self.program.passes.push(Pass { entry_point: entry_point.into(), grid });
        self
    }

    /// Gives the host form.
    #[must_use]
    pub fn host<F>(mut self, function: F) -> Self
    where
        F: Fn(&mut HostStep<'_>) -> Result<(), StepFault> + Send + Sync + 'static,
    {
        self.program.forms.host = Some(Arc::new(function));
        self
    }

    /// Gives the WGSL form, without the prelude.
    #[must_use]
    pub fn wgsl(mut self, source: impl Into<Arc<str>>) -> Self {
        self.program.forms.wgsl = Some(source.into());
        self
    }

    /// Gives the CUDA C form, without the prelude.
    #[must_use]
    pub fn cuda_c(mut self, source: impl Into<Arc<str>>) -> Self {
        self.program.forms.cuda_c = Some(source.into());
        self
    }

    /// Gives the PTX form: CUDA C with its prelude, compiled ahead of time. Used where CUDA C cannot
    /// be compiled.
    #[must_use]
    pub fn ptx(mut self, text: impl Into<Arc<str>>) -> Self {
        self.program.forms.ptx = Some(text.into());
        self
    }

    /// Checks the declaration.
    ///
    /// # Errors
    ///
    /// [`ProgramError`] names what is wrong and what is allowed.
    pub fn build(mut self) -> Result<Arc<Program>, ProgramError> {
        self.check_forms()?;
        self.check_ports()?;
        self.check_sizes()?;
        self.program.digest = digest(&self.program);
        Ok(Arc::new(self.program))
    }

    fn check_forms(&self) -> Result<(), ProgramError> {
        let Program { name, forms, passes, .. } = &self.program;
        if forms.names().is_empty() {
            return Err(ProgramError::NoForm { program: name.clone() });
        }
        if passes.is_empty() && forms.have_source() {
            return Err(ProgramError::NoPass { program: name.clone() });
        }
        for pass in passes {
            if let Grid::Parameter(word) = pass.grid
                && word >= self.program.parameter_words
            {
                let allowed = format!("below {} (parameter_words)", self.program.parameter_words);
                return Err(self.size("a grid's parameter index", word.into(), &allowed));
            }
        }
        Ok(())
    }

    fn check_ports(&self) -> Result<(), ProgramError> {
        for ports in [&self.program.in_ports, &self.program.out_ports] {
            if ports.len() > MAX_PORTS {
                return Err(self.size("number of ports", ports.len() as u64, "at most 65535"));
            }
            for (index, port) in ports.iter().enumerate() {
                if port.max_message_bytes > MAX_MESSAGE_BYTES {
                    let what = format!("largest message of port `{}`", port.name);
                    return Err(self.size(&what, port.max_message_bytes.into(), "at most 1 GiB"));
                }
                if ports[..index].iter().any(|earlier| earlier.name == port.name) {
                    let (program, port) = (self.program.name.clone(), port.name.clone());
                    return Err(ProgramError::DuplicatePort { program, port });
                }
            }
        }
        Ok(())
    }

    fn check_sizes(&self) -> Result<(), ProgramError> {
        let program = &self.program;
        for (what, slots) in
            [("inbox slots", program.inbox_slots), ("outbox slots", program.outbox_slots)]
        {
            if slots == 0 || slots > MAX_SLOTS {
                return Err(self.size(what, slots.into(), "1 to 1048576"));
            }
        }
        for (what, words) in [
            ("bytes of the inbox", program.inbox_words()),
            ("bytes of the outbox", program.outbox_words()),
        ] {
            let bytes = words as u64 * 4;
            if bytes > MAX_BOX_BYTES {
                return Err(self.size(
                    what,
                    bytes,
                    "at most 1 GiB: fewer slots or smaller messages",
                ));
            }
        }
        if program.parameter_words > 4096 {
            return Err(self.size(
                "parameter words",
                program.parameter_words.into(),
                "at most 4096",
            ));
        }
        Ok(())
    }

    fn size(&self, what: &str, value: u64, allowed: &str) -> ProgramError {
        ProgramError::Size {
            program: self.program.name.clone(),
            what: what.to_owned(),
            value,
            allowed: allowed.to_owned(),
        }
    }
}

/// Digests everything but the code of a host function. Every part is preceded by its length, so
/// that no two declarations give the same bytes.
fn digest(program: &Program) -> ProgramDigest {
    let mut hasher = blake3::Hasher::new();
    let mut part = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    part(b"hopwise program 1");
    part(program.name.as_bytes());
    part(&program.version.to_le_bytes());
    for ports in [&program.in_ports, &program.out_ports] {
        part(&(ports.len() as u64).to_le_bytes());
        for port in ports {
            part(port.name.as_bytes());
            part(&port.max_message_bytes.to_le_bytes());
        }
    }
    for number in [program.inbox_slots, program.outbox_slots, program.parameter_words] {
        part(&number.to_le_bytes());
    }
    part(&(program.passes.len() as u64).to_le_bytes());
    for pass in &program.passes {
        part(pass.entry_point.as_bytes());
        let (kind, value) = match pass.grid {
            Grid::Fixed(count) => (0u32, count),
            Grid::StateWords => (1, 0),
            Grid::Parameter(word) => (2, word),
            Grid::Messages => (3, 0),
        };
        part(&kind.to_le_bytes());
        part(&value.to_le_bytes());
    }
    part(&[u8::from(program.forms.host.is_some())]);
    for source in program.forms.sources() {
        part(&[u8::from(source.is_some())]);
        part(source.as_deref().unwrap_or("").as_bytes());
    }
    ProgramDigest(*hasher.finalize().as_bytes())
}
