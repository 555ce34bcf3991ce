//! `hopwise route`: the best way for a message, and why.

use hopwise_topology::{
    GpuTopology, InterconnectType, Machine, PciAddress, Quality, Route, RouteKind, RouteTable,
};
use serde::Serialize;

use crate::args::RouteArguments;
use crate::failure::Failure;
use crate::{machine, output};

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    /// Numbers of the GPUs that the bytes pass, both ends included.
    path: Vec<usize>,
    names: Vec<String>,
    kind: String,
    /// The class of the direct link, of all links joined by `+` over a relay; through the host the
    /// class of the pair, or `HOST` where that is not known.
    class: String,
    gb_per_s: Option<f64>,
    latency_us: Option<f64>,
    time_us: Option<f64>,
    bytes: u64,
    quality: String,
    reason: String,
    alternatives: Vec<Alternative>,
    /// Ways that share no link with the chosen one nor with each other, for use when links fail.
    failover: Vec<Alternative>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct Alternative {
    path: Vec<usize>,
    kind: String,
    class: String,
    gb_per_s: Option<f64>,
    latency_us: Option<f64>,
    time_us: Option<f64>,
}

/// Finds the route and prints it with its alternatives.
pub(crate) fn run(arguments: &RouteArguments) -> Result<(), Failure> {
    let described = machine::read(std::slice::from_ref(&arguments.file), None)?;
    let machine = &described.machine;
    let (from, to) = (gpu(machine, &arguments.from)?, gpu(machine, &arguments.to)?);
    let topology = machine.topology();
    let (chosen, others) = choose(&topology, from, to, arguments.bytes)
        .ok_or_else(|| Failure::failed("the machine has no such GPUs"))?;
    let table = RouteTable::build(&topology, &|_| true);
    let failover = failover(&table, from, to, arguments.bytes, &chosen);
    let case =
        Case { failover, machine, topology: &topology, bytes: arguments.bytes, chosen, others };
    if arguments.json {
        return output::print_json(&case.report(described.warnings()));
    }
    for warning in described.warnings() {
        output::warn(&warning);
    }
    output::print(&case.text())
}

/// The best route with one relay at most, or with as many as it takes if one does not do; and the
/// routes that were not chosen, best first, the way through the host among them.
///
/// Each relay spends the links of a GPU that takes no part. Ways over several are alternatives.
fn choose(
    topology: &GpuTopology,
    from: usize,
    to: usize,
    bytes: u64,
) -> Option<(Route, Vec<Route>)> {
    let near = RouteTable::build_within(topology, &|_| true, 1);
    let far = RouteTable::build(topology, &|_| true);
    let mut chosen = near.route(from, to, bytes)?.to_route();
    let any = far.route(from, to, bytes)?.to_route();
    if chosen.kind == RouteKind::HostMediated {
        chosen = any;
    }
    let tables = [&near, &far].into_iter().flat_map(|table| table.routes(from, to));
    let all = tables.chain(far.host_route(from, to)).map(|route| route.to_route());
    let mut others: Vec<Route> = all.filter(|route| *route != chosen).collect();
    others.sort_by(|a, b| a.compare(b, bytes).then_with(|| a.path.cmp(&b.path)));
    others.dedup();
    Some((chosen, others))
}

/// At most three routes over other links than the chosen one's, the way through the host last.
fn failover(table: &RouteTable, from: usize, to: usize, bytes: u64, chosen: &Route) -> Vec<Route> {
    if chosen.kind == RouteKind::SameDevice {
        return Vec::new();
    }
    let used = chosen.links();
    let shares = |route: &Route| {
        route.links().iter().any(|(a, b)| used.contains(&(*a, *b)) || used.contains(&(*b, *a)))
    };
    let routes = table.disjoint_routes(from, to, bytes, 4).into_iter();
    routes.filter(|route| route != chosen && !shares(route)).take(3).collect()
}

/// A question and its answer.
struct Case<'a> {
    machine: &'a Machine,
    topology: &'a GpuTopology,
    bytes: u64,
    chosen: Route,
    others: Vec<Route>,
    failover: Vec<Route>,
}

impl Case<'_> {
    fn name(&self, device: usize) -> String {
        self.machine.name(self.machine.gpus()[device])
    }

    fn class(&self, route: &Route) -> String {
        match route.kind {
            RouteKind::SameDevice => "X".to_owned(),
            RouteKind::HostMediated => self.host_class(route),
            RouteKind::Direct | RouteKind::MultiHop => {
                let hops = route.path.windows(2).map(|hop| {
                    let link = self.topology.connection(hop[0], hop[1]);
                    link.map_or_else(|| "?".to_owned(), |link| link.kind.class_name())
                });
                hops.collect::<Vec<_>>().join("+")
            }
        }
    }

    /// The class of what lies between the two ends on the way through the host; `HOST` where nothing
    /// is known of it.
    fn host_class(&self, route: &Route) -> String {
        let end = |device: Option<&usize>| device.map(|&device| self.machine.gpus()[device]);
        let ends = end(route.path.first()).zip(end(route.path.last()));
        let class = ends.map(|(from, to)| self.machine.class(from, to));
        match class.filter(|class| !class.carries_relays()) {
            None | Some(InterconnectType::Unknown) => "HOST".to_owned(),
            Some(class) => class.class_name(),
        }
    }

    fn report(&self, warnings: Vec<String>) -> Report {
        let chosen = &self.chosen;
        let alternative = |route: &Route| Alternative {
            path: route.path.clone(),
            kind: route.kind.to_string(),
            class: self.class(route),
            gb_per_s: route.bandwidth_gb_per_s,
            latency_us: route.latency_us,
            time_us: route.time_us(self.bytes),
        };
        Report {
            path: chosen.path.clone(),
            names: chosen.path.iter().map(|&device| self.name(device)).collect(),
            kind: chosen.kind.to_string(),
            class: self.class(chosen),
            gb_per_s: chosen.bandwidth_gb_per_s,
            latency_us: chosen.latency_us,
            time_us: chosen.time_us(self.bytes),
            bytes: self.bytes,
            quality: format!("{:?}", chosen.quality).to_lowercase(),
            reason: self.reason(),
            alternatives: self.others.iter().map(alternative).collect(),
            failover: self.failover.iter().map(alternative).collect(),
            warnings,
        }
    }

    fn text(&self) -> String {
        let mut lines = vec![self.line(&self.chosen), format!("why: {}", self.reason())];
        if !self.others.is_empty() {
            lines.push("instead:".to_owned());
            lines.extend(self.others.iter().map(|route| format!("  {}", self.line(route))));
        }
        if !self.failover.is_empty() {
            lines.push("if its links fail:".to_owned());
            lines.extend(self.failover.iter().map(|route| format!("  {}", self.line(route))));
        }
        lines.join("\n")
    }

    /// `GPU0 -> GPU3 -> GPU1, NV2+NV1, ~25 GB/s, ~6.8 us; 1048576 bytes take ~54 us`
    fn line(&self, route: &Route) -> String {
        let names: Vec<_> = route.path.iter().map(|&device| self.name(device)).collect();
        let through = if route.kind == RouteKind::HostMediated { " -> host -> " } else { " -> " };
        let mark = route.quality.max(Quality::Estimated).mark();
        let figure = |value: Option<f64>| {
            value.map_or_else(|| "?".to_owned(), |value| format!("{mark}{}", rounded(value)))
        };
        format!(
            "{}, {}, {} GB/s, {} us; {} bytes take {} us",
            names.join(through),
            self.class(route),
            figure(route.bandwidth_gb_per_s),
            figure(route.latency_us),
            self.bytes,
            figure(route.time_us(self.bytes)),
        )
    }

    fn reason(&self) -> String {
        let bytes = self.bytes;
        let Some(next) = self.others.first() else {
            return match self.chosen.kind {
                RouteKind::SameDevice => "the bytes are there already".to_owned(),
                _ => "there is no other way".to_owned(),
            };
        };
        let next_name = self.class(next);
        match (self.chosen.time_us(bytes), next.time_us(bytes)) {
            (Some(ours), Some(theirs)) if theirs < ours => format!(
                "{} us for {bytes} bytes; {} relays would do in {} us ({next_name}), but each \
                 spends the links of a GPU that takes no part",
                rounded(ours),
                next.relays().len(),
                rounded(theirs)
            ),
            (Some(ours), Some(theirs)) => format!(
                "{} us for {bytes} bytes; the next best ({next_name}) takes {} us",
                rounded(ours),
                rounded(theirs)
            ),
            (Some(ours), None) => format!(
                "{} us for {bytes} bytes; nothing is known of the speed of the next best \
                 ({next_name}), and the unknown is never preferred",
                rounded(ours)
            ),
            (None, _) => format!(
                "no way has known figures, so the one with the fewest links is taken; the next \
                 best is {next_name}"
            ),
        }
    }
}

fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// The number of a GPU that is given by number, name, PCI address or UUID.
fn gpu(machine: &Machine, text: &str) -> Result<usize, Failure> {
    let gpus = machine.gpus();
    let address: Option<PciAddress> = text.parse().ok();
    let is_it = |&position: &usize| {
        let node = &machine.nodes()[position];
        machine.name(position).eq_ignore_ascii_case(text)
            || node.uuid.as_deref().is_some_and(|uuid| uuid.eq_ignore_ascii_case(text))
            || (address.is_some() && node.pci == address)
    };
    let by_number = text.parse().ok().filter(|&number| number < gpus.len());
    by_number.or_else(|| gpus.iter().position(is_it)).ok_or_else(|| {
        let names: Vec<_> = gpus.iter().map(|&position| machine.name(position)).collect();
        Failure::usage(format!(
            "the machine has no GPU {text}; it has {}",
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        ))
    })
}
