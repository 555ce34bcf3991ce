//! The tree that `lspci -t` draws, read by its columns.
//!
//! ```text
//! -+-[0000:00]-+-00.0  name
//!  |           \-01.1-[01-03]--+-00.0
//!  |                           \-00.1
//!  \-[0000:20]---00.0
//! ```
//!
//! A `+` opens a branch in its column; lines below go on with it by a `+` or, the last one, by a
//! `\` in that column. On the left of that, each branch that goes on shows as a `|`.

use std::collections::BTreeMap;

use super::token::{self, Buses, Token};
use crate::Observations;

/// A bus, with what leads to it.
#[derive(Clone, Copy)]
pub(super) struct Bus {
    pub(super) domain: u32,
    pub(super) number: u8,
    /// The highest bus somewhere below.
    pub(super) last: u8,
    pub(super) above: Above,
    pub(super) line: usize,
}

/// What a bus hangs on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Above {
    HostBridge,
    /// Position of the function that is the bridge.
    Bridge(usize),
    /// A bridge of which the address is unknown.
    Unknown,
}

/// A function of a device.
pub(super) struct Function<'a> {
    /// Position of its bus.
    pub(super) bus: usize,
    pub(super) device: u8,
    pub(super) function: u8,
    pub(super) is_bridge: bool,
    /// Its name; empty where lspci was not asked for it.
    pub(super) name: &'a str,
}

/// What is drawn.
#[derive(Default)]
pub(super) struct Drawing<'a> {
    pub(super) buses: Vec<Bus>,
    pub(super) functions: Vec<Function<'a>>,
    /// Branches that go on, by column.
    open: BTreeMap<usize, Branch>,
    /// How much further right the lines stand than the first one shows; less than zero if left.
    shift: isize,
    /// Whether no line went on with the tree yet.
    is_at_start: bool,
}

/// What hangs on a branch.
#[derive(Clone, Copy)]
enum Context {
    /// Root buses.
    Forest,
    /// Devices of a bus, by its position.
    Bus(usize),
    /// Devices of a bus in this domain, of unknown number.
    UnknownBus(u32),
}

#[derive(Clone, Copy)]
struct Branch {
    context: Context,
    /// Device and function that came last. They rise.
    last: Option<(u8, u8)>,
}

/// What is known of the device that a line goes on with.
#[derive(Clone, Copy, Default)]
struct Awaited {
    /// Column of its branch, if that goes on behind it.
    branch: Option<usize>,
    /// Device and function before it in its branch.
    last: Option<(u8, u8)>,
}

/// What was read last in a line.
#[derive(Clone, Copy)]
enum State {
    /// What follows hangs on this.
    Below(Context),
    /// A function, by its position if it has an address, and its domain.
    Device(Option<usize>, u32),
    /// The same with a dash behind it: a bridge.
    Bridge(Option<usize>, u32),
}

const UNREADABLE: &str = "what is drawn in this line is not readable from some place on";

impl<'a> Drawing<'a> {
    /// Reads lines with their numbers.
    pub(super) fn of(lines: &[(usize, &'a str)], observed: &mut Observations) -> Self {
        let mut this = Self::default();
        for &(number, line) in lines {
            let line = token::without_quote_marks(line).trim_end();
            if let Err(reason) = this.take(line, number) {
                observed.warn(number, reason);
            }
        }
        this
    }

    /// Reads a line; an error says what of it is left out.
    fn take(&mut self, line: &'a str, number: usize) -> Result<(), &'static str> {
        let column = line.bytes().take_while(|byte| matches!(byte, b' ' | b'|')).count();
        let rest = &line[column..];
        if token::starts_tree(rest) {
            self.start();
            return self.follow(line, column + 1, Context::Forest, Awaited::default(), number);
        }
        if let Some((domain, bus, length)) = token::start_in_the_middle(rest) {
            self.start();
            let above = Above::Unknown;
            let context = self.add_bus(Bus { domain, number: bus, last: bus, above, line: number });
            return self.follow(line, column + length, context, Awaited::default(), number);
        }
        // Frames of tables in other output have more dashes.
        match rest.as_bytes() {
            [b'+' | b'\\', b'-', b'-' | b'=', ..] => Ok(()),
            [branch @ (b'+' | b'\\'), b'-', ..] => {
                self.go_on(line, column, *branch == b'\\', number)
            }
            _ => Ok(()),
        }
    }

    fn start(&mut self) {
        self.open.clear();
        self.shift = 0;
        self.is_at_start = true;
    }

    /// Goes on with an open branch.
    fn go_on(
        &mut self,
        line: &'a str,
        column: usize,
        is_last: bool,
        number: usize,
    ) -> Result<(), &'static str> {
        if std::mem::take(&mut self.is_at_start) {
            self.shift = self.shift_of(line, column);
        }
        let at = column.saturating_add_signed(-self.shift);
        // What is further right has ended, whatever this line is.
        self.open.split_off(&(at + 1));
        let branch = self.open.get(&at).copied();
        let branch = branch.filter(|_| self.bars_fit(line, column, self.shift));
        let Some(branch) = branch else {
            self.open.remove(&at);
            return Err("this line does not fit to the tree above; it is left out");
        };
        if is_last {
            self.open.remove(&at);
        }
        let awaited = Awaited { branch: (!is_last).then_some(at), last: branch.last };
        self.follow(line, column + 2, branch.context, awaited, number)
    }

    /// Pasting may cost the first line its white space, or all others the space that they start
    /// with.
    fn shift_of(&self, line: &str, column: usize) -> isize {
        let is_bus = line.get(column + 2..).is_some_and(|rest| rest.starts_with('['));
        let fits = |(&open, branch): (&usize, &Branch)| {
            let shift = column.wrapping_sub(open).cast_signed();
            let is_alike = is_bus || !matches!(branch.context, Context::Forest);
            (is_alike && self.bars_fit(line, column, shift)).then_some(shift)
        };
        let as_drawn = self.open.get_key_value(&column).and_then(fits);
        as_drawn.or_else(|| self.open.iter().rev().find_map(fits)).unwrap_or(0)
    }

    /// Whether the `|` before a column are those of the open branches before it.
    fn bars_fit(&self, line: &str, column: usize, shift: isize) -> bool {
        let bars = line.bytes().take(column).enumerate().filter(|&(_, byte)| byte == b'|');
        let open = self.open.keys().filter_map(|&at| at.checked_add_signed(shift));
        bars.map(|(at, _)| at).eq(open.take_while(|&at| at < column))
    }

    /// Reads what is drawn in a line from a position on.
    fn follow(
        &mut self,
        line: &'a str,
        mut at: usize,
        context: Context,
        mut awaited: Awaited,
        number: usize,
    ) -> Result<(), &'static str> {
        let mut state = State::Below(context);
        loop {
            let (token, next) = token::next(line, at);
            state = match (state, token) {
                (State::Below(_) | State::Device(..), Token::End) => return Ok(()),
                (State::Below(context), Token::Dash) => State::Below(context),
                (State::Below(context), Token::Branch) => {
                    let column = at.saturating_add_signed(-self.shift);
                    self.open.insert(column, Branch { context, last: None });
                    awaited = Awaited { branch: Some(column), last: None };
                    State::Below(context)
                }
                (State::Below(context), Token::Buses(buses)) => {
                    awaited = Awaited::default();
                    State::Below(self.bus_of_branch(context, buses, number).ok_or(UNREADABLE)?)
                }
                (State::Below(context), Token::Device(device, function)) => {
                    self.expect((device, function), std::mem::take(&mut awaited))?;
                    self.device(context, device, function).ok_or(UNREADABLE)?
                }
                (State::Device(function, _), Token::Name(name)) => {
                    if let Some(function) = function {
                        self.functions[function].name = name;
                    }
                    return Ok(());
                }
                (State::Device(function, domain), Token::Dash) => {
                    if let Some(function) = function {
                        self.functions[function].is_bridge = true;
                    }
                    State::Bridge(function, domain)
                }
                (State::Bridge(function, domain), Token::Buses(buses)) => {
                    State::Below(self.bus_of_bridge(function, domain, buses, number))
                }
                // A bridge that is not set up has no bus.
                (State::Bridge(_, domain), _) => {
                    state = State::Below(Context::UnknownBus(domain));
                    continue;
                }
                (State::Device(Some(function), _), _) => {
                    // What it is cannot be told, so it is not taken for an endpoint.
                    self.functions[function].is_bridge = true;
                    return Err(UNREADABLE);
                }
                _ => return Err(UNREADABLE),
            };
            at = next;
        }
    }

    /// Checks that a device comes after the one before it.
    fn expect(&mut self, place: (u8, u8), awaited: Awaited) -> Result<(), &'static str> {
        if awaited.last.is_some_and(|last| last >= place) {
            return Err("the device of this line does not come after the one before it; \
                        the line is left out");
        }
        if let Some(branch) = awaited.branch.and_then(|column| self.open.get_mut(&column)) {
            branch.last = Some(place);
        }
        Ok(())
    }

    fn device(&mut self, context: Context, device: u8, function: u8) -> Option<State> {
        match context {
            Context::Forest => None,
            Context::UnknownBus(domain) => Some(State::Device(None, domain)),
            Context::Bus(bus) => {
                let (is_bridge, name) = (false, "");
                self.functions.push(Function { bus, device, function, is_bridge, name });
                Some(State::Device(Some(self.functions.len() - 1), self.buses[bus].domain))
            }
        }
    }

    /// The bus right behind a bridge.
    fn bus_of_bridge(
        &mut self,
        function: Option<usize>,
        domain: u32,
        buses: Buses,
        line: usize,
    ) -> Context {
        if buses.first == 0 {
            return Context::UnknownBus(domain);
        }
        let domain = buses.domain.unwrap_or(domain);
        let last = buses.last.unwrap_or(buses.first);
        let above = function.map_or(Above::Unknown, Above::Bridge);
        self.add_bus(Bus { domain, number: buses.first, last, above, line })
    }

    /// A bus that begins a branch: a root bus, or one of several behind one bridge.
    fn bus_of_branch(&mut self, context: Context, buses: Buses, line: usize) -> Option<Context> {
        let number = buses.first;
        let bus = match context {
            Context::Forest => {
                let domain = buses.domain.unwrap_or(0);
                Bus { domain, number, last: u8::MAX, above: Above::HostBridge, line }
            }
            Context::Bus(bus) => {
                let Bus { domain, number: known, above, .. } = self.buses[bus];
                if buses.domain.is_none_or(|stated| stated == domain) && number == known {
                    return Some(context);
                }
                let above = if above == Above::HostBridge { Above::Unknown } else { above };
                Bus { domain: buses.domain?, number, last: number, above, line }
            }
            Context::UnknownBus(_) => {
                let (domain, above) = (buses.domain?, Above::Unknown);
                Bus { domain, number, last: number, above, line }
            }
        };
        buses.last.is_none().then(|| self.add_bus(bus))
    }

    fn add_bus(&mut self, bus: Bus) -> Context {
        self.buses.push(bus);
        Context::Bus(self.buses.len() - 1)
    }
}
