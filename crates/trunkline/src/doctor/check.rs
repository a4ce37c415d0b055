//! The result of one check: good, limited or missing, with the reason and the one-line fix.
//!
//! ```text
//!   missing  io_uring: set up   a seccomp filter forbids it; fix: allow io_uring_setup, ...
//! ```
//! *Limited* means that it works, but slower or with less than it could. A check never says *good*
//! without a reason: the reader should see what we tried.

use serde::Serialize;

use crate::output::Table;

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    /// It works.
    Good,
    /// It works, with a drawback.
    Limited,
    /// It doesn't work.
    Missing,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Status::Good => "good",
            Status::Limited => "limited",
            Status::Missing => "missing",
        }
    }
}

/// One check and its result.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Check {
    /// What the check is about, such as `io_uring` or the path of a directory.
    pub(crate) area: String,
    /// What was checked.
    pub(crate) name: String,
    pub(crate) status: Status,
    pub(crate) reason: String,
    /// How to improve it. `None` if nothing needs to change.
    pub(crate) fix: Option<String>,
}

impl Check {
    pub(crate) fn good(area: &str, name: impl Into<String>, reason: impl Into<String>) -> Check {
        Check::new(area, name, Status::Good, reason, None)
    }

    pub(crate) fn limited(
        area: &str,
        name: impl Into<String>,
        reason: impl Into<String>,
        fix: impl Into<String>,
    ) -> Check {
        Check::new(area, name, Status::Limited, reason, Some(fix.into()))
    }

    pub(crate) fn missing(
        area: &str,
        name: impl Into<String>,
        reason: impl Into<String>,
        fix: impl Into<String>,
    ) -> Check {
        Check::new(area, name, Status::Missing, reason, Some(fix.into()))
    }

    fn new(
        area: &str,
        name: impl Into<String>,
        status: Status,
        reason: impl Into<String>,
        fix: Option<String>,
    ) -> Check {
        let (name, reason) = (name.into(), crate::exit::plain(reason.into()));
        Check { area: area.to_owned(), name, status, reason, fix }
    }
}

/// A cause and its fix, each in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Why {
    pub(crate) reason: String,
    pub(crate) fix: String,
}

/// All checks as text, a line each.
pub(crate) fn render(checks: &[Check]) -> String {
    let mut table = Table::new(&["status", "check", "reason"]);
    for check in checks {
        let fix = check.fix.iter().map(|fix| format!("; fix: {fix}"));
        let reason = [check.reason.clone()].into_iter().chain(fix).collect();
        let name = format!("{}: {}", check.area, check.name);
        table.row(vec![check.status.name().to_owned(), name, reason]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_a_line_with_reason_and_fix() {
        let checks = [
            Check::good("io_uring", "set up", "a ring was opened"),
            Check::missing("io_uring", "read", "Operation not permitted (os error 1)", "allow it"),
        ];
        let text = render(&checks);
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(lines[0], "good     io_uring: set up  a ring was opened");
        assert_eq!(lines[1], "missing  io_uring: read    Operation not permitted; fix: allow it");
    }
}
