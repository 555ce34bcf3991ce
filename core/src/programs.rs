//! The programs that hopwise ships: useful for trying it out, and the yardstick for backends.
//!
//! | name | what it does |
//! |---|---|
//! | [`counter`](mod@counter) | adds up its messages |
//! | [`token_ring`](mod@token_ring) | passes tokens round a ring of kernels |
//! | [`diffuse-<width>`](mod@diffuse) | smooths an image that is cut into strips, and keeps its edges |
//!
//! All of them compute with 32-bit integers only, so every form of a program gives the same bits.
//! The pages of the modules describe state, parameters, ports and messages word by word: they are
//! what every form of the program must do.
//! Words past those that a page names are zero and are left alone.
//!
//! No result depends on how messages were grouped into batches.
//!
//! ```
//! use hopwise_core::program::ProgramRegistry;
//! use hopwise_core::programs;
//!
//! let registry = ProgramRegistry::new();
//! programs::register_all(&registry)?;
//! registry.register(programs::by_name("diffuse-640")?)?;
//! assert_eq!(registry.names(), ["counter", "diffuse-640", "token_ring"]);
//! # Ok::<(), hopwise_core::program::RegistryError>(())
//! ```

use std::sync::Arc;

use crate::error::StepFault;
use crate::program::{Program, ProgramBuilder, ProgramRegistry, RegistryError};

pub mod counter;
pub mod diffuse;
pub mod fault_code;
pub mod token_ring;

pub use counter::counter;
pub use diffuse::diffuse;
pub use token_ring::token_ring;

/// The programs that need no size: all but `diffuse-<width>`.
#[must_use]
pub fn all() -> Vec<Arc<Program>> {
    vec![counter(), token_ring()]
}

/// Makes the programs of [`all`] known to `registry`.
///
/// # Errors
///
/// [`RegistryError::NameTaken`] when another program has one of their names.
pub fn register_all(registry: &ProgramRegistry) -> Result<(), RegistryError> {
    all().into_iter().try_for_each(|program| registry.register(program))
}

/// The shipped program called `name`; `diffuse-<width>` is made for any width that it allows.
///
/// # Errors
///
/// [`RegistryError::Unknown`] lists the names that exist.
pub fn by_name(name: &str) -> Result<Arc<Program>, RegistryError> {
    let sized = |text: &str| diffuse(text.parse().ok()?).ok();
    let found = match name {
        counter::NAME => Some(counter()),
        token_ring::NAME => Some(token_ring()),
        // A width has one spelling: `diffuse-064` is no name.
        _ => name
            .strip_prefix(diffuse::NAME_PREFIX)
            .and_then(sized)
            .filter(|program| program.name() == name),
    };
    found.ok_or_else(|| RegistryError::Unknown {
        name: name.to_owned(),
        known: format!(
            "{}, {}<width> with a width of 1 to {}, {}",
            counter::NAME,
            diffuse::NAME_PREFIX,
            diffuse::MAX_WIDTH,
            token_ring::NAME
        ),
    })
}

/// Builds a declaration that is constant.
fn build_constant(builder: ProgramBuilder) -> Arc<Program> {
    builder.build().expect("a constant declaration is right")
}

fn fault(code: u16, reason: impl Into<String>) -> StepFault {
    StepFault::Program { code, reason: reason.into() }
}

/// Adds two 64-bit numbers given as low and high word, wrapping.
fn add_wide(left: [u32; 2], right: [u32; 2]) -> [u32; 2] {
    let (low, carry) = left[0].overflowing_add(right[0]);
    [low, left[1].wrapping_add(right[1]).wrapping_add(u32::from(carry))]
}
