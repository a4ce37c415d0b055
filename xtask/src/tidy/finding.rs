//! **Findings**: places that violate a rule, printed in the format of compiler messages, so that
//! editors can jump to them.

use std::fmt;

/// One violation of a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    pub(super) path: String,
    /// 1-based.
    pub(super) line: usize,
    pub(super) rule: &'static str,
    pub(super) text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.text)
    }
}

/// Collects one rule's findings.
pub(super) struct Findings {
    pub(super) rule: &'static str,
    pub(super) found: Vec<Finding>,
}

impl Findings {
    /// Adds a finding at `line` (1-based) of `path`.
    pub(super) fn add(&mut self, path: &str, line: usize, text: impl Into<String>) {
        let (path, text) = (path.to_owned(), text.into());
        self.found.push(Finding { path, line, rule: self.rule, text });
    }
}
