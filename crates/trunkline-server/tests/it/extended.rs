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
    client.series(&[bind("p", "", &[], &[], &[]), execute("p", 4)]);
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
