//! **Multixacts** (`pg_multixact`): an ID in xmax that represents several transactions.
//!
//! ```text
//!   offsets   number of a multixact ──▶ its first member; the next one's first member ends it
//!   members   │ status × 4 │ xid │ xid │ xid │ xid │   409 such groups in a page, 12 bytes unused
//! ```
//! A tuple has room for only one xmax. When a second transaction locks the tuple, the server
//! therefore creates a multixact, stores its ID in xmax, and sets `HEAP_XMAX_IS_MULTI`. At most one
//! member of a multixact has updated or deleted the tuple, while all other members have only locked
//! it. The members' status bytes are stored in groups of four, so that the XIDs are always aligned.
//!
//! Up to PostgreSQL 18, member offsets are 32-bit integers that wrap around. Since PostgreSQL 19,
//! they are 64-bit integers, and the names of the member files have 15 digits instead of 4.
//!
//! Mirrors PostgreSQL's `access/transam/multixact.c`.

use super::slru::SlruPosition;
use crate::control::PgVersion;
use crate::ids::BLOCK_SIZE;
use crate::little_endian::read_at;

/// The directory of the offsets files, relative to the data directory.
pub const OFFSETS_DIRECTORY: &str = "pg_multixact/offsets";

/// The directory of the members files, relative to the data directory.
pub const MEMBERS_DIRECTORY: &str = "pg_multixact/members";

/// `MULTIXACT_MEMBERS_PER_MEMBERGROUP`: members per group.
const GROUP: u64 = 4;
/// Size of one group in bytes: four status bytes, then four xids.
const GROUP_BYTES: usize = 20;
/// Members per page.
pub const MEMBERS_PER_PAGE: u64 = (BLOCK_SIZE / GROUP_BYTES) as u64 * GROUP;

/// Maximum number of members that we accept. We need a limit, because a damaged offset could make a
/// multixact appear to have billions of members. A real multixact never reaches this limit, because
/// a server removes members that are no longer running whenever it adds a new one.
pub const MEMBERS_MAX: u64 = 1 << 20;

/// `MultiXactStatus`: the lock or change that a member holds on the tuple.
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
    /// An update that doesn't change the key (4).
    NoKeyUpdate,
    /// An update of the key, or a delete (5).
    Update,
}

impl MemberStatus {
    /// The statuses by number, and their names in `pg_get_multixact_members`.
    const ALL: [(Self, &'static str); 6] = [
        (Self::KeyShare, "keysh"),
        (Self::Share, "sh"),
        (Self::NoKeyUpdateLock, "fornokeyupd"),
        (Self::UpdateLock, "forupd"),
        (Self::NoKeyUpdate, "nokeyupd"),
        (Self::Update, "upd"),
    ];

    /// The status byte.
    pub fn to_byte(self) -> u8 {
        self as u8
    }

    /// Decodes a status byte.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).map(|&(status, _)| status)
    }

    /// `ISUPDATE_from_mxstatus`: whether the tuple is dead once this member has committed.
    pub fn is_update(self) -> bool {
        matches!(self, Self::NoKeyUpdate | Self::Update)
    }
}

/// Prints the status like `pg_get_multixact_members`.
impl std::fmt::Display for MemberStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(Self::ALL[*self as usize].1)
    }
}

/// A multixact member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Member {
    /// The member's XID. 0 means that this slot is not used. The server never uses member offset 0,
    /// not even after the offsets have wrapped around, because an offset of 0 in the offsets file
    /// means that the offset has not been set yet.
    pub xid: u32,
    /// The member's status, or the raw byte if it is unknown.
    pub status: Result<MemberStatus, u8>,
}

/// The multixact layout of a particular version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MultixactLayout {
    /// Member offsets have 64 bits.
    wide: bool,
}

impl MultixactLayout {
    /// The layout that `version` uses.
    pub fn of(version: PgVersion) -> Self {
        Self { wide: version >= PgVersion::V19 }
    }

    /// Size of an offsets entry in bytes: 4, or 8 since 19.
    pub fn offset_bytes(self) -> usize {
        if self.wide { 8 } else { 4 }
    }

    /// The position of the entry for `multi` in the offsets files.
    pub fn offset_place(self, multi: u32) -> SlruPosition {
        let per_page = (BLOCK_SIZE / self.offset_bytes()) as u32;
        let byte = (multi % per_page) as usize * self.offset_bytes();
        SlruPosition { page: u64::from(multi / per_page), byte }
    }

    /// Reads a member offset from an offsets page, at [`SlruPosition::byte`]. Returns `None` if the
    /// page is too short.
    pub fn offset_at(self, page: &[u8], byte: usize) -> Option<u64> {
        if self.wide {
            read_at::<u64>(page, byte)
        } else {
            read_at::<u32>(page, byte).map(u64::from)
        }
    }

    /// Sets a member offset in an offsets page, at [`SlruPosition::byte`]. Does nothing if the page is too
    /// short.
    pub fn set_offset(self, page: &mut [u8], byte: usize, offset: u64) {
        let size = self.offset_bytes();
        put(page, byte, offset.to_le_bytes().get(..size).unwrap_or_default());
    }

    /// Returns the number of members of a multixact. The arguments are the offset of its first
    /// member and the offset of the next multixact's first member. Up to version 18 these offsets
    /// wrap around, so we must compute the difference modulo 2^32.
    pub fn count(self, first: u64, next: u64) -> u64 {
        if self.wide {
            return next.wrapping_sub(first);
        }
        u64::from((next as u32).wrapping_sub(first as u32))
    }

    /// The offset of the member `index` places after `first`.
    pub fn member(self, first: u64, index: u64) -> u64 {
        let member = first.wrapping_add(index);
        if self.wide { member } else { member & 0xFFFF_FFFF }
    }

    /// The name of an offsets file.
    pub fn offsets_name(self, segment: u64) -> String {
        format!("{segment:04X}")
    }

    /// The name of a members file: 4 digits, or 15 since 19.
    pub fn members_name(self, segment: u64) -> String {
        if self.wide { format!("{segment:015X}") } else { format!("{segment:04X}") }
    }
}

/// The position of a member's group.
pub fn member_place(member: u64) -> SlruPosition {
    let group = (member % MEMBERS_PER_PAGE / GROUP) as usize;
    SlruPosition { page: member / MEMBERS_PER_PAGE, byte: group * GROUP_BYTES }
}

/// Reads a member from a members page. `byte` is the byte offset of the member's group. Returns
/// `None` if the page is too short.
pub fn member_at(page: &[u8], byte: usize, member: u64) -> Option<Member> {
    let slot = (member % GROUP) as usize;
    let status = read_at::<u8>(page, byte.checked_add(slot)?)?;
    let xid = read_at::<u32>(page, byte + GROUP as usize + slot * 4)?;
    Some(Member { xid, status: MemberStatus::from_byte(status).ok_or(status) })
}

/// Sets a member of a members page. `byte` is the byte offset of the member's group. Does nothing if the
/// page is too short.
pub fn set_member(page: &mut [u8], byte: usize, member: u64, (xid, status): (u32, u8)) {
    let slot = (member % GROUP) as usize;
    put(page, byte + slot, &[status]);
    put(page, byte + GROUP as usize + slot * 4, &xid.to_le_bytes());
}

fn put(page: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = page.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// Returns the multixact ID that follows `multi`. Since 0 is not a valid multixact ID, 2^32 - 1 is
/// followed by 1.
pub fn next_multi(multi: u32) -> u32 {
    multi.wrapping_add(1).max(1)
}
