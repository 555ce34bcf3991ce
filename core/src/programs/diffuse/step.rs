//! One step of a strip as a host function.

use crate::abi::inbox::{InboxMessage, InboxView};
use crate::abi::outbox::OutboxWriter;
use crate::error::StepFault;
use crate::program::HostStep;
use crate::programs::{fault, fault_code};

use super::formula::{Coefficients, MAX_PIXEL, diffuse_pixel};
use super::layout::{ANNOUNCED, ITERATION, Layout, Parameters, ROWS_RECEIVED, STEP_WORDS, parity};
use super::strip::Progress;
use super::{FROM_ABOVE, FROM_BELOW, PROGRESS, TO_ABOVE};

const SIDES: [&str; 2] = ["above", "below"];

pub(super) fn step(width: u32, step: &mut HostStep<'_>) -> Result<(), StepFault> {
    let parameters = Parameters::from_words(width, step.parameters)?;
    check_state(&parameters, step.state)?;
    receive(&parameters, step.state, step.inbox)?;
    let finished = parameters.is_ready(step.state);
    if finished {
        smooth(&parameters, step.state);
    }
    commit(&parameters, step.state, &mut step.outbox, finished);
    if parameters.is_ready(step.state) {
        step.outbox.run_again();
    }
    Ok(())
}

fn check_state(parameters: &Parameters, state: &[u32]) -> Result<(), StepFault> {
    let expected = parameters.layout.state_words();
    if state.len() != expected {
        let reason = format!("a strip needs {expected} words of state, this has {}", state.len());
        return Err(fault(fault_code::STATE, reason));
    }
    if !is_header_possible(parameters, state) {
        let reason = format!("the header {:?} is none that a strip writes", &state[..4]);
        return Err(fault(fault_code::STATE, reason));
    }
    // Later images stay in range by the formula's bounds.
    if state[ITERATION] == 0 {
        check_pixels(&state[parameters.layout.image(0)])?;
    }
    Ok(())
}

fn is_header_possible(parameters: &Parameters, state: &[u32]) -> bool {
    let (iteration, iterations) = (state[ITERATION], parameters.iterations);
    let are_rows_possible = |side| {
        let received = state[ROWS_RECEIVED + side];
        if parameters.has_neighbour(side) {
            iteration <= received && received <= iterations && received - iteration <= 2
        } else {
            received == 0
        }
    };
    let is_start = state[ANNOUNCED] == 0 && iteration == 0;
    (is_start || state[ANNOUNCED] == 1) && iteration <= iterations && (0..2).all(are_rows_possible)
}

fn check_pixels(pixels: &[u32]) -> Result<(), StepFault> {
    match pixels.iter().find(|pixel| **pixel > MAX_PIXEL) {
        Some(pixel) => {
            let reason = format!("a pixel of {pixel}, the largest is {MAX_PIXEL}");
            Err(fault(fault_code::PIXEL_RANGE, reason))
        }
        None => Ok(()),
    }
}

/// Checks, counts and stores the rows of the inbox.
fn receive(
    parameters: &Parameters,
    state: &mut [u32],
    inbox: InboxView<'_>,
) -> Result<(), StepFault> {
    for message in inbox.messages() {
        let (side, row) = row_of(parameters, &message)?;
        check_tag(parameters, state, side, message.tag)?;
        check_pixels(row)?;
        state[ROWS_RECEIVED + side] += 1;
        state[parameters.layout.row(side, message.tag)].copy_from_slice(row);
    }
    Ok(())
}

fn row_of<'a>(
    parameters: &Parameters,
    message: &InboxMessage<'a>,
) -> Result<(usize, &'a [u32]), StepFault> {
    let side = match message.in_port {
        FROM_ABOVE => Some(0),
        FROM_BELOW => Some(1),
        _ => None,
    };
    let width = parameters.layout.width;
    let row = message.words.get(..width).filter(|_| message.length_bytes as usize == width * 4);
    side.zip(row).ok_or_else(|| {
        let (bytes, port) = (message.length_bytes, message.in_port);
        let reason = format!("a message of {bytes} bytes on in-port {port} is not a row");
        fault(fault_code::MESSAGE, reason)
    })
}

/// A row must be the next one of its side, and one that its sender can have sent by now.
fn check_tag(
    parameters: &Parameters,
    state: &[u32],
    side: usize,
    tag: u32,
) -> Result<(), StepFault> {
    let next = state[ROWS_RECEIVED + side];
    let name = SIDES[side];
    let wrong = |code, what: &str| Err(fault(code, format!("row {tag} from {name} {what}")));
    if !parameters.has_neighbour(side) {
        return wrong(fault_code::ROW_UNEXPECTED, "came, where no strip is");
    }
    if tag < next {
        return wrong(fault_code::ROW_REPEATED, "came twice");
    }
    if tag > next {
        return wrong(fault_code::ROW_MISSING, &format!("came, row {next} did not"));
    }
    if tag >= parameters.iterations || tag > state[ITERATION] + 1 {
        let what = format!("came too early, at iteration {}", state[ITERATION]);
        return wrong(fault_code::ROW_UNEXPECTED, &what);
    }
    Ok(())
}

/// Computes the next image.
fn smooth(parameters: &Parameters, state: &mut [u32]) {
    let Layout { width, pixels } = parameters.layout;
    let iteration = state[ITERATION];
    let (head, images) = state.split_at_mut(parameters.layout.images());
    let (even, odd) = images.split_at_mut(pixels);
    let (source, target) = if parity(iteration) == 0 { (&*even, odd) } else { (&*odd, even) };
    let rows = pixels / width;
    // Outside the image lies the mirror: the border row itself.
    let outside = |side: usize, border: usize| {
        if parameters.has_neighbour(side) {
            &head[parameters.layout.row(side, iteration)]
        } else {
            row(source, width, border)
        }
    };
    for (y, into) in target.chunks_exact_mut(width).enumerate() {
        let north = if y == 0 { outside(0, y) } else { row(source, width, y - 1) };
        let south = if y + 1 == rows { outside(1, y) } else { row(source, width, y + 1) };
        smooth_row(into, [north, row(source, width, y), south], parameters.coefficients);
    }
}

fn row(image: &[u32], width: usize, y: usize) -> &[u32] {
    &image[y * width..(y + 1) * width]
}

fn smooth_row(into: &mut [u32], [north, centre, south]: [&[u32]; 3], coefficients: Coefficients) {
    let last = into.len() - 1;
    for (x, pixel) in into.iter_mut().enumerate() {
        let (west, east) = (centre[x.saturating_sub(1)], centre[(x + 1).min(last)]);
        *pixel = diffuse_pixel(centre[x], north[x], south[x], west, east, coefficients);
    }
}

/// Sends what this step has made known, and records it.
fn commit(
    parameters: &Parameters,
    state: &mut [u32],
    outbox: &mut OutboxWriter<'_>,
    finished: bool,
) {
    let first = state[ANNOUNCED] == 0;
    state[ANNOUNCED] = 1;
    state[ITERATION] += u32::from(finished);
    state[STEP_WORDS].fill(0);
    let iteration = state[ITERATION];
    if (first || finished) && iteration < parameters.iterations {
        send_rows(parameters, &state[parameters.layout.image(iteration)], iteration, outbox);
    }
    if finished {
        let (iterations, strip_index) = (parameters.iterations, parameters.strip_index);
        let progress = Progress { iteration, iterations, strip_index };
        outbox.send(PROGRESS, iteration, iteration, &progress.to_words());
    }
}

fn send_rows(
    parameters: &Parameters,
    image: &[u32],
    iteration: u32,
    outbox: &mut OutboxWriter<'_>,
) {
    let width = parameters.layout.width;
    let border_rows = [&image[..width], &image[image.len() - width..]];
    for ((side, row), port) in border_rows.into_iter().enumerate().zip(TO_ABOVE..) {
        if parameters.has_neighbour(side) {
            outbox.send(port, iteration, iteration, row);
        }
    }
}
