//! ALTER SYSTEM and pg_reload_conf. Messages and codes are those of PostgreSQL 18.

use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;
use trunkline_engine::Engine;
use trunkline_engine::settings::Settings;
use trunkline_query::{Instance, InstanceOptions, Session, Startup, configure_engine};

use crate::cluster::{fixtures, runtime};
use crate::sessions::run;

fn instance(file: &Path, settings: &[(&str, &str)]) -> Option<Arc<Instance>> {
    let data = fixtures().pop()?;
    let mut of_engine = Settings::default();
    of_engine.set("shared_buffers", "2MB").expect("a setting");
    configure_engine(file, &mut of_engine, |name| name == "shared_buffers").expect("a file");
    let engine = Engine::open(&of_engine).expect("an engine");
    let cluster = engine.cluster(data).expect("a cluster");
    let options = InstanceOptions {
        configuration_file: Some(file.to_owned()),
        settings: settings.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect(),
        ..InstanceOptions::default()
    };
    Some(Instance::new(engine, cluster, options).expect("an instance"))
}

async fn session(instance: &Arc<Instance>) -> Session {
    let (database, user) = ("fixture".to_owned(), "postgres".to_owned());
    let startup = Startup { database, user, ..Startup::default() };
    Session::open(instance, startup).await.expect("a session")
}

async fn check(session: &mut Session, cases: &[(&str, &str)]) {
    for (sql, expected) in cases {
        assert_eq!(run(session, sql).await, *expected, "{sql}");
    }
}

#[test]
fn values_are_in_force_after_a_reload() {
    let directory = TempDir::new().expect("a directory");
    let file = directory.path().join("below/own.conf");
    let Some(shared) = instance(&file, &[("statement_timeout", "7s")]) else { return };
    runtime().block_on(async {
        let (mut one, mut other) = (session(&shared).await, session(&shared).await);
        check(
            &mut one,
            &[
                ("alter system set work_mem = '8MB'", "ALTER SYSTEM"),
                ("alter system set search_path = app, \"It's\"", "ALTER SYSTEM"),
                ("alter system set effective_io_concurrency = 64", "ALTER SYSTEM"),
                ("alter system set io_method = sync", "ALTER SYSTEM"),
                ("alter system set io_max_workers = 5", "ALTER SYSTEM"),
                ("alter system set statement_timeout = '9s'", "ALTER SYSTEM"),
                ("show work_mem", "4MB"),
                ("set work_mem = '2MB'", "SET"),
                ("select pg_reload_conf()", "t"),
                ("show work_mem", "2MB"),
                ("reset work_mem", "RESET"),
                ("show work_mem", "8MB"),
                // The command line is above the file.
                ("show statement_timeout", "7s"),
                // The engine has changed.
                ("show io_method", "sync"),
                ("show io_max_workers", "5"),
                ("select asked, in_force from trunkline_io_method", "sync\tsync"),
                ("select count(*) > 0 from pg_class", "t"),
                ("set io_method = worker", "55P02 parameter \"io_method\" cannot be changed now"),
            ],
        )
        .await;
        check(
            &mut other,
            &[
                ("show work_mem", "8MB"),
                ("show search_path", "app, \"It's\""),
                ("show effective_io_concurrency", "64"),
            ],
        )
        .await;
        check(
            &mut one,
            &[
                ("alter system reset work_mem", "ALTER SYSTEM"),
                ("alter system set search_path to default", "ALTER SYSTEM"),
                ("select pg_reload_conf()", "t"),
                ("show work_mem", "4MB"),
                ("show effective_io_concurrency", "64"),
            ],
        )
        .await;
    });
    // The next start has the values of the file, also those that needed one.
    let again = instance(&file, &[]).expect("an instance");
    runtime().block_on(async {
        let mut session = session(&again).await;
        let cases = [
            ("show io_method", "sync"),
            ("show statement_timeout", "9s"),
            ("alter system reset all", "ALTER SYSTEM"),
            ("select pg_reload_conf()", "t"),
            ("show statement_timeout", "0"),
            ("show effective_io_concurrency", "16"),
        ];
        check(&mut session, &cases).await;
    });
}

#[test]
fn what_cannot_be_set_is_refused() {
    let directory = TempDir::new().expect("a directory");
    let file = directory.path().join("own.conf");
    let Some(shared) = instance(&file, &[]) else { return };
    runtime().block_on(async {
        let cases = [
            (
                "alter system set no_such = 1",
                "42704 unrecognized configuration parameter \"no_such\"",
            ),
            (
                "alter system set work_mem = 1",
                "22023 1 kB is outside the valid range for parameter \"work_mem\" (64 kB .. 2147483647 kB)",
            ),
            (
                "alter system set transaction_isolation = serializable",
                "55P02 parameter \"transaction_isolation\" cannot be changed",
            ),
            (
                "alter system set server_version = 1",
                "55P02 parameter \"server_version\" cannot be changed",
            ),
            ("begin", "BEGIN"),
            (
                "alter system set work_mem = '8MB'",
                "25001 ALTER SYSTEM cannot run inside a transaction block",
            ),
            ("rollback", "ROLLBACK"),
        ];
        check(&mut session(&shared).await, &cases).await;
    });
    assert!(!file.exists());
    std::fs::write(&file, "work_mem = 8MB\n").expect("written");
    let error = shared.reload_configuration().expect_err("a value without quotes");
    assert!(error.message().ends_with("own.conf\" line 1"), "{error}");
}
