//! Cursors and prepared statements of SQL. Codes, messages and rows are those of PostgreSQL 18.

use trunkline_query::Outcome;

use crate::cluster::runtime;
use crate::sessions::{check, open, run};

const CANNOT_RUN: &str = "55000 portal \"c\" cannot be run";
const FORWARD_ONLY: &str = "55000 cursor can only scan forward";

#[test]
fn statements_are_prepared_and_executed_by_sql() {
    check(&[
        ("prepare p(int, text) as select $1 + 1, $2", "PREPARE"),
        ("prepare p as select 1", "42P05 prepared statement \"p\" already exists"),
        ("execute p(1)", "42601 wrong number of parameters for prepared statement \"p\""),
        ("execute p(1, 2)", "2\t2"),
        ("execute p('a', 2)", "22P02 invalid input syntax for type integer: \"a\""),
        (
            "execute p(true, 'x')",
            "42804 parameter $1 of type boolean cannot be coerced to the expected type integer",
        ),
        ("execute p(1.5, 'x')", "3\tx"),
        ("execute p((select 1), 'x')", "0A000 cannot use subquery in EXECUTE parameter"),
        (
            "execute p(sum(1), 'x')",
            "42803 aggregate functions are not allowed in EXECUTE parameters",
        ),
        (
            "execute p(row_number() over (), 'x')",
            "42P20 window functions are not allowed in EXECUTE parameters",
        ),
        (
            "execute p(generate_series(1, 2), 'x')",
            "0A000 set-returning functions are not allowed in EXECUTE parameters",
        ),
        ("execute p(no, 'x')", "42703 column \"no\" does not exist"),
        ("execute p($1, 'x')", "42P02 there is no parameter $1"),
        ("execute p(null, null)", "\\N\t\\N"),
        ("execute q", "26000 prepared statement \"q\" does not exist"),
        ("prepare q(nosuch) as select 1", "42704 type \"nosuch\" does not exist"),
        ("prepare q as select no", "42703 column \"no\" does not exist"),
        ("prepare q as select $1", "PREPARE"),
        ("execute q('x')", "x"),
        ("prepare w as insert into t values (1)", "PREPARE"),
        ("execute w", "25006 cannot execute INSERT in a read-only transaction"),
        ("deallocate p", "DEALLOCATE"),
        ("execute p(1, 2)", "26000 prepared statement \"p\" does not exist"),
        (
            "deallocate all; execute q('x')",
            "DEALLOCATE ALL;26000 prepared statement \"q\" does not exist",
        ),
    ]);
}

#[test]
fn a_cursor_returns_its_rows_in_parts() {
    check(&[
        ("begin", "BEGIN"),
        ("declare c no scroll cursor for select generate_series(1, 9)", "DECLARE CURSOR"),
        ("fetch 0 from c", ""),
        ("move 0 from c", "MOVE 0"),
        ("fetch c", "1"),
        ("fetch 2 from c", "2|3"),
        ("move 0 from c", "MOVE 1"),
        ("move 2 in c", "MOVE 2"),
        ("fetch relative 2 from c", "7"),
        ("fetch absolute 8 from c", "8"),
        ("fetch all from c", "9"),
        ("fetch c", ""),
        ("move all from c", "MOVE 0"),
        ("close c", "CLOSE CURSOR"),
        (
            "declare c cursor for select relname from pg_class where oid between 1247 and 1261 order by 1",
            "DECLARE CURSOR",
        ),
        (
            "fetch first from c; fetch 0 from c; fetch forward all in c",
            "pg_attribute;pg_attribute;pg_auth_members|pg_authid|pg_class|pg_proc|pg_type",
        ),
        ("close all", "CLOSE CURSOR ALL"),
        ("commit", "COMMIT"),
    ]);
}

#[test]
fn cursors_have_the_errors_of_the_server() {
    check(&[
        (
            "declare c cursor for select 1",
            "25P01 DECLARE CURSOR can only be used in transaction blocks",
        ),
        ("declare c cursor for select no", "42703 column \"no\" does not exist"),
        ("fetch c", "34000 cursor \"c\" does not exist"),
        ("close c", "34000 cursor \"c\" does not exist"),
        (
            "declare c scroll cursor with hold for select 1",
            "0A000 SCROLL CURSOR is not supported by trunkline",
        ),
        ("begin; savepoint s", "BEGIN;SAVEPOINT"),
        (
            "declare c no scroll cursor for select x - 1 from generate_series(1, 5) x",
            "DECLARE CURSOR",
        ),
        (
            "savepoint t; declare c cursor for select 1",
            "SAVEPOINT;42P03 cursor \"c\" already exists",
        ),
        ("rollback to t; fetch 1 from c", "ROLLBACK;0"),
        ("fetch backward 1 from c", FORWARD_ONLY),
        ("rollback to t; fetch 1 from c", &format!("ROLLBACK;{CANNOT_RUN}")),
        ("rollback to s; fetch 1 from c", "ROLLBACK;34000 cursor \"c\" does not exist"),
        ("rollback to s", "ROLLBACK"),
        ("declare c cursor for select 1 / (2 - x) from generate_series(1, 5) x", "DECLARE CURSOR"),
        ("savepoint t; fetch all from c", "SAVEPOINT;22012 division by zero"),
        ("rollback to t; fetch 1 from c", &format!("ROLLBACK;{CANNOT_RUN}")),
        ("rollback to t; close c", "ROLLBACK;CLOSE CURSOR"),
        ("declare d cursor for select 1", "DECLARE CURSOR"),
        ("release t; fetch d", "RELEASE;1"),
        ("fetch last from d", FORWARD_ONLY),
        ("rollback to s; fetch d", "ROLLBACK;34000 cursor \"d\" does not exist"),
        ("rollback", "ROLLBACK"),
    ]);
}

#[test]
fn a_cursor_with_hold_outlives_its_transaction() {
    check(&[
        ("declare h cursor with hold for select generate_series(1, 3)", "DECLARE CURSOR"),
        ("fetch h", "1"),
        ("begin; fetch h; rollback", "BEGIN;2;ROLLBACK"),
        ("fetch h", "3"),
        (
            "begin; declare i cursor with hold for select 7; declare j cursor for select 8",
            "BEGIN;DECLARE CURSOR;DECLARE CURSOR",
        ),
        ("commit; fetch i", "COMMIT;7"),
        ("fetch j", "34000 cursor \"j\" does not exist"),
        (
            "begin; declare k cursor with hold for select 9; rollback",
            "BEGIN;DECLARE CURSOR;ROLLBACK",
        ),
        ("fetch k", "34000 cursor \"k\" does not exist"),
        ("discard all; fetch i", "DISCARD ALL;34000 cursor \"i\" does not exist"),
    ]);
}

#[test]
fn the_extended_protocol_declares_and_describes_cursors() {
    runtime().block_on(async {
        let Some(mut session) = open().await else { return };
        run(&mut session, "begin").await;
        let text = "declare c cursor for select x, x::text from generate_series(1, $1) x";
        session.prepare("", text, &[]).expect("a statement");
        let description = session.describe_statement("").expect("a description");
        assert_eq!((description.parameters.len(), description.columns), (1, None));
        session
            .bind_portal("", "", vec![Some(2_i32.to_le_bytes().into())], Vec::new())
            .expect("a portal");
        let outcome = session.execute_portal("").await.expect("a cursor");
        assert!(matches!(outcome, Outcome::Command(tag) if tag == "DECLARE CURSOR"));
        let columns = session.describe_portal("c").expect("a cursor").expect("columns");
        assert_eq!(columns.len(), 2);
        session.prepare("", "fetch 5 from c", &[]).expect("a statement");
        let described = session.describe_statement("").expect("a description").columns;
        assert_eq!(described.map(|columns| columns.len()), Some(2));
        assert_eq!(run(&mut session, "fetch all from c").await, "1\t1|2\t2");
        session.prepare("p", "select $1::int + 1", &[]).expect("a statement");
        assert_eq!(run(&mut session, "execute p(41)").await, "42");
    });
}

#[test]
fn views_show_what_a_session_has_prepared_and_declared() {
    check(&[
        ("prepare p(int, text) as select $1 + 1, $2", "PREPARE"),
        ("execute p(1, 2)", "2\t2"),
        (
            "select name, statement, parameter_types, result_types, from_sql, generic_plans, \
             custom_plans from pg_prepared_statements",
            "p\tprepare p(int, text) as select $1 + 1, $2\t{integer,text}\t{integer,text}\tt\t0\t1",
        ),
        ("declare h no scroll cursor with hold for select 1", "DECLARE CURSOR"),
        (
            "select name, statement, is_holdable, is_binary, is_scrollable, \
             creation_time <= now() from pg_cursors",
            "h\tdeclare h no scroll cursor with hold for select 1\tt\tf\tf\tt",
        ),
    ]);
}
