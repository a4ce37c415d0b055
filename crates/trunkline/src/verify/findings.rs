//! Findings of `trunkline verify` as text and as JSON.

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;
use trunkline_engine::verify::Finding;

use crate::data_dir::relative;
use crate::exit::plain;
use crate::output::object;

/// Returns the findings, one per line, followed by a line with the number of findings that are not
/// listed and an empty line. If there are no findings, the text is empty.
pub(super) fn list(findings: &[Finding], omitted: u64, root: &Path) -> String {
    let mut text = String::new();
    for finding in findings {
        if let Some(relation) = &finding.relation {
            let _ = write!(text, "{relation}: ");
        }
        // Without a file, a finding is about the database.
        if finding.path != root {
            let _ = write!(text, "{}: ", relative(&finding.path, root));
        }
        let _ = writeln!(text, "{}", plain(finding));
    }
    if omitted > 0 {
        let _ = writeln!(text, "… and {omitted} more");
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// All findings as JSON.
pub(super) fn json(findings: &[Finding], root: &Path) -> Vec<impl Serialize> {
    let json = |finding: &Finding| {
        let relation = finding.relation.as_deref().map(str::to_owned);
        object! {
            #[serde(flatten)]
            relation: relation.map(|relation| object! { relation: relation }),
            file: relative(&finding.path, root),
            block: finding.block,
            #[serde(flatten)]
            line_pointer: finding.item.map(|item| object! { line_pointer: item }),
            kind: finding.kind.name(),
            text: plain(&finding.kind),
            #[serde(flatten)]
            more: (finding.more > 0).then(|| object! { more: finding.more }),
        }
    };
    findings.iter().map(json).collect()
}
