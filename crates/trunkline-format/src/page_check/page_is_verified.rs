//! `PageIsVerified`: the checks a server makes before it accepts a page into shared buffers.
//!
//! ```text
//!   pd_upper 0?  all bytes 0 ──▶ New        else ──▶ Header(NewButNotZero)
//!   header sane       checksum right, or none kept ──▶ Good
//!   header sane       checksum wrong ────────────────▶ Checksum   may be ignored
//!   header bad        checksum right, or none kept ──▶ Header     never
//!   header bad        checksum wrong ────────────────▶ Both       never
//! ```
//!
//! The buffer pool needs to distinguish these cases. With `ignore_checksum_failure`, a page with a
//! wrong checksum is accepted, but only if its header is sane. With `zero_damaged_pages`, any bad
//! page is replaced with zeros. For a more thorough check of the page, see [`super::check_page`].
//!
//! Mirrors PostgreSQL's `storage/page/bufpage.c`.

use super::finding::Finding;
use super::header::check_header_as_server;
use crate::checksum::page_checksum;
use crate::ids::{BlockNo, PageBytes};
use crate::page::{PageHeader, is_all_zero, is_new};

/// The result of [`verify_page`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageVerdict {
    /// A server accepts the page.
    Good,
    /// All zero: the relation was extended, but the block has not been filled yet.
    New,
    /// The checksum is wrong, but the header is sane.
    Checksum {
        /// `pd_checksum`.
        found: u16,
        /// The checksum computed for this block number.
        expected: u16,
    },
    /// The header is bad. The checksum is right, or the cluster has checksums disabled.
    Header(Finding),
    /// Both the checksum and the header are wrong.
    Both {
        /// `pd_checksum`.
        found: u16,
        /// The checksum computed for this block number.
        expected: u16,
        /// The first problem in the header.
        header: Finding,
    },
}

const _: () = assert!(size_of::<PageVerdict>() <= 16);

impl PageVerdict {
    /// Whether a server accepts the page unchanged.
    pub fn is_valid(self) -> bool {
        matches!(self, Self::Good | Self::New)
    }

    /// Whether a server with `ignore_checksum_failure` enabled accepts the page unchanged.
    pub fn is_valid_but_for_checksum(self) -> bool {
        matches!(self, Self::Good | Self::New | Self::Checksum { .. })
    }

    /// Whether the checksum is wrong. The server counts such pages as checksum failures.
    pub fn is_checksum_failure(self) -> bool {
        matches!(self, Self::Checksum { .. } | Self::Both { .. })
    }

    /// The first problem, for error messages. A checksum mismatch is reported before a bad header.
    pub fn finding(self) -> Option<Finding> {
        match self {
            Self::Good | Self::New => None,
            Self::Checksum { found, expected } | Self::Both { found, expected, .. } => {
                Some(Finding::Checksum { found, expected })
            }
            Self::Header(finding) => Some(finding),
        }
    }
}

/// Verifies `page` in the same way as a server that has just read it. `block` is the page's block
/// number in the fork, counted across all segments. `checksums` must be true if data checksums are
/// enabled in the cluster.
///
/// ```
/// use trunkline_format::{HeapPageBuilder, PageVerdict, verify_page};
/// let mut page = HeapPageBuilder::new(7).finish(true);
/// assert_eq!(verify_page(&page, 7, true), PageVerdict::Good);
/// page[8000] ^= 1;
/// assert!(verify_page(&page, 7, true).is_valid_but_for_checksum());
/// page[11] = 0xFF; // flags that do not exist
/// assert!(!verify_page(&page, 7, true).is_valid_but_for_checksum());
/// ```
pub fn verify_page(page: &PageBytes, block: BlockNo, checksums: bool) -> PageVerdict {
    if is_new(page) {
        return if is_all_zero(page) {
            PageVerdict::New
        } else {
            PageVerdict::Header(Finding::NewButNotZero)
        };
    }
    let header = PageHeader::parse(page);
    let found = header.checksum;
    let expected = if checksums { page_checksum(page, block) } else { found };
    match check_header_as_server(&header) {
        Ok(()) if found == expected => PageVerdict::Good,
        Ok(()) => PageVerdict::Checksum { found, expected },
        Err(finding) if found == expected => PageVerdict::Header(finding),
        Err(header) => PageVerdict::Both { found, expected, header },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::BLOCK_SIZE;
    use crate::test_data::{XorShift, header, put, row};
    use crate::{
        HeapPageBuilder, Verdict, ids::Fork, page_check::CheckOptions, page_check::check_page,
    };

    /// The verdicts with checksums enabled and disabled.
    fn verdicts(page: &PageBytes) -> [PageVerdict; 2] {
        [true, false].map(|checksums| verify_page(page, 3, checksums))
    }

    fn summed(mut page: PageBytes) -> PageBytes {
        let checksum = page_checksum(&page, 3);
        put(&mut page, 8, &checksum.to_le_bytes());
        page
    }

    #[test]
    fn checksum_and_header_failures_are_distinguished() {
        use PageVerdict::{Good, New};
        let sane = summed(header(0, 24, 8192, 8192));
        assert_eq!(verdicts(&sane), [Good, Good]);
        let expected = page_checksum(&sane, 3);
        let mut wrong = sane;
        wrong[9] ^= 0x80;
        let found = expected ^ 0x8000;
        assert_eq!(verdicts(&wrong), [PageVerdict::Checksum { found, expected }, Good]);
        assert!(!verify_page(&sane, 4, true).is_valid(), "another block's");

        let finding = Finding::Flags { found: 8 };
        let bad = summed(header(8, 24, 8192, 8192));
        assert_eq!(verdicts(&bad), [PageVerdict::Header(finding); 2]);
        let bad = header(8, 24, 8192, 8192);
        let expected = page_checksum(&bad, 3);
        let both = PageVerdict::Both { found: 0, expected, header: finding };
        assert_eq!(verdicts(&bad), [both, PageVerdict::Header(finding)]);

        let mut zero = [0; BLOCK_SIZE];
        assert_eq!(verdicts(&zero), [New, New]);
        zero[8191] = 1;
        assert_eq!(verdicts(&zero), [PageVerdict::Header(Finding::NewButNotZero); 2]);

        // Which verdicts each setting accepts.
        let all = [
            (Good, [true, true, false]),
            (New, [true, true, false]),
            (PageVerdict::Checksum { found, expected }, [false, true, true]),
            (PageVerdict::Header(finding), [false, false, false]),
            (both, [false, false, true]),
        ];
        for (verdict, takes) in all {
            let plain = verdict.is_valid();
            let ignoring = verdict.is_valid_but_for_checksum();
            assert_eq!([plain, ignoring, verdict.is_checksum_failure()], takes, "{verdict:?}");
            assert_eq!(verdict.finding().is_none(), plain);
        }
    }

    #[test]
    fn headers_as_a_server_sees_them() {
        for (page, sane) in [
            (header(7, 24, 8192, 8192), true),
            (header(0, 24, 24, 24), true),
            // The server checks neither the minimum of `pd_lower` nor the layout version.
            (header(0, 10, 8192, 8192), true),
            (
                {
                    let mut page = header(0, 24, 8192, 8192);
                    page[18] = 3;
                    page
                },
                true,
            ),
            (header(0x8000, 24, 8192, 8192), false),
            (header(0, 32, 24, 8192), false),
            (header(0, 24, 8192, 8184), false),
            (header(0, 24, 8192, 8200), false),
            (header(0, 24, 8000, 8190), false),
            (header(0, 24, 0, 8192), false),
        ] {
            assert_eq!(verify_page(&page, 0, false).is_valid(), sane, "{:?}", &page[10..20]);
        }
    }

    /// Under random damage, any page that passes our checks must also be accepted by a server.
    #[test]
    fn never_stricter_than_the_check() {
        let mut builder = HeapPageBuilder::new(3);
        while builder.push(&row(1).tuple()).is_ok() {}
        let sound = builder.finish(true);
        let mut random = XorShift(0x5EED);
        for round in 0..50_000 {
            let mut page = sound;
            for _ in 0..random.below(3) {
                page[random.below([24, 8192][round % 2])] = random.next() as u8;
            }
            for checksums in [true, false] {
                let verdict = verify_page(&page, 3, checksums);
                let options = CheckOptions { checksums, fork: Fork::Main };
                match check_page(&page, 3, &options) {
                    Verdict::Good | Verdict::New => assert!(verdict.is_valid()),
                    Verdict::Bad(Finding::Checksum { found, expected }) => {
                        assert_eq!(verdict.finding(), Some(Finding::Checksum { found, expected }));
                        assert!(verdict.is_checksum_failure());
                    }
                    Verdict::Bad(_) => assert!(!verdict.is_checksum_failure()),
                }
            }
        }
    }
}
