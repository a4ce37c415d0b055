//! The modes of row locks: how they are stored in tuples, records and multixacts, and which of them conflict.

use trunkline_format::heap_tuple::{KEYS_UPDATED, XMAX_EXCLUSIVE_LOCK, XMAX_KEY_SHARE_LOCK};
use trunkline_format::transam::multixact::MemberStatus;
use trunkline_format::wal::heap_flags::info_bits;

/// How a row is locked, from the weakest mode to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowLockMode {
    /// `FOR KEY SHARE`: the key does not change.
    KeyShare,
    /// `FOR SHARE`: the row does not change.
    Share,
    /// `FOR NO KEY UPDATE`: the transaction may change the row, apart from its key.
    NoKeyUpdate,
    /// `FOR UPDATE`: the transaction may change or delete the row.
    Update,
}

impl RowLockMode {
    /// `infobits_set` of the record.
    pub(super) fn info_bits(self) -> u8 {
        info_bits::LOCK_ONLY
            | match self {
                Self::KeyShare => info_bits::KEY_SHARE,
                Self::Share => info_bits::KEY_SHARE | info_bits::EXCLUSIVE,
                Self::NoKeyUpdate => info_bits::EXCLUSIVE,
                Self::Update => info_bits::EXCLUSIVE | info_bits::KEYS_UPDATED,
            }
    }

    /// The mode in which an xmax with these bits has locked a row.
    pub(super) fn of_bits(infomask: u16, infomask2: u16) -> Self {
        let has = |bit: u16| infomask & bit != 0;
        match (has(XMAX_KEY_SHARE_LOCK), has(XMAX_EXCLUSIVE_LOCK)) {
            (true, false) => Self::KeyShare,
            (true, true) => Self::Share,
            _ if infomask2 & KEYS_UPDATED == 0 => Self::NoKeyUpdate,
            _ => Self::Update,
        }
    }

    /// The mode in which a member of a multixact has locked a row.
    pub(super) fn of_member(status: MemberStatus) -> Self {
        match status {
            MemberStatus::KeyShare => Self::KeyShare,
            MemberStatus::Share => Self::Share,
            MemberStatus::NoKeyUpdateLock | MemberStatus::NoKeyUpdate => Self::NoKeyUpdate,
            MemberStatus::UpdateLock | MemberStatus::Update => Self::Update,
        }
    }

    /// The status of a member with this lock.
    pub(super) fn member_status(self) -> MemberStatus {
        match self {
            Self::KeyShare => MemberStatus::KeyShare,
            Self::Share => MemberStatus::Share,
            Self::NoKeyUpdate => MemberStatus::NoKeyUpdateLock,
            Self::Update => MemberStatus::UpdateLock,
        }
    }

    /// Whether two transactions can't have these locks on the same row (`tupleLockExtraInfo`).
    pub(super) fn conflicts_with(self, other: Self) -> bool {
        match self {
            Self::KeyShare => other == Self::Update,
            Self::Share => other >= Self::NoKeyUpdate,
            Self::NoKeyUpdate => other >= Self::Share,
            Self::Update => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of PostgreSQL's documentation ("Conflicting Row-Level Locks").
    #[test]
    fn modes_conflict_as_in_postgresql() {
        let modes = [
            RowLockMode::KeyShare,
            RowLockMode::Share,
            RowLockMode::NoKeyUpdate,
            RowLockMode::Update,
        ];
        let conflicts = [
            [false, false, false, true],
            [false, false, true, true],
            [false, true, true, true],
            [true, true, true, true],
        ];
        for (mode, expected) in modes.into_iter().zip(conflicts) {
            assert_eq!(modes.map(|other| mode.conflicts_with(other)), expected, "{mode:?}");
            assert_eq!(RowLockMode::of_member(mode.member_status()), mode);
        }
    }
}
