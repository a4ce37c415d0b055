//! What both lists have in common: their order, and the column "cached".

use std::cmp::Reverse;

use clap::ValueEnum;

use crate::output::{Column, size_pretty};

/// The order of a list. Numbers are sorted from the largest down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortKey {
    /// By name, and by schema before that.
    Name,
    /// By size, the largest first.
    Size,
    /// By the planner's estimate of the number of rows.
    Rows,
    /// By what is in the page cache; requires --cached.
    Cached,
}

/// How to list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listing {
    pub(super) sort: SortKey,
    /// Whether to show what is in the page cache.
    pub(super) cached: bool,
}

/// Sorts from the largest number down. Lines without a number come last; equal ones stay in order.
pub(super) fn sort<T>(lines: &mut [T], number: impl Fn(&T) -> Option<u64>) {
    lines.sort_by_key(|line| Reverse(number(line)));
}

/// The columns to show.
pub(super) fn columns<T>(all: &[Column<T>], cached: bool) -> Vec<Column<T>> {
    all.iter().filter(|(heading, _)| cached || *heading != ">cached").copied().collect()
}

/// A size, or what is known about it. `None` stands for a file or directory that is missing.
pub(super) fn size(bytes: Option<u64>, incomplete: bool) -> String {
    match bytes {
        None => "missing".to_owned(),
        Some(0) if incomplete => "unknown".to_owned(),
        Some(bytes) if incomplete => format!("at least {}", size_pretty(bytes)),
        Some(bytes) => size_pretty(bytes),
    }
}

/// For fields that are left out unless they are true.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) fn is_false(value: &bool) -> bool {
    !value
}

/// A part of a size, also in per cent: `16 kB (25 %)`.
pub(super) fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => size_pretty(part),
        _ => format!("{} ({:.0} %)", size_pretty(part), part as f64 * 100.0 / whole as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_without_a_number_come_last() {
        let mut lines = [("a", Some(1)), ("b", None), ("c", Some(3)), ("d", Some(1))];
        sort(&mut lines, |line| line.1);
        assert_eq!(lines.map(|line| line.0), ["c", "a", "d", "b"]);
    }

    #[test]
    fn shares_are_rounded() {
        assert_eq!(share(0, 0), "0 bytes");
        assert_eq!(share(16_384, 65_536), "16 kB (25 %)");
    }
}
