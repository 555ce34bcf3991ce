//! `nvidia-smi nvlink -s`: the NVLinks of each GPU, and how fast they are.

use super::complaint::complaint;
use super::header::gpu_number;
use crate::source::text::{Line, lines, without_escapes};
use crate::source::{Format, SourceError};
use crate::{Figure, Node, NodeKind, Observations, Tool};

#[cfg(test)]
mod tests;

/// NVLinks of a GPU, at most, with room for those to come.
const MOST_LINKS: u32 = 64;

/// Whether the text lists links.
pub(in crate::source) fn recognizes(text: &str) -> bool {
    let plain = without_escapes(text);
    let says_none = |line: &str| line.contains(ALL_INACTIVE);
    let mut has_gpu = false;
    plain.lines().any(|line| {
        has_gpu |= gpu_line(line).is_some();
        has_gpu && (matches!(link_line(line), Some(Ok(_))) || says_none(line))
    })
}

/// Reads the links of every GPU.
pub(in crate::source) fn read(text: &str) -> Result<Observations, SourceError> {
    let plain = without_escapes(text);
    let mut reader = Reader { all: Observations::default(), open: None, is_moved: false };
    for line in lines(&plain) {
        reader.take(line);
    }
    reader.close(true);
    if reader.all.nodes.is_empty() {
        let (line, reason) = complaint(text).unwrap_or_else(|| {
            let reason = "no GPU was found; give the whole output of `nvidia-smi nvlink -s`";
            (None, reason.to_owned())
        });
        return Err(SourceError::new(Format::NvidiaSmiNvlink, line, reason));
    }
    reader.doubt_what_was_moved();
    Ok(reader.all)
}

/// What NVML says of a GPU of which no link is up.
const ALL_INACTIVE: &str = "all links are inActive";

/// A GPU whose links are being read.
struct Open {
    node: Node,
    line: usize,
    /// Number and GB/s of each link; `None` for one that is inactive.
    links: Vec<(u32, Option<f64>)>,
    /// Whether NVML says that none is up.
    has_none: bool,
    is_doubtful: bool,
}

struct Reader {
    all: Observations,
    open: Option<Open>,
    /// Whether links are out of order: then one may stand under a GPU that it is not of.
    is_moved: bool,
}

impl Reader {
    fn take(&mut self, line: Line<'_>) {
        let text = line.text.trim();
        if let Some(node) = gpu_line(text) {
            self.close(false);
            self.open(node, line);
            return;
        }
        let Some(open) = &mut self.open else { return };
        match link_line(text) {
            Some(Ok((number, rate))) if !line.is_cut || is_whole(text) => {
                open.links.push((number, rate));
            }
            Some(_) => {
                open.is_doubtful = true;
                self.all.warn(line.number, format!("`{text}` is not a whole link; left out"));
            }
            None if text.contains(ALL_INACTIVE) => open.has_none = true,
            None if is_ellipsis(text) => {
                open.is_doubtful = true;
                let text = "links were left out here, so their number is not known";
                self.all.warn(line.number, text);
            }
            // Another command's output, or a prompt.
            None if !text.is_empty() => self.close(false),
            None => {}
        }
    }

    fn open(&mut self, mut node: Node, line: Line<'_>) {
        let name = node.label(Tool::NvidiaSmi).unwrap_or_default().to_owned();
        let uuid = line.text.split_once("(UUID:").map(|(_, rest)| rest.trim());
        if let Some(uuid) = uuid.and_then(|rest| rest.strip_suffix(')')) {
            if is_uuid(uuid.trim()) {
                node.uuid = Some(uuid.trim().to_owned());
            } else {
                let text = format!("the UUID of {name} is not whole; left out");
                self.all.warn(line.number, text);
            }
        }
        let is_known = |other: &Node| other.label(Tool::NvidiaSmi) == Some(&name);
        if self.all.nodes.iter().any(is_known) {
            self.all.warn(line.number, format!("{name} comes twice; the second is left out"));
            return;
        }
        self.open = Some(Open {
            node,
            line: line.number,
            links: Vec::new(),
            has_none: false,
            is_doubtful: line.is_cut,
        });
    }

    /// Adds the GPU that was being read.
    fn close(&mut self, is_end: bool) {
        let Some(Open { mut node, line, mut links, has_none, mut is_doubtful }) = self.open.take()
        else {
            return;
        };
        let name = node.label(Tool::NvidiaSmi).unwrap_or_default().to_owned();
        self.is_moved |= !links.is_sorted_by_key(|(number, _)| *number);
        self.is_moved |= has_none && links.iter().any(|(_, rate)| rate.is_some());
        links.dedup();
        let numbers_fit = links.iter().zip(0..).all(|((number, _), due)| *number == due);
        if !numbers_fit && !is_doubtful {
            self.all.warn(line, format!("the links of {name} are not numbered from 0 one by one"));
            is_doubtful = true;
        }
        // The last GPU of a cut text has fewer links than the others.
        let most = self.all.nodes.iter().filter_map(|node| node.nvlinks_up).max().unwrap_or(0);
        let up =
            u16::try_from(links.iter().filter(|(_, rate)| rate.is_some()).count()).unwrap_or(0);
        if is_end && up > 0 && up < most && links.len() < usize::from(most) {
            self.all.warn(line, format!("the text may end before the last link of {name}"));
            is_doubtful = true;
        }
        is_doubtful |= links.is_empty() && !has_none;
        node.nvlinks_up = (!is_doubtful).then_some(up);
        let rates: Vec<f64> = links.iter().filter_map(|(_, rate)| *rate).collect();
        let lowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
        if rates.iter().any(|&rate| rate > lowest) {
            let text = format!("the links of {name} differ in speed; the lowest is taken for each");
            self.all.warn(line, text);
        }
        node.nvlink_gb_per_s = Figure::reported(lowest, "nvidia-smi nvlink -s").unwrap_or_default();
        self.all.add_node(node);
    }
}

impl Reader {
    /// nvidia-smi lists GPUs and links by rising number.
    fn doubt_what_was_moved(&mut self) {
        let nodes = &mut self.all.nodes;
        let numbers = nodes.iter().filter_map(|node| gpu_number(node.label(Tool::NvidiaSmi)?));
        if numbers.is_sorted() && !self.is_moved {
            return;
        }
        for node in nodes {
            node.nvlinks_up = None;
            node.nvlink_gb_per_s = Figure::unknown();
        }
        let text = "lines are out of order, so nothing is said about which links are whose";
        self.all.warn(None, text);
    }
}

/// A GPU, from `GPU 0: NVIDIA H100 (UUID: GPU-...)`.
fn gpu_line(line: &str) -> Option<Node> {
    let (number, rest) = line.trim().strip_prefix("GPU ")?.split_once(':')?;
    let number: u32 = number.trim().parse().ok()?;
    let mut node = Node::new(NodeKind::Gpu).labelled(Tool::NvidiaSmi, format!("GPU{number}"));
    let model = rest.split("(UUID").next().unwrap_or_default().trim();
    node.model = (!model.is_empty()).then(|| model.to_owned());
    Some(node)
}

/// Number and rate, from `Link 3: 26.562 GB/s`; no rate if it is inactive. An error if it begins
/// like one and is none.
fn link_line(line: &str) -> Option<Result<(u32, Option<f64>), ()>> {
    let rest = line.trim().strip_prefix("Link ")?;
    let read = || {
        let (number, rate) = rest.split_once(':')?;
        let number = number.trim().parse().ok().filter(|&number| number < MOST_LINKS)?;
        let rate = rate.trim();
        if rate == "<inactive>" {
            return Some((number, None));
        }
        let rate: f64 = rate.strip_suffix("GB/s")?.trim().parse().ok()?;
        (rate.is_finite() && rate > 0.0).then_some((number, Some(rate)))
    };
    Some(read().ok_or(()))
}

/// Whether a link's line has its end.
fn is_whole(text: &str) -> bool {
    text.ends_with("GB/s") || text.ends_with('>')
}

fn is_ellipsis(text: &str) -> bool {
    let inner = text.trim_matches(['[', ']', '(', ')', '<', '>', ' ']);
    !inner.is_empty() && inner.chars().all(|letter| letter == '.' || letter == '\u{2026}')
}

/// Whether it is a UUID as NVIDIA writes it, or that of a MIG instance.
fn is_uuid(text: &str) -> bool {
    let digits = text.strip_prefix("GPU-").or_else(|| text.strip_prefix("MIG-"));
    digits.is_some_and(|digits| {
        let lengths = digits.split('-').map(str::len);
        lengths.eq([8, 4, 4, 4, 12])
            && digits.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
    })
}
