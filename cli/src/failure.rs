//! Why a command did not do what it was asked, and the exit code for it.

use std::fmt;
use std::process::ExitCode;

/// Exit code for wrong usage.
pub(crate) const USAGE: u8 = 2;

/// Exit code for a command that failed.
const FAILED: u8 = 1;

/// Why a command did not do what it was asked. Printed with `{}` it says what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The command or its scenario is wrong: nothing was run.
    Usage(String),
    /// The command was right, and what it does failed.
    Failed(String),
}

impl Failure {
    /// Wrong usage.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    /// A failure of what the command does.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    /// What the process ends with.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Usage(_) => USAGE,
            Self::Failed(_) => FAILED,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Usage(message) | Self::Failed(message)) = self;
        formatter.write_str(message)
    }
}
