//! Damaged-page policy: decides what a read does with a page that fails its checks.
//!
//! When a read is issued, its policy is stored in the I/O's payload. The read may be completed by
//! another session, whose settings can be different. We must not use that session's settings,
//! because only the issuer has agreed to accept zeroed pages. For the same reason, PostgreSQL
//! passes the `READ_BUFFERS_ZERO_ON_ERROR` and `READ_BUFFERS_IGNORE_CHECKSUM_FAILURES` flags along
//! with the read.

use trunkline_format::{BlockNo, Lsn, PageBytes, PageHeader, PageVerdict, verify_page};

use crate::settings::Settings;

/// What to do with a page that fails its checksum or header check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policy {
    /// `zero_damaged_pages`: replace the page by zeros.
    pub zero_damaged_pages: bool,
    /// `ignore_checksum_failure`: use the page as it is if only its checksum is wrong.
    pub ignore_checksum_failure: bool,
}

impl Policy {
    /// The policy as configured in the settings.
    pub fn of(settings: &Settings) -> Self {
        Self {
            zero_damaged_pages: settings.zero_damaged_pages(),
            ignore_checksum_failure: settings.ignore_checksum_failure(),
        }
    }
}

/// What became of a page that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum PageCheck {
    /// The read ended before this page, or failed.
    #[default]
    Unread,
    /// The page passed its checks.
    Valid,
    /// The page failed its checks and was zeroed.
    Zeroed(PageVerdict),
    /// The page has a wrong checksum and is used as it is.
    Ignored(PageVerdict),
    /// The page failed its checks and is not valid.
    Bad(PageVerdict),
    /// The page is newer than the end of the log, and not valid. This is its position. No policy
    /// accepts it, since nothing is wrong with the page itself.
    Newer(Lsn),
}

impl PageCheck {
    /// Whether the page can be used.
    pub(crate) fn is_usable(self) -> bool {
        !matches!(self, Self::Unread | Self::Bad(_) | Self::Newer(_))
    }

    /// What is wrong with the page.
    pub(crate) fn verdict(self) -> Option<PageVerdict> {
        match self {
            Self::Unread | Self::Valid | Self::Newer(_) => None,
            Self::Zeroed(verdict) | Self::Ignored(verdict) | Self::Bad(verdict) => Some(verdict),
        }
    }
}

/// Policy of a read, whether its cluster has data checksums, and how new its pages may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PageChecks {
    pub(crate) policy: Policy,
    pub(crate) checksums: bool,
    /// The end of the log, if the cluster is read through it.
    pub(crate) newest: Option<Lsn>,
    /// Whether the pages have no header, so that there is nothing to check.
    pub(crate) is_headerless: bool,
}

impl PageChecks {
    /// Checks a page, and applies the policy to it.
    pub(crate) fn check(self, page: &mut PageBytes, block: BlockNo) -> PageCheck {
        if self.is_headerless {
            return PageCheck::Valid;
        }
        let verdict = verify_page(page, block, self.checksums);
        let lsn = PageHeader::parse(page).lsn;
        if verdict.is_valid() {
            let is_newer = self.newest.is_some_and(|newest| lsn > newest);
            if is_newer { PageCheck::Newer(lsn) } else { PageCheck::Valid }
        } else if self.policy.ignore_checksum_failure && verdict.is_valid_but_for_checksum() {
            PageCheck::Ignored(verdict)
        } else if self.policy.zero_damaged_pages {
            page.fill(0);
            PageCheck::Zeroed(verdict)
        } else {
            PageCheck::Bad(verdict)
        }
    }
}
