//! Checking `[[kernel]]`.

use std::sync::Arc;

use hopwise_core::abi::words_to_bytes;
use hopwise_core::coordinator::LaunchOptions;
use hopwise_core::fleet::KernelSpec;
use hopwise_core::program::Program;
use hopwise_core::programs;
use toml::Spanned;

use super::{DEFAULT_CAPACITY, Problems, devices};
use crate::device_list::Wanted;
use crate::misbehave;
use crate::scenario::document::KernelEntry;

/// A kernel for each entry; none where its program is not known.
pub(super) fn check(
    entries: &[KernelEntry],
    devices: &[Wanted],
    problems: &mut Problems,
) -> Vec<Option<KernelSpec>> {
    entries.iter().map(|entry| kernel(entry, devices, problems)).collect()
}

fn kernel(entry: &KernelEntry, devices: &[Wanted], problems: &mut Problems) -> Option<KernelSpec> {
    let device =
        entry.device.as_ref().and_then(|given| devices::index(given, devices.len(), problems));
    let mailbox = problems.count(entry.mailbox.as_ref(), DEFAULT_CAPACITY, (1, 1 << 20));
    let state = state(entry, largest_memory(devices, device), problems);
    let program = program(&entry.program, problems)?;
    check_version(entry, &program, problems);
    check_parameters(entry, &program, problems);
    let parameters = entry.parameters.as_ref().map(|given| given.get_ref().clone());
    let options = LaunchOptions::new().with_priority(entry.priority).with_preferred_devices(device);
    let spec = KernelSpec::new(entry.name.get_ref(), program, 0)
        .with_state(state)
        .with_parameters(parameters.unwrap_or_default())
        .with_mailbox_capacity(mailbox)
        .with_options(options);
    Some(spec)
}

fn largest_memory(devices: &[Wanted], device: Option<usize>) -> u64 {
    match device {
        Some(index) => devices[index].largest_memory_bytes(),
        None => devices.iter().map(Wanted::largest_memory_bytes).max().unwrap_or(0),
    }
}

fn program(given: &Spanned<String>, problems: &mut Problems) -> Option<Arc<Program>> {
    let name = given.get_ref();
    let found = misbehave::by_name(name).map_or_else(|| programs::by_name(name), Ok);
    match found {
        Ok(program) => Some(program),
        Err(error) => {
            problems.add(given, format!("{error}, {}", misbehave::NAMES.join(", ")));
            None
        }
    }
}

fn check_version(entry: &KernelEntry, program: &Program, problems: &mut Problems) {
    if let Some(given) = &entry.version
        && *given.get_ref() != program.version()
    {
        let (name, version) = (program.name(), program.version());
        problems.add(given, format!("program `{name}` has version {version} here; write that"));
    }
}

fn check_parameters(entry: &KernelEntry, program: &Program, problems: &mut Problems) {
    let allowed = program.parameter_words() as usize;
    if let Some(given) = &entry.parameters
        && given.get_ref().len() > allowed
    {
        let (name, count) = (program.name(), given.get_ref().len());
        let message = format!("{count} parameters; program `{name}` takes at most {allowed}");
        problems.add(given, message);
    }
}

/// The bytes of the initial state. Nothing is allocated for a state that no device holds.
fn state(entry: &KernelEntry, memory_bytes: u64, problems: &mut Problems) -> Vec<u8> {
    let (name, words) = match (&entry.state, &entry.state_words) {
        (Some(given), None) if !given.get_ref().is_empty() => {
            (given.span(), given.get_ref().len() as u64)
        }
        (None, Some(given)) if *given.get_ref() > 0 => (given.span(), *given.get_ref()),
        (Some(_), Some(given)) => {
            problems.add(given, "`state` says how long the state is; leave `state_words` out");
            return Vec::new();
        }
        _ => {
            let message = "a kernel needs a state: give `state_words = N` with N from 1, or its \
                           words as `state = [...]`";
            problems.add(&entry.name, message);
            return Vec::new();
        }
    };
    let place = Spanned::new(name, ());
    let bytes = words.checked_mul(4).filter(|bytes| *bytes <= memory_bytes);
    let mut state = Vec::new();
    let length = bytes.and_then(|bytes| usize::try_from(bytes).ok());
    match length {
        Some(length) if state.try_reserve_exact(length).is_ok() => state.resize(length, 0),
        _ => problems.add(
            &place,
            format!("a state of {words} words does not fit a device with {memory_bytes} bytes"),
        ),
    }
    if let Some(given) = &entry.state
        && !state.is_empty()
    {
        words_to_bytes(given.get_ref(), &mut state);
    }
    state
}
