//! Settings of sessions: SET, RESET, SHOW and what they change. Messages and codes are those of
//! PostgreSQL 18.

use trunkline_query::{Outcome, Session};
use trunkline_sql::syntax::parse;

use crate::cluster::runtime;
use crate::sessions::{check, open, open_with, run};

#[test]
fn values_are_checked_and_shown_as_by_the_server() {
    check(&[
        ("set work_mem to '64'; show work_mem", "SET;64kB"),
        ("set work_mem to '1.5MB'; show work_mem", "SET;1536kB"),
        ("reset work_mem; show work_mem", "RESET;4MB"),
        ("set work_mem to 'x'", "22023 invalid value for parameter \"work_mem\": \"x\""),
        (
            "set work_mem to '1'",
            "22023 1 kB is outside the valid range for parameter \"work_mem\" \
             (64 kB .. 2147483647 kB)",
        ),
        ("set work_mem to 1, 2", "22023 SET work_mem takes only one argument"),
        ("set idle_session_timeout to 1.5; show idle_session_timeout", "SET;2ms"),
        ("set idle_session_timeout to '90s'; show idle_session_timeout", "SET;90s"),
        ("set hash_mem_multiplier to 1.5; show hash_mem_multiplier", "SET;1.5"),
        ("set datestyle to dmy; show datestyle", "SET;ISO, DMY"),
        ("set datestyle to iso, us; show datestyle", "SET;ISO, MDY"),
        ("set datestyle to 'nope'", "22023 invalid value for parameter \"DateStyle\": \"nope\""),
        ("set datestyle to german", "0A000 DateStyle German is not supported by trunkline"),
        ("set client_encoding to latin1; show client_encoding", "SET;LATIN1"),
        ("set names 'utf8'; show client_encoding", "SET;UTF8"),
        (
            "set client_encoding to 'MULE_INTERNAL'",
            "0A000 invalid value for parameter \"client_encoding\": \"MULE_INTERNAL\"",
        ),
        ("set search_path to a, \"B c\", \"$user\"; show search_path", "SET;a, \"B c\", \"$user\""),
        ("set search_path to 'a,b'; show search_path", "SET;\"a,b\""),
        ("set foo.bar to 1; show foo.bar; reset foo.bar; show foo.bar", "SET;1;RESET;"),
        ("show foo.nope", "42704 unrecognized configuration parameter \"foo.nope\""),
        ("set client_min_messages to debug; show client_min_messages", "SET;debug2"),
        ("set application_name to 'a\u{e4}'; show application_name", "SET;a\\xc3\\xa4"),
        ("set nosuch to 1", "42704 unrecognized configuration parameter \"nosuch\""),
        ("show nosuch", "42704 unrecognized configuration parameter \"nosuch\""),
        ("reset nosuch", "42704 unrecognized configuration parameter \"nosuch\""),
    ]);
}

#[test]
fn time_zones_change_what_is_read_and_printed() {
    check(&[
        ("set timezone to 'europe/berlin'; show timezone", "SET;Europe/Berlin"),
        ("select timestamptz '2024-07-01 12:00'", "2024-07-01 12:00:00+02"),
        ("set time zone -3.5; show timezone", "SET;<-03:30>+03:30"),
        ("select timestamptz '2024-07-01 12:00'", "2024-07-01 12:00:00-03:30"),
        ("set timezone to 'nope'", "22023 invalid value for parameter \"TimeZone\": \"nope\""),
        ("set time zone local; show time zone", "SET;GMT"),
    ]);
}

#[test]
fn settings_take_effect_in_the_next_statement() {
    check(&[
        (
            "select date '2/3/2024'; set datestyle to dmy; select date '2/3/2024'",
            "2024-02-03;SET;2024-03-02",
        ),
        ("set extra_float_digits to 0; select 0.1::float8 + 0.2", "SET;0.3"),
        ("set bytea_output to escape; select 'a'::bytea", "SET;a"),
        ("set intervalstyle to iso_8601; select interval '1 day 2 hours'", "SET;P1DT2H"),
        ("set search_path to nosuch; select 1 from pg_class limit 1", "SET;1"),
        ("set search_path to information_schema; select 'views'::regclass::oid > 0", "SET;t"),
        (
            "discard all; select 'information_schema.views'::regclass",
            "DISCARD ALL;information_schema.views",
        ),
        ("show intervalstyle; show search_path", "postgres;\"$user\", public"),
    ]);
}

#[test]
fn some_settings_cannot_change() {
    let writes = "25001 cannot set transaction read-write mode inside a read-only transaction";
    check(&[
        ("set in_hot_standby to on", "55P02 parameter \"in_hot_standby\" cannot be changed"),
        ("reset server_version", "55P02 parameter \"server_version\" cannot be changed"),
        (
            "set shared_buffers to '1GB'",
            "55P02 parameter \"shared_buffers\" cannot be changed without restarting the server",
        ),
        ("show shared_buffers", "2MB"),
        ("set standard_conforming_strings to on", "SET"),
        (
            "set standard_conforming_strings to off",
            "0A000 setting parameter \"standard_conforming_strings\" to \"off\" is not supported by \
             trunkline",
        ),
        ("show transaction_read_only", "on"),
        ("set transaction_read_only to off", writes),
        ("begin read write", writes),
        ("set session characteristics as transaction read write", writes),
        ("begin read only; show transaction_read_only; rollback", "BEGIN;on;ROLLBACK"),
        ("listen x", "0A000 LISTEN is not supported by trunkline"),
        ("deallocate x", "26000 prepared statement \"x\" does not exist"),
        ("deallocate all; discard plans", "DEALLOCATE ALL;DISCARD PLANS"),
        ("begin", "BEGIN"),
        ("discard all", "25001 DISCARD ALL cannot run inside a transaction block"),
    ]);
}

#[test]
fn functions_see_the_session() {
    check(&[
        ("select current_user, session_user, current_database()", "postgres\tpostgres\tfixture"),
        ("select current_schema, pg_is_in_recovery()", "public\tf"),
        ("select version() like 'PostgreSQL 1%(trunkline %', pg_backend_pid() > 0", "t\tt"),
        ("select pg_postmaster_start_time() between '2020-01-01' and now()", "t"),
        ("select current_setting('WORK_MEM'), current_setting('nosuch', true)", "4MB\t\\N"),
        (
            "select current_setting('nosuch')",
            "42704 unrecognized configuration parameter \"nosuch\"",
        ),
        ("select set_config('work_mem', '8MB', false); show work_mem", "8MB;8MB"),
        ("select set_config('work_mem', null, false)", "4MB"),
        ("select set_config(null, 'a', false)", "22004 SET requires parameter name"),
        (
            "select set_config('search_path', 'a,,b', false)",
            "22023 invalid value for parameter \"search_path\": \"a,,b\"",
        ),
        (
            "begin; select set_config('work_mem', '2MB', true); show work_mem; commit; show work_mem",
            "BEGIN;2MB;2MB;COMMIT;4MB",
        ),
        ("set search_path to ''; select current_schema()", "SET;\\N"),
    ]);
}

#[test]
fn a_rollback_restores_settings() {
    check(&[
        ("set local work_mem to '1MB'; show work_mem", "SET;4MB"),
        (
            "begin; set local work_mem to '2MB'; savepoint s; set work_mem to '3MB'",
            "BEGIN;SET;SAVEPOINT;SET",
        ),
        (
            "show work_mem; rollback to s; show work_mem; commit; show work_mem",
            "3MB;ROLLBACK;2MB;COMMIT;4MB",
        ),
        (
            "begin; set work_mem to '3MB'; set local work_mem to '5MB'; show work_mem",
            "BEGIN;SET;SET;5MB",
        ),
        ("commit; show work_mem", "COMMIT;3MB"),
        ("begin; set work_mem to '8MB'; rollback; show work_mem", "BEGIN;SET;ROLLBACK;3MB"),
        ("reset all; show work_mem", "RESET;4MB"),
        ("begin; set transaction isolation level serializable", "BEGIN;SET"),
        ("show transaction_isolation; select 1", "serializable;1"),
        (
            "set transaction isolation level read committed",
            "25001 SET TRANSACTION ISOLATION LEVEL must be called before any query",
        ),
        ("rollback; show transaction isolation level", "ROLLBACK;read committed"),
        (
            "set session characteristics as transaction isolation level repeatable read; \
             show transaction_isolation",
            "SET;repeatable read",
        ),
        (
            "reset transaction_isolation",
            "0A000 parameter \"transaction_isolation\" cannot be reset",
        ),
    ]);
}

fn changed(session: &mut Session) -> Vec<String> {
    let changed = session.take_changed_parameters().into_iter();
    changed.map(|(name, value)| format!("{name}={value}")).collect()
}

#[test]
fn clients_are_informed_of_changes() {
    runtime().block_on(async {
        let Some(mut session) =
            open_with(&[("work_mem", "1MB"), ("timezone", "UTC")], &[("DateStyle", "iso,ymd")])
                .await
        else {
            return;
        };
        let first = changed(&mut session);
        for expected in
            ["TimeZone=UTC", "DateStyle=ISO, YMD", "in_hot_standby=off", "client_encoding=UTF8"]
        {
            assert!(first.iter().any(|one| one == expected), "{expected} in {first:?}");
        }
        assert_eq!(
            run(&mut session, "set work_mem to '2MB'; reset all; show work_mem").await,
            "SET;RESET;1MB"
        );
        assert_eq!(changed(&mut session), [""; 0]);
        run(&mut session, "begin; set timezone to 'Europe/Berlin'").await;
        assert_eq!(changed(&mut session), ["TimeZone=Europe/Berlin"]);
        run(&mut session, "rollback").await;
        assert_eq!(changed(&mut session), ["TimeZone=UTC"]);
    });
}

#[test]
fn warnings_can_be_switched_off() {
    runtime().block_on(async {
        let Some(mut session) = open().await else { return };
        run(&mut session, "set local work_mem to '1MB'").await;
        let notices = session.take_notices();
        assert_eq!(notices[0].fields.message(), "SET LOCAL can only be used in transaction blocks");
        run(&mut session, "set client_min_messages to error; commit").await;
        assert_eq!(session.take_notices(), []);
    });
}

#[test]
fn a_statement_ends_at_its_time_limit() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(async {
        let Some(mut session) = open().await else { return };
        assert_eq!(run(&mut session, "set statement_timeout to '1ms'").await, "SET");
        let endless = "select x from generate_series(1, 2000000000) x";
        let statements = parse(endless).expect("a statement");
        let outcome = session.execute(endless, &statements[0]).await;
        let Ok(Outcome::Rows { mut rows, .. }) = outcome else { panic!("rows") };
        let error = loop {
            match rows.next().await {
                // The timer is a task of the same thread.
                Ok(_) => tokio::task::yield_now().await,
                Err(error) => break error,
            }
        };
        assert_eq!(error.message(), "canceling statement due to statement timeout");
    });
}

#[test]
fn set_config_for_a_transaction_needs_a_block() {
    check(&[
        (
            "select set_config('work_mem', '2MB', true)",
            "0A000 set_config for a transaction without a block is not supported by trunkline",
        ),
        ("show work_mem", "4MB"),
        ("begin; select set_config('work_mem', '2MB', true)", "BEGIN;2MB"),
        ("rollback; show work_mem", "ROLLBACK;4MB"),
    ]);
}

#[test]
fn a_session_reads_as_it_wants() {
    check(&[
        ("show effective_io_concurrency", "16"),
        ("set effective_io_concurrency = 64", "SET"),
        ("set io_combine_limit = '256kB'", "SET"),
        ("show io_combine_limit", "256kB"),
        ("show effective_io_concurrency", "64"),
        (
            "set effective_io_concurrency = 2000",
            "22023 2000 is outside the valid range for parameter \"effective_io_concurrency\" (0 .. 1000)",
        ),
        ("begin", "BEGIN"),
        ("set local effective_io_concurrency = 3", "SET"),
        ("show effective_io_concurrency", "3"),
        ("rollback", "ROLLBACK"),
        ("show effective_io_concurrency", "64"),
        ("reset effective_io_concurrency", "RESET"),
        ("show effective_io_concurrency", "16"),
        ("reset all", "RESET"),
        ("show io_combine_limit", "128kB"),
        ("set io_method = sync", "55P02 parameter \"io_method\" cannot be changed now"),
    ]);
}
