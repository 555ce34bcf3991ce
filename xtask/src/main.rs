//! The developer's tool: tests, tidy checks.

fn main() {}
