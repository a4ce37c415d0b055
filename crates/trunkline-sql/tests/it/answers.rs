//! **Answers** that servers gave to the queries of the test data. `shop18/expected/queries/joins.tsv`
//! in the fixture directory has a record for each query of `testdata/queries/joins.sql`; its format
//! is described in xtask, which writes it.
//!
//! ```text
//! for answer in answers(&fixture.join("expected/queries/joins.tsv")) {
//!     let Outcome::Rows { columns, rows } = answer.outcome else { continue };
//! }
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A query and what the server returned for it.
pub(crate) struct Answer {
    pub(crate) name: String,
    /// The database that was asked.
    pub(crate) database: String,
    /// Does the query determine the order of its rows? If not, sort before comparing.
    pub(crate) is_ordered: bool,
    /// The statement, exactly as it was sent.
    pub(crate) sql: String,
    pub(crate) outcome: Outcome,
}

/// What a statement returned.
pub(crate) enum Outcome {
    Rows {
        /// Names and types, the latter as `format_type` prints them.
        columns: Vec<(String, String)>,
        /// The values' texts; `None` is null.
        rows: Vec<Vec<Option<String>>>,
    },
    Error(ServerError),
}

/// The fields of an error that a client shows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerError {
    pub(crate) sqlstate: String,
    pub(crate) message: String,
    pub(crate) detail: Option<String>,
    pub(crate) hint: Option<String>,
    /// In characters of the statement, from 1.
    pub(crate) position: Option<usize>,
}

/// The versions with answers, each with its directory of records. Empty without fixtures.
#[expect(clippy::disallowed_methods, reason = "a test has no main that could pass this down")]
pub(crate) fn versions() -> Vec<(u32, PathBuf)> {
    let Some(fixtures) = std::env::var_os("TRUNKLINE_FIXTURE_DIR").map(PathBuf::from) else {
        println!("skipped: no fixture");
        return Vec::new();
    };
    let of = |major: u32| (major, fixtures.join(format!("shop{major}/expected/queries")));
    let found: Vec<_> = (15..=18).map(of).filter(|(_, directory)| directory.is_dir()).collect();
    assert!(!found.is_empty(), "no answers in {}", fixtures.display());
    found
}

/// The answers in a file.
pub(crate) fn answers(file: &Path) -> Vec<Answer> {
    let text = fs::read_to_string(file).expect("answers");
    let lines: Vec<(&str, Vec<Option<String>>)> = text.lines().map(line).collect();
    let records = lines.chunk_by(|_, (key, _)| *key != "query");
    records.map(answer).collect()
}

/// A key and its values.
fn line(line: &str) -> (&str, Vec<Option<String>>) {
    let (key, values) = line.split_once('\t').unwrap_or((line, ""));
    (key, values.split('\t').map(|value| (value != "\\N").then(|| unescaped(value))).collect())
}

/// Reverses the escapes of COPY's text format.
fn unescaped(value: &str) -> String {
    let mut text = String::new();
    let mut rest = value.chars();
    while let Some(c) = rest.next() {
        text.push(match (c, if c == '\\' { rest.next() } else { None }) {
            (_, None) => c,
            (_, Some('b')) => '\u{8}',
            (_, Some('f')) => '\u{c}',
            (_, Some('n')) => '\n',
            (_, Some('r')) => '\r',
            (_, Some('t')) => '\t',
            (_, Some('v')) => '\u{b}',
            (_, Some(other)) => other,
        });
    }
    text
}

fn answer(record: &[(&str, Vec<Option<String>>)]) -> Answer {
    let mut rows = Vec::new();
    let mut fields: BTreeMap<&str, &[Option<String>]> = BTreeMap::new();
    for (key, values) in record {
        if *key == "row" {
            rows.push(values.clone());
        } else {
            assert!(fields.insert(*key, values).is_none(), "{key} twice: {record:?}");
        }
    }
    let all = |key: &str| -> Vec<String> {
        fields.get(key).map_or(Vec::new(), |values| values.iter().flatten().cloned().collect())
    };
    let one = |key: &str| all(key).into_iter().next();
    let outcome = match one("sqlstate") {
        Some(sqlstate) => Outcome::Error(ServerError {
            sqlstate,
            message: one("message").expect("message"),
            detail: one("detail"),
            hint: one("hint"),
            position: one("position").map(|text| text.parse().expect("a position")),
        }),
        None => {
            let columns = all("columns").into_iter().zip(all("types")).collect();
            Outcome::Rows { columns, rows }
        }
    };
    Answer {
        name: one("query").expect("query"),
        database: one("database").expect("database"),
        is_ordered: one("rows").expect("rows") == "ordered",
        sql: one("sql").expect("sql"),
        outcome,
    }
}

/// The answers in a directory, each with the name of its file.
pub(crate) fn all_answers(directory: &Path) -> Vec<(String, Answer)> {
    let files = fs::read_dir(directory).expect("answers");
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    files.sort();
    let of = |file: &PathBuf| {
        let area = file.file_stem().expect("a name").to_string_lossy().into_owned();
        answers(file).into_iter().map(move |answer| (area.clone(), answer)).collect::<Vec<_>>()
    };
    files.iter().flat_map(of).collect()
}
