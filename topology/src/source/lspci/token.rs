//! The parts of a line of the tree.

/// Columns of the drawing, at most: lspci has room for 1024 bytes.
const MOST_COLUMNS: usize = 1024;

/// A part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// `-`
    Dash,
    /// `+-`: a branch begins here.
    Branch,
    /// `[0000:00]`, `[01]`, `[01-05]`
    Buses(Buses),
    /// `01.0`
    Device(u8, u8),
    /// Spaces and a name.
    Name(&'a str),
    /// The end of the line.
    End,
    Unreadable,
}

/// Buses in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Buses {
    pub(super) domain: Option<u32>,
    pub(super) first: u8,
    /// The last of a range.
    pub(super) last: Option<u8>,
}

/// The token at a position of a line, and the position after it.
pub(super) fn next(line: &str, at: usize) -> (Token<'_>, usize) {
    let Some(rest) = line.get(at..) else { return (Token::Unreadable, at) };
    if rest.is_empty() {
        return (Token::End, at);
    }
    if rest.starts_with("+-") && at < MOST_COLUMNS {
        return (Token::Branch, at + 2);
    }
    if rest.starts_with('-') {
        return (Token::Dash, at + 1);
    }
    if rest.starts_with(' ') {
        // People write what they know behind names.
        let name = rest.trim().split("  #").next().unwrap_or("").trim_end();
        return (Token::Name(name), line.len());
    }
    if let Some((buses, length)) = buses(rest) {
        return (Token::Buses(buses), at + length);
    }
    match device(rest) {
        Some((device, function)) => (Token::Device(device, function), at + DEVICE_LENGTH),
        None => (Token::Unreadable, at),
    }
}

/// Domain and bus with which a tree starts in this line.
pub(super) fn root_bus(line: &str) -> Option<(u32, u8)> {
    let rest = without_quote_marks(line).trim_start();
    if starts_tree(rest) {
        let (_, behind) = rest.split_once('[')?;
        let (buses, _) = buses(&rest[rest.len() - behind.len() - 1..])?;
        return Some((buses.domain.unwrap_or(0), buses.first));
    }
    start_in_the_middle(rest).map(|(domain, bus, _)| (domain, bus))
}

/// Whether a tree starts with this: `-[0000:00]-`, `-+-[0000:00]-`.
pub(super) fn starts_tree(rest: &str) -> bool {
    let buses_at = rest.strip_prefix("-+-").or_else(|| rest.strip_prefix('-')).and_then(buses);
    buses_at.is_some_and(|(buses, _)| buses.last.is_none())
}

/// Domain, bus and the length of both, if the tree is drawn from a bridge in its middle:
/// `0000:3a:00.0-[3b]-`.
pub(super) fn start_in_the_middle(rest: &str) -> Option<(u32, u8, usize)> {
    let (domain, behind) = rest.split_once(':')?;
    let (bus, behind) = behind.split_once(':')?;
    device(behind)?;
    behind.get(DEVICE_LENGTH..)?.strip_prefix("-[")?;
    let length = domain.len() + bus.len() + 2;
    Some((hexadecimal(domain, 4..=8)?, u8::try_from(hexadecimal(bus, 2..=2)?).ok()?, length))
}

/// A line without the marks of a quotation, or tabs before it.
pub(super) fn without_quote_marks(mut line: &str) -> &str {
    while let Some(rest) = line.strip_prefix('>') {
        line = rest.strip_prefix(' ').unwrap_or(rest);
    }
    line.trim_start_matches('\t')
}

fn buses(rest: &str) -> Option<(Buses, usize)> {
    let (inner, _) = rest.strip_prefix('[')?.split_once(']')?;
    let (domain, range) = match inner.split_once(':') {
        Some((domain, range)) => (Some(hexadecimal(domain, 4..=8)?), range),
        None => (None, inner),
    };
    let (first, last) = match range.split_once('-') {
        Some((first, last)) => (first, Some(last)),
        None => (range, None),
    };
    let bus = |text| u8::try_from(hexadecimal(text, 2..=2)?).ok();
    let last = match last {
        Some(last) => Some(bus(last)?),
        None => None,
    };
    Some((Buses { domain, first: bus(first)?, last }, inner.len() + 2))
}

const DEVICE_LENGTH: usize = "00.0".len();

fn device(rest: &str) -> Option<(u8, u8)> {
    let text = rest.get(..DEVICE_LENGTH)?;
    let (device, function) = text.split_once('.')?;
    let device = u8::try_from(hexadecimal(device, 2..=2)?).ok()?;
    let function = u8::try_from(hexadecimal(function, 1..=1)?).ok()?;
    let goes_on = rest[DEVICE_LENGTH..].starts_with(|c: char| c.is_ascii_alphanumeric());
    (device < 32 && function < 8 && !goes_on).then_some((device, function))
}

fn hexadecimal(text: &str, digits: std::ops::RangeInclusive<usize>) -> Option<u32> {
    let is_number =
        digits.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number.then(|| u32::from_str_radix(text, 16).ok())?
}
