//! Recovery targets: where `--until` ends a replay.
//!
//! Each means the same as in a server with `recovery_target_inclusive` on: the record of the target is
//! replayed. A time is different: replay ends before the first transaction that ended after it.

use std::fmt;

use trunkline_format::Lsn;
use trunkline_format::wal::Effect;

/// The moment at which replay stops.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Until {
    /// The end of the log.
    #[default]
    End,
    /// Behind the record that begins at or after this position (`recovery_target_lsn`).
    Lsn(Lsn),
    /// Before the first transaction that ended after this time, in microseconds since 2000
    /// (`recovery_target_time`).
    Time(i64),
    /// Behind this restore point (`recovery_target_name`).
    RestorePoint(String),
    /// Behind the end of this transaction (`recovery_target_xid`).
    Xid(u32),
}

/// On which side of a record replay stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    Behind,
}

impl Until {
    /// Whether replay stops at a record that begins at `start`, and on which side of it.
    pub(super) fn stops_at(&self, start: Lsn, effect: Option<&Effect<'_>>) -> Option<Side> {
        match (self, effect) {
            (Self::Lsn(lsn), _) => (start >= *lsn).then_some(Side::Behind),
            (Self::Time(time), Some(Effect::TransactionEnd(end))) => {
                (end.time > *time).then_some(Side::Before)
            }
            (Self::RestorePoint(wanted), Some(Effect::RestorePoint { name, .. })) => {
                (wanted.as_bytes() == *name).then_some(Side::Behind)
            }
            (Self::Xid(xid), Some(Effect::TransactionEnd(end))) => {
                (end.xid == *xid).then_some(Side::Behind)
            }
            _ => None,
        }
    }
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::End => f.write_str("the end of the log"),
            Self::Lsn(lsn) => write!(f, "position {lsn}"),
            Self::Time(_) => f.write_str("a transaction after that time"),
            Self::RestorePoint(name) => write!(f, "restore point \"{name}\""),
            Self::Xid(xid) => write!(f, "the end of transaction {xid}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_moment_is_on_one_side_of_its_record() {
        let point = Effect::RestorePoint { time: 500, name: b"here" };
        for (until, expected) in [
            (Until::End, None),
            (Until::Lsn(Lsn(0x101)), None),
            (Until::Lsn(Lsn(0x100)), Some(Side::Behind)),
            // A server looks at the times of transactions only.
            (Until::Time(499), None),
            (Until::RestorePoint("here".to_owned()), Some(Side::Behind)),
            (Until::RestorePoint("her".to_owned()), None),
            (Until::Xid(7), None),
        ] {
            assert_eq!(until.stops_at(Lsn(0x100), Some(&point)), expected, "{until}");
        }
    }
}
