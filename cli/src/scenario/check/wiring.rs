//! Checking `[[channel]]` and `[[send]]`: who sends to whom.

use hopwise_core::fleet::KernelSpec;
use hopwise_core::message::Message;
use hopwise_core::program::Port;
use toml::Spanned;

use super::Problems;
use super::names::Names;
use crate::scenario::document::{ChannelEntry, SendEntry};
use crate::scenario::plan::{Link, LinkEnd, Send};

/// Most messages of one `[[send]]`.
const MOST_SENDS: u64 = 1_000_000_000;

/// Who can be an end of a channel.
pub(super) struct Parties<'a> {
    pub(super) kernel_names: &'a Names,
    pub(super) endpoint_names: &'a Names,
    /// None where a kernel's program is not known: that has been told.
    pub(super) kernels: &'a [Option<KernelSpec>],
}

/// Which ports are meant.
#[derive(Clone, Copy)]
enum Direction {
    In,
    Out,
}

impl Parties<'_> {
    /// Splits `kernel.port` and finds both; a problem where one is not there.
    fn port(
        &self,
        given: &Spanned<String>,
        direction: Direction,
        problems: &mut Problems,
    ) -> Option<(usize, &Port)> {
        let Some((name, port)) = given.get_ref().split_once('.') else {
            problems.add(given, "write KERNEL.PORT, as in ring-0.next");
            return None;
        };
        let Some(index) = self.kernel_names.position(name) else {
            problems.add(given, self.kernel_names.unknown(name));
            return None;
        };
        let program = &self.kernels[index].as_ref()?.program;
        let (ports, word) = match direction {
            Direction::In => (program.in_ports(), "in"),
            Direction::Out => (program.out_ports(), "out"),
        };
        let found = ports.iter().find(|known| known.name == port);
        if found.is_none() {
            let names: Vec<_> = ports.iter().map(|port| port.name.as_str()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let program = program.name();
            let message = format!(
                "kernel `{name}` (program `{program}`) has no {word}-port `{port}`; it has: {names}"
            );
            problems.add(given, message);
        }
        found.map(|port| (index, port))
    }
}

/// The channels.
pub(super) fn channels(
    entries: &[ChannelEntry],
    parties: &Parties<'_>,
    problems: &mut Problems,
) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    for entry in entries {
        let from = parties.port(&entry.from, Direction::Out, problems);
        let to = link_end(entry, from.map(|(_, port)| port), parties, problems);
        let (Some((kernel, port)), Some(to)) = (from, to) else { continue };
        let from = (kernel, port.name.clone());
        if links.iter().any(|link| link.from == from) {
            let message = "this out-port has a channel already; an out-port leads to one receiver";
            problems.add(&entry.from, message);
        }
        links.push(Link { from, to });
    }
    links
}

fn link_end(
    entry: &ChannelEntry,
    from: Option<&Port>,
    parties: &Parties<'_>,
    problems: &mut Problems,
) -> Option<LinkEnd> {
    if !entry.to.get_ref().contains('.') {
        let message = |name: &str| {
            format!("{}; a kernel is written KERNEL.PORT", parties.endpoint_names.unknown(name))
        };
        let name = entry.to.get_ref();
        let found = parties.endpoint_names.position(name).map(LinkEnd::Endpoint);
        if found.is_none() {
            problems.add(&entry.to, message(name));
        }
        return found;
    }
    let (kernel, port) = parties.port(&entry.to, Direction::In, problems)?;
    if let Some(from) = from
        && from.max_message_bytes > port.max_message_bytes
    {
        let (sends, takes) = (from.max_message_bytes, port.max_message_bytes);
        let (out, into) = (entry.from.get_ref(), entry.to.get_ref());
        let message = format!(
            "`{out}` sends up to {sends} bytes, `{into}` takes {takes}; connect a port that takes \
             as much"
        );
        problems.add(&entry.to, message);
    }
    Some(LinkEnd::Kernel(kernel, port.name.clone()))
}

/// What the host sends.
pub(super) fn sends(
    entries: &[SendEntry],
    parties: &Parties<'_>,
    problems: &mut Problems,
) -> Vec<Send> {
    let mut sends = Vec::new();
    for entry in entries {
        let count = problems.number(entry.count.as_ref(), 1, (1, MOST_SENDS));
        let Some((kernel, port)) = parties.port(&entry.to, Direction::In, problems) else {
            continue;
        };
        let (bytes, allowed) = (entry.words.len() * 4, port.max_message_bytes);
        if bytes > allowed as usize {
            let words = entry.words.len();
            let message =
                format!("{words} words are {bytes} bytes; this port allows {allowed} bytes");
            problems.add(&entry.to, message);
        }
        let message = Message::from_words(entry.tag, &entry.words);
        sends.push(Send { to: (kernel, port.name.clone()), message, count });
    }
    sends
}
