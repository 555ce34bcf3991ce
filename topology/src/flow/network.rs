//! Maximum flow and minimum cut in a network of capacities, by Dinic's algorithm (Dinitz 1970).

use std::collections::VecDeque;

#[cfg(test)]
mod tests;

/// Nodes and directed arcs with capacities.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    /// By node: its arcs.
    arcs_of: Vec<Vec<usize>>,
    /// Each arc is followed by the one back, whose number differs in the last bit.
    arcs: Vec<Arc>,
    /// By node: its distance from the source over arcs with room; `None` if there is no way.
    levels: Vec<Option<usize>>,
    /// By node: which of its arcs is to be tried next.
    next: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Arc {
    to: usize,
    room: f64,
}

impl Network {
    /// A network without arcs.
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            arcs_of: vec![Vec::new(); nodes],
            arcs: Vec::new(),
            levels: vec![None; nodes],
            next: vec![0; nodes],
        }
    }

    /// Adds a node and returns its number.
    pub(crate) fn add_node(&mut self) -> usize {
        self.arcs_of.push(Vec::new());
        self.levels.push(None);
        self.next.push(0);
        self.arcs_of.len() - 1
    }

    /// Adds an arc and returns its number.
    pub(crate) fn add_arc(&mut self, from: usize, to: usize, capacity: f64) -> usize {
        let id = self.arcs.len();
        for (id, (at, to, room)) in (id..).zip([(from, to, capacity), (to, from, 0.0)]) {
            self.arcs_of[at].push(id);
            self.arcs.push(Arc { to, room });
        }
        id
    }

    /// Empties an arc and gives it another capacity.
    pub(crate) fn set_capacity(&mut self, arc: usize, capacity: f64) {
        self.arcs[arc].room = capacity;
        self.arcs[arc ^ 1].room = 0.0;
    }

    /// Fills the network as far as it goes, and returns what flows in addition to what flowed
    /// before. Source and sink differ.
    ///
    /// Ends on any capacities, rounding included: each way fills one of its arcs, and the distance
    /// of the sink grows with every level.
    pub(crate) fn max_flow(&mut self, source: usize, sink: usize) -> f64 {
        let mut flow = 0.0;
        while self.find_levels(source, sink) {
            self.next.fill(0);
            flow += self.fill_level(source, sink);
        }
        flow
    }

    /// After [`max_flow`](Self::max_flow): whether a node is on the source's side of a minimum cut.
    pub(crate) fn is_on_source_side(&self, node: usize) -> bool {
        self.levels[node].is_some()
    }

    /// Whether the sink can be reached.
    fn find_levels(&mut self, source: usize, sink: usize) -> bool {
        self.levels.fill(None);
        self.levels[source] = Some(0);
        let mut queue = VecDeque::from([(source, 0)]);
        while let Some((node, level)) = queue.pop_front() {
            for &arc in &self.arcs_of[node] {
                let Arc { to, room } = self.arcs[arc];
                if room > 0.0 && self.levels[to].is_none() {
                    self.levels[to] = Some(level + 1);
                    queue.push_back((to, level + 1));
                }
            }
        }
        self.levels[sink].is_some()
    }

    /// Sends what goes over ways on which every arc leads one level on.
    fn fill_level(&mut self, source: usize, sink: usize) -> f64 {
        let mut flow = 0.0;
        let mut way: Vec<usize> = Vec::new();
        let mut node = source;
        loop {
            if node == sink {
                flow += self.send(&way);
                way.clear();
                node = source;
            } else if let Some(arc) = self.arc_onward(node) {
                way.push(arc);
                node = self.arcs[arc].to;
            } else if let Some(arc) = way.pop() {
                // A dead end: its predecessor tries the next arc.
                node = self.arcs[arc ^ 1].to;
                self.next[node] += 1;
            } else {
                return flow;
            }
        }
    }

    /// The first untried arc from a node that has room and leads one level on.
    fn arc_onward(&mut self, node: usize) -> Option<usize> {
        let onward = self.levels[node].map(|level| level + 1);
        while let Some(&arc) = self.arcs_of[node].get(self.next[node]) {
            let Arc { to, room } = self.arcs[arc];
            if room > 0.0 && self.levels[to] == onward {
                return Some(arc);
            }
            self.next[node] += 1;
        }
        None
    }

    /// Fills the narrowest arc of a way.
    fn send(&mut self, way: &[usize]) -> f64 {
        let room = way.iter().map(|&arc| self.arcs[arc].room).fold(f64::INFINITY, f64::min);
        for &arc in way {
            self.arcs[arc].room -= room;
            self.arcs[arc ^ 1].room += room;
        }
        room
    }
}
