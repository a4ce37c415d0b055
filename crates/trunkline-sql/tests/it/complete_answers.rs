//! Whether servers have answered all queries of the test data. A query without an answer would be a
//! test that never runs.

use std::fs;
use std::path::Path;

use crate::answers::{Answer, Outcome, ServerError, answers, versions};

/// Names of queries in a file of the test data.
fn names(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).expect("queries");
    text.lines().filter_map(|line| line.strip_prefix("-- name: ")).map(str::to_owned).collect()
}

#[test]
fn every_query_has_an_answer() {
    let queries = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/queries");
    for (major, directory) in versions() {
        let mut count = 0;
        for entry in fs::read_dir(&queries).expect("queries") {
            let file = entry.expect("entry").path();
            let area = file.file_stem().expect("a name");
            if area == "setup" {
                continue;
            }
            let answers = answers(&directory.join(area).with_extension("tsv"));
            let answered: Vec<&str> = answers.iter().map(|answer| answer.name.as_str()).collect();
            assert_eq!(answered, names(&file), "{major}: {}", file.display());
            answers.iter().for_each(check);
            count += answers.len();
        }
        println!("{major}: {count} answers");
    }
}

fn check(answer: &Answer) {
    let Answer { name, database, sql, outcome, .. } = answer;
    assert!(["shop", "intl"].contains(&database.as_str()), "{name}: {database}");
    assert!(!sql.ends_with('\n') && !sql.contains("{public."), "{name}: {sql}");
    // The names of queries that test errors begin with the error's code.
    let is_code = |word: &&str| {
        word.len() == 5 && word.chars().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase())
    };
    let code = name.split(' ').next().filter(is_code);
    match outcome {
        Outcome::Rows { columns, rows } => {
            assert_eq!(code, None, "{name}: no error");
            // A row without columns is written like one with a single empty text.
            let widths = rows.iter().map(|row| if columns.is_empty() { 0 } else { row.len() });
            assert!(widths.into_iter().all(|width| width == columns.len()), "{name}: rows");
        }
        Outcome::Error(error) => {
            assert!(!error.message.is_empty() && error.sqlstate.len() == 5, "{name}: {error:?}");
            assert!(
                error.position.is_none_or(|at| at <= sql.chars().count() + 1),
                "{name}: {error:?}"
            );
            assert!(code.is_none_or(|code| code == error.sqlstate), "{name}: {error:?}");
        }
    }
}

#[test]
fn values_are_read_as_they_were_sent() {
    for (major, directory) in versions() {
        let find = |area: &str, name: &str| {
            let answers = answers(&directory.join(area).with_extension("tsv"));
            answers.into_iter().find(|answer| answer.name == name).expect("an answer")
        };
        let texts = find("texts", "every type");
        let Outcome::Rows { columns, rows } = texts.outcome else { panic!("{major}: texts") };
        assert_eq!(columns[2], ("v".to_owned(), "character varying(8)".to_owned()));
        let text = |row: usize| rows[row][1].as_deref();
        assert_eq!([text(2), text(3), text(8)], [Some(""), None, Some("back\\slash")]);
        assert_eq!(text(9), Some("tab\tnl\nend"));
        assert!(texts.is_ordered && !find("scans", "physical order").is_ordered);
        let wanted = ServerError {
            sqlstate: "42703".to_owned(),
            message: "column \"nam\" does not exist".to_owned(),
            detail: None,
            hint: Some(
                "Perhaps you meant to reference the column \"departments.name\".".to_owned(),
            ),
            position: Some(8),
        };
        let Outcome::Error(error) = find("errors", "42703 column").outcome else { panic!() };
        assert_eq!(error, wanted, "{major}");
    }
}
