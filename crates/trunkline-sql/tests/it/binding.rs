//! Statements are bound as real servers bind them: the same columns, types and errors, or refused by
//! name.

use std::collections::BTreeMap;

use trunkline_aio::facade::Arc;
use trunkline_aio::{Builder, MethodKind};
use trunkline_engine::catalog::{Database, OnDamage};
use trunkline_engine::engine::Engine;
use trunkline_engine::settings::Settings;
use trunkline_format::Oid;
use trunkline_format::text_input::InputOptions;
use trunkline_sql::bind::{BindOptions, Bound, bind};
use trunkline_sql::catalog::{Namespace, SearchPath, SqlCatalog, ViewQueries};
use trunkline_sql::syntax::{Statement, parse};
use trunkline_sql::{SqlError, SqlState};

use crate::answers::{Answer, Outcome, ServerError, all_answers, versions};

/// How a statement compares.
enum Verdict {
    /// As the server binds it.
    Same,
    /// Refused by name.
    Refused(String),
    /// Not a query, or an error that only execution can find.
    NotCompared,
    /// Different.
    Wrong(String),
}

fn bound(catalog: &SqlCatalog, major: u32, sql: &str) -> Result<Option<Bound>, SqlError> {
    let statements = parse(sql)?;
    let [statement] = &*statements else { return Ok(None) };
    let Statement::Select(select) = &statement.statement else { return Ok(None) };
    let path = SearchPath::new(catalog, &["$user", "public"], Some("postgres"));
    let database = Arc::clone(catalog.database());
    let options = BindOptions {
        names: Namespace::new(catalog, &path),
        input: InputOptions::new(major, &*database, 0),
        parameters: None,
        nesting: statement.nesting(),
    };
    bind(select, options).map(Some)
}

fn compare(catalog: &SqlCatalog, major: u32, answer: &Answer) -> Verdict {
    let found = bound(catalog, major, &answer.sql);
    let path = SearchPath::new(catalog, &["$user", "public"], Some("postgres"));
    let names = Namespace::new(catalog, &path);
    match (found, &answer.outcome) {
        (Ok(None), _) => Verdict::NotCompared,
        (Err(error), _)
            if error.code() == SqlState::FEATURE_NOT_SUPPORTED
                && error.message().contains("supported by trunkline") =>
        {
            Verdict::Refused(error.message().to_owned())
        }
        (Err(error), Outcome::Error(expected)) => {
            // The first version in which this error has a position is 18.
            let is_placed = major >= 18 || !error.message().starts_with("WITH TIES cannot");
            let position = error.character(&answer.sql).filter(|_| is_placed);
            let found = (error.code().as_str(), error.message(), position);
            let wanted = (&*expected.sqlstate, &*expected.message, expected.position);
            match found == wanted {
                true => Verdict::Same,
                false => Verdict::Wrong(format!("found {found:?}, expected {wanted:?}")),
            }
        }
        (Err(error), Outcome::Rows { .. }) => {
            let (code, message) = (error.code(), error.message());
            Verdict::Wrong(format!("found {code:?} {message} at {:?}", error.offset()))
        }
        (Ok(Some(_)), Outcome::Error(error)) if is_found_by_execution(error) => {
            Verdict::NotCompared
        }
        (Ok(Some(_)), Outcome::Error(error)) => {
            Verdict::Wrong(format!("bound, expected {} {}", error.sqlstate, error.message))
        }
        (Ok(Some(bound)), Outcome::Rows { columns, .. }) => {
            let output = bound.statement.query.output.iter().map(|column| {
                let ty = bound.statement.columns.get(column.id).ty;
                (column.name.to_string(), names.format_type(ty.oid, Some(ty.modifier)))
            });
            let found: Vec<(String, String)> = output.collect();
            match found == *columns {
                true => Verdict::Same,
                false => Verdict::Wrong(format!("columns {found:?}, expected {columns:?}")),
            }
        }
    }
}

/// Execution finds errors of these classes, and a few others of functions.
fn is_found_by_execution(error: &ServerError) -> bool {
    let classes = ["2", "XX", "57", "54"];
    let messages = [
        "cannot convert",
        "unit \"",
        "could not identify a comparison function",
        "cannot compare dissimilar column types",
        "invalid range bound flags",
        "formatting field \"",
        "function return row and query-specified",
        "could not determine row type for result of jsonb_populate_record",
        "first argument of jsonb_populate_record",
        "could not find jsonpath variable",
        "\"EEEE\" not supported for input",
        "\"RN\" not supported for input",
        "server \"nosuch\"",
        "database \"nosuch\"",
        "database with OID",
        "tablespace with OID",
        "could not stat file",
        "\"sum\" is an aggregate function",
        "text search parser \"nosuch\"",
        "\"orders\" is not a sequence",
        "cannot open relation \"orders\"",
        "slices of fixed-length arrays",
        "invalid type name \"setof int\"",
    ];
    classes.iter().any(|class| error.sqlstate.starts_with(class))
        || messages.iter().any(|message| error.message.starts_with(message))
}

/// What differs today in a position, in the words of an error, or in a name or type that only a description
/// of the result shows.
/// Each of them must differ, so that none stays here after it has been mended.
const DIFFERENT: [&str; 15] = [
    "aggregates/an aggregate of a subquery with one inside",
    "aggregates/nested outer aggregates in where",
    // Execution finds this syntax error.
    "lookups/functions with half a set as argument",
    "ctes/recursion in the first term",
    "ctes/recursion with an aggregate",
    "ctes/recursion with an order",
    "ctes/recursion with its own limit",
    "ctes/aggregate over a recursive reference",
    // The server describes domains by their base types, and so does `serve`.
    "expressions/domains",
    "catalogs/information schema columns",
    "catalogs/information schema tables",
    "catalogs/client reflection of keys",
    "views/too many aliases",
    "records/unknown field of a row",
    "records/cast of all columns",
];

/// The queries of views, from the directory.
#[derive(Debug)]
struct Views {
    engine: Engine,
    database: Arc<Database>,
}

impl ViewQueries for Views {
    fn query(&self, view: Oid) -> Result<Option<Vec<u8>>, SqlError> {
        let mut session = self.engine.session().expect("a session");
        Ok(self.database.view_query(&mut session, view).expect("a view"))
    }

    fn replaced_commands(&self, relation: Oid) -> Result<u32, SqlError> {
        let mut session = self.engine.session().expect("a session");
        Ok(self.database.replaced_commands(&mut session, relation).expect("rules"))
    }
}

#[test]
fn statements_are_bound_as_servers_bind_them() {
    let mut wrong = Vec::new();
    for (major, directory) in versions() {
        let data = directory.join("../../data");
        let aio = Builder::new().method(MethodKind::Sync).start().expect("started");
        let engine = Engine::builder(&Settings::default()).io(&aio).buffers(1024).open();
        let engine = engine.expect("an engine");
        let cluster = engine.cluster(data).expect("a data directory");
        let mut backend = engine.session().expect("a backend");
        let snapshot = cluster.read_catalog(&mut backend, OnDamage::Fail).expect("a catalog");
        let mut catalogs: BTreeMap<String, SqlCatalog> = BTreeMap::new();
        let (mut same, mut refused, mut other) = (0, 0, 0);
        for (area, answer) in all_answers(&directory) {
            let catalog = catalogs.entry(answer.database.clone()).or_insert_with(|| {
                let name = answer.database.as_bytes();
                let database = snapshot.database(&mut backend, name).expect("a database");
                let expressions = database.expression_catalogs(&mut backend).expect("loaded");
                let views = Views { engine: engine.clone(), database: Arc::clone(&database) };
                SqlCatalog::new(database, expressions).with_views(Arc::new(views))
            });
            let differs = DIFFERENT.contains(&&*format!("{area}/{}", answer.name));
            match compare(catalog, major, &answer) {
                Verdict::Same if differs => {
                    wrong.push(format!("{major} {area}/{}: it no longer differs", answer.name));
                }
                Verdict::Wrong(why) if differs => {
                    other += 1;
                    println!("different {major} {area}/{}: {why}", answer.name);
                }
                Verdict::Same => same += 1,
                Verdict::Refused(why) => {
                    refused += 1;
                    println!("refused {major} {area}/{}: {why}", answer.name);
                }
                Verdict::NotCompared => other += 1,
                Verdict::Wrong(why) => {
                    wrong
                        .push(format!("{major} {area}/{}: {why}\n    {}", answer.name, answer.sql));
                }
            }
        }
        println!("shop{major}: {same} the same, {refused} refused, {other} not compared");
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
