//! `pg_settings` and `pg_stat_activity`: what they show, and that it is what PostgreSQL 18 shows of the
//! same settings.

use std::collections::BTreeMap;
use std::path::PathBuf;

use trunkline_engine::datadir::{DataDir, OpenOptions};
use trunkline_engine::replay::ReplayOptions;
use trunkline_sql::catalog::Addresses;

use crate::cluster::runtime;
use crate::server::{Server, servers};
use crate::sessions::{open, open_in, open_on, open_with, run};

/// What PostgreSQL 18 shows: name, unit, context, type, smallest and largest value, words and category
/// of each setting.
const SERVER: &str = include_str!("../../testdata/pg_settings_18.txt");

/// Where we differ on purpose: the column, and the settings.
const DIFFERENCES: &[(&str, &[&str])] = &[
    // The engine takes these at its start only, except for its method, which it can change.
    (
        "context",
        &[
            "io_method",
            "backend_flush_after",
            "bgwriter_delay",
            "bgwriter_flush_after",
            "bgwriter_lru_maxpages",
            "bgwriter_lru_multiplier",
            "checkpoint_completion_target",
            "checkpoint_flush_after",
            "checkpoint_timeout",
            "file_extend_method",
            "ignore_checksum_failure",
            "temp_buffers",
            "zero_damaged_pages",
        ],
    ),
    // Our workers are threads, of which there can be more.
    ("max_val", &["io_workers"]),
    // The server has been built without io_uring, and ours falls back.
    ("enumvals", &["io_method"]),
    // The minor version isn't in the directory.
    ("min_val", &["server_version_num"]),
    ("max_val", &["server_version_num"]),
];

const COLUMNS: [&str; 7] =
    ["unit", "context", "vartype", "min_val", "max_val", "enumvals", "category"];

#[test]
fn settings_have_the_facts_of_the_server() {
    runtime().block_on(async {
        let Some(mut session) = open().await else { return };
        let found = run(
            &mut session,
            "select name, coalesce(unit, ''), context, vartype, coalesce(min_val, ''), \
             coalesce(max_val, ''), coalesce(enumvals::text, ''), category from pg_settings",
        )
        .await;
        let server: BTreeMap<&str, Vec<&str>> = (SERVER.lines())
            .filter_map(|line| line.split_once('|'))
            .map(|(name, facts)| (name, facts.split('|').collect()))
            .collect();
        let (mut compared, mut wrong) = (0, Vec::new());
        for row in found.split('|') {
            let mut columns = row.split('\t');
            let name = columns.next().expect("a name");
            let Some(expected) = server.get(name) else { continue };
            compared += 1;
            for ((column, found), expected) in COLUMNS.iter().zip(columns).zip(expected) {
                let differs =
                    DIFFERENCES.iter().any(|(of, names)| of == column && names.contains(&name));
                if (found == *expected) == differs {
                    wrong.push(format!("{name}.{column}: {found}, server {expected}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(compared >= 55, "{compared} settings compared");
    });
}

#[test]
fn settings_show_value_source_and_default() {
    runtime().block_on(async {
        let of_instance = [("work_mem", "16MB")];
        let of_connection = [("statement_timeout", "90s")];
        let Some(mut session) = open_with(&of_instance, &of_connection).await else { return };
        let one =
            "select setting, unit, source, boot_val, reset_val from pg_settings where name = ";
        for (name, expected) in [
            ("work_mem", "16384\tkB\tcommand line\t4096\t16384"),
            ("statement_timeout", "90000\tms\tclient\t0\t90000"),
            ("hash_mem_multiplier", "2\t\\N\tdefault\t2\t2"),
            ("shared_buffers", "256\t8kB\tcommand line\t16384\t256"),
            ("segment_size", "131072\t8kB\toverride\t131072\t131072"),
            ("io_combine_limit", "16\t8kB\tdefault\t16\t16"),
            ("is_superuser", ""),
        ] {
            assert_eq!(run(&mut session, &format!("{one}'{name}'")).await, expected, "{name}");
        }
        for (sql, name, expected) in [
            ("set work_mem to '1GB'", "work_mem", "1048576\tkB\tsession\t4096\t16384"),
            ("set io_combine_limit to '64kB'", "io_combine_limit", "8\t8kB\tsession\t16\t16"),
            ("set my.own to 'x'", "my.own", "x\t\\N\tsession\t\\N\t"),
        ] {
            run(&mut session, sql).await;
            assert_eq!(run(&mut session, &format!("{one}'{name}'")).await, expected, "{name}");
        }
        let count = "select count(*) from pg_settings";
        let all = run(&mut session, "show all").await.split('|').count();
        assert_eq!(run(&mut session, count).await, all.to_string());
        let sorted = "select array_agg(name) = array_agg(name order by lower(name) collate \"C\") \
                      from pg_settings";
        assert_eq!(run(&mut session, sorted).await, "t");
    });
}

#[test]
fn activity_shows_sessions_and_workers() {
    runtime().block_on(async {
        let Some(mut session) = open().await else { return };
        let own = "select datname, usename, state, wait_event, query like 'select datname%', \
                   backend_type, client_addr, client_port, xact_start = query_start, \
                   backend_start <= query_start, leader_pid, query_id from pg_stat_activity \
                   where pid = pg_backend_pid()";
        assert_eq!(
            run(&mut session, own).await,
            "fixture\tpostgres\tactive\t\\N\tt\tclient backend\t\\N\t-1\tt\tt\t\\N\t\\N"
        );
        let workers = "select count(*) > 0, count(datname), count(state) from pg_stat_activity \
                       where backend_type = 'io worker'";
        assert_eq!(run(&mut session, workers).await, "t\t0\t0");
        let unique = "select count(*) = count(distinct pid) from pg_stat_activity";
        assert_eq!(run(&mut session, unique).await, "t");
        let none = "select count(*) from pg_stat_get_activity(-1)";
        assert_eq!(run(&mut session, none).await, "0");
    });
}

#[test]
fn activity_shows_other_sessions_between_statements() {
    runtime().block_on(async {
        let Some(mut session) = open().await else { return };
        let startup = trunkline_query::Startup {
            database: "postgres".into(),
            user: "visitor".into(),
            application_name: "other".into(),
            addresses: Some(Addresses {
                client: "10.1.2.3:4567".parse().expect("an address"),
                server: "10.1.2.1:5432".parse().expect("an address"),
            }),
            ..Default::default()
        };
        let mut other =
            trunkline_query::Session::open(session.instance(), startup).await.expect("a session");
        let shown = "select datname, usename, usesysid, application_name, state, wait_event_type, \
                     wait_event, client_addr, client_port, query, xact_start is null \
                     from pg_stat_activity where application_name = 'other'";
        let start = "postgres\t\\N\t\\N\tother\t";
        let end = "\tClient\tClientRead\t10.1.2.3\t4567\t";
        for (sql, state, query, is_idle) in [
            ("select 1", "idle", "select 1", "t"),
            ("begin", "idle in transaction", "begin", "f"),
            ("select no", "idle in transaction (aborted)", "select no", "f"),
            ("rollback", "idle", "rollback", "t"),
        ] {
            run(&mut other, sql).await;
            let expected = format!("{start}{state}{end}{query}\t{is_idle}");
            assert_eq!(run(&mut session, shown).await, expected, "{sql}");
        }
        let cancel = format!("select pg_cancel_backend({})", other.pid());
        assert_eq!(run(&mut session, &cancel).await, "t");
        drop(other);
        assert_eq!(run(&mut session, shown).await, "");
        assert_eq!(run(&mut session, &cancel).await, "f");
        let terminate = cancel.replace("cancel", "terminate");
        assert_eq!(run(&mut session, &terminate).await, "f");
        let notices = session.take_notices();
        let messages: Vec<&str> = notices.iter().map(|one| one.fields.message()).collect();
        let expected = cancel.replace("select pg_cancel_backend(", "PID ");
        let expected = &*expected.replace(')', " is not a PostgreSQL backend process");
        assert_eq!(messages, [expected, expected]);
    });
}

#[test]
fn every_version_has_the_columns_of_its_server() {
    runtime().block_on(async {
        for data in crate::cluster::fixtures() {
            let Some(mut session) = open_on(data, "fixture", &[], &[]).await else { return };
            let sql = "select count(*) > 0 from pg_stat_activity";
            assert_eq!(run(&mut session, sql).await, "t");
            let sql = "select count(*) > 0 from pg_settings where name = 'server_version'";
            assert_eq!(run(&mut session, sql).await, "t");
        }
    });
}

#[test]
fn a_terminated_session_executes_nothing() {
    runtime().block_on(async {
        let Some(mut session) = open().await else { return };
        let startup = trunkline_query::Startup {
            database: "postgres".into(),
            user: "postgres".into(),
            ..Default::default()
        };
        let mut other =
            trunkline_query::Session::open(session.instance(), startup).await.expect("a session");
        let terminate = format!("select pg_terminate_backend({})", other.pid());
        assert_eq!(run(&mut session, &terminate).await, "t");
        let ended = "57P01 terminating connection due to administrator command";
        assert_eq!(run(&mut other, "select 1").await, ended);
        other.canceller().terminated().await;
        for (arguments, expected) in [
            ("1, -1", "22003 \"timeout\" must not be negative"),
            ("1, null", "\\N"),
            ("1, 100", "0A000 pg_terminate_backend with a timeout is not supported by trunkline"),
        ] {
            let sql = format!("select pg_terminate_backend({arguments})");
            assert_eq!(run(&mut session, &sql).await, expected, "{sql}");
        }
    });
}

#[test]
fn nothing_is_locked_and_no_session_is_blocked() {
    runtime().block_on(async {
        let Some(mut session) = open().await else { return };
        for (sql, expected) in [
            ("select count(*) from pg_locks", "0"),
            ("select pg_blocking_pids(pg_backend_pid())", "{}"),
            ("select name, setting = version() from pg_config", "VERSION\tt"),
            ("select pg_client_encoding()", "UTF8"),
            (
                "select inet_client_addr(), inet_client_port(), inet_server_addr(), \
                 inet_server_port()",
                "\\N\t\\N\t\\N\t\\N",
            ),
        ] {
            assert_eq!(run(&mut session, sql).await, expected, "{sql}");
        }
    });
}

#[test]
fn a_session_knows_both_ends_of_its_connection() {
    runtime().block_on(async {
        let Some(session) = open().await else { return };
        let startup = trunkline_query::Startup {
            database: "fixture".into(),
            user: "postgres".into(),
            addresses: Some(Addresses {
                client: "[::ffff:10.1.2.3]:4567".parse().expect("an address"),
                server: "[fe80::1]:5432".parse().expect("an address"),
            }),
            ..Default::default()
        };
        let mut session =
            trunkline_query::Session::open(session.instance(), startup).await.expect("a session");
        let sql = "select inet_client_addr(), inet_client_port(), inet_server_addr(), \
                   inet_server_port()";
        assert_eq!(run(&mut session, sql).await, "10.1.2.3\t4567\tfe80::1\t5432");
    });
}

#[test]
fn extensions_are_those_installed_and_those_built_in() {
    runtime().block_on(async {
        let Some(mut session) = open().await else { return };
        let sql = "select name, default_version, installed_version from pg_available_extensions \
                   where name in ('pg_buffercache', 'pg_prewarm', 'plpgsql') order by 1";
        let found = run(&mut session, sql).await;
        assert_eq!(found, "pg_buffercache\t1.6\t\\N|pg_prewarm\t1.1\t\\N|plpgsql\t1.0\t1.0");
        let sql = "select version, installed, superuser, trusted, relocatable, schema, requires \
                   from pg_available_extension_versions where name in ('pg_prewarm', 'plpgsql') \
                   order by name";
        let expected = "1.1\tf\tf\tt\tf\tpg_catalog\t\\N|1.0\tt\t\\N\t\\N\tf\tpg_catalog\t\\N";
        assert_eq!(run(&mut session, sql).await, expected);
    });
}

/// After a crash, the first is in a file, and the last one only in the log.
#[test]
fn prepared_transactions_are_those_that_the_server_has() {
    let sql = "select transaction, gid, prepared at time zone 'UTC', owner, database \
               from pg_prepared_xacts order by gid";
    for bin in servers() {
        let server = Server::start(&bin, &[("checkpoint_timeout", "1h")]);
        let prepare = |gid: &str| {
            let script = format!("begin; insert into t values (1); prepare transaction '{gid}'");
            server.script("postgres", &script, false);
        };
        server.sql("postgres", "create table t (i int)");
        ["first", "ended"].iter().for_each(|gid| prepare(gid));
        server.sql("postgres", "checkpoint");
        prepare("last");
        server.sql("postgres", "commit prepared 'ended'");
        let expected = String::from_utf8(server.sql("postgres", sql)).expect("text");
        let stopped = server.stop_at_once();
        runtime().block_on(async {
            let replay = ReplayOptions::new(PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
            let dir = DataDir::open_replayed(&stopped.data(), OpenOptions::default(), &replay);
            let mut session = open_in(dir.expect("replayed"), "postgres", &[], &[]).await;
            let found = run(&mut session, sql).await;
            assert_eq!(found, expected.trim().replace('\n', "|"), "{}", bin.display());
            assert_eq!(found.split('|').count(), 2, "{found}");
        });
    }
}
