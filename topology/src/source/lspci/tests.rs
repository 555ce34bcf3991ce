//! Trees that lspci draws.
