//! Statements from text to rows, compared with the answers of real servers: the same rows and errors,
//! or refused by name.

use std::collections::BTreeMap;
use std::path::Path;

use trunkline_format::text_input::InputOptions;
use trunkline_query::StatementContext;
use trunkline_sql::bind::{BindOptions, bind};
use trunkline_sql::bound::BoundStatement;
use trunkline_sql::catalog::{Namespace, SearchPath};
use trunkline_sql::syntax::{SelectStatement, Statement, parse};
use trunkline_sql::{SqlError, SqlState};

use crate::answers::{Answer, Outcome, all_answers, versions};
use crate::cluster::{escape, open, try_lines};
use crate::compatibility::Refusals;

/// How many of the queries that psql 18 sends give the rows of the server. The number may only rise.
const PSQL_FLOOR: usize = 96;

/// How a statement compares.
enum Verdict {
    Same,
    Refused(String),
    NotCompared,
    Wrong(String),
}

/// The rows of a query as lines of `COPY`; `None` if the text isn't one query.
pub(crate) fn rows(context: &StatementContext, sql: &str) -> Result<Option<Vec<String>>, SqlError> {
    let statements = parse(sql)?;
    let [statement] = &*statements else { return Ok(None) };
    let Statement::Select(_) = &statement.statement else { return Ok(None) };
    try_lines(context, &bound(context, sql)?).map(Some)
}

/// A bound query.
pub(crate) fn bound(context: &StatementContext, sql: &str) -> Result<BoundStatement, SqlError> {
    let statements = parse(sql)?;
    let [statement] = &*statements else { panic!("{sql} is not one statement") };
    let Statement::Select(select) = &statement.statement else { panic!("{sql} is not a query") };
    bound_select(context, select)
}

/// A bound query, of which the syntax tree is known.
pub(crate) fn bound_select(
    context: &StatementContext,
    select: &SelectStatement,
) -> Result<BoundStatement, SqlError> {
    let catalog = &context.environment.catalog;
    let path = SearchPath::new(catalog, &["$user", "public"], Some("postgres"));
    let major = context.environment.settings.major;
    let options = BindOptions {
        names: Namespace::new(catalog, &path),
        input: InputOptions::new(major, &*context.database, 0),
        parameters: None,
        nesting: 0,
    };
    Ok(bind(select, options)?.statement)
}

fn compare(context: &StatementContext, answer: &Answer) -> Verdict {
    match (rows(context, &answer.sql), &answer.outcome) {
        (Ok(None), _) => Verdict::NotCompared,
        (Err(error), _)
            if error.code() == SqlState::FEATURE_NOT_SUPPORTED
                && error.message().contains("supported by trunkline") =>
        {
            Verdict::Refused(error.message().to_owned())
        }
        (Err(error), Outcome::Error(expected)) if error.code().as_str() == expected.sqlstate => {
            Verdict::Same
        }
        (Err(error), Outcome::Error(expected)) => {
            let (code, message) = (error.code(), error.message());
            Verdict::Wrong(format!("found {code:?} {message}, expected {expected:?}"))
        }
        (Err(error), Outcome::Rows { .. }) => {
            Verdict::Wrong(format!("found {:?} {}", error.code(), error.message()))
        }
        (Ok(Some(_)), Outcome::Error(error)) => {
            Verdict::Wrong(format!("rows, expected {} {}", error.sqlstate, error.message))
        }
        (Ok(Some(mut found)), Outcome::Rows { columns, rows }) => {
            let is_whole = |row: &Vec<Option<String>>| row.len() == columns.len().max(1);
            assert!(rows.iter().all(is_whole), "{}: rows", answer.name);
            let mut expected: Vec<String> = rows.iter().map(|row| line(row)).collect();
            if !answer.is_ordered {
                found.sort_unstable();
                expected.sort_unstable();
            }
            match found == expected {
                true => Verdict::Same,
                false => Verdict::Wrong(format!(
                    "{} rows, expected {}\n      found    {:?}\n      expected {:?}",
                    found.len(),
                    expected.len(),
                    difference(&found, &expected),
                    difference(&expected, &found),
                )),
            }
        }
    }
}

/// A row of an answer as a line of `COPY`.
fn line(row: &[Option<String>]) -> String {
    let mut line = Vec::new();
    for (at, value) in row.iter().enumerate() {
        if at > 0 {
            line.push(b'\t');
        }
        match value {
            Some(value) => escape(value.as_bytes(), &mut line),
            None => line.extend(br"\N"),
        }
    }
    String::from_utf8(line).expect("UTF-8")
}

/// The first lines that differ.
pub(crate) fn difference(one: &[String], other: &[String]) -> Vec<String> {
    let differs = |(at, line): &(usize, &String)| other.get(*at) != Some(line);
    one.iter().enumerate().filter(differs).take(3).map(|(_, line)| line.clone()).collect()
}

#[test]
fn queries_give_the_rows_of_the_server() {
    let (mut wrong, mut refusals) = (Vec::new(), Refusals::default());
    for (major, directory) in versions() {
        let data = directory.join("../../data");
        let mut contexts: BTreeMap<String, StatementContext> = BTreeMap::new();
        let (mut same, mut refused, mut other) = (0, 0, 0);
        let mut psql = 0;
        for (area, answer) in all_answers(&directory) {
            let context = contexts
                .entry(answer.database.clone())
                .or_insert_with(|| open(&data, &answer.database));
            refusals.compared(major);
            match compare(context, &answer) {
                Verdict::Same => {
                    same += 1;
                    psql += usize::from(area.starts_with("psql18"));
                }
                Verdict::Refused(why) => {
                    refused += 1;
                    println!("refused {major} {area}/{}: {why}", answer.name);
                    refusals.add(major, format!("{area}/{}", answer.name), &why);
                }
                Verdict::NotCompared => other += 1,
                Verdict::Wrong(why) => {
                    let (name, sql) = (&answer.name, &answer.sql);
                    wrong.push(format!("{major} {area}/{name}: {why}\n    {sql}"));
                }
            }
        }
        println!("shop{major}: {same} the same, {refused} refused, {other} not compared");
        if major == 18 {
            println!("psql 18: {psql} of its queries give the rows of the server");
            assert!(psql >= PSQL_FLOOR, "{psql} queries of psql, fewer than before");
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    refusals.check();
}

/// A context whose joins sort their inputs, as they do if a hash table doesn't fit into memory.
pub(crate) fn merging(mut context: StatementContext, directory: &Path) -> StatementContext {
    context.options.join_memory = Some(0);
    context.options.temporary_directory = Some(directory.to_owned());
    context
}

#[test]
fn joins_that_sort_give_the_rows_of_the_server() {
    let Some((_, directory)) = versions().pop() else { return };
    let data = directory.join("../../data");
    let temporary = tempfile::tempdir().expect("a directory");
    let mut contexts: BTreeMap<String, StatementContext> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (area, answer) in all_answers(&directory) {
        let context = contexts
            .entry(answer.database.clone())
            .or_insert_with(|| merging(open(&data, &answer.database), temporary.path()));
        if let Verdict::Wrong(why) = compare(context, &answer) {
            wrong.push(format!("{area}/{}: {why}\n    {}", answer.name, answer.sql));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
