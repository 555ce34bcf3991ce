//! What is made of NVML's answers, with answers that a test writes.
#![allow(clippy::unwrap_used, reason = "a test")]

mod events;
mod fabrics;
mod faults;
mod health;
mod links;
mod scripted;
