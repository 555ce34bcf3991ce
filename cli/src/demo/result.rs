//! The kernels' result: the smoothed image out of their states, and who waits for whom where they
//! did not finish.

use std::fmt;

use hopwise_core::abi::bytes_to_words;
use hopwise_core::fleet::Fleet;
use hopwise_core::id::KernelId;
use hopwise_core::programs::diffuse::Strip;
use serde::Serialize;

use super::Plan;

#[cfg(test)]
mod tests;

/// State words that count the rows received from above and from below.
const ROWS_RECEIVED: [usize; 2] = [2, 3];

/// What the kernels' states hold.
#[derive(Debug, Default)]
pub(crate) struct StripResults {
    /// The whole image with 8 fraction bits; black where a state could not be read.
    pub(crate) pixels: Vec<u32>,
    /// Kernels whose states could not be read, by their place, and why.
    pub(crate) unreadable: Vec<(usize, String)>,
    /// Kernels that have not finished, and for whose rows they wait.
    pub(crate) waiting: Vec<Waiting>,
}

impl StripResults {
    /// Reads all states, one at a time, so that no second copy of the image is held.
    pub(crate) fn read(fleet: &Fleet, kernels: &[KernelId], plan: &Plan) -> Self {
        let mut results = Self::default();
        for (index, (strip, kernel)) in plan.strips.iter().zip(kernels).enumerate() {
            let state = fleet.read_state(kernel).map_err(|error| error.to_string());
            let read = state.and_then(|state| {
                let pixels = strip.raw_pixels(&state).map_err(|error| error.to_string())?;
                let waiting = Waiting::of(strip, &state, plan.settings.iterations())?;
                Ok((pixels, waiting))
            });
            match read {
                Ok((pixels, waiting)) => {
                    results.pixels.extend(pixels);
                    results.waiting.extend(waiting);
                }
                Err(reason) => {
                    let missing = strip.pixel_range().len();
                    results.pixels.extend(std::iter::repeat_n(0, missing));
                    let reason = format!("no result from `{kernel}`: {reason}");
                    results.unreadable.push((index, reason));
                }
            }
        }
        results
    }
}

/// A kernel that can go no further until a row comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Waiting {
    /// The kernel's name.
    pub(crate) kernel: String,
    /// Iterations that it has finished.
    pub(crate) finished: u32,
    /// Iterations that it is to make.
    pub(crate) iterations: u32,
    /// The kernels whose rows it waits for. Empty: it has all, and was stopped.
    pub(crate) on: Vec<String>,
}

impl Waiting {
    fn of(strip: &Strip, state: &[u8], iterations: u32) -> Result<Option<Self>, String> {
        let finished = strip.iteration(state).map_err(|error| error.to_string())?;
        if finished >= iterations {
            return Ok(None);
        }
        let mut header = [0; 4];
        bytes_to_words(&state[..16], &mut header);
        let index = strip.index();
        let above = strip.has_above() && header[ROWS_RECEIVED[0]] <= finished;
        let below = strip.has_below() && header[ROWS_RECEIVED[1]] <= finished;
        let on = [(above, index.wrapping_sub(1)), (below, index + 1)];
        let on = on.into_iter().filter(|(waits, _)| *waits).map(|(_, strip)| name(strip));
        Ok(Some(Self { kernel: name(index), finished, iterations, on: on.collect() }))
    }
}

/// The name of a strip's kernel.
pub(crate) fn name(strip: u32) -> String {
    format!("strip-{strip:02}")
}

impl fmt::Display for Waiting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, finished, iterations, on } = self;
        write!(formatter, "kernel `{kernel}` finished {finished} of {iterations} iterations")?;
        if on.is_empty() {
            Ok(())
        } else {
            write!(formatter, " and waits for a row of {}", on.join(" and of "))
        }
    }
}
