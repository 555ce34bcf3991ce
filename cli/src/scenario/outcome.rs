//! What came of a scenario, for a person and as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use hopwise_core::abi::bytes_to_words;
use hopwise_core::digest::chunk_digest;
use hopwise_core::fleet::{ChannelLedger, DeadLetter, Fleet, MessageTotals};
use hopwise_core::id::KernelId;
use serde::Serialize;

use super::execute::{Assembly, Course};
use super::plan::Scenario;
use crate::failure::Failure;
use crate::moves::Move;
use crate::report::{DeviceRow, KernelRow, message_failures};

mod text;

/// Words of a state or message that are shown.
const WORDS_SHOWN: usize = 8;

/// How long the fleet may take to finish steps before its threads are stopped.
const STOP: Duration = Duration::from_millis(500);

/// Everything that `run` reports. Serialised it is the object that `--json` prints, printed with
/// `{}` it is for a person.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    /// Everything that went wrong. Empty: the scenario ran to its end.
    failures: Vec<String>,
    /// Who waits for whom, at the end.
    waiting: Vec<String>,
    elapsed_ms: u64,
    devices: Vec<DeviceRow>,
    kernels: Vec<KernelResult>,
    endpoints: Vec<EndpointRow>,
    events: Vec<EventRow>,
    messages: MessageTotals,
    channels: Vec<ChannelRow>,
    dead_letters: DeadLetters,
    migrations: Vec<Move>,
}

/// A kernel with a glance at its state.
#[derive(Debug, Serialize)]
struct KernelResult {
    #[serde(flatten)]
    row: KernelRow,
    /// The first words of the state; none when it cannot be read.
    first_words: Option<Vec<u32>>,
    /// The digest of the whole state (docs/kernel-abi.md), in hexadecimal.
    digest: Option<String>,
}

#[derive(Debug, Serialize)]
struct EndpointRow {
    name: String,
    messages: u64,
    last_tag: Option<u32>,
    /// The first words of the last message.
    last_words: Option<Vec<u32>>,
}

#[derive(Debug, Serialize)]
struct EventRow {
    event: String,
    /// When its mark was reached; none when it was not.
    due_ms: Option<u64>,
}

/// The ledger of one channel, with its ends in words.
#[derive(Debug, Serialize)]
struct ChannelRow {
    from: String,
    to: String,
    sent: u64,
    delivered: u64,
    waiting: u64,
    duplicated: u64,
    lost: u64,
    out_of_order: u64,
    dead_lettered: u64,
}

/// Messages that could not be delivered.
#[derive(Debug, Serialize)]
struct DeadLetters {
    total: u64,
    /// Why, and how many of those that are kept.
    reasons: BTreeMap<String, u64>,
}

impl Outcome {
    /// Reads states and ledgers, and stops the fleet.
    pub(crate) fn collect(assembly: Assembly, course: Course, scenario: &Scenario) -> Self {
        let Assembly { fleet, kernels, homes, endpoints, senders, mut devices } = assembly;
        let mut failures: Vec<_> = course.ended_early.into_iter().collect();
        let events = event_rows(scenario, &course.fired);
        let missed = events.iter().filter(|event| event.due_ms.is_none());
        failures.extend(missed.map(|event| format!("never reached: {}", event.event)));
        failures.extend(course.moves.failures);
        failures.extend(course.send_failures);
        let ledgers = fleet.ledgers();
        failures.extend(message_failures(&ledgers));
        let programs = scenario.kernels.iter().map(|spec| spec.program.name());
        let rows = kernels.iter().zip(programs).zip(&homes);
        let results = rows.map(|((kernel, program), home)| {
            KernelResult::read(&fleet, kernel, KernelRow::new(&fleet, kernel, program, *home))
        });
        let results: Vec<_> = results.collect();
        failures.extend(results.iter().filter_map(|result| result.row.failure()));
        DeviceRow::note_end(&mut devices, &fleet);
        let waiting = fleet.waiting().iter().map(ToString::to_string).collect();
        let (total, kept) = fleet.dead_letters();
        fleet.shutdown(STOP);
        drop((endpoints, senders));
        Self {
            failures,
            waiting,
            elapsed_ms: milliseconds(course.elapsed),
            devices,
            kernels: results,
            endpoints: endpoint_rows(scenario, course.received),
            events,
            messages: MessageTotals::of(&ledgers),
            channels: ledgers.iter().map(ChannelRow::from).collect(),
            dead_letters: DeadLetters::new(total, &kept),
            migrations: course.moves.done,
        }
    }

    /// `Ok` when nothing went wrong.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.failures.is_empty() {
            return Ok(());
        }
        Err(Failure::failed("not everything went right; the report says what did not"))
    }
}

impl KernelResult {
    fn read(fleet: &Fleet, kernel: &KernelId, row: KernelRow) -> Self {
        // A step that runs for ever would keep a reader waiting for its limit.
        let is_readable = row.phase == "ready" || row.phase == "failed";
        let state = is_readable.then(|| fleet.read_state(kernel).ok()).flatten();
        let words = state.map(|state| {
            let mut words = vec![0; state.len() / 4];
            bytes_to_words(&state, &mut words);
            words
        });
        Self {
            row,
            digest: words.as_ref().map(|words| format!("{:016x}", chunk_digest(words))),
            first_words: words.as_deref().map(first_words),
        }
    }
}

fn first_words(words: &[u32]) -> Vec<u32> {
    words[..words.len().min(WORDS_SHOWN)].to_vec()
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn event_rows(scenario: &Scenario, fired: &[Option<Duration>]) -> Vec<EventRow> {
    let rows = scenario.events.iter().zip(fired).map(|(event, fired)| EventRow {
        event: event.text.clone(),
        due_ms: fired.map(milliseconds),
    });
    rows.collect()
}

fn endpoint_rows(scenario: &Scenario, received: Vec<super::execute::Received>) -> Vec<EndpointRow> {
    let rows = scenario.endpoints.iter().zip(received).map(|((name, _), received)| {
        let (last_tag, words) = received.last.unzip();
        EndpointRow {
            name: name.clone(),
            messages: received.messages,
            last_tag,
            last_words: words.as_deref().map(first_words),
        }
    });
    rows.collect()
}

impl From<&ChannelLedger> for ChannelRow {
    fn from(ledger: &ChannelLedger) -> Self {
        Self {
            from: ledger.from.to_string(),
            to: ledger.to.to_string(),
            sent: ledger.sent,
            delivered: ledger.delivered,
            waiting: ledger.waiting,
            duplicated: ledger.duplicated,
            lost: ledger.lost,
            out_of_order: ledger.out_of_order,
            dead_lettered: ledger.dead_lettered,
        }
    }
}

impl DeadLetters {
    fn new(total: u64, kept: &[DeadLetter]) -> Self {
        let mut reasons = BTreeMap::new();
        for letter in kept {
            *reasons.entry(letter.reason.to_string()).or_default() += 1;
        }
        Self { total, reasons }
    }
}
