//! The extended protocol.

use crate::client::{Client, bind, describe, execute, message, parse, sync, text};
use crate::serving::Serving;

#[test]
fn a_portal_returns_rows_in_parts() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::connect(&serving);
    let found = client.series(&[
        parse("", "select n from generate_series(1, 5) n", &[]),
        bind("p", "", &[], &[], &[]),
        describe(b'P', "p"),
        execute("p", 2),
        execute("p", 2),
        execute("p", 0),
        execute("p", 0),
    ]);
    let expected = [
        "1",
        "2",
        "T n:23:0",
        "D 1",
        "D 2",
        "s",
        "D 3",
        "D 4",
        "s",
        "D 5",
        "C SELECT 1",
        "C SELECT 0",
        "Z I",
    ];
    assert_eq!(found, expected);
    // The portal has ended with its transaction.
    let found = client.series(&[execute("p", 0)]);
    assert_eq!(found, ["E ERROR 34000 portal \"p\" does not exist", "Z I"]);
    // In a block, it goes on.
    client.query("begin");
    let sql = "select n from generate_series(1, 5) n";
    client.series(&[parse("", sql, &[]), bind("p", "", &[], &[], &[]), execute("p", 4)]);
    assert_eq!(client.series(&[execute("p", 4)]), ["D 5", "C SELECT 1", "Z T"]);
    assert_eq!(client.query("commit"), ["C COMMIT", "Z I"]);
}

#[test]
fn messages_after_an_error_are_skipped() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::connect(&serving);
    let bad = [parse("", "select é", &[]), bind("", "", &[], &[], &[]), execute("", 0)].concat();
    let good = [parse("", "select 1", &[]), bind("", "", &[], &[], &[]), execute("", 0)].concat();
    client.send(&[bad, sync(), good, sync()].concat());
    let error = "E ERROR 42703 column \"é\" does not exist @8";
    assert_eq!(client.until_ready(), [error, "Z I"]);
    assert_eq!(client.until_ready(), ["1", "2", "D 1", "C SELECT 1", "Z I"]);
}

#[test]
fn parameters_are_text_or_binary() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::connect(&serving);
    let found = client.series(&[
        parse("s", "select $1 + 1, $2::text, $3::date", &[23]),
        describe(b'S', "s"),
        bind("", "s", &[1, 0, 0], &[Some(&[0, 0, 0, 41]), Some(b"x y"), None], &[]),
        execute("", 0),
    ]);
    let expected = [
        "1",
        "t 23,25,1082",
        "T ?column?:23:0,text:25:0,date:1082:0",
        "2",
        "D 42,x y,NULL",
        "C SELECT 1",
        "Z I",
    ];
    assert_eq!(found, expected);
    let date = 1_i32.to_be_bytes();
    let found = client.series(&[
        bind("", "s", &[1], &[Some(&[0, 0, 0, 1]), Some(b"x"), Some(&date)], &[0]),
        execute("", 0),
    ]);
    assert_eq!(found, ["2", "D 2,x,2000-01-02", "C SELECT 1", "Z I"]);
    // Too short for an integer.
    let found = client.series(&[bind("", "s", &[1], &[Some(&[1]), None, None], &[])]);
    assert!(
        found.first().is_some_and(
            |error| error.starts_with("E ERROR 08P01") || error.starts_with("E ERROR 22P03")
        ),
        "{found:?}"
    );
    let found = client.series(&[bind("", "s", &[0], &[Some(b"x"), None, None], &[])]);
    assert_eq!(found, ["E ERROR 22P02 invalid input syntax for type integer: \"x\"", "Z I"]);
}

#[test]
fn results_are_binary_if_the_client_wants_it() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::connect(&serving);
    let all = [
        parse("", "select 7, '7'", &[]),
        bind("", "", &[], &[], &[1, 0]),
        describe(b'P', ""),
        execute("", 0),
    ];
    let found = client.series(&all);
    let expected =
        ["1", "2", "T ?column?:23:1,?column?:25:0", "D \0\0\0\u{7},7", "C SELECT 1", "Z I"];
    assert_eq!(found, expected);
}

#[test]
fn counts_of_formats_are_checked() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::connect(&serving);
    client.series(&[parse("s", "select $1::int", &[])]);
    let one: &[Option<&[u8]>] = &[Some(b"1")];
    let found = client.series(&[bind("", "s", &[0, 0], one, &[])]);
    let expected = "E ERROR 08P01 bind message has 2 parameter formats but 1 parameters";
    assert_eq!(found, [expected, "Z I"]);
    let found = client.series(&[bind("", "s", &[], one, &[0, 0])]);
    let expected = "E ERROR 08P01 bind message has 2 result formats but query has 1 columns";
    assert_eq!(found, [expected, "Z I"]);
    let found = client.series(&[bind("", "s", &[], &[], &[])]);
    let expected =
        "E ERROR 08P01 bind message supplies 0 parameters, but prepared statement \"s\" requires 1";
    assert_eq!(found, [expected, "Z I"]);
    let found = client.series(&[bind("", "s", &[2], one, &[])]);
    assert_eq!(found, ["E ERROR 22023 unsupported format code: 2", "Z I"]);
}

#[test]
fn commands_and_empty_statements_have_no_rows() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::connect(&serving);
    let found = client.series(&[
        parse("", "begin", &[]),
        describe(b'S', ""),
        bind("", "", &[], &[], &[]),
        describe(b'P', ""),
        execute("", 0),
        parse("", "", &[]),
        bind("", "", &[], &[], &[]),
        execute("", 0),
    ]);
    assert_eq!(found, ["1", "t", "n", "2", "n", "C BEGIN", "1", "2", "I", "Z T"]);
    let close = |kind: u8, name: &str| message(b'C', &[vec![kind], text(name)].concat());
    assert_eq!(client.series(&[close(b'S', "none"), close(b'P', "none")]), ["3", "3", "Z T"]);
    let found = client.series(&[parse("", "select 1; select 2", &[])]);
    let expected = "E ERROR 42601 cannot insert multiple commands into a prepared statement";
    assert_eq!(found, [expected, "Z E"]);
}

const FAILED: &str =
    "E ERROR 25P02 current transaction is aborted, commands ignored until end of transaction block";

#[test]
fn a_portal_that_has_failed_cannot_be_run() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::connect(&serving);
    client.query("begin");
    let sql = "select 1 / (2 - n) from generate_series(1, 3) n";
    client.series(&[parse("", sql, &[]), bind("p", "", &[], &[], &[])]);
    client.series(&[parse("", "select 1", &[]), bind("done", "", &[], &[], &[])]);
    assert_eq!(client.series(&[execute("done", 0)]), ["D 1", "C SELECT 1", "Z T"]);
    client.query("savepoint a");
    let found = client.series(&[execute("p", 0)]);
    let error = "E ERROR 22012 division by zero".to_owned();
    assert_eq!(found.get(found.len() - 2..), Some(&[error, "Z E".to_owned()][..]), "{found:?}");
    assert_eq!(client.series(&[execute("p", 0)]), [FAILED, "Z E"]);
    client.query("rollback to a");
    // One that had come to its end is still there.
    assert_eq!(client.series(&[execute("done", 0)]), ["C SELECT 0", "Z T"]);
    let expected = ["E ERROR 55000 portal \"p\" cannot be run", "Z E"];
    assert_eq!(client.series(&[execute("p", 0)]), expected);
}

#[test]
fn a_portal_goes_on_after_a_rollback_to_a_later_savepoint() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::connect(&serving);
    client.query("begin");
    let all = "select n from generate_series(1, 5) n";
    client.series(&[parse("s", all, &[]), bind("p", "s", &[], &[], &[]), execute("p", 1)]);
    client.query("savepoint a");
    assert_eq!(client.series(&[execute("p", 1)]), ["D 2", "s", "Z T"]);
    client.series(&[bind("later", "s", &[], &[], &[]), execute("later", 1)]);
    client.query("select no");
    for message in [execute("p", 0), describe(b'P', "p"), describe(b'S', "s")] {
        assert_eq!(client.series(&[message]), [FAILED, "Z E"]);
    }
    client.query("rollback to a");
    assert_eq!(client.series(&[execute("p", 0)]), ["D 3", "D 4", "D 5", "C SELECT 3", "Z T"]);
    let expected = ["E ERROR 34000 portal \"later\" does not exist", "Z E"];
    assert_eq!(client.series(&[execute("later", 0)]), expected);
    // RELEASE gives a portal to what is outside of the savepoint.
    client.query("rollback to a");
    client.query("savepoint b");
    client.series(&[bind("later", "s", &[], &[], &[]), execute("later", 1)]);
    client.query("release b");
    assert_eq!(client.series(&[execute("later", 1)]), ["D 2", "s", "Z T"]);
    client.query("rollback to a");
    assert_eq!(client.series(&[execute("later", 0)]), expected);
}

#[test]
fn a_query_forgets_what_is_unnamed() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::connect(&serving);
    let missing = ["E ERROR 26000 unnamed prepared statement does not exist", "Z I"];
    for sql in ["select 1", "selec"] {
        client.series(&[parse("", "select 1", &[])]);
        client.query(sql);
        assert_eq!(client.series(&[bind("", "", &[], &[], &[])]), missing);
    }
    // So does the next Parse, even if it fails.
    client.series(&[parse("", "select 1", &[])]);
    client.series(&[parse("", "selec", &[])]);
    assert_eq!(client.series(&[bind("", "", &[], &[], &[])]), missing);
    client.query("begin");
    client.series(&[parse("s", "select 1", &[]), bind("", "s", &[], &[], &[])]);
    client.query("select 1");
    let missing = ["E ERROR 34000 portal \"\" does not exist", "Z E"];
    assert_eq!(client.series(&[execute("", 0)]), missing);
}

#[test]
fn a_pipeline_is_one_transaction() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::connect(&serving);
    let run =
        |sql: &str| [parse("", sql, &[]), bind("", "", &[], &[], &[]), execute("", 0)].concat();
    let declare = "declare c cursor for values (1), (2)";
    let alone = "E ERROR 25P01 DECLARE CURSOR can only be used in transaction blocks";
    assert_eq!(client.series(&[run(declare)]), ["1", "2", alone, "Z I"]);
    let found = client.series(&[run("select 1"), run(declare), run("fetch c")]);
    let expected = [
        "1",
        "2",
        "D 1",
        "C SELECT 1",
        "1",
        "2",
        "C DECLARE CURSOR",
        "1",
        "2",
        "D 1",
        "C FETCH 1",
        "Z I",
    ];
    assert_eq!(found, expected);
    let ended = "E ERROR 34000 cursor \"c\" does not exist";
    assert_eq!(client.series(&[run("fetch c")]), ["1", "2", ended, "Z I"]);
    // An error undoes what was set before, unless that was committed.
    let (set, fail) = ("set work_mem = '8MB'", "select 1 / 0");
    client.series(&[run(set), run(fail)]);
    assert_eq!(client.query("show work_mem").get(1).map(String::as_str), Some("D 4MB"));
    client.series(&[run(set), run("commit"), run(fail)]);
    assert_eq!(client.query("show work_mem").get(1).map(String::as_str), Some("D 8MB"));
    let expected = ["1", "2", "D 1", "C SELECT 1", "1", "2", "C BEGIN", "Z T"];
    assert_eq!(client.series(&[run("select 1"), run("begin")]), expected);
    assert_eq!(client.query("rollback"), ["C ROLLBACK", "Z I"]);
}
