//! Sessions on the data directories. Messages and codes are those of PostgreSQL 18.

use std::sync::Arc;

use trunkline_engine::Engine;
use trunkline_engine::settings::Settings;
use trunkline_format::text_output::{Type, write_text};
use trunkline_query::{Instance, InstanceOptions, Outcome, Rows, Session, Startup};
use trunkline_sql::SqlError;
use trunkline_sql::syntax::parse;
use trunkline_sql::values::PayloadReader;

use crate::cluster::{fixtures, runtime};

/// A session on the newest data directory.
async fn open() -> Option<Session> {
    let data = fixtures().pop()?;
    let mut settings = Settings::default();
    settings.set("shared_buffers", "2MB").expect("a setting");
    let engine = Engine::open(&settings).expect("an engine");
    let cluster = engine.cluster(data).expect("a cluster");
    let instance = Instance::new(engine, cluster, InstanceOptions::default());
    let instance = instance.expect("an instance");
    let startup =
        Startup { database: "fixture".into(), user: "postgres".into(), ..Startup::default() };
    Some(Session::open(&instance, startup).await.expect("a session"))
}

/// Rows as lines of texts between tabs.
async fn lines(session: &Session, rows: &mut Rows) -> Result<Vec<String>, SqlError> {
    let settings = Arc::clone(session.call_settings());
    let mut lines = Vec::new();
    while let Some(batch) = rows.next().await? {
        for row in 0..batch.num_rows() {
            let columns = rows.columns().iter().zip(batch.columns());
            let values = columns.map(|(column, array)| {
                let ty = Type::resolve(column.ty.oid, &*settings.catalog).expect("a type");
                let mut values = PayloadReader::new(column.carrier, array).expect("an array");
                let mut text = Vec::new();
                match values.get(row) {
                    None => text.extend(br"\N"),
                    Some(value) => {
                        write_text(&ty, value, &settings.text_options(), &mut text)
                            .expect("a value");
                    }
                }
                String::from_utf8(text).expect("UTF-8")
            });
            lines.push(values.collect::<Vec<_>>().join("\t"));
        }
    }
    Ok(lines)
}

/// Executes one statement. The result is its rows and its tag, or code and message of its error.
async fn run(session: &mut Session, sql: &str) -> String {
    let shown = |error: SqlError| format!("{} {}", error.code().as_str(), error.message());
    let statements = match parse(sql) {
        Ok(statements) => statements,
        Err(error) => return shown(error),
    };
    let mut results = Vec::new();
    for statement in &statements {
        match session.execute(sql, statement).await {
            Err(error) => results.push(shown(error)),
            Ok(Outcome::Empty) => results.push(String::new()),
            Ok(Outcome::Command(tag)) => results.push(tag),
            Ok(Outcome::Rows { mut rows, .. } | Outcome::CopyOut { mut rows, .. }) => {
                match lines(session, &mut rows).await {
                    Ok(lines) => results.push(lines.join("|")),
                    Err(error) => results.push(shown(error)),
                }
            }
        }
    }
    results.join(";")
}

/// Runs statements one after the other and compares what each returns.
fn check(cases: &[(&str, &str)]) {
    runtime().block_on(async {
        let Some(mut session) = open().await else { return };
        for (sql, expected) in cases {
            assert_eq!(run(&mut session, sql).await, *expected, "{sql}");
        }
    });
}

#[test]
fn a_session_executes_queries() {
    check(&[
        ("select 1 + 1", "2"),
        ("select x from (values (1), (2)) v(x) order by x", "1|2"),
        ("select no", "42703 column \"no\" does not exist"),
        ("insert into t values (1)", "25006 cannot execute INSERT in a read-only transaction"),
    ]);
}
