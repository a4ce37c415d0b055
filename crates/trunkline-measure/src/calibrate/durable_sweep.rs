//! **Durable sweep**: the steps of durable writes of which either the sessions or the size rises.

use super::findings::DeviceFindings;
use super::step::Step;

/// What rises from one step to the next.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DurableSweep {
    /// Sessions that write 8 kB each.
    Sessions,
    /// The size of the writes of one session.
    Size,
}

impl DurableSweep {
    pub(super) const ALL: [Self; 2] = [Self::Sessions, Self::Size];

    pub(super) fn steps(self, found: &DeviceFindings) -> &[Step] {
        match self {
            Self::Sessions => &found.durable_sessions,
            Self::Size => &found.durable_sizes,
        }
    }

    /// The number of sessions, or kB of a write.
    pub(super) fn place(self, step: &Step) -> u32 {
        match self {
            Self::Sessions => step.depth,
            Self::Size => step.size / 1024,
        }
    }

    pub(super) fn unit(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Size => "kB",
        }
    }
}
