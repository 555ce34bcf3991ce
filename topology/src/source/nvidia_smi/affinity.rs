//! The columns after the matrix of `nvidia-smi topo -m`: threads and NUMA nodes near to a device.

use super::header::{Header, Trailing, gpu_number};
use super::matrix::Row;
use crate::Observations;

/// More NUMA nodes than any machine has; a list of more is none.
const MOST_NUMA_NODES: u32 = 4096;

/// Reads what follows the cells of a row.
pub(super) fn read<C>(
    all: &mut Observations,
    header: &Header,
    column: usize,
    row: &Row<C>,
    line: usize,
) {
    if gpu_number(&header.labels[column]).is_none() {
        return;
    }
    if row.is_damaged && !fits(header, row) {
        return;
    }
    let [cpus, numa] = columns(header, row);
    let name = &header.labels[column];
    if let Some(text) = cpus.filter(|text| text != "N/A") {
        if numbers(&text).is_some() {
            all.nodes[column].cpu_affinity = Some(text);
        } else {
            all.warn(line, format!("the CPU affinity of {name}, `{text}`, is damaged; left out"));
        }
    }
    if let Some(text) = numa.filter(|text| text != "N/A") {
        match numbers(&text) {
            Some(nodes) => all.nodes[column].numa_nodes = nodes,
            None => {
                all.warn(line, format!("the NUMA node of {name}, `{text}`, is damaged; left out"));
            }
        }
    }
}

/// Whether what follows the cells of a damaged row has as many parts as nvidia-smi prints: with
/// tabs, a further one before the last.
fn fits<C>(header: &Header, row: &Row<C>) -> bool {
    let due = header.trailing.len();
    if row.is_tabbed {
        // The affinity may have been written over the last cell, but something is left of it.
        let has_affinity = row.rest.first().is_some_and(|part| part.contains(is_digit));
        let is_divided = due < 3 || row.rest.get(2).is_some_and(String::is_empty);
        return has_affinity && is_divided && row.rest.len() == due + usize::from(due == 3);
    }
    row.rest.len() == due && row.rest.first().is_some_and(|cpus| numbers(cpus).is_some())
}

/// The texts under `CPU Affinity` and `NUMA Affinity`.
///
/// With tabs an empty affinity is seen as such. nvidia-smi puts a further tab after the NUMA
/// nodes, so what follows the first part is taken without the empty ones.
fn columns<C>(header: &Header, row: &Row<C>) -> [Option<String>; 2] {
    let has = |column| header.trailing.contains(&column);
    let present = || row.rest.iter().filter(|part| !part.is_empty());
    if row.is_tabbed {
        let cpus = row.rest.first().filter(|text| has(Trailing::Cpu) && !text.is_empty());
        let numa = row.rest.iter().skip(usize::from(has(Trailing::Cpu)));
        let numa = numa.filter(|text| !text.is_empty()).find(|_| has(Trailing::Numa));
        return [cpus.cloned(), numa.cloned()];
    }
    let parts: Vec<&String> = present().collect();
    let due = header.trailing.len();
    match header.trailing[..] {
        _ if parts.len() == due => {
            let of = |column| {
                let at = header.trailing.iter().position(|&other| other == column)?;
                parts.get(at).map(|text| (*text).clone())
            };
            [of(Trailing::Cpu), of(Trailing::Numa)]
        }
        // The NUMA ID of the GPU's own memory is always printed, so the affinity is what is empty;
        // unless it is glued to the next.
        [Trailing::Cpu, Trailing::Numa, Trailing::GpuNuma]
            if parts.len() == 2 && is_number(parts[0]) && parts[1] == "N/A" =>
        {
            [None, Some(parts[0].clone())]
        }
        _ => [None, None],
    }
}

/// The numbers of a list as `0-3,8`, in ascending order; `None` if it is no such list.
fn numbers(text: &str) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if !is_number(first) || !is_number(last) {
            return None;
        }
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= 1 << 20 {
            return None;
        }
        all.extend((first..=last).take(MOST_NUMA_NODES as usize));
    }
    all.sort_unstable();
    all.dedup();
    Some(all)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

const fn is_digit(letter: char) -> bool {
    letter.is_ascii_digit()
}
