//! Bandwidths by rule, as data with their sources.
//!
//! | source | what |
//! |---|---|
//! | NCCL 2.30, `src/graph/topo.h` and `xml.cc` | PCIe, sockets, the slowest NVLink |
//! | RCCL, the same files | Infinity Fabric by chip |
//! | vendor data | NVLink by generation, NVLink-C2C |

use super::NVLINK_LATENCY_US;
use crate::{Figure, Provenance};

/// GB/s of one NVLink in one direction, from generation 1 (vendor data).
const NVLINK_GB_PER_S: [f64; 5] = [20.0, 25.0, 25.0, 25.0, 50.0];

/// NVLinks of a GPU, at most, where they may be slower than in generation 2: P100 and the bridges
/// of sm86 have four.
const MOST_SLOW_NVLINKS: u16 = 4;

/// GB/s of the slowest NVLink, that of sm86, by NCCL.
const SLOWEST_NVLINK_GB_PER_S: f64 = 12.0;

/// GB/s of one Infinity Fabric link by the start of the chip's name, by RCCL.
const XGMI_GB_PER_S: [(&str, f64); 5] =
    [("gfx906", 24.0), ("gfx908", 24.0), ("gfx90a", 36.0), ("gfx94", 48.0), ("gfx95", 48.0)];

/// GB/s of NVLink-C2C in one direction (vendor data: 900 GB/s for both).
const C2C_GB_PER_S: f64 = 450.0;

/// The generation of NVLink of an NVIDIA architecture, `sm90`.
pub(crate) fn nvlink_generation(architecture: &str) -> Option<u8> {
    match architecture.strip_prefix("sm")?.parse().ok()? {
        60 => Some(1),
        70 | 72 => Some(2),
        80 | 86 => Some(3),
        90 => Some(4),
        100 | 103 => Some(5),
        _ => None,
    }
}

/// NVLinks of a generation.
pub(crate) fn nvlink_of_generation(generation: u8, links: u16) -> Figure {
    let per_link = usize::from(generation).checked_sub(1).and_then(|at| NVLINK_GB_PER_S.get(at));
    let rule = format!("vendor data, NVLink {generation} x {links}");
    per_link
        .and_then(|per_link| Figure::estimated(per_link * f64::from(links), rule).ok())
        .unwrap_or_default()
}

/// NVLinks of an unknown generation, on GPUs that have `total` of them: as slow as they can be.
pub(crate) fn nvlink_at_least(links: u16, total: u16) -> Figure {
    let (per_link, rule) = if total > MOST_SLOW_NVLINKS {
        (NVLINK_GB_PER_S[1], format!("vendor data, NVLink of generation 2 or later x {links}"))
    } else {
        let rule = format!("NCCL 2.30, the slowest NVLink (sm86) x {links}");
        (SLOWEST_NVLINK_GB_PER_S, rule)
    };
    Figure::estimated(per_link * f64::from(links), rule).unwrap_or_default()
}

/// Latency of an NVLink hop, or of the half of one that ends at an NVSwitch.
pub(crate) fn nvlink_latency(is_half_a_hop: bool) -> Figure {
    let figure = if is_half_a_hop {
        Figure::estimated(NVLINK_LATENCY_US / 2.0, "NCCL tuning, half an NVLink hop")
    } else {
        Figure::estimated(NVLINK_LATENCY_US, "NCCL tuning, one NVLink hop")
    };
    figure.unwrap_or_default()
}

/// Infinity Fabric links of a chip; of an unknown one, as slow as they can be.
pub(crate) fn xgmi(architecture: Option<&str>, links: u16) -> Figure {
    let chip = architecture
        .and_then(|name| XGMI_GB_PER_S.iter().find(|(start, _)| name.starts_with(start)));
    let (name, per_link) = chip.copied().unwrap_or(("the slowest xGMI", XGMI_GB_PER_S[0].1));
    let rule = format!("RCCL, {name} x {links}");
    Figure::estimated(per_link * f64::from(links), rule).unwrap_or_default()
}

/// NVLink-C2C between a CPU and a GPU.
pub(crate) fn c2c() -> Figure {
    Figure::estimated(C2C_GB_PER_S, "vendor data, NVLink-C2C").unwrap_or_default()
}

/// The link between two CPU sockets. The CPU is written as machine, vendor, family and model
/// separated by spaces, numbers in decimal: `x86_64 GenuineIntel 6 143`.
pub(crate) fn sockets(cpu: Option<&str>) -> Figure {
    let Some(cpu) = cpu else { return Figure::unknown() };
    let words: Vec<&str> = cpu.split_whitespace().collect();
    let model = words.last().and_then(|model| model.parse::<u32>().ok()).unwrap_or(0);
    let has = |word: &str| words.iter().any(|other| other.eq_ignore_ascii_case(word));
    let (name, gb_per_s) = if has("GenuineIntel") {
        match model {
            0xcf.. => ("Emerald Rapids or later", 40.0),
            0x8f.. => ("Sapphire Rapids", 22.0),
            0x55.. => ("Skylake", 10.0),
            _ => ("Broadwell", 6.0),
        }
    } else if has("AuthenticAMD") {
        ("AMD", 16.0)
    } else if has("arm64") || has("aarch64") {
        ("Arm", 6.0)
    } else if has("ppc64") {
        ("Power9", 32.0)
    } else {
        return Figure::unknown();
    };
    Figure::estimated(gb_per_s, format!("NCCL 2.30, between sockets, {name}")).unwrap_or_default()
}

/// A figure for one link, for several of them.
pub(crate) fn times(one: &Figure, links: u16) -> Figure {
    let Some(value) = one.value() else { return Figure::unknown() };
    let all = value * f64::from(links);
    let figure = match one.provenance() {
        Provenance::Reported { by } => Figure::reported(all, by.clone()),
        Provenance::Measured { unix_seconds } => Figure::measured(all, *unix_seconds),
        Provenance::Estimated { rule } => Figure::estimated(all, rule.clone()),
        Provenance::Unknown => return Figure::unknown(),
    };
    figure.unwrap_or_default()
}
