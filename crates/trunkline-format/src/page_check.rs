//! **Page check**: validates a page in a single pass, starting with the checks that are cheapest
//! and most likely to find damage.
//!
//! ```text
//!   pd_upper 0? ── all bytes 0? ──▶ New, or Bad
//!       │no
//!   checksum, if the cluster has them ─────▶ Bad (PostgreSQL finds this too)
//!   header: version, flags, the order of lower, upper and special
//!   line pointers, where the page has them: each item inside, none over another
//!   tuple headers, in tables
//!       │
//!      Good
//! ```
//!
//! When a server reads a page, it performs the first two steps and part of the third, and so does
//! [`verify_page`]. The remaining steps are those checks of `amcheck` that don't need to look at
//! any other page.
//!
//! If `pd_upper` is 0 but other bytes of the page are not, the server rejects the page, whereas
//! `pg_checksums` treats it as a new page and skips it. We do the same as the server.
//!
//! If a page is not damaged, we always report it as `Good` or `New`, no matter which access method
//! it belongs to. Some access methods don't use line pointers on all of their pages (see
//! [`crate::page_kind`]). On a page without line pointers, we can only check the header.

mod finding;
mod header;
mod line_pointers;
mod page_is_verified;

use crate::checksum::page_checksum;
use crate::ids::{BlockNo, Fork, PageBytes};
use crate::page::{PageHeader, is_all_zero, is_new};
use crate::page_kind::PageKind;

pub use finding::Finding;
pub(crate) use header::SIZE_VERSION;
pub use page_is_verified::{PageVerdict, verify_page};

/// What [`check_page`] must know about the page's cluster and fork.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckOptions {
    /// Whether the cluster has data checksums; see [`crate::ControlFile::checksums`].
    pub checksums: bool,
    /// The fork that the page belongs to.
    pub fork: Fork,
}

/// The result of [`check_page`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// No damage was found.
    Good,
    /// The page is all zeros. This happens if the server extends the relation and then crashes
    /// before it writes anything to the new block. Such a page is valid in any relation.
    New,
    /// The first problem found.
    Bad(Finding),
}

const _: () = assert!(size_of::<Verdict>() <= 12);

/// Checks `page`. `block` is its block number in the fork, across all segments.
///
/// ```
/// use trunkline_format::{BLOCK_SIZE, CheckOptions, Fork, Verdict, check_page};
/// let options = CheckOptions { checksums: true, fork: Fork::Main };
/// assert_eq!(check_page(&[0; BLOCK_SIZE], 7, &options), Verdict::New);
///
/// let Verdict::Bad(finding) = check_page(&[0xFF; BLOCK_SIZE], 0, &options) else { panic!() };
/// assert_eq!(finding.to_string(), "checksum 0xFFFF found, 0x0E1C expected");
/// ```
pub fn check_page(page: &PageBytes, block: BlockNo, options: &CheckOptions) -> Verdict {
    if is_new(page) {
        return if is_all_zero(page) { Verdict::New } else { Verdict::Bad(Finding::NewButNotZero) };
    }
    match check_filled(page, block, options) {
        Ok(()) => Verdict::Good,
        Err(finding) => Verdict::Bad(finding),
    }
}

fn check_filled(page: &PageBytes, block: BlockNo, options: &CheckOptions) -> Result<(), Finding> {
    let header = PageHeader::parse(page);
    if options.checksums {
        let expected = page_checksum(page, block);
        if header.checksum != expected {
            return Err(Finding::Checksum { found: header.checksum, expected });
        }
    }
    header::check_header(&header)?;
    let kind = PageKind::of(page, options.fork);
    if kind.has_line_pointers(page) {
        line_pointers::check_line_pointers(page, &header, kind)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
