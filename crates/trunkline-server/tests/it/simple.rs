//! The simple protocol.

use crate::client::{Client, message, text};
use crate::serving::Serving;

#[test]
fn statements_are_executed_until_one_fails() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::connect(&serving);
    let found = client
        .query("select 1 as a, null::text as b; begin; select 'é', x from pg_class; select 2");
    let expected = [
        "T a:23:0,b:25:0",
        "D 1,NULL",
        "C SELECT 1",
        "C BEGIN",
        "E ERROR 42703 column \"x\" does not exist @52",
        "Z E",
    ];
    assert_eq!(found, expected);
    let aborted = "E ERROR 25P02 current transaction is aborted, commands ignored until end of transaction block";
    assert_eq!(client.query("select 1"), [aborted, "Z E"]);
    assert_eq!(client.query("rollback"), ["C ROLLBACK", "Z I"]);
    assert_eq!(client.query(" ; "), ["I", "Z I"]);
    // A text that cannot be parsed is not executed in part.
    assert_eq!(
        client.query("select 1; selec"),
        ["E ERROR 42601 syntax error at or near \"selec\" @11", "Z I"]
    );
}

#[test]
fn an_error_of_a_row_follows_the_description() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::connect(&serving);
    let found = client.query("select 1 / (2 - n) as q from generate_series(1, 3) n");
    assert_eq!(found.first().map(String::as_str), Some("T q:23:0"));
    let end: Vec<&str> = found.iter().rev().take(2).map(String::as_str).collect();
    assert_eq!(end, ["Z I", "E ERROR 22012 division by zero"]);
}

#[test]
fn changed_parameters_and_notices_are_sent() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::connect(&serving);
    let found = client.query("set timezone to utc");
    assert_eq!(found, ["C SET", "S TimeZone=UTC", "Z I"]);
    let found = client.query("rollback");
    let warning = "N WARNING 25P01 there is no transaction in progress";
    assert_eq!(found, [warning, "C ROLLBACK", "Z I"]);
}

#[test]
fn texts_are_in_the_clients_encoding() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::connect(&serving);
    client.query("set client_encoding to latin1");
    client.send(&message(b'Q', b"select '\xE9' as \xE9\0"));
    let mut replies = Vec::new();
    while let Some((kind, body)) = client.read() {
        if kind == b'Z' {
            break;
        }
        replies.push(body);
    }
    assert!(replies.first().is_some_and(|body| body.get(2..4) == Some(b"\xE9\0")), "{replies:?}");
    assert_eq!(replies.get(1).map(|body| body.last().copied()), Some(Some(0xE9)));
    client.query("set client_encoding to utf8");
    client.send(&message(b'Q', b"select '\xE9'\0"));
    let found = client.until_ready();
    assert!(found.first().is_some_and(|error| error.starts_with("E ERROR 22021")), "{found:?}");
}

#[test]
fn rows_are_copied_out() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::connect(&serving);
    let found = client.query("copy (select 1, null, 'a b') to stdout");
    let expected = ["H 000003000000000000", "d 31095c4e096120620a", "c", "C COPY 1", "Z I"];
    assert_eq!(found, expected);
    let binary = client.query("copy (select 1) to stdout (format binary)");
    let data: String = binary.iter().filter_map(|line| line.strip_prefix("d ")).collect();
    let expected = "5047434f50590aff0d0a00000000000000000000010000000400000001ffff";
    assert_eq!(data, expected);
    let refused = client.query("copy pg_class from stdin");
    assert!(refused.first().is_some_and(|error| error.starts_with("E ERROR 25006")), "{refused:?}");
}

#[test]
fn function_calls_are_refused() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::connect(&serving);
    client.send(&message(b'F', &[0; 10]));
    let found = client.until_ready();
    assert_eq!(found, ["E ERROR 0A000 function calls are not supported by trunkline", "Z I"]);
    // Data of a COPY that isn't running is ignored.
    client.send(
        &[message(b'd', b"x"), message(b'c', b""), message(b'Q', &text("select 1"))].concat(),
    );
    assert_eq!(client.until_ready(), ["T ?column?:23:0", "D 1", "C SELECT 1", "Z I"]);
}

#[test]
fn several_statements_are_one_transaction() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::connect(&serving);
    let found = client.query("declare c cursor for values (1), (2); fetch c; fetch c");
    let row =
        |value: &str| ["T column1:23:0".to_owned(), format!("D {value}"), "C FETCH 1".to_owned()];
    let expected = [vec!["C DECLARE CURSOR".to_owned()], row("1").into(), row("2").into()];
    assert_eq!(found, [expected.concat(), vec!["Z I".to_owned()]].concat());
    assert_eq!(client.query("fetch c"), ["E ERROR 34000 cursor \"c\" does not exist", "Z I"]);
    // A single statement isn't in a block.
    let alone = "E ERROR 25P01 DECLARE CURSOR can only be used in transaction blocks";
    assert_eq!(client.query("declare c cursor for select 1;"), [alone, "Z I"]);
    let work_mem = |client: &mut Client| client.query("show work_mem").get(1).cloned();
    let none = "N WARNING 25P01 there is no transaction in progress";
    client.query("set work_mem = '8MB'; select 1 / 0");
    assert_eq!(work_mem(&mut client).as_deref(), Some("D 4MB"));
    let found = client.query("set work_mem = '8MB'; rollback");
    assert_eq!(found, ["C SET", none, "C ROLLBACK", "Z I"]);
    assert_eq!(work_mem(&mut client).as_deref(), Some("D 4MB"));
    let found = client.query("set work_mem = '8MB'; commit; select 1 / 0");
    assert_eq!(found.get(..3), Some(&["C SET", none, "C COMMIT"].map(str::to_owned)[..]));
    assert_eq!(work_mem(&mut client).as_deref(), Some("D 8MB"));
    let found = client.query("set local work_mem = '1MB'; show work_mem");
    assert_eq!(found, ["C SET", "T work_mem:25:0", "D 1MB", "C SHOW", "Z I"]);
    assert_eq!(work_mem(&mut client).as_deref(), Some("D 8MB"));
    // The block of BEGIN stays, and has no second warning.
    let found = client.query("select 1; begin; savepoint a");
    let expected = ["T ?column?:23:0", "D 1", "C SELECT 1", "C BEGIN", "C SAVEPOINT", "Z T"];
    assert_eq!(found, expected);
    assert_eq!(client.query("rollback"), ["C ROLLBACK", "Z I"]);
    let same = "select now() = statement_timestamp() as same";
    let found = client.query(&format!("{same}; {same}"));
    assert_eq!(found.iter().filter(|line| *line == "D t").count(), 2, "{found:?}");
}

#[test]
fn what_needs_a_begin_is_refused_in_an_implicit_block() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::connect(&serving);
    for (sql, error) in [
        ("savepoint a", "25P01 SAVEPOINT can only be used in transaction blocks"),
        ("release a", "25P01 RELEASE SAVEPOINT can only be used in transaction blocks"),
        ("rollback to a", "25P01 ROLLBACK TO SAVEPOINT can only be used in transaction blocks"),
        ("commit and chain", "25P01 COMMIT AND CHAIN can only be used in transaction blocks"),
        ("discard all", "25001 DISCARD ALL cannot run inside a transaction block"),
        ("alter system reset all", "25001 ALTER SYSTEM cannot run inside a transaction block"),
    ] {
        let found = client.query(&format!("set work_mem to 64; {sql}"));
        assert_eq!(found, ["C SET".to_owned(), format!("E ERROR {error}"), "Z I".to_owned()]);
    }
    // A cursor WITH HOLD lives if its block commits.
    client.query("declare c cursor with hold for values (1), (2); select 1 / 0");
    assert_eq!(client.query("fetch c"), ["E ERROR 34000 cursor \"c\" does not exist", "Z I"]);
    client.query("declare c cursor with hold for values (1), (2); select 1");
    assert_eq!(client.query("fetch c").get(1).map(String::as_str), Some("D 1"));
}
