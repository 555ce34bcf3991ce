//! Programs by name, so that another process can restore a kernel.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use thiserror::Error;

use super::Program;

/// The programs that this process knows.
#[derive(Debug, Default)]
pub struct ProgramRegistry {
    programs: RwLock<BTreeMap<String, Arc<Program>>>,
}

/// A program could not be registered or found.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// Another program has that name.
    #[error("another program called `{name}` is registered; give this one another name")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// No program has that name.
    #[error("no program is called `{name}`; known are: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The names that are registered.
        known: String,
    },
}

impl ProgramRegistry {
    /// An empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a program known. Registering the same program again does nothing.
    ///
    /// # Errors
    ///
    /// [`RegistryError::NameTaken`] when another program has the name.
    pub fn register(&self, program: Arc<Program>) -> Result<(), RegistryError> {
        let mut programs = self.programs.write();
        match programs.get(program.name()) {
            Some(known) if known.digest() != program.digest() => {
                Err(RegistryError::NameTaken { name: program.name().to_owned() })
            }
            Some(_) => Ok(()),
            None => {
                programs.insert(program.name().to_owned(), program);
                Ok(())
            }
        }
    }

    /// The program called `name`.
    ///
    /// # Errors
    ///
    /// [`RegistryError::Unknown`] lists the names that are known.
    pub fn find(&self, name: &str) -> Result<Arc<Program>, RegistryError> {
        let programs = self.programs.read();
        programs.get(name).cloned().ok_or_else(|| RegistryError::Unknown {
            name: name.to_owned(),
            known: programs.keys().cloned().collect::<Vec<_>>().join(", "),
        })
    }

    /// The registered names, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.programs.read().keys().cloned().collect()
    }
}
