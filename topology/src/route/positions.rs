//! From the index of a device to its row in a table.

use std::collections::HashMap;

/// Rows of devices in ascending order.
#[derive(Clone, Debug)]
pub(super) enum Positions {
    /// By index; `ABSENT` where there is no device.
    Dense { rows: Vec<u32>, count: usize },
    /// For indices that lie far apart.
    Sparse(HashMap<usize, usize>),
}

const ABSENT: u32 = u32::MAX;

impl Positions {
    pub(super) fn new(devices: &[usize]) -> Self {
        let is_dense = devices.last().is_none_or(|&last| last < 64 + 8 * devices.len());
        if !is_dense {
            return Self::Sparse(devices.iter().copied().zip(0..).collect());
        }
        let mut rows = vec![ABSENT; devices.last().map_or(0, |&last| last + 1)];
        for (&device, position) in devices.iter().zip(0..) {
            rows[device] = position;
        }
        Self::Dense { rows, count: devices.len() }
    }

    pub(super) fn of(&self, device: usize) -> Option<usize> {
        match self {
            Self::Dense { rows, .. } => {
                rows.get(device).filter(|&&row| row != ABSENT).map(|&row| row as usize)
            }
            Self::Sparse(rows) => rows.get(&device).copied(),
        }
    }

    pub(super) fn count(&self) -> usize {
        match self {
            Self::Dense { count, .. } => *count,
            Self::Sparse(rows) => rows.len(),
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Dense { rows, .. } => rows.capacity() * size_of::<u32>(),
            Self::Sparse(rows) => rows.capacity() * size_of::<(usize, usize)>(),
        }
    }
}
