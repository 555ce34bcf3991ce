//! Every form of a program gives the same bits: the shipped programs on the same inputs, right and
//! wrong ones, on a device and on a host device. They must agree in every word of state, every
//! message, every flag and every fault.
//!
//! ```
//! use hopwise_core::host::{HostBackend, HostOptions};
//!
//! hopwise_core::twins_suite!(|| HostBackend::new(HostOptions::new(1)));
//! ```
//!
//! The line becomes one `#[test]` per entry of [`TOPICS`]. The largest state is of about 130 MiB: give
//! the device room for some of them.

#![allow(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod counter;
mod diffuse;
mod diffuse_cases;
mod pair;
mod token_ring;

topics! { $
    /// All topics.
    table TOPICS;

    /// Makes one test for each of the [`TOPICS`](crate::conformance::twins::TOPICS).
    ///
    /// Takes a function that makes a backend. See [`twins`](crate::conformance::twins).
    suite twins_suite by check_twins;

    counter::counters_agree,
    counter::sums_carry_into_the_high_word,
    counter::wrong_counters_give_the_same_fault,
    token_ring::rings_agree,
    token_ring::a_full_first_step_fills_the_outbox,
    token_ring::wrong_rings_give_the_same_fault,
    diffuse::strips_agree,
    diffuse::a_strip_works_to_its_end,
    diffuse::large_strips_agree,
    diffuse::strips_agree_across_segments,
    diffuse::wrong_parameters_and_states_give_the_same_fault,
    diffuse::wrong_rows_give_the_same_fault_and_the_first_one_counts,
}
