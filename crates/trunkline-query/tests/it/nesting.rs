//! Statements that nest deeply or are very long, on the threads that tokio makes. Each gives its value
//! or is refused by its depth; a thread whose stack overflows would end the process.

use std::fmt::Write as _;

use tokio::runtime::Builder;

use crate::sessions::{open, run};

/// Runs statements in a session on a thread of tokio's, and compares their answers.
fn answers(cases: Vec<(String, &'static str)>) {
    let runtime =
        Builder::new_multi_thread().worker_threads(1).enable_time().build().expect("a runtime");
    let task = runtime.spawn(async move {
        let Some(mut session) = open().await else { return };
        for (sql, expected) in cases {
            let begin: String = sql.chars().take(40).collect();
            assert_eq!(run(&mut session, &sql).await, expected, "{begin}");
        }
    });
    runtime.block_on(task).expect("no statement ends the thread");
}

fn around(before: &str, count: usize, inner: &str, after: &str) -> String {
    format!("select {}{inner}{}", before.repeat(count), after.repeat(count))
}

fn chain(first: &str, next: &str, count: usize) -> String {
    format!("select {first}{}", next.repeat(count))
}

#[test]
fn parentheses_and_calls() {
    answers(vec![
        (around("(", 900, "1", ")"), "1"),
        (around("(", 5_000, "1", ")"), "54001 stack depth limit exceeded"),
        (around("abs(", 900, "-1", ")"), "1"),
        (around("abs(", 5_000, "-1", ")"), "54001 stack depth limit exceeded"),
        (around("-(", 900, "1", ")"), "1"),
        (around("array[", 6, "1", "]"), "{{{{{{1}}}}}}"),
        (around("case when true then ", 900, "1", " end"), "1"),
        (around("(select ", 180, "1", ")"), "1"),
        (around("(select ", 300, "1", ")"), "54001 stack depth limit exceeded"),
        (
            format!("select * from {}(select 1) t", "(select * from ".repeat(150))
                + &") t".repeat(150),
            "1",
        ),
    ]);
}

#[test]
fn chains() {
    let mut list = String::from("select 1 in (0");
    let mut values = String::from("select count(*) from (values (0)");
    let mut terms = String::from("select 1 where 1 = 0");
    for number in 2..9_000 {
        write!(list, ",{number}").expect("a string");
        write!(values, ",({number})").expect("a string");
        write!(terms, " or 1 = {number}").expect("a string");
    }
    list.push(')');
    values.push_str(") v(x)");
    answers(vec![
        (chain("1", "+1", 8_999), "9000"),
        (chain("1", "+1", 20_000), "54001 stack depth limit exceeded"),
        (chain("'a'", "||'a'", 2_999).replace("select", "select length(") + ")", "3000"),
        (chain("true", " and true", 8_999), "t"),
        (chain("false", " or false", 8_999), "f"),
        (format!("select count(*) from ({}) u", chain("1", " union all select 1", 300)), "301"),
        (list, "f"),
        (values, "8999"),
        (terms, ""),
    ]);
}

#[test]
fn long_literals() {
    let megabyte = "x".repeat(1 << 20);
    answers(vec![
        (format!("select length('{megabyte}')"), "1048576"),
        (format!("select 1 as {}", "n".repeat(100_000)), "1"),
        (format!("select {} > 0", "9".repeat(100_000)), "t"),
    ]);
}
