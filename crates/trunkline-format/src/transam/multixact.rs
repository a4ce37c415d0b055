//! **Multixacts** (`pg_multixact`): several transactions that lock one tuple, under one id in xmax.
//!
//! ```text
//!   offsets   number of a multixact ──▶ its first member; the next one's first member ends it
//!   members   │ status × 4 │ xid │ xid │ xid │ xid │   409 such groups in a page, 12 bytes unused
//! ```
//! A tuple has only one xmax. When a second transaction locks it, the server creates a multixact
//! and stores its number in xmax with `HEAP_XMAX_IS_MULTI`. At most one member updated or deleted
//! the tuple; all others lock it. Statuses are grouped by four so that the xids stay aligned.
//!
//! Member offsets have 32 bits and wrap around up to PostgreSQL 18. Since 19 they have 64 bits, and
//! file names of members have 15 digits instead of 4.
//!
//! Mirrors PostgreSQL's `access/transam/multixact.c`.

use super::SlruPosition;
use crate::control::PgVersion;
use crate::ids::BLOCK_SIZE;
use crate::little_endian::{u8_at, u32_at, u64_at};

/// The directory of the members' beginnings, below the data directory.
pub const OFFSETS_DIRECTORY: &str = "pg_multixact/offsets";

/// The directory of the members, below the data directory.
pub const MEMBERS_DIRECTORY: &str = "pg_multixact/members";

/// Members of one group.
const GROUP: u64 = 4;
/// Bytes of one group: the statuses, then the ids.
const GROUP_BYTES: usize = 20;
/// Members of one page.
pub const MEMBERS_PER_PAGE: u64 = (BLOCK_SIZE / GROUP_BYTES) as u64 * GROUP;

/// More members than any multixact has. A damaged offset could claim billions. Servers remove
/// members that have ended whenever they add one, so real multixacts stay small.
pub const MEMBERS_MAX: u64 = 1 << 20;

/// `MultiXactStatus`: what a member does to the tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemberStatus {
    /// `FOR KEY SHARE` (0).
    KeyShare,
    /// `FOR SHARE` (1).
    Share,
    /// `FOR NO KEY UPDATE` (2).
    NoKeyUpdateLock,
    /// `FOR UPDATE` (3).
    UpdateLock,
    /// An update that leaves the key as it is (4).
    NoKeyUpdate,
    /// An update of the key, or a deletion (5).
    Update,
}

impl MemberStatus {
    /// From its byte.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::KeyShare,
            1 => Self::Share,
            2 => Self::NoKeyUpdateLock,
            3 => Self::UpdateLock,
            4 => Self::NoKeyUpdate,
            5 => Self::Update,
            _ => return None,
        })
    }

    /// `ISUPDATE_from_mxstatus`: whether the tuple is dead if the member committed.
    pub fn is_update(self) -> bool {
        matches!(self, Self::NoKeyUpdate | Self::Update)
    }
}

/// As `pg_get_multixact_members` names it.
impl std::fmt::Display for MemberStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::KeyShare => "keysh",
            Self::Share => "sh",
            Self::NoKeyUpdateLock => "fornokeyupd",
            Self::UpdateLock => "forupd",
            Self::NoKeyUpdate => "nokeyupd",
            Self::Update => "upd",
        })
    }
}

/// One member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Member {
    /// The transaction. 0 marks a slot that was never used: when offsets wrap around, the server
    /// skips member offset 0, because offset 0 in the offsets file means "not set yet".
    pub xid: u32,
    /// The member's status, or the unknown byte.
    pub status: Result<MemberStatus, u8>,
}

/// The layout of multixacts in one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MultixactLayout {
    /// Members are numbered with 64 bits.
    wide: bool,
}

impl MultixactLayout {
    /// Of a version.
    pub fn of(version: PgVersion) -> Self {
        Self { wide: version >= PgVersion::V19 }
    }

    /// Bytes of one entry in the offsets: 4, or 8 from 19.
    pub fn offset_bytes(self) -> usize {
        if self.wide { 8 } else { 4 }
    }

    /// Where the number of a multixact's first member is.
    pub fn offset_place(self, multi: u32) -> SlruPosition {
        let per_page = (BLOCK_SIZE / self.offset_bytes()) as u32;
        let byte = (multi % per_page) as usize * self.offset_bytes();
        SlruPosition { page: u64::from(multi / per_page), byte }
    }

    /// The offset of a first member, read from a page of the offsets at [`SlruPosition::byte`].
    /// `None` if the page ends early.
    pub fn offset_at(self, page: &[u8], byte: usize) -> Option<u64> {
        if self.wide { u64_at(page, byte) } else { u32_at(page, byte).map(u64::from) }
    }

    /// The number of members from `first` to the next multixact's first member. Up to version 18
    /// the offsets wrap around, so the difference is taken modulo 2^32.
    pub fn count(self, first: u64, next: u64) -> u64 {
        if self.wide {
            return next.wrapping_sub(first);
        }
        u64::from((next as u32).wrapping_sub(first as u32))
    }

    /// The member `index` places behind `first`.
    pub fn member(self, first: u64, index: u64) -> u64 {
        let member = first.wrapping_add(index);
        if self.wide { member } else { member & 0xFFFF_FFFF }
    }

    /// The name of a file of the offsets.
    pub fn offsets_name(self, segment: u64) -> String {
        format!("{segment:04X}")
    }

    /// The name of a file of the members: 4 digits, or 15 from 19.
    pub fn members_name(self, segment: u64) -> String {
        if self.wide { format!("{segment:015X}") } else { format!("{segment:04X}") }
    }
}

/// Where the group of a member begins.
pub fn member_place(member: u64) -> SlruPosition {
    let group = (member % MEMBERS_PER_PAGE / GROUP) as usize;
    SlruPosition { page: member / MEMBERS_PER_PAGE, byte: group * GROUP_BYTES }
}

/// A member, in a page of the members whose group is at `byte`; `None` if the page ends early.
pub fn member_at(page: &[u8], byte: usize, member: u64) -> Option<Member> {
    let slot = (member % GROUP) as usize;
    let status = u8_at(page, byte.checked_add(slot)?)?;
    let xid = u32_at(page, byte + GROUP as usize + slot * 4)?;
    Some(Member { xid, status: MemberStatus::from_byte(status).ok_or(status) })
}

/// The multixact after `multi`. 0 is invalid, so the number after 2^32 - 1 is 1.
pub fn next_multi(multi: u32) -> u32 {
    multi.wrapping_add(1).max(1)
}
