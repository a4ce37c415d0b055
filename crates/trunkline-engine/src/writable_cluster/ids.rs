//! The next XID and OID (`TransamVariables`).

use trunkline_aio::facade::Mutex;
use trunkline_format::control::Checkpoint;
use trunkline_format::text_output::FIRST_USER_OID;
use trunkline_format::transam::FIRST_NORMAL_XID;
use trunkline_format::transam::commit_log::XIDS_PER_PAGE;

use super::error::WritableClusterError;

/// How many OIDs a record covers (`VAR_OID_PREFETCH`).
pub(super) const OIDS_LOGGED: u32 = 8192;

/// How far the next XID may be from the oldest one that rows have: 3 million less than half of all (`xidStopLimit`).
const XIDS_MAX: u64 = (1 << 31) - 3_000_000;

#[derive(Debug, Clone, Copy)]
struct Next {
    xid: u64,
    oid: u32,
    /// How many OIDs may be given out before another record is needed.
    oids_left: u32,
}

impl Next {
    /// The page of the commit log that begins with the next XID. After a wraparound, the first page begins with the first
    /// normal XID.
    fn page(self) -> Option<u32> {
        let xid = self.xid as u32;
        let is_first =
            xid.is_multiple_of(XIDS_PER_PAGE) || xid == FIRST_NORMAL_XID && self.xid >> 32 > 0;
        is_first.then_some(xid / XIDS_PER_PAGE)
    }
}

/// The counters.
#[derive(Debug)]
pub(super) struct Ids {
    oldest_xid: u32,
    next: Mutex<Next>,
}

impl Ids {
    /// The counters as of a shutdown.
    pub(super) fn new(checkpoint: &Checkpoint) -> Self {
        let next = Next { xid: checkpoint.next_xid, oid: checkpoint.next_oid.0, oids_left: 0 };
        Self { oldest_xid: checkpoint.oldest_xid, next: Mutex::new(next) }
    }

    /// The page of the commit log that begins with the next XID, if that is the first of its page.
    pub(super) fn next_page(&self) -> Option<u32> {
        self.next.lock().page()
    }

    /// Assigns an XID. If it is the first on its page of the commit log, `begin_page` is called before another session
    /// can get an XID of that page. If it returns false, it has done nothing, since this is not the page that it was prepared
    /// for, and no XID is assigned.
    ///
    /// # Errors
    /// [`WritableClusterError::XidsExhausted`], or the error of `begin_page`. No XID was assigned.
    pub(super) fn assign_xid(
        &self,
        begin_page: impl FnOnce(u32) -> Result<bool, WritableClusterError>,
    ) -> Result<Option<u32>, WritableClusterError> {
        let mut next = self.next.lock();
        let xid = next.xid as u32;
        let distance = u64::from(xid.wrapping_sub(self.oldest_xid));
        if distance >= XIDS_MAX {
            return Err(WritableClusterError::XidsExhausted {
                next: next.xid,
                oldest: self.oldest_xid,
            });
        }
        if let Some(page) = next.page()
            && !begin_page(page)?
        {
            return Ok(None);
        }
        next.xid += 1;
        if (next.xid as u32) < FIRST_NORMAL_XID {
            next.xid += u64::from(FIRST_NORMAL_XID - next.xid as u32);
        }
        Ok(Some(xid))
    }

    /// Assigns an OID. `log` must log the given OID (`XLOG_NEXTOID`): those below it may be in use. It is called before the
    /// first of them is given out.
    ///
    /// # Errors
    /// The error of `log`. No OID was assigned.
    pub(super) fn assign_oid(
        &self,
        log: impl FnOnce(u32) -> Result<(), WritableClusterError>,
    ) -> Result<u32, WritableClusterError> {
        let mut next = self.next.lock();
        if next.oid < FIRST_USER_OID {
            (next.oid, next.oids_left) = (FIRST_USER_OID, 0);
        }
        if next.oids_left == 0 {
            log(next.oid.wrapping_add(OIDS_LOGGED))?;
            next.oids_left = OIDS_LOGGED;
        }
        let oid = next.oid;
        next.oid = next.oid.wrapping_add(1);
        next.oids_left -= 1;
        Ok(oid)
    }

    /// The next XID, with its epoch.
    pub(super) fn next_xid(&self) -> u64 {
        self.next.lock().xid
    }

    /// The OID from which on none are in use. At a shutdown, that is the next one; otherwise, the last record counts.
    pub(super) fn next_oid(&self, is_shutdown: bool) -> u32 {
        let next = *self.next.lock();
        if is_shutdown { next.oid } else { next.oid.wrapping_add(next.oids_left) }
    }
}
