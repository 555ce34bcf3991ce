//! Batches as CUDA graphs, where that pays: one call starts what else takes a call for each launch
//! and copy.
//!
//! Whether it pays depends on driver, device and batch, so it is measured: each shape of batch runs a
//! few times in either way, and goes on in the one that was quicker. The shape is the sequence of
//! functions; sizes and addresses change from batch to batch, and a graph is updated for them.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::ptr;
use std::time::Duration;

use cudarc::driver::sys;
use hopwise_core::error::DeviceError;

use crate::context::Entered;
use crate::driver::DriverStatus;
use crate::options::GraphUse;
use crate::owned::{Graph, GraphExec, make};
use crate::stream::Stream;

/// Batches that are timed in each way.
const TIMED: u32 = 16;

/// Most shapes that are remembered; what is beyond runs plainly.
const MOST_SHAPES: usize = 64;

/// The functions of a batch's launches, in their order.
pub(crate) type Shape = Vec<usize>;

/// How a batch is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Plain,
    Graph,
}

/// What was measured of one shape of batch. Times are the shortest that were seen from the first
/// call of a batch to its end, in microseconds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct GraphTrial {
    /// Launches of the batch.
    pub launches: usize,
    /// Started call by call; `None` when that was not timed.
    pub plain_us: Option<f64>,
    /// Started as a graph; `None` when that was not timed.
    pub graph_us: Option<f64>,
    /// Whether such batches are started as graphs from now on.
    pub uses_graph: bool,
}

/// The shapes of batches that have been seen.
#[derive(Debug, Default)]
pub(crate) struct Graphs {
    shapes: HashMap<Shape, Trial>,
}

#[derive(Debug)]
struct Trial {
    now: Way,
    timed: u32,
    is_decided: bool,
    plain: Option<Duration>,
    graph: Option<Duration>,
    ready: Option<ReadyGraph>,
}

/// A graph that can be launched.
#[derive(Debug)]
pub(crate) struct ReadyGraph {
    exec: GraphExec,
}

impl Graphs {
    /// How the next batch of this shape is to be started.
    pub(crate) fn way(&mut self, shape: &Shape, wish: GraphUse) -> Way {
        if wish == GraphUse::Never
            || (!self.shapes.contains_key(shape) && self.shapes.len() >= MOST_SHAPES)
        {
            return Way::Plain;
        }
        let is_always = wish == GraphUse::Always;
        let first = if is_always { Way::Graph } else { Way::Plain };
        let new = Trial {
            now: first,
            timed: 0,
            is_decided: is_always,
            plain: None,
            graph: None,
            ready: None,
        };
        self.shapes.entry(shape.clone()).or_insert(new).now
    }

    /// Makes a recorded batch ready: the graph of the last batch of this shape is updated, or made
    /// anew where the driver refuses that.
    pub(crate) fn prepare(
        &mut self,
        entered: &Entered<'_>,
        shape: &Shape,
        graph: Graph,
    ) -> Result<&ReadyGraph, DeviceError> {
        let trial = self.shapes.get_mut(shape).expect("the way of a shape is asked before");
        let kept = match trial.ready.take() {
            Some(ready) if ready.update(entered, &graph)? => Some(ready),
            _ => None,
        };
        let ready = match kept {
            Some(ready) => ready,
            None => ReadyGraph::new(entered, &graph)?,
        };
        Ok(trial.ready.insert(ready))
    }

    /// Notes how long a batch of this shape took, and decides when enough is known.
    pub(crate) fn note(&mut self, shape: &Shape, took: Duration) {
        let Some(trial) = self.shapes.get_mut(shape) else { return };
        let shortest = match trial.now {
            Way::Plain => &mut trial.plain,
            Way::Graph => &mut trial.graph,
        };
        *shortest = Some(shortest.map_or(took, |before| before.min(took)));
        trial.timed += 1;
        if trial.is_decided || trial.timed < TIMED {
            return;
        }
        if trial.now == Way::Plain {
            (trial.now, trial.timed) = (Way::Graph, 0);
        } else {
            trial.is_decided = true;
            if trial.graph >= trial.plain {
                (trial.now, trial.ready) = (Way::Plain, None);
            }
        }
    }

    pub(crate) fn trials(&self) -> Vec<GraphTrial> {
        let micros = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e6);
        let trial = |(shape, trial): (&Shape, &Trial)| GraphTrial {
            launches: shape.len(),
            plain_us: micros(trial.plain),
            graph_us: micros(trial.graph),
            uses_graph: trial.is_decided && trial.now == Way::Graph,
        };
        self.shapes.iter().map(trial).collect()
    }
}

impl ReadyGraph {
    fn new(entered: &Entered<'_>, graph: &Graph) -> Result<Self, DeviceError> {
        let call = "cuGraphInstantiateWithFlags";
        // SAFETY: the graph is valid; `exec` lives until the call returns.
        let exec = make(entered, call, ptr::null_mut(), |driver, exec| unsafe {
            (driver.cuGraphInstantiateWithFlags)(exec, graph.raw(), 0)
        })?;
        Ok(Self { exec })
    }

    /// Takes over sizes and addresses of a graph of the same form. `false` when the driver says that
    /// it is not of the same form.
    fn update(&self, entered: &Entered<'_>, graph: &Graph) -> Result<bool, DeviceError> {
        // What the driver writes is not read: the status says enough.
        let mut result = MaybeUninit::<sys::CUgraphExecUpdateResultInfo>::uninit();
        let status = entered.status(|driver| {
            // SAFETY: both graphs are valid; `result` lives until the call returns.
            unsafe {
                (driver.cuGraphExecUpdate_v2)(self.exec.raw(), graph.raw(), result.as_mut_ptr())
            }
        })?;
        match status {
            DriverStatus::SUCCESS => Ok(true),
            failed if failed.is_fatal() => {
                entered.fail(failed, "cuGraphExecUpdate_v2").map(|()| false)
            }
            _ => Ok(false),
        }
    }

    /// Starts the batch.
    pub(crate) fn launch(&self, entered: &Entered<'_>, stream: &Stream) -> Result<(), DeviceError> {
        entered.call("cuGraphLaunch", |driver| {
            // SAFETY: the graph is ready and not running: a batch waits for its end. What it names
            // is valid, as for the plain way.
            unsafe { (driver.cuGraphLaunch)(self.exec.raw(), stream.raw()) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(graphs: &mut Graphs, wish: GraphUse, plain_us: u64, graph_us: u64) -> Way {
        let shape = vec![1, 2];
        for _ in 0..2 * TIMED {
            let took = match graphs.way(&shape, wish) {
                Way::Plain => plain_us,
                Way::Graph => graph_us,
            };
            graphs.note(&shape, Duration::from_micros(took));
        }
        graphs.way(&shape, wish)
    }

    #[test]
    fn the_quicker_way_is_taken() {
        let mut graphs = Graphs::default();
        assert_eq!(run(&mut graphs, GraphUse::Measured, 20, 10), Way::Graph);
        let [trial] = &graphs.trials()[..] else { panic!("one shape was run") };
        assert_eq!((trial.plain_us, trial.graph_us), (Some(20.0), Some(10.0)));
        assert!(trial.uses_graph);
        assert_eq!(run(&mut Graphs::default(), GraphUse::Measured, 10, 20), Way::Plain);
    }

    #[test]
    fn a_wish_is_followed() {
        assert_eq!(run(&mut Graphs::default(), GraphUse::Always, 10, 20), Way::Graph);
        assert_eq!(run(&mut Graphs::default(), GraphUse::Never, 20, 10), Way::Plain);
    }

    #[test]
    fn shapes_without_end_do_not_fill_the_memory() {
        let mut graphs = Graphs::default();
        for number in 0..2 * MOST_SHAPES {
            graphs.way(&vec![number], GraphUse::Always);
        }
        assert_eq!(graphs.shapes.len(), MOST_SHAPES);
        assert_eq!(graphs.way(&vec![MOST_SHAPES], GraphUse::Always), Way::Plain);
    }
}
