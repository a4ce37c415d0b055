//! Functions in SQL, and casts to domains: rows and errors are those of PostgreSQL 18.

use crate::cluster::{fixtures, runtime};
use crate::sessions::{open_on, run};

/// Runs statements in the database `shop` of every version that is there.
fn check(cases: &[(&str, &str)]) {
    runtime().block_on(async {
        for data in fixtures() {
            let name = data.to_string_lossy().replace("/pg", "/shop");
            let data = std::path::PathBuf::from(name);
            if !data.is_dir() {
                continue;
            }
            let mut session = open_on(data, "shop", &[], &[]).await.expect("a session");
            for (sql, expected) in cases {
                assert_eq!(run(&mut session, sql).await, *expected, "{sql}");
            }
        }
    });
}

#[test]
fn functions_of_the_information_schema_are_inlined() {
    let schema = "select information_schema.";
    let call = |call: &str| format!("{schema}{call}");
    for (sql, expected) in [
        (call("_pg_char_max_length(1043, 14)"), "10"),
        (call("_pg_char_max_length(1043, null)"), "\\N"),
        (call("_pg_char_max_length(1043, -1)"), "\\N"),
        (call("_pg_char_octet_length(25, -1)"), "1073741824"),
        (call("_pg_char_octet_length(1043, 14)"), "40"),
        (call("_pg_numeric_precision(1700, 655366)"), "10"),
        (call("_pg_numeric_scale(1700, 655366)"), "2"),
        (call("_pg_datetime_precision(1184, 3)"), "3"),
        (call("_pg_interval_type(1186, 2147418115)"), "\\N"),
        (
            call(
                "_pg_truetypid(a.*, t.*) from pg_attribute a join pg_type t on t.oid = atttypid \
                 where attrelid = 'pg_class'::regclass and attname = 'relname'",
            ),
            "19",
        ),
        (
            call(
                "_pg_truetypmod(a, t) from (values (1)) v left join pg_attribute a on false \
                 left join pg_type t on false",
            ),
            "\\N",
        ),
        (call("_pg_index_position('pg_class_relname_nsp_index'::regclass, 3::int2)"), "2"),
        (call("_pg_index_position('pg_class_oid_index'::regclass, 9::int2)"), "\\N"),
        (call("_pg_char_max_length(1043, (select 14 from pg_class limit 1))"), "10"),
        (
            call("_pg_char_max_length(1043, (random() * 10)::int)"),
            "0A000 function _pg_char_max_length(oid, integer) is not supported by trunkline",
        ),
    ] {
        check(&[(&sql, expected)]);
    }
}

#[test]
fn a_function_of_rows_is_a_value_of_a_select_list() {
    check(&[
        ("select x, n from information_schema._pg_expandarray(array['a', 'b']) e", "a\t1|b\t2"),
        ("select n from information_schema._pg_expandarray('{}'::int[]) e", ""),
        (
            "select (k).x, (k).n from (select information_schema._pg_expandarray(indkey) as k \
             from pg_index where indexrelid = 'pg_class_relname_nsp_index'::regclass) i",
            "2\t1|3\t2",
        ),
        ("select (information_schema._pg_expandarray(array[7, 8])).n", "1|2"),
        ("select information_schema._pg_expandarray(array[7, null])", "(7,1)|(,2)"),
        (
            "select information_schema._pg_expandarray(array[7]), generate_series(1, 2)",
            "0A000 a set-returning function beside one that returns rows is not supported by \
             trunkline",
        ),
    ]);
}

#[test]
fn casts_to_domains_check_the_constraints() {
    let violated = "23514 value for domain positive violates check constraint \"positive_check\"";
    check(&[
        ("select '3'::positive + 1, 4::positive, null::positive", "4\t4\t\\N"),
        ("select (-1)::positive", violated),
        ("select '0'::positive", violated),
        ("select x::positive from (values (1), (0)) v(x)", violated),
        ("select x::positive from (values (1), (null)) v(x)", "1|\\N"),
        (
            "select 'x'::email",
            "23514 value for domain email violates check constraint \"email_check\"",
        ),
        ("select 'a@b'::email || '!'", "a@b!"),
        ("select (select -1)::positive", violated),
        ("select (select 5)::positive", "5"),
        ("select 'x'::positive", "22P02 invalid input syntax for type integer: \"x\""),
        ("select 'YES'::information_schema.yes_or_no", "YES"),
        (
            "select 'MAYBE'::information_schema.yes_or_no",
            "23514 value for domain information_schema.yes_or_no violates check constraint \
             \"yes_or_no_check\"",
        ),
        (
            "select pg_typeof('x'::information_schema.sql_identifier)",
            "information_schema.sql_identifier",
        ),
        ("select case when x > 0 then x::positive end from (values (0), (2)) v(x)", "\\N|2"),
    ]);
}
