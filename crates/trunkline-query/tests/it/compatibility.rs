//! `docs/compatibility.md`: which queries of the test data are refused, and why. The comparison with the
//! servers makes the list, and fails if the file has another one. With `TRUNKLINE_UPDATE_DOCS` set, it
//! writes the file instead.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use trunkline_aio::facade::env;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compatibility.md");

/// The versions that the list is about.
const MAJORS: [u32; 4] = [15, 16, 17, 18];

const HEAD: &str = "\
# Compatibility

A statement either does what PostgreSQL does, or is refused with SQLSTATE 0A000 and a message that names
what we don't have. This is the list of what the queries of `crates/trunkline-sql/testdata/queries` are
refused with. It is made by the test that compares their rows with those of servers 15 to 18:

```
TRUNKLINE_UPDATE_DOCS=1 cargo test -p trunkline-query --test it queries::
```

";

/// Refused queries: by message, then by name, with the versions.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    queries: BTreeMap<String, BTreeMap<String, BTreeSet<u32>>>,
    majors: BTreeSet<u32>,
    compared: usize,
}

impl Refusals {
    /// A query that was compared with a server of this version.
    pub(crate) fn compared(&mut self, major: u32) {
        self.majors.insert(major);
        self.compared += 1;
    }

    /// A query that was refused.
    pub(crate) fn add(&mut self, major: u32, query: String, why: &str) {
        let queries = self.queries.entry(why.to_owned()).or_default();
        queries.entry(query).or_default().insert(major);
    }

    /// Compares the list with the file. Without answers of all versions, there is nothing to compare.
    pub(crate) fn check(&self) {
        if !MAJORS.iter().all(|major| self.majors.contains(major)) {
            return;
        }
        let text = self.text();
        if env::var("TRUNKLINE_UPDATE_DOCS").is_some() {
            fs::write(FILE, text).expect("written");
            return;
        }
        let found = fs::read_to_string(FILE).unwrap_or_default();
        let hint = "run this test with TRUNKLINE_UPDATE_DOCS=1";
        assert!(found == text, "docs/compatibility.md is not current: {hint}");
    }

    fn text(&self) -> String {
        let mut reasons: Vec<_> = self.queries.iter().collect();
        reasons.sort_by_key(|(why, queries)| (std::cmp::Reverse(queries.len()), *why));
        let mut text = HEAD.to_owned();
        let refused: usize =
            self.queries.values().flat_map(|queries| queries.values()).map(BTreeSet::len).sum();
        let _ = write!(
            text,
            "Of {} comparisons, {refused} were refused.\n\n| Message | Queries |\n|---|---|\n",
            self.compared,
        );
        for (why, queries) in reasons {
            let names: Vec<String> =
                queries.iter().map(|(name, majors)| shown(name, majors)).collect();
            let _ = writeln!(text, "| {} | {} |", why.replace('|', "\\|"), names.join(", "));
        }
        text
    }
}

/// A query, with the versions if it isn't refused in all of them.
fn shown(name: &str, majors: &BTreeSet<u32>) -> String {
    if majors.len() == MAJORS.len() {
        return name.to_owned();
    }
    let majors: Vec<String> = majors.iter().map(u32::to_string).collect();
    format!("{name} ({})", majors.join(", "))
}
