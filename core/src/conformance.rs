//! The law for backends: tests that every implementer runs with one line.
//!
//! ```
//! // In the backend's `tests/conformance.rs`, with feature `conformance` of hopwise-core.
//! use hopwise_core::host::{HostBackend, HostOptions};
//!
//! hopwise_core::conformance_suite!(|| HostBackend::new(HostOptions::new(1)));
//! ```
//!
//! The line becomes one `#[test]` per entry of [`TOPICS`]. Each makes a backend of its own, opens
//! every device that it lists, and has a time limit. Where the driver is missing, or there is no
//! device, a test says so and passes. A device with a small memory quota (up to
//! [`SMALL_MEMORY_BYTES`]) is also driven out of memory, so give the suite one.
//!
//! What needs a program that panics or never ends is not here: only host functions can panic, and a
//! step that never ends takes a GPU with it.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::backend::Backend;
use crate::error::DeviceError;

mod batches;
mod boxes;
mod devices;
mod loss;
mod memory;
mod outboxes;
mod peers;
pub mod programs;
mod state;
mod subject;

pub use subject::{Incoming, Kernel, Subject, output};

/// Devices with at most this much memory are driven out of memory: 256 MiB.
pub const SMALL_MEMORY_BYTES: u64 = 256 << 20;

/// How long one topic may take on one device.
const TOPIC_LIMIT: Duration = Duration::from_secs(300);

/// One law, checked on one device.
#[derive(Clone, Copy, Debug)]
pub struct Topic {
    /// The name of its test.
    pub name: &'static str,
    /// Checks it, and panics where it is broken.
    pub check: fn(&Subject),
}

/// Writes down topics once: as a table, and as the tests that a suite's macro makes.
macro_rules! topics {
    (
        $dollar:tt
        $(#[$about_table:meta])* table $table:ident;
        $(#[$about_suite:meta])* suite $suite:ident by $check:ident;
        $($module:ident :: $topic:ident,)*
    ) => {
        $(#[$about_table])*
        pub const $table: &[$crate::conformance::Topic] = &[
            $($crate::conformance::Topic { name: stringify!($topic), check: $module::$topic }),*
        ];

        $(#[$about_suite])*
        #[macro_export]
        macro_rules! $suite {
            ($dollar make:expr) => {
                $(
                    #[test]
                    fn $topic() {
                        $dollar crate::conformance::$check(stringify!($topic), $dollar make);
                    }
                )*
            };
        }
    };
}

pub mod twins;

topics! { $
    /// All topics.
    table TOPICS;

    /// Makes one test for each of the suite's [`TOPICS`](crate::conformance::TOPICS).
    ///
    /// Takes a function that makes a backend. See [`conformance`](crate::conformance).
    suite conformance_suite by check;

    devices::facts_are_consistent,
    devices::programs_are_compiled_once,
    devices::programs_of_one_name_are_not_mixed_up,
    devices::programs_without_a_fitting_form_are_refused,
    devices::programs_of_another_device_are_refused,
    memory::figures_are_sane,
    memory::state_sizes_are_checked,
    memory::memory_runs_out_and_comes_back,
    state::initial_states_are_as_asked,
    state::reads_and_writes_agree_with_a_model,
    state::wrong_ranges_are_refused,
    state::digests_agree_with_the_definition,
    state::large_states_have_wide_offsets,
    boxes::inboxes_are_as_documented,
    boxes::parameters_are_padded,
    boxes::passes_see_what_came_before,
    outboxes::keys_order_messages,
    outboxes::run_again_is_carried,
    outboxes::faults_stop_only_their_kernel,
    batches::batches_equal_single_steps,
    batches::grouping_does_not_matter,
    batches::transfers_go_on_beside_batches,
    loss::loss_is_final,
    loss::listeners_hear_of_a_loss,
    peers::peer_copies_are_exact,
    peers::opposite_peer_copies_end,
}

/// Checks one topic on every device of a backend: what the suite's tests call.
///
/// # Panics
///
/// When the law is broken, when the time is up, or when there is no such topic.
pub fn check<B: Backend + 'static>(name: &str, make: impl FnOnce() -> B) {
    check_in(TOPICS, name, make());
}

/// Checks one topic of [`twins`] on every device of a backend: what the tests of its suite call.
///
/// # Panics
///
/// When the forms differ, when the time is up, or when there is no such topic.
pub fn check_twins<B: Backend + 'static>(name: &str, make: impl FnOnce() -> B) {
    check_in(twins::TOPICS, name, make());
}

fn check_in(topics: &[Topic], name: &str, backend: impl Backend + 'static) {
    let topic = *topics.iter().find(|topic| topic.name == name).expect("the topic is in the table");
    let backend: Arc<dyn Backend> = Arc::new(backend);
    let listed = match backend.enumerate() {
        Ok(listed) => listed,
        Err(DeviceError::Unavailable { reason }) => {
            eprintln!("{name} skipped: {reason}");
            return;
        }
        Err(error) => panic!("the devices cannot be listed: {error}"),
    };
    if listed.is_empty() {
        eprintln!("{name} skipped: the backend lists no device");
    }
    for info in listed {
        let backend = Arc::clone(&backend);
        within(TOPIC_LIMIT, move || (topic.check)(&Subject::open(backend, info)));
    }
}

/// Runs `work` on a thread of its own and waits for its end, so that a deadlock fails a test.
///
/// # Panics
///
/// When `work` panics, with the same panic, or is not done within `limit`; its thread is left
/// behind then.
pub fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, ended) = mpsc::sync_channel(1);
    thread::spawn(move || done.send(catch_unwind(AssertUnwindSafe(work))));
    match ended.recv_timeout(limit) {
        Ok(Ok(value)) => value,
        Ok(Err(panic)) => resume_unwind(panic),
        Err(_) => panic!("not done within {limit:?}"),
    }
}
