//! Failures on demand, and counts.
//!
//! | command | effect |
//! |---|---|
//! | `fail CALL CODE AT [TIMES]` | the call returns the code at its AT-th call from now, TIMES times |
//! | `heal` | no call fails on demand any more |
//! | `sticky D CODE` | every call in the context of device D returns the code until it is reset |
//! | `lose D CODE` | every call for device D returns the code; its memory is overwritten |
//! | `hang D` / `release D` | kernels on device D do not end / end |
//! | `late D` / `release D` | cooperative launches of device D return late / soon |
//! | `hang-copies D` | copies of device D to others do not end |
//! | `corrupt A B` | copies from A to B do nothing and claim success |
//! | `peer A B off` / `on` | whether A can access B |

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use crate::{Code, context, memory, state};

#[derive(Default)]
struct Calls {
    counts: HashMap<String, u64>,
    faults: Vec<Fault>,
}

struct Fault {
    call: String,
    code: Code,
    /// Calls that go well before.
    before: u64,
    times: u64,
}

static CALLS: LazyLock<Mutex<Calls>> = LazyLock::new(|| {
    let mut calls = Calls::default();
    // A child process gets its faults with its environment.
    for command in std::env::var("HOPWISE_STAND_IN_FAULTS").unwrap_or_default().split(';') {
        if let Some(fault) = Fault::read(command) {
            calls.faults.push(fault);
        }
    }
    Mutex::new(calls)
});

/// Counts a call in the current context, and gives the code of a failure that is due.
pub fn called(name: &str) -> Option<Code> {
    called_in(name, context::top())
}

/// The same in the context that is named.
pub fn called_in(name: &str, context: Option<u64>) -> Option<Code> {
    let mut calls = CALLS.lock().expect("counting does not panic");
    match calls.counts.get_mut(name) {
        Some(count) => *count += 1,
        None => {
            calls.counts.insert(name.to_owned(), 1);
        }
    }
    let fault = calls.faults.iter_mut().find(|fault| fault.call == name && fault.times > 0)?;
    if fault.before > 0 {
        fault.before -= 1;
        return None;
    }
    fault.times -= 1;
    let code = fault.code;
    // Some errors are of the context: whoever sees one first, everybody sees it then.
    if let Some(context) = context.filter(|_| is_sticky(code)) {
        context::make_sticky(context, code);
    }
    Some(code)
}

fn is_sticky(code: Code) -> bool {
    matches!(code, 214 | 220 | 226 | 700 | 702 | 710 | 714..=719 | 999)
}

pub fn count(name: &str) -> u64 {
    if name == "busy streams" {
        let state = state::lock();
        return state.streams.values().filter(|stream| !stream.queue.is_idle()).count() as u64;
    }
    let Some(kind) = name.strip_prefix("live ") else {
        return CALLS.lock().expect("counting does not panic").counts.get(name).copied().unwrap_or(0);
    };
    let state = state::lock();
    let is_host = |allocation: &&memory::Allocation| allocation.device.is_none();
    let count = match kind {
        "memory" => state.allocations.values().filter(|one| !is_host(one)).count(),
        "host-memory" => state.allocations.values().filter(is_host).count(),
        "streams" => state.streams.len(),
        "events" => state.events.len(),
        "modules" => state.modules.len(),
        "graphs" => state.graphs.len() + state.executables.len(),
        "contexts" => state.devices.iter().map(|device| device.retained).sum(),
        "peers" => state.enabled_peers.len(),
        other => panic!("the stand-in does not count `{other}`"),
    };
    count as u64
}

pub fn control(command: &str) -> Option<()> {
    let words: Vec<_> = command.split_whitespace().collect();
    let number = |at: usize| words.get(at)?.parse::<usize>().ok();
    let code = |at: usize| words.get(at)?.parse::<Code>().ok();
    match *words.first()? {
        "fail" => CALLS.lock().ok()?.faults.push(Fault::read(command)?),
        "heal" => CALLS.lock().ok()?.faults.clear(),
        "sticky" => state::lock().devices.get_mut(number(1)?)?.sticky = Some(code(2)?),
        "lose" => lose(number(1)?, code(2)?)?,
        "hang" => state::lock().devices.get_mut(number(1)?)?.hangs = true,
        "late" => state::lock().devices.get_mut(number(1)?)?.launches_late = true,
        "hang-copies" => state::lock().devices.get_mut(number(1)?)?.copies_hang = true,
        "crash" => {} // the test does that itself
        "release" => {
            let mut state = state::lock();
            let device = state.devices.get_mut(number(1)?)?;
            (device.hangs, device.launches_late) = (false, false);
        }
        "corrupt" => {
            let pair = (number(1)?, number(2)?);
            state::lock().corrupt.push(pair);
        }
        "peer" => {
            let pair = (number(1)?, number(2)?);
            let mut state = state::lock();
            state.machine.peers.retain(|known| *known != pair);
            if words.get(3) == Some(&"on") {
                state.machine.peers.push(pair);
            }
        }
        _ => return None,
    }
    Some(())
}

fn lose(device: usize, code: Code) -> Option<()> {
    let mut state = state::lock();
    state.devices.get_mut(device)?.lost = Some(code);
    for allocation in state.allocations.values().filter(|one| one.device == Some(device)) {
        allocation.overwrite(0xdb);
    }
    Some(())
}

impl Fault {
    fn read(command: &str) -> Option<Self> {
        let words: Vec<_> = command.split_whitespace().collect();
        let [kind, call, code, at, rest @ ..] = &words[..] else { return None };
        let times = rest.first().map_or(Some(1), |times| times.parse().ok())?;
        let before = at.parse::<u64>().ok()?.checked_sub(1)?;
        (*kind == "fail").then_some(())?;
        Some(Self { call: (*call).to_owned(), code: code.parse().ok()?, before, times })
    }
}
