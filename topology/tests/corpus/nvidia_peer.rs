//! Facts about the recorded files of this source.

use crate::Case;

pub(crate) const CASES: &[Case] = &[];
