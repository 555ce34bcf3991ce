//! The hopwise command: run kernels on devices, drain a device while they work.

fn main() {}
