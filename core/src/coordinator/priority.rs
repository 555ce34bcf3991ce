//! How urgently a kernel is moved off a device.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Messages in a mailbox from which on a kernel counts as backed up.
const BACKLOG_MESSAGES: usize = 64;

/// Time without a step after which a kernel with an empty mailbox counts as idle.
const IDLE_AFTER: Duration = Duration::from_secs(10);

/// How important a kernel is, as declared by whoever launched it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum KernelPriority {
    /// Can wait.
    Low,
    /// Nothing special.
    #[default]
    Normal,
    /// Before others.
    High,
    /// Before everything else.
    Critical,
}

/// How urgent a migration is. Plans are ordered by it, the most urgent first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum MigrationPriority {
    /// Can wait.
    Low,
    /// Nothing special.
    #[default]
    Normal,
    /// Before others.
    High,
    /// Before everything else.
    Critical,
}

/// What a kernel is doing, told by whoever runs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelActivity {
    /// The declared priority.
    pub priority: KernelPriority,
    /// Messages that wait in the kernel's mailbox.
    pub mailbox_depth: usize,
    /// How long ago the kernel's last step ended; zero while one runs.
    pub idle: Duration,
}

impl MigrationPriority {
    /// The rule: start from the declared priority; one level up when 64 or more messages wait, since
    /// every one of them waits for the move; one level down when nothing waits and the last step
    /// ended 10 s ago or longer. Never above `Critical` or below `Low`.
    ///
    /// ```
    /// use hopwise_core::{KernelActivity, MigrationPriority};
    ///
    /// let mut activity = KernelActivity { mailbox_depth: 100, ..KernelActivity::default() };
    /// assert_eq!(MigrationPriority::from_activity(&activity), MigrationPriority::High);
    /// activity.mailbox_depth = 0;
    /// assert_eq!(MigrationPriority::from_activity(&activity), MigrationPriority::Normal);
    /// ```
    #[must_use]
    pub fn from_activity(activity: &KernelActivity) -> Self {
        let declared = match activity.priority {
            KernelPriority::Low => Self::Low,
            KernelPriority::Normal => Self::Normal,
            KernelPriority::High => Self::High,
            KernelPriority::Critical => Self::Critical,
        };
        if activity.mailbox_depth >= BACKLOG_MESSAGES {
            declared.raised()
        } else if activity.mailbox_depth == 0 && activity.idle >= IDLE_AFTER {
            declared.lowered()
        } else {
            declared
        }
    }

    fn raised(self) -> Self {
        match self {
            Self::Low => Self::Normal,
            Self::Normal => Self::High,
            Self::High | Self::Critical => Self::Critical,
        }
    }

    fn lowered(self) -> Self {
        match self {
            Self::Low | Self::Normal => Self::Low,
            Self::High => Self::Normal,
            Self::Critical => Self::High,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backlog_raises_and_idleness_lowers() {
        let of = |priority, mailbox_depth, idle_s| {
            let idle = Duration::from_secs(idle_s);
            MigrationPriority::from_activity(&KernelActivity { priority, mailbox_depth, idle })
        };
        assert_eq!(of(KernelPriority::Normal, 1, 0), MigrationPriority::Normal);
        assert_eq!(of(KernelPriority::Normal, BACKLOG_MESSAGES - 1, 60), MigrationPriority::Normal);
        assert_eq!(of(KernelPriority::Normal, BACKLOG_MESSAGES, 60), MigrationPriority::High);
        assert_eq!(of(KernelPriority::Normal, 0, 10), MigrationPriority::Low);
        assert_eq!(of(KernelPriority::Low, 0, 10), MigrationPriority::Low);
        assert_eq!(of(KernelPriority::Critical, 0, 10), MigrationPriority::High);
        assert_eq!(of(KernelPriority::Critical, 1000, 0), MigrationPriority::Critical);
    }
}
