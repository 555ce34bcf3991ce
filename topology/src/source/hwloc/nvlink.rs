//! How many NVLinks a bandwidth is made of.

use crate::{Node, NodeKind};

/// A generation of NVLink: MB/s of a link in one direction, links of a GPU at most (vendor data),
/// and words in the names of its GPUs.
struct Generation {
    mb_per_s: u64,
    most_links: u16,
    models: &'static [&'static str],
}

const GENERATIONS: [Generation; 5] = [
    Generation { mb_per_s: 20_000, most_links: 4, models: &["P100"] },
    Generation {
        mb_per_s: 25_000,
        most_links: 6,
        models: &["V100", "V100S", "GV100", "2080", "RTX5000", "RTX6000", "RTX8000", "TITAN"],
    },
    Generation {
        mb_per_s: 25_000,
        most_links: 12,
        models: &["A100", "A800", "A30", "A40", "A6000", "A5500", "A5000", "A4500", "3090"],
    },
    Generation {
        mb_per_s: 25_000,
        most_links: 18,
        models: &["H100", "H200", "H800", "H20", "GH200"],
    },
    Generation {
        mb_per_s: 50_000,
        most_links: 18,
        models: &["B100", "B200", "B300", "GB200", "GB300"],
    },
];

/// Generation and number of the links between two nodes, if the bandwidth is that of a number of
/// links that the GPUs among them can have.
pub(super) fn count(ends: [&Node; 2], mb_per_s: u64) -> Option<(u8, u16)> {
    let mut found = ends.into_iter().filter(|node| node.kind == NodeKind::Gpu).map(generation);
    let at = found.next()??;
    if found.any(|other| other != Some(at)) {
        return None;
    }
    let Generation { mb_per_s: per_link, most_links, .. } = GENERATIONS[at];
    let links = u16::try_from(mb_per_s / per_link).ok()?;
    let fits = mb_per_s.is_multiple_of(per_link) && (1..=most_links).contains(&links);
    fits.then_some((u8::try_from(at + 1).ok()?, links))
}

/// Position of the generation among all.
fn generation(gpu: &Node) -> Option<usize> {
    let name = gpu.model.as_deref()?;
    // "Quadro RTX 6000" is of another generation than "RTX 6000 Ada", which has no NVLink.
    let name = name.replace("Quadro RTX ", "RTX");
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words.find_map(|word| {
        let is_one = |generation: &Generation| generation.models.contains(&word);
        GENERATIONS.iter().position(is_one)
    })
}
