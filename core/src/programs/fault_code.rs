//! The codes with which shipped programs give up ([`StepFault::Program`]).
//!
//! Codes below 16 mean the same in every program.
//!
//! [`StepFault::Program`]: crate::error::StepFault::Program

/// The state has the wrong size, or holds what the program never writes.
pub const STATE: u16 = 1;

/// A parameter is outside the range that the program's page allows.
pub const PARAMETERS: u16 = 2;

/// A message has a length or a port that the program does not take.
pub const MESSAGE: u16 = 3;

/// `token_ring`: a token reached a kernel where it cannot be after that many hops.
/// The ring is wired wrongly, or a message was changed.
pub const TOKEN_MISROUTED: u16 = 16;

/// `diffuse`: a row came that had come before.
pub const ROW_REPEATED: u16 = 17;

/// `diffuse`: a row came while an earlier one is missing.
pub const ROW_MISSING: u16 = 18;

/// `diffuse`: a row came that nobody can have sent yet: from a side without neighbour, more than
/// one iteration ahead, or past the last iteration.
pub const ROW_UNEXPECTED: u16 = 19;

/// `diffuse`: a pixel is above [`MAX_PIXEL`](crate::programs::diffuse::MAX_PIXEL).
///
/// The largest of that program's codes: where invocations give up independently the largest code
/// counts, and a bad pixel comes before whatever made the step stop to look at messages.
pub const PIXEL_RANGE: u16 = 20;
