//! Tests of the parser against tables that a server made or confirmed. `trees.txt` shows how statements are
//! understood, `errors.txt` what is refused and where, `writes.txt` the tags of commands that write.
//!
//! A line of `trees.txt` is `select 1 + 2 * 3 ⇒ SELECT (1 + (2 * 3))`.

use super::{
    BRACKETS_MAX, CHAIN_MAX, Constant, ExpressionKind, SelectBody, Statement, dump, parse,
};
use crate::SqlState;

/// The lines of a table, without comments.
fn rows(table: &str) -> impl Iterator<Item = Vec<&str>> {
    table.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(" ⇒ ").collect())
}

#[test]
fn statements_are_understood_as_a_server_understands_them() {
    let mut count = 0;
    for row in rows(include_str!("../../testdata/syntax/trees.txt")) {
        let [sql, expected] = row[..] else { panic!("{row:?}") };
        let statements = parse(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let printed: Vec<String> =
            statements.iter().map(|raw| dump::statement(&raw.statement)).collect();
        let printed = printed.join("; ").replace('\n', "\\n").replace('\t', "\\t");
        assert_eq!(printed, expected, "{sql}");
        // What is printed has all parentheses and must mean the same.
        let again = parse(&printed.replace("\\n", "\n").replace("\\t", "\t"))
            .unwrap_or_else(|error| panic!("{printed}: {error:?}"));
        let again: Vec<String> = again.iter().map(|raw| dump::statement(&raw.statement)).collect();
        assert_eq!(again.join("; ").replace('\n', "\\n").replace('\t', "\\t"), printed, "{sql}");
        count += 1;
    }
    assert!(count > 120, "{count}");
}

#[test]
fn errors_have_the_words_and_the_position_of_a_server() {
    let mut count = 0;
    for row in rows(include_str!("../../testdata/syntax/errors.txt")) {
        let [sql, code, position, message] = row[..] else { panic!("{row:?}") };
        let error = match parse(sql) {
            Ok(statements) => panic!("{sql}: {statements:?}"),
            Err(error) => error,
        };
        let expected = format!("{code} ⇒ {position} ⇒ {message}");
        assert_eq!(dump::error(&error, sql), expected, "{sql}");
        count += 1;
    }
    assert!(count > 150, "{count}");
}

#[test]
fn commands_that_write_have_the_tag_of_a_server() {
    for row in rows(include_str!("../../testdata/syntax/writes.txt")) {
        let [sql, tag] = row[..] else { panic!("{row:?}") };
        let statements = parse(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        assert_eq!(statements.len(), 1, "{sql}");
        let Statement::Write { command } = statements[0].statement else {
            panic!("{sql}: {statements:?}");
        };
        assert_eq!(command, tag, "{sql}");
    }
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    for (sql, name, position) in [
        ("select xmlelement(name a)", "XMLELEMENT", 8),
        ("select * from xmltable('a' passing b columns c int)", "XMLTABLE", 15),
        ("select json_object('a': 1)", "JSON_OBJECT with keys and values", 8),
        ("select 1 is json", "IS JSON", 10),
        ("do $$ begin end $$", "DO", 1),
    ] {
        let error = parse(sql).expect_err(sql);
        let expected = format!("0A000 ⇒ {position} ⇒ {name} is not supported by trunkline");
        assert_eq!(dump::error(&error, sql), expected, "{sql}");
    }
}

#[test]
fn a_text_holds_any_number_of_statements() {
    let texts = |sql: &str| -> Vec<String> {
        let statements = parse(sql).expect(sql);
        statements.iter().map(|raw| raw.span.text(sql).to_owned()).collect()
    };
    assert_eq!(texts(""), Vec::<String>::new());
    assert_eq!(texts(" ; /* a */ ;-- b"), Vec::<String>::new());
    assert_eq!(texts(" select 1 ;; show a -- b\n;"), ["select 1", "show a"]);
    assert_eq!(
        texts("create rule r as on insert to t do also (select 1; select 2); begin").len(),
        2
    );
}

/// The depth that a statement of this many operators or parentheses may have, in a test's thread with
/// a stack of 2 MiB.
#[test]
fn deep_statements_are_parsed_and_dropped() {
    let nested = |open: &str, close: &str, count: usize| {
        format!("select {}1{}", open.repeat(count), close.repeat(count))
    };
    let chain = |operator: &str, count: usize| format!("select 1{}", operator.repeat(count));
    for sql in [
        nested("(", ")", BRACKETS_MAX),
        nested("(select ", ")", BRACKETS_MAX),
        nested("case when true then ", " end", BRACKETS_MAX),
        nested("abs(", ")", BRACKETS_MAX),
        nested("array[", "]", BRACKETS_MAX),
        nested("1 + (", ")", BRACKETS_MAX),
        format!("select * from {}t{}", "(select * from ".repeat(900), ") a".repeat(900)),
        chain(" + 1", CHAIN_MAX),
        chain("::int", CHAIN_MAX),
        chain(" is null", CHAIN_MAX),
        chain(" union select 1", CHAIN_MAX),
        chain(" and 1 = 1", 3 * CHAIN_MAX),
        chain(" or 1 = 1", 3 * CHAIN_MAX),
        chain(", 1 + 1", 3 * CHAIN_MAX),
        format!("select {} true", "not ".repeat(CHAIN_MAX)),
        format!("select {} a", "- ".repeat(CHAIN_MAX)),
        format!("select 1 in (1{})", ", 1".repeat(3 * CHAIN_MAX)),
        format!("select * from t{}", " cross join t".repeat(CHAIN_MAX - 1)),
    ] {
        let start = sql.get(..60).unwrap_or(&sql);
        assert!(parse(&sql).is_ok(), "{start}: {:?}", parse(&sql).err());
        // The tree that was built before the error is dropped as well.
        let error = parse(&format!("{sql} )")).expect_err(start);
        assert_eq!(error.code(), SqlState::SYNTAX_ERROR, "{start}");
    }
}

#[test]
fn a_deep_tree_is_dropped_on_a_small_stack() {
    let sql = format!("select 1{}", " + 1".repeat(CHAIN_MAX));
    let statements = parse(&sql).expect("a chain within the limit");
    stacker::grow(64 << 10, || drop(statements));
}

#[test]
fn what_nests_too_deeply_is_refused() {
    let nested = |open: &str, close: &str| {
        format!("select {}1{}", open.repeat(BRACKETS_MAX + 1), close.repeat(BRACKETS_MAX + 1))
    };
    let chain = |operator: &str| format!("select 1{}", operator.repeat(CHAIN_MAX + 1));
    for sql in [
        format!("select {}1{}", "(".repeat(5_000), ")".repeat(5_000)),
        "(".repeat(1_000_000),
        nested("(", ")"),
        nested("(select ", ")"),
        nested("case when true then ", " end"),
        nested("a[", "]"),
        chain(" + 1"),
        chain(" -> 1"),
        chain("::int"),
        chain(" is null"),
        chain(" union select 1"),
        chain(" between 1 and 1"),
        format!("select * from t{}", " join t".repeat(CHAIN_MAX + 1)),
        format!("select {} true", "not ".repeat(CHAIN_MAX + 1)),
    ] {
        let error = parse(&sql).expect_err(sql.get(..60).unwrap_or(&sql));
        assert_eq!(error.code(), SqlState::STATEMENT_TOO_COMPLEX);
        assert_eq!(error.message(), "stack depth limit exceeded");
    }
}

#[test]
fn long_literals_keep_every_byte() {
    let text = "ü'".repeat(500_000);
    let sql = format!("select '{}'", text.replace('\'', "''"));
    let statements = parse(&sql).expect("a long literal");
    let Statement::Select(select) = &statements[0].statement else { panic!() };
    let SelectBody::Select(core) = &select.body else { panic!() };
    let ExpressionKind::Constant(Constant::String(found)) = &core.targets[0].expression.kind else {
        panic!()
    };
    assert!(*found == text);
}

/// Every prefix of a statement, and every statement with a token left out, ends in a tree or an error.
#[test]
fn no_prefix_of_a_statement_is_a_panic() {
    for row in rows(include_str!("../../testdata/syntax/trees.txt")) {
        for (end, _) in row[0].char_indices() {
            let _ = parse(&row[0][..end]);
            let _ = parse(&row[0][end..]);
        }
    }
}
