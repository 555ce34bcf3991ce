//! The subcommands.

pub(crate) mod demo;
pub(crate) mod devices;
pub(crate) mod route;
pub(crate) mod run;
pub(crate) mod topo;
