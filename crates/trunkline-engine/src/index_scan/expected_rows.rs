//! How many rows the consumer of a scan is expected to take.

use crate::read_stream::Expected;

/// Numbers of rows, counted from the first row that a source of blocks returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExpectedRows {
    /// The consumer takes these before it may stop.
    pub certain: u64,
    /// The consumer will probably take these.
    pub likely: u64,
    /// The consumer will probably take no others.
    pub ends: bool,
}

impl ExpectedRows {
    /// The same after `taken` rows.
    pub(super) fn after(self, taken: u64) -> Self {
        let Self { certain, likely, ends } = self;
        let (certain, likely) = (taken.saturating_add(certain), taken.saturating_add(likely));
        Self { certain, likely, ends }
    }

    /// How sure it is that the row after `returned` others is taken.
    pub(super) fn next_is(self, returned: u64) -> Expected {
        match returned {
            _ if returned < self.certain => Expected::Certain,
            _ if returned < self.likely => Expected::Likely,
            _ if self.ends => Expected::Unlikely,
            _ => Expected::Unknown,
        }
    }
}
