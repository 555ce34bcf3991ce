//! `token_ring`: passes tokens round a ring of kernels for a number of laps.
//!
//! Kernel i of a ring sends on `next` to the in-port `token` of kernel i + 1, the last one to
//! kernel 0. A ring of one kernel sends to itself. Launch with *start* those that inject tokens.
//!
//! Every kernel has one sender and injects before it forwards, so the order of tokens on each
//! channel is fixed, and with it every result. A token and the kernels that it passes change each
//! other's checksum: a message that was lost, came twice or overtook another one shows in the
//! results of the whole ring.
//!
//! # Parameters
//!
//! | word | meaning | allowed |
//! |---|---|---|
//! | 0 | kernels in the ring | 1 or more |
//! | 1 | laps | 1 or more; kernels x laps below 2^32 |
//! | 2 | index of this kernel | below the number of kernels |
//! | 3 | tokens that this kernel injects in its first step | at most [`MAX_TOKENS`] |
//!
//! # State
//!
//! At least [`STATE_WORDS`] words, zeros at first.
//!
//! | word | meaning |
//! |---|---|
//! | 0 | 1 once the first step is over, else 0 |
//! | 1, 2 | tokens received, 64 bits, low word first |
//! | 3 | running hash over the tokens received |
//! | 4 | tokens that ended here |
//!
//! # Ports
//!
//! All messages are tokens of 4 words. The tag is the token's number, on receipt it is ignored.
//!
//! | port | index | what |
//! |---|---|---|
//! | in `token` | 0 | a token that made one more hop |
//! | out `next` | 0 | tokens for the next kernel; keys: number if injected, [`MAX_TOKENS`] + position in the inbox if forwarded |
//! | out `done` | 1 | tokens that made all their hops; keys: position in the inbox |
//!
//! | word of a token | meaning |
//! |---|---|
//! | 0 | index of the kernel that injected it |
//! | 1 | its number there, from 0 |
//! | 2 | hops made; 0 when it is injected, and the receiver adds 1 |
//! | 3 | checksum; 0 when it is injected |
//!
//! # What a kernel does with a token
//!
//! With `fold(hash, word) = (rotate_left(hash, 5) xor word) * 0x9e3779b1`, which is one-to-one in
//! each argument (the multiplier is odd, near 2^32 divided by the golden ratio):
//!
//! 1. hops += 1.
//! 2. hash = fold of the hash with the token's words 0 to 3 in order.
//! 3. checksum = fold(checksum, hash).
//! 4. hops = kernels x laps: send it on `done`, else on `next`.
//!
//! # Passes
//!
//! One, of one invocation, which goes through at most [`INBOX_SLOTS`] messages.
//!
//! # Faults
//!
//! [`STATE`](fault_code::STATE), [`PARAMETERS`](fault_code::PARAMETERS),
//! [`MESSAGE`](fault_code::MESSAGE), and [`TOKEN_MISROUTED`](fault_code::TOKEN_MISROUTED) unless a
//! message's hops are below kernels x laps and, after rule 1, origin + hops = index modulo the
//! number of kernels.

use std::sync::Arc;

use crate::abi::inbox::InboxMessage;
use crate::abi::outbox::OutboxWriter;
use crate::error::StepFault;
use crate::program::{Grid, HostStep, Program};

use super::{add_wide, build_constant, fault, fault_code};

/// The program's name.
pub const NAME: &str = "token_ring";

/// Words of state that the program uses.
pub const STATE_WORDS: usize = 5;

/// Most messages of one step.
pub const INBOX_SLOTS: u32 = 64;

/// Most tokens that one kernel injects.
pub const MAX_TOKENS: u32 = 64;

/// Index of the in-port `token`.
pub const TOKEN: u32 = 0;

/// Index of the out-port `next`.
pub const NEXT: u32 = 0;

/// Index of the out-port `done`.
pub const DONE: u32 = 1;

/// Bytes of a token.
const TOKEN_BYTES: u32 = 16;

/// The program.
#[must_use]
pub fn token_ring() -> Arc<Program> {
    let builder = Program::builder(NAME)
        .in_port("token", TOKEN_BYTES)
        .out_port("next", TOKEN_BYTES)
        .out_port("done", TOKEN_BYTES)
        .inbox_slots(INBOX_SLOTS)
        .outbox_slots(MAX_TOKENS + INBOX_SLOTS)
        .parameter_words(4)
        .host(step)
        .pass("circulate", Grid::Fixed(1))
        .wgsl(include_str!("token_ring.wgsl"))
        .cuda_c(include_str!("token_ring.cu"));
    build_constant(builder)
}

/// The parameters of one kernel of a ring.
///
/// ```
/// use hopwise_core::programs::token_ring::Parameters;
///
/// let first = Parameters { kernels: 3, laps: 100, index: 0, tokens: 8 };
/// assert_eq!(first.to_words(), [3, 100, 0, 8]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Kernels in the ring.
    pub kernels: u32,
    /// Laps that each token makes.
    pub laps: u32,
    /// Index of this kernel, from 0.
    pub index: u32,
    /// Tokens that this kernel injects in its first step.
    pub tokens: u32,
}

impl Parameters {
    /// The words that an instance is given.
    #[must_use]
    pub const fn to_words(self) -> [u32; 4] {
        [self.kernels, self.laps, self.index, self.tokens]
    }

    /// Hops that each token makes, or `None` when a value is outside its range.
    #[must_use]
    pub fn hops(self) -> Option<u32> {
        let in_range = self.index < self.kernels && self.laps > 0 && self.tokens <= MAX_TOKENS;
        self.kernels.checked_mul(self.laps).filter(|_| in_range)
    }

    fn from_words(words: &[u32]) -> Option<Self> {
        let &[kernels, laps, index, tokens] = words.first_chunk::<4>()?;
        Some(Self { kernels, laps, index, tokens })
    }
}

/// What goes round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Index of the kernel that injected it.
    pub origin: u32,
    /// Its number there, from 0.
    pub number: u32,
    /// Hops made.
    pub hops: u32,
    /// Mixed from what every kernel on the way had seen until then.
    pub checksum: u32,
}

impl Token {
    /// The token in a message.
    #[must_use]
    pub const fn from_words([origin, number, hops, checksum]: [u32; 4]) -> Self {
        Self { origin, number, hops, checksum }
    }

    /// The words of its message.
    #[must_use]
    pub const fn to_words(self) -> [u32; 4] {
        [self.origin, self.number, self.hops, self.checksum]
    }
}

fn step(step: &mut HostStep<'_>) -> Result<(), StepFault> {
    let (parameters, hops) = checked_parameters(step.parameters)?;
    let words = step.state.len();
    let Some(state) = step.state.first_chunk_mut::<STATE_WORDS>() else {
        let reason = format!("a ring needs {STATE_WORDS} words of state, this one has {words}");
        return Err(fault(fault_code::STATE, reason));
    };
    if state[0] == 0 {
        state[0] = 1;
        inject(parameters, &mut step.outbox);
    }
    for (position, message) in (0..).zip(step.inbox.messages()) {
        let token = pass(received(&message, parameters, hops)?, state);
        if token.hops == hops {
            state[4] = state[4].wrapping_add(1);
            step.outbox.send(DONE, position, token.number, &token.to_words());
        } else {
            let key = MAX_TOKENS + position;
            step.outbox.send(NEXT, key, token.number, &token.to_words());
        }
    }
    Ok(())
}

fn checked_parameters(words: &[u32]) -> Result<(Parameters, u32), StepFault> {
    let parameters = Parameters::from_words(words);
    parameters.and_then(|parameters| Some((parameters, parameters.hops()?))).ok_or_else(|| {
        fault(fault_code::PARAMETERS, format!("parameters of a ring out of range: {parameters:?}"))
    })
}

fn inject(parameters: Parameters, outbox: &mut OutboxWriter<'_>) {
    for number in 0..parameters.tokens {
        let token = Token { origin: parameters.index, number, hops: 0, checksum: 0 };
        outbox.send(NEXT, number, number, &token.to_words());
    }
}

/// The token in a message, with the hop that brought it.
fn received(
    message: &InboxMessage<'_>,
    parameters: Parameters,
    hops: u32,
) -> Result<Token, StepFault> {
    let words = message.words.first_chunk::<4>();
    let is_token = message.in_port == TOKEN && message.length_bytes == TOKEN_BYTES;
    let Some(sent) = words.map(|words| Token::from_words(*words)).filter(|_| is_token) else {
        let (bytes, port) = (message.length_bytes, message.in_port);
        let reason = format!("a message of {bytes} bytes on in-port {port} is not a token");
        return Err(fault(fault_code::MESSAGE, reason));
    };
    if sent.hops >= hops {
        return Err(misrouted(sent, parameters));
    }
    let token = Token { hops: sent.hops + 1, ..sent };
    match index_after_hops(token, parameters.kernels) {
        Some(index) if index == parameters.index => Ok(token),
        _ => Err(misrouted(token, parameters)),
    }
}

/// Counts the token and mixes token and kernel.
fn pass(token: Token, state: &mut [u32; STATE_WORDS]) -> Token {
    [state[1], state[2]] = add_wide([state[1], state[2]], [1, 0]);
    state[3] = token.to_words().into_iter().fold(state[3], fold);
    Token { checksum: fold(token.checksum, state[3]), ..token }
}

const fn fold(hash: u32, word: u32) -> u32 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b1)
}

/// The kernel that a token has reached, or `None` when its origin is not in the ring.
const fn index_after_hops(token: Token, kernels: u32) -> Option<u32> {
    if token.origin >= kernels {
        return None;
    }
    let hops = token.hops % kernels;
    // origin + hops could exceed 32 bits, so the gap to the end of the ring decides.
    let gap = kernels - token.origin;
    Some(if hops < gap { token.origin + hops } else { hops - gap })
}

fn misrouted(token: Token, parameters: Parameters) -> StepFault {
    let Parameters { kernels, laps, index, .. } = parameters;
    let reason = format!("kernel {index} of {kernels} got {token:?}, which makes {laps} laps");
    fault(fault_code::TOKEN_MISROUTED, reason)
}
