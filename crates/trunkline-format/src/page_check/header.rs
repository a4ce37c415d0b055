//! Checks a page header. Most of these checks are also made by a server when it reads a page. In
//! addition, we check the page size and the layout version, and make sure that `pd_lower` doesn't
//! point into the header.

use super::finding::Finding;
use crate::ids::BLOCK_SIZE;
use crate::page::{FLAGS_KNOWN, HEADER_SIZE, PageHeader};

/// `pd_pagesize_version` of every valid page: size 8192, layout version 4.
pub(crate) const SIZE_VERSION: u16 = 0x2004;
const SIZE: u16 = BLOCK_SIZE as u16;

/// All checks of a page header.
pub(super) fn check_header(header: &PageHeader) -> Result<(), Finding> {
    let lower = header.lower;
    let size_version = header.page_size | u16::from(header.version);
    if size_version != SIZE_VERSION {
        return Err(Finding::SizeVersion { found: size_version });
    }
    if lower < HEADER_SIZE {
        return Err(Finding::LowerInHeader { lower });
    }
    check_header_as_server(header)
}

/// The header checks in `PageIsVerified`, without our additional checks.
pub(super) fn check_header_as_server(header: &PageHeader) -> Result<(), Finding> {
    let PageHeader { flags, lower, upper, special, .. } = *header;
    if flags & !FLAGS_KNOWN != 0 {
        return Err(Finding::Flags { found: flags });
    }
    if lower > upper {
        return Err(Finding::LowerAboveUpper { lower, upper });
    }
    if upper > special {
        return Err(Finding::UpperAboveSpecial { upper, special });
    }
    if special > SIZE {
        return Err(Finding::SpecialAbovePage { special });
    }
    if !special.is_multiple_of(8) {
        return Err(Finding::SpecialUnaligned { special });
    }
    Ok(())
}
