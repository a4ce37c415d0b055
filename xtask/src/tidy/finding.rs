//! Findings: the places that break a rule.
//! They print as compiler messages do, so that editors can jump to them.

use std::fmt;

/// A place that breaks a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    pub(super) path: String,
    /// Counted from 1.
    pub(super) line: usize,
    pub(super) rule: &'static str,
    pub(super) text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.text)
    }
}

/// Collects what one rule finds.
pub(super) struct Findings {
    pub(super) rule: &'static str,
    pub(super) found: Vec<Finding>,
}

impl Findings {
    /// Adds a finding in `path` at `line`, which counts from 1.
    pub(super) fn add(&mut self, path: &str, line: usize, text: impl Into<String>) {
        let (path, text) = (path.to_owned(), text.into());
        self.found.push(Finding { path, line, rule: self.rule, text });
    }
}
