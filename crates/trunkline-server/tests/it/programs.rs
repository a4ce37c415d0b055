//! psql and psycopg as clients.

use std::process::Command;

use crate::serving::{PORT, Serving, fixtures};

/// Runs psql, and returns what it prints, errors included.
fn psql(serving: &Serving, commands: &[&str]) -> String {
    let mut psql = Command::new("psql");
    psql.args(["-X", "-At", "-U", "postgres", "-d", "fixture"]).env("PGCLIENTENCODING", "UTF8");
    psql.arg("-h").arg(serving.directory.path()).args(["-p", &PORT.to_string()]);
    commands.iter().for_each(|command| {
        psql.args(["-c", command]);
    });
    let output = psql.output().expect("psql");
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// The directory of the version that Debian's psql belongs to, because newer servers lack some columns
/// that it asks for.
fn serve_15() -> Option<Serving> {
    let data = fixtures().into_iter().find(|data| data.ends_with("pg15/data"))?;
    Some(Serving::of(&data, |_| {}))
}

#[test]
fn psql_executes_statements() {
    let Some(serving) = serve_15() else { return };
    let sql = "select n, n * 2 from generate_series(1, 2) n";
    assert_eq!(psql(&serving, &[sql]), "1|2\n2|4\n");
    assert_eq!(psql(&serving, &["copy (select 1, 'a') to stdout (format csv)"]), "1,a\n");
    let found = psql(&serving, &["\\conninfo"]);
    assert!(found.starts_with("You are connected to database \"fixture\" as user \"postgres\""));
    let found = psql(&serving, &["select nothing"]);
    assert!(
        found.contains(
            "column \"nothing\" does not exist\nLINE 1: select nothing\n               ^"
        ),
        "{found}"
    );
}

#[test]
fn psql_describes_the_database() {
    let Some(serving) = serve_15() else { return };
    assert!(psql(&serving, &["\\l"]).contains("fixture|postgres|UTF8|"));
    assert!(psql(&serving, &["\\dt+ *.*"]).contains("s1|wide|table|postgres|"));
    assert!(psql(&serving, &["\\d pg_class"]).contains("relname|name||not null|"));
    let found = psql(&serving, &["\\du", "\\dn", "\\df abs", "\\dx", "\\d+ s1.wide"]);
    assert!(!found.contains("ERROR"), "{found}");
}

/// What a driver does that psql doesn't: prepared statements, binary values, pipelines, COPY.
const PSYCOPG: &str = r#"
import os, sys, psycopg
directory, port = sys.argv[1:]
with psycopg.connect(host=directory, port=port, user="postgres", dbname="fixture") as connection:
    cursor = connection.cursor()
    row = cursor.execute("select %s::int + 1, %s::text, %s::numeric, %s::date", (1, "é", "1.50", "2000-01-02")).fetchone()
    assert (row[0], row[1], str(row[2]), str(row[3])) == (2, "é", "1.50", "2000-01-02"), row
    for n in range(8):
        assert cursor.execute("select %s::int8 * 2", (n,), prepare=True).fetchone() == (2 * n,)
    binary = connection.cursor(binary=True)
    assert binary.execute("select 1::int2, 1.5::float8, 'a'::text, array[1,2], null::int, %b::int8", (7,)).fetchone() == (1, 1.5, "a", [1, 2], None, 7)
    with connection.pipeline():
        cursors = [connection.execute("select %s::int", (n,)) for n in range(5)]
    assert [c.fetchone() for c in cursors] == [(n,) for n in range(5)]
    with cursor.copy("copy (select n, 'x' from generate_series(1, 3) n) to stdout") as copy:
        assert b"".join(bytes(part) for part in copy) == b"1\tx\n2\tx\n3\tx\n"
    assert sum(1 for _ in cursor.stream("select n from generate_series(1, 1000) n")) == 1000
    try:
        cursor.execute("select 1/0")
    except psycopg.errors.DivisionByZero:
        connection.rollback()
    else:
        raise AssertionError("no error")
    try:
        cursor.execute("insert into s1.wide select * from s1.wide")
    except psycopg.errors.ReadOnlySqlTransaction:
        connection.rollback()
    else:
        raise AssertionError("no error")
print("done")
"#;

#[test]
fn psycopg_works() {
    let Some(serving) = Serving::start() else { return };
    // The one of the system comes first, because packages of Debian are only there.
    let has_psycopg = |python: &&&str| {
        let output = Command::new(python).args(["-c", "import psycopg"]).output();
        output.is_ok_and(|output| output.status.success())
    };
    let Some(python) = ["/usr/bin/python3", "python3"].iter().find(has_psycopg) else {
        println!("skipped: no psycopg");
        return;
    };
    let output = Command::new(python)
        .args(["-c", PSYCOPG])
        .arg(serving.directory.path())
        .arg(PORT.to_string())
        .output()
        .expect("python");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n", "{error}");
}
