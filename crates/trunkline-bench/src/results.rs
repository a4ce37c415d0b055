//! **Results**: what a run measured, where and with which commit; saved as one JSON file for each
//! row, and printed as `docs/benchmarks.md`.
//!
//! ```text
//!   run ──▶ Results ──save──▶ docs/benchmarks/ROW.json ──page──▶ docs/benchmarks.md
//! ```
//!
//! The rows need different set-ups, such as a slow device or a control group, and all of them take
//! more than an hour. They may therefore be measured one by one. Still, the page only compares like
//! with like: it is refused unless all rows were measured on one machine with one commit.

use crate::command_line::without_paths;
use crate::failure::Result;
use crate::report::Report;
use crate::rows::ROWS;
use crate::workload_runs;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// Version of the JSON format.
const SCHEMA: u32 = 2;

/// The measured rows of one run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) schema: u32,
    pub(crate) machine: String,
    pub(crate) commit: String,
    /// The command line, without the machine's own paths.
    pub(crate) command: String,
    pub(crate) rows: Vec<Report>,
}

impl Results {
    /// A run that hasn't measured anything yet.
    pub(crate) fn begin(machine: String) -> Self {
        let command = command_line(std::env::args().skip(1));
        Self { schema: SCHEMA, machine, commit: commit(), command, rows: Vec::new() }
    }

    /// Writes a file for the row that was measured last.
    pub(crate) fn save_last(&self, folder: &Path) -> Result<()> {
        let Some(report) = self.rows.last() else { return Ok(()) };
        let one = Self { rows: vec![report.clone()], ..self.clone() };
        fs::create_dir_all(folder)?;
        let path = folder.join(format!("{}.json", report.row));
        let text = serde_json::to_string_pretty(&one)? + "\n";
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()).into())
    }

    fn load(path: &Path) -> Result<Self> {
        let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = fs::read_to_string(path).map_err(|error| fail(&error))?;
        let results: Self = serde_json::from_str(&text).map_err(|error| fail(&error))?;
        match results.schema {
            SCHEMA => Ok(results),
            other => Err(fail(&format!("has schema {other}, expected {SCHEMA}")).into()),
        }
    }
}

/// The Markdown page made of the results saved in `folder`, in the order of the rows.
pub(crate) fn page(folder: &Path) -> Result<String> {
    let files = ROWS.iter().map(|row| folder.join(format!("{}.json", row.name)));
    let saved: Vec<Results> = files
        .filter(|file| file.exists())
        .map(|file| Results::load(&file))
        .collect::<Result<_>>()?;
    let first = saved.first().ok_or_else(|| format!("{}: no results", folder.display()))?;
    let Results { machine, commit, .. } = first;
    for other in &saved {
        if (&other.machine, &other.commit) != (machine, commit) {
            let (a, b) = (&first.command, &other.command);
            return Err(format!(
                "results of one page must have one machine and commit, found `{a}`: commit \
                 {commit}, {machine}; `{b}`: commit {}, {}",
                other.commit, other.machine
            )
            .into());
        }
    }
    let mut page = format!("{INTRODUCTION}\n**Machine**: {machine}.\n\n**Commit**: {commit}.\n");
    for results in &saved {
        for report in &results.rows {
            write!(page, "\n{report}\n```\n{}\n```\n", results.command)?;
        }
    }
    let missing: Vec<_> = (ROWS.iter().map(|row| row.name))
        .filter(|name| !saved.iter().flat_map(|run| &run.rows).any(|report| report.row == *name))
        .collect();
    if !missing.is_empty() {
        write!(page, "\nNot measured: {}.\n", missing.join(", "))?;
    }
    page += &workload_runs::sections(folder)?;
    page += &soak_sections(&folder.join("soaks"))?;
    Ok(page)
}

/// What soak runs have measured, as they have written it.
fn soak_sections(folder: &Path) -> Result<String> {
    let fail = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    let mut text = String::new();
    if !folder.exists() {
        return Ok(text);
    }
    let entries = fs::read_dir(folder).map_err(|error| fail(folder, error))?;
    let paths: io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.map_err(|error| fail(folder, error))?;
    paths.sort();
    for path in paths {
        text.push('\n');
        text += &fs::read_to_string(&path).map_err(|error| fail(&path, error))?;
    }
    Ok(text)
}

const INTRODUCTION: &str = "\
# Benchmarks

This page is generated from the files in `docs/benchmarks`. To measure rows again and to write the page:

```
cargo run --release -p trunkline-bench -- ROW... --save docs/benchmarks
trunkline bench WORKLOAD... --scratch DIR --save docs/benchmarks/workloads/NAME.json
cargo xtask soak choice NAME=DIR...
cargo run --release -p trunkline-bench -- --page docs/benchmarks > docs/benchmarks.md
```

Each line of a table compares trunkline with a baseline that does the same work, often a *bare loop*: the smallest
program that performs the same I/O. Both sides are interleaved in pairs (A B B A ...). A ratio is the median over the
pairs, with its 95 % confidence interval (the full range if there are fewer than six pairs); above 1, trunkline's value is
the larger one. The machine is shared with others, so only ratios can be compared with other runs. CPU is microseconds per
operation, over all threads. *In flight* is the mean number of handles in use at submission, *at storage* the mean number
of operations at the device. A target is met or missed by the median.
";

/// The commit of the source tree that this program was built from. Changes to files that the
/// program isn't built from don't matter.
fn commit() -> String {
    let git = |args: &[&str]| {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let output = Command::new("git").args(["-C", root]).args(args).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let sources = ["status", "--porcelain", "--", "crates", "Cargo.toml", "Cargo.lock"];
    match (git(&["rev-parse", "--short=12", "HEAD"]), git(&sources)) {
        (Some(commit), Some(changes)) if changes.is_empty() => commit,
        (Some(commit), _) => format!("{commit} with changes"),
        (None, _) => "unknown".into(),
    }
}

/// The command line of this program.
fn command_line(arguments: impl Iterator<Item = String>) -> String {
    without_paths(std::iter::once("trunkline-bench".to_owned()).chain(arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(row: &str, commit: &str) -> Results {
        let report = Report { row: row.into(), question: format!("{row}?"), ..Report::default() };
        let (machine, command) = ("m".into(), format!("trunkline-bench {row}"));
        Results { schema: SCHEMA, machine, commit: commit.into(), command, rows: vec![report] }
    }

    #[test]
    fn a_page_has_the_rows_in_order_and_names_those_that_are_missing() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(page(folder.path()).expect_err("empty").to_string().contains("no results"));
        for row in ["random", "sequential"] {
            results(row, "a").save_last(folder.path()).expect("saved");
        }
        let page = page(folder.path()).expect("a page");
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text} in {page}"));
        assert!(at("## sequential?") < at("## random?"));
        assert!(at("Not measured: lag, ") > at("## random?"));
    }

    #[test]
    fn paths_of_this_machine_are_not_recorded() {
        let typed =
            ["lag", "--dir", "/data", "--lag-dir=/mnt/lag", "--size", "1GB", "--save", "docs"];
        let command = command_line(typed.iter().map(ToString::to_string));
        let recorded = "lag --dir DIR --lag-dir=LAG-DIR --size 1GB --save docs";
        assert_eq!(command, format!("trunkline-bench {recorded}"));
    }

    #[test]
    fn two_commits_do_not_make_one_page() {
        let folder = tempfile::tempdir().expect("a folder");
        results("random", "a").save_last(folder.path()).expect("saved");
        results("lag", "b").save_last(folder.path()).expect("saved");
        let error = page(folder.path()).expect_err("two commits").to_string();
        assert!(error.contains("commit a, m") && error.contains("commit b, m"), "{error}");
    }

    #[test]
    fn another_schema_is_refused_with_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let old = Results { schema: 1, ..results("random", "a") };
        old.save_last(folder.path()).expect("saved");
        let error = page(folder.path()).expect_err("an old schema").to_string();
        assert!(error.contains("random.json: has schema 1, expected 2"), "{error}");
    }

    #[test]
    fn a_damaged_report_is_refused_with_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        results("random", "a").save_last(folder.path()).expect("saved");
        fs::create_dir(folder.path().join("workloads")).expect("made");
        fs::write(folder.path().join("workloads/disk.json"), "{}").expect("written");
        let error = page(folder.path()).expect_err("damaged").to_string();
        assert!(error.contains("workloads/disk.json"), "{error}");
    }

    #[test]
    fn the_page_in_docs_is_the_one_made_of_the_results() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let written = fs::read_to_string(docs.join("benchmarks.md")).expect("the page");
        assert!(page(&docs.join("benchmarks")).expect("a page") == written, "write it again");
    }
}
