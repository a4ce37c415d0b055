//! Sessions on the data directories. Messages and codes are those of PostgreSQL 18.

use std::path::PathBuf;
use std::sync::Arc;

use trunkline_engine::Engine;
use trunkline_engine::datadir::{DataDir, OpenOptions};
use trunkline_engine::settings::Settings;
use trunkline_format::text_output::{Type, write_text};
use trunkline_query::{Instance, InstanceOptions, Outcome, Rows, Session, Startup};
use trunkline_sql::SqlError;
use trunkline_sql::syntax::parse;
use trunkline_sql::values::PayloadReader;

use crate::cluster::{fixtures, runtime};

/// A session on the newest data directory.
pub(crate) async fn open() -> Option<Session> {
    open_with(&[], &[]).await
}

/// A session with settings of the instance and of the connection.
pub(crate) async fn open_with(
    of_instance: &[(&str, &str)],
    of_connection: &[(&str, &str)],
) -> Option<Session> {
    open_on(fixtures().pop()?, "fixture", of_instance, of_connection).await
}

/// A session on a database of a data directory.
pub(crate) async fn open_on(
    data: PathBuf,
    database: &str,
    of_instance: &[(&str, &str)],
    of_connection: &[(&str, &str)],
) -> Option<Session> {
    let dir = DataDir::open(&data, OpenOptions::default()).expect("a data directory");
    Some(open_in(dir, database, of_instance, of_connection).await)
}

/// A session on a database of a data directory that may not have been shut down cleanly.
pub(crate) async fn open_in(
    dir: DataDir,
    database: &str,
    of_instance: &[(&str, &str)],
    of_connection: &[(&str, &str)],
) -> Session {
    let owned = |settings: &[(&str, &str)]| {
        settings.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    let mut settings = Settings::default();
    settings.set("shared_buffers", "2MB").expect("a setting");
    let engine = Engine::open(&settings).expect("an engine");
    let cluster = engine.cluster_of(dir);
    let options = InstanceOptions {
        settings: owned(of_instance),
        temporary_directory: Some(PathBuf::from(env!("CARGO_TARGET_TMPDIR"))),
        ..InstanceOptions::default()
    };
    let instance = Instance::new(engine, cluster, options);
    let instance = instance.expect("an instance");
    let startup = Startup {
        database: database.into(),
        user: "postgres".into(),
        settings: owned(of_connection),
        ..Startup::default()
    };
    Session::open(&instance, startup).await.expect("a session")
}

/// Rows as lines of texts between tabs.
async fn lines(session: &mut Session, rows: &mut Rows) -> Result<Vec<String>, SqlError> {
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
pub(crate) async fn run(session: &mut Session, sql: &str) -> String {
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
pub(crate) fn check(cases: &[(&str, &str)]) {
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

#[test]
fn transactions_have_the_states_and_messages_of_the_server() {
    let aborted =
        "25P02 current transaction is aborted, commands ignored until end of transaction block";
    check(&[
        ("savepoint x", "25P01 SAVEPOINT can only be used in transaction blocks"),
        ("rollback to x", "25P01 ROLLBACK TO SAVEPOINT can only be used in transaction blocks"),
        ("release x", "25P01 RELEASE SAVEPOINT can only be used in transaction blocks"),
        ("rollback and chain", "25P01 ROLLBACK AND CHAIN can only be used in transaction blocks"),
        ("commit", "COMMIT"),
        ("begin", "BEGIN"),
        ("begin", "BEGIN"),
        ("savepoint a", "SAVEPOINT"),
        ("select no", "42703 column \"no\" does not exist"),
        ("select 1", aborted),
        ("savepoint b", aborted),
        ("rollback to b", "3B001 savepoint \"b\" does not exist"),
        ("rollback to a", "ROLLBACK"),
        ("select 1", "1"),
        ("release a", "RELEASE"),
        ("release a", "3B001 savepoint \"a\" does not exist"),
        ("commit", "ROLLBACK"),
        ("start transaction read only; select 1; end", "START TRANSACTION;1;COMMIT"),
        ("prepare transaction 'x'", "0A000 two-phase commit is not supported by trunkline"),
    ]);
}

#[test]
fn warnings_of_transactions_are_notices() {
    runtime().block_on(async {
        let Some(mut session) = open().await else { return };
        for (sql, code, message) in [
            ("commit", "25P01", "there is no transaction in progress"),
            ("rollback", "25P01", "there is no transaction in progress"),
            ("begin; begin", "25001", "there is already a transaction in progress"),
        ] {
            run(&mut session, sql).await;
            let notices = session.take_notices();
            let [notice] = &*notices else { panic!("{sql}: {notices:?}") };
            let found = (notice.fields.code().as_str(), notice.fields.message());
            assert_eq!((notice.severity.name(), found), ("WARNING", (code, message)), "{sql}");
        }
    });
}

#[test]
fn copy_refuses_what_is_not_a_table() {
    check(&[
        ("copy (select 1, null) to stdout", "1\t\\N"),
        ("copy nosuch to stdout", "42P01 relation \"nosuch\" does not exist"),
        (
            "copy pg_class(nope) to stdout",
            "42703 column \"nope\" of relation \"pg_class\" does not exist",
        ),
        ("copy pg_class(oid, oid) to stdout", "42701 column \"oid\" specified more than once"),
        ("copy pg_views to stdout", "42809 cannot copy from view \"pg_views\""),
    ]);
}

#[test]
fn the_extended_protocol_binds_and_suspends() {
    runtime().block_on(async {
        let Some(mut session) = open().await else { return };
        let code = |result: Result<(), SqlError>| result.map_err(|error| error.code().as_str());
        let sql = "select x from (values (1), (2), (3)) v(x) where x > $1";
        assert_eq!(code(session.prepare("s", sql, &[])), Ok(()));
        assert_eq!(code(session.prepare("s", sql, &[])), Err("42P05"));
        let described = session.describe_statement("s").expect("a statement");
        assert_eq!(described.parameters, [trunkline_format::Oid(23)]);
        assert_eq!(described.columns.map(|columns| columns.len()), Some(1));
        assert_eq!(code(session.bind_portal("p", "t", Vec::new(), Vec::new())), Err("26000"));
        assert_eq!(code(session.bind_portal("p", "s", Vec::new(), Vec::new())), Err("08P01"));
        let one = vec![Some(1_i32.to_le_bytes().into())];
        assert_eq!(code(session.bind_portal("p", "s", one, Vec::new())), Ok(()));
        let Ok(Outcome::Rows { mut rows, .. }) = session.execute_portal("p").await else {
            panic!("rows")
        };
        let batch = rows.next().await.expect("no error").expect("rows");
        rows.put_back(batch.slice(1, batch.num_rows() - 1));
        session.put_back_portal("p", rows, "SELECT");
        let Ok(Outcome::Rows { mut rows, .. }) = session.execute_portal("p").await else {
            panic!("rows")
        };
        assert_eq!(lines(&mut session, &mut rows).await.expect("no error"), ["3"]);
        drop(rows);
        let again = session.execute_portal("p").await;
        assert!(matches!(again, Ok(Outcome::Command(tag)) if tag == "SELECT 0"));
        session.prepare("utility", "set work_mem to '5MB'", &[]).expect("a statement");
        session.bind_portal("u", "utility", Vec::new(), Vec::new()).expect("a portal");
        assert!(matches!(session.execute_portal("u").await, Ok(Outcome::Command(_))));
        let again = session.execute_portal("u").await.expect_err("it has no rows");
        assert_eq!(
            (again.code().as_str(), again.message()),
            ("55000", "portal \"u\" cannot be run")
        );
        session.sync();
        let missing = session.execute_portal("p").await.expect_err("it ended with the transaction");
        assert_eq!(missing.code().as_str(), "34000");
    });
}

#[test]
fn a_statement_that_runs_is_cancelled_and_others_are_not() {
    runtime().block_on(async {
        let Some(mut session) = open().await else { return };
        let canceller = session.canceller();
        canceller.cancel();
        assert_eq!(run(&mut session, "select 1").await, "1");
        let sql = "select 1";
        let statements = parse(sql).expect("a statement");
        let outcome = session.execute(sql, &statements[0]).await;
        let Ok(Outcome::Rows { mut rows, .. }) = outcome else { panic!("rows") };
        assert_eq!(session.instance().activity()[0].state.name(), "active");
        canceller.cancel();
        let error = rows.next().await.expect_err("it is cancelled");
        assert_eq!(error.message(), "canceling statement due to user request");
        drop(rows);
        assert_eq!(session.instance().activity()[0].state.name(), "idle");
        canceller.terminate();
        let expected = "57P01 terminating connection due to administrator command";
        assert_eq!(run(&mut session, "select 1").await, expected);
    });
}

#[test]
fn a_statement_is_prepared_with_the_settings_and_the_state_of_its_time() {
    runtime().block_on(async {
        let Some(mut session) = open().await else { return };
        let unknown = "select count(*) from pg_class";
        // Names are looked up in the path that the last statement has set.
        run(&mut session, "set search_path to information_schema").await;
        session.prepare("views", "select * from character_sets where false", &[]).unwrap_or_else(
            |error| assert!(error.message().contains("not supported"), "{}", error.message()),
        );
        run(&mut session, "reset search_path").await;
        let found = session.prepare("tables", "select * from character_sets where false", &[]);
        assert_eq!(found.map_err(|error| error.code().as_str()), Err("42P01"));
        // A block that has failed prepares nothing but its end.
        run(&mut session, "begin; select no").await;
        let refused = session.prepare("late", unknown, &[]);
        assert_eq!(refused.map_err(|error| error.code().as_str()), Err("25P02"));
        assert_eq!(session.prepare("end", "rollback", &[]), Ok(()));
    });
}

#[test]
fn activity_shows_the_transaction_between_statements() {
    runtime().block_on(async {
        let Some(mut session) = open().await else { return };
        for (sql, state) in [
            ("select 1", "idle"),
            ("begin", "idle in transaction"),
            ("select 1", "idle in transaction"),
            ("select no", "idle in transaction (aborted)"),
            ("rollback", "idle"),
        ] {
            run(&mut session, sql).await;
            let activity = &session.instance().activity()[0];
            assert_eq!(activity.state.name(), state, "{sql}");
            assert_eq!(activity.transaction_start.is_some(), state != "idle", "{sql}");
        }
    });
}

#[test]
fn a_portal_stops_with_its_block() {
    runtime().block_on(async {
        let Some(mut session) = open().await else { return };
        run(&mut session, "begin").await;
        session.prepare("s", "select x from (values (1), (2)) v(x)", &[]).expect("a statement");
        session.bind_portal("p", "s", Vec::new(), Vec::new()).expect("a portal");
        let Ok(Outcome::Rows { rows, tag }) = session.execute_portal("p").await else {
            panic!("rows")
        };
        session.put_back_portal("p", rows, tag);
        run(&mut session, "select no").await;
        let error = session.execute_portal("p").await.expect_err("the block has failed");
        assert_eq!(error.code().as_str(), "25P02");
        let error = session
            .bind_portal("q", "s", Vec::new(), Vec::new())
            .expect_err("the block has failed");
        assert_eq!(error.code().as_str(), "25P02");
        run(&mut session, "rollback; begin").await;
        session.bind_portal("q", "s", Vec::new(), Vec::new()).expect("a portal");
        run(&mut session, "commit and chain").await;
        let error = session.execute_portal("q").await.expect_err("it ended with its transaction");
        assert_eq!(error.code().as_str(), "34000");
    });
}

#[test]
fn rows_that_are_dropped_late_do_not_end_the_next_statement() {
    runtime().block_on(async {
        let Some(mut session) = open().await else { return };
        let sql = "select 1";
        let statements = parse(sql).expect("a statement");
        let old = session.execute(sql, &statements[0]).await.expect("rows");
        let Ok(Outcome::Rows { mut rows, .. }) = session.execute(sql, &statements[0]).await else {
            panic!("rows")
        };
        drop(old);
        assert_eq!(session.instance().activity()[0].state.name(), "active");
        session.canceller().cancel();
        assert_eq!(rows.next().await.expect_err("it is cancelled").code().as_str(), "57014");
    });
}

#[test]
fn client_min_messages_chooses_notices() {
    runtime().block_on(async {
        let Some(mut session) = open().await else { return };
        for (level, counts) in [("notice", (1, 1)), ("warning", (0, 1)), ("error", (0, 0))] {
            run(&mut session, &format!("set client_min_messages to {level}")).await;
            run(&mut session, "create extension pg_prewarm").await;
            let notices = session.take_notices().len();
            run(&mut session, "commit").await;
            assert_eq!((notices, session.take_notices().len()), counts, "{level}");
        }
    });
}
