//! What went wrong with kernels, in a line for each device: all kernels of a lost device share its
//! fate, and the JSON object has each of them.

use std::collections::BTreeMap;

use crate::report::KernelRow;

#[cfg(test)]
mod tests;

/// Most kernels that a line names, and most lines about kernels that wait.
pub(super) const EXAMPLES: usize = 3;

/// A line for the kernels of each device that are lost, one for those that have stopped.
pub(super) fn kernel_failures(kernels: &[KernelRow]) -> Vec<String> {
    let mut groups = BTreeMap::<_, Vec<_>>::new();
    for kernel in kernels.iter().filter(|kernel| kernel.fault.is_some()) {
        groups.entry((kernel.device_at_end, kernel.phase)).or_default().push(kernel);
    }
    groups.into_values().filter_map(|group| group_failure(&group)).collect()
}

/// What is said of kernels of one device in one phase.
fn group_failure(group: &[&KernelRow]) -> Option<String> {
    let [first, _, ..] = group else {
        return group.first()?.failure();
    };
    let count = group.len();
    let device = first.device_at_end.map_or(String::new(), |device| format!(" on device {device}"));
    let state = if first.phase == "lost" { "are lost" } else { "have stopped" };
    let cause = cause(group)?;
    let last = last_states(group);
    let names: Vec<_> = group.iter().take(EXAMPLES).map(|kernel| kernel.name.as_str()).collect();
    let names = names.join(", ");
    let names = if count > EXAMPLES { format!("{names}, ... (--json has all)") } else { names };
    Some(format!("{count} kernels{device} {state}: {cause}{last}: {names}"))
}

/// The first cause, and how many others there are.
fn cause(group: &[&KernelRow]) -> Option<String> {
    let mut causes: Vec<_> = group.iter().filter_map(|kernel| kernel.fault.as_ref()).collect();
    let first = *causes.first()?;
    causes.sort();
    causes.dedup();
    Some(match causes.len() - 1 {
        0 => first.clone(),
        others => format!("{first} (and {others} other causes, see --json)"),
    })
}

/// The steps that made the last states of lost kernels, and the ages of these states.
fn last_states(group: &[&KernelRow]) -> String {
    let ages = || group.iter().filter_map(|kernel| kernel.since_last_step_ms);
    let steps = || group.iter().map(|kernel| kernel.steps);
    let range = |least: Option<u64>, most: Option<u64>| Some((least?, most?));
    let (Some((youngest, oldest)), Some((least, most))) =
        (range(ages().min(), ages().max()), range(steps().min(), steps().max()))
    else {
        return String::new();
    };
    format!(
        "; their last states are those of steps {least} to {most}, committed {youngest} to {oldest} \
         ms ago"
    )
}
