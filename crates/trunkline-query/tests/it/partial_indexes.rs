//! Partial indexes: used if the filters imply the predicate, and only then, because others lack rows.
//!
//! Each predicate has a table of its own, with no other index, so that a scan either uses this index or none.
//! The server says which rows there are, and whether it could prove the implication as well.

use std::path::Path;

use trunkline_query::Session;

use crate::access_paths::{Compared, Table, generated_table, number};
use crate::cluster::runtime;
use crate::compared_counts::print_counts;
use crate::server::{Server, servers};
use crate::sessions::{open_on, run};

/// How many random conditions CI compares for each server.
const QUERIES: usize = 32;

/// How many of them there are for each index with a random predicate.
const QUERIES_PER_INDEX: usize = 4;

/// Columns with nulls, and values on both sides of every predicate.
const TABLE: &str = r#"
    create table p (id int, a int, b text collate "C", f float8, g float4, flag bool, d date, ts timestamp,
        n numeric, v varchar(10), s int2, big int8, x bpchar(4), na name, u text collate "und-x-icu");
    insert into p select i, nullif(i % 12, 11), case when i % 10 <> 9 then 'b' || i % 9 end,
        case i % 8 when 0 then 'NaN' when 1 then null else (i % 8)::text end::float8, (i % 7 / 10.0)::float4,
        case i % 3 when 0 then true when 1 then false end, case when i % 4 <> 3 then '2020-01-01'::date + i % 9 end,
        '2020-01-01'::timestamp + (i % 50) * interval '5 hours', nullif(i % 30, 29) / 2.0, 'v' || i % 5, i % 9,
        (i % 200)::int8, 'x' || i % 4, 'n' || i % 6, 'u' || i % 6 from generate_series(1, 600) i;
"#;

/// Predicates, each with conditions. Those with `+` imply it, as a server finds, too. Those with `*` imply it, but
/// PostgreSQL 15 doesn't prove that. All others don't imply it, or are not proven to.
const CASES: &str = r#"
    a > 5
      + a > 5
      + a > 6
      + a = 7
      + 7 = a
      + a in (6, 7)
      + a >= 6 and b > 'b2'
      + a > 5::int8
      + a > 3000000000
      + a between 6 and 8
      + a = 6 or a = 7
      + (a = 6 and flag) or (a > 8 and f = 3)
      + (a = 6 or a = 8) and (flag or b = 'b1')
      + a = any ('{8,9}')
      (a > 5) is true
      a >= 5
      a > 4
      a = 5
      a in (5, 6)
      a < 7
      a is not null
      a is null
      a = 6 or b = 'b1'
      a <> 3
      not a > 5
      a > 5 or flag
      s > 5
      a is distinct from 3
      coalesce(a, 7) > 5
      a > all ('{8,9}')
      (a > 5) is not false
      (a > 5) is unknown
      a + 1 > 7
    a >= 5 and flag
      + a >= 5 and flag
      + flag and a > 7
      * flag is true and a = 7
      + a = 7 and flag = true
      a >= 5
      flag
      a >= 5 and not flag
      a >= 5 and flag is not null
      a > 5 or flag
    a < 2 or f > 3
      + a < 2 or f > 3
      + f > 3 or a < 2
      + a < 1
      + f = 5
      + f = 'NaN'
      + f > 4 or a = 0
      + (f > 4 or a = 0) and flag
      a < 3
      f >= 3
      a < 2 or f > 2
      a < 2 or flag
    d is not null
      + d is not null
      + d > '2020-01-05'
      + d = '2020-01-05'
      + d in ('2020-01-05', '2020-01-06')
      + d < '2020-01-04' or d > '2020-01-08'
      + d = '2020-01-05'::timestamp
      d is null
      d is distinct from '2020-01-05'
      d is null or a = 3
      coalesce(d, '2020-01-01') = '2020-01-01'
      a = 3
    d is null
      + d is null
      + d is null and a = 3
      d is not null
      d = '2020-01-05'
      d is distinct from '2020-01-05'
    flag
      + flag
      * flag is true
      + flag = true
      + flag and a = 3
      flag is not null
      flag is not false
      not flag
      flag or a = 3
      flag is null
    not flag
      + not flag
      + flag = false
      * flag is false
      flag is not true
      flag
      flag is null
    flag is not true
      flag
      a = 3
      flag is null
    a in (1, 2, 3)
      + a in (1, 2, 3)
      + a = 2
      + a in (3, 1)
      + a = 1 or a = 3
      + a in (1, null)
      a in (1, 4)
      a < 3
      a = 4
    b >= 'b3'
      + b >= 'b3'
      + b > 'b3'
      + b = 'b5'
      + b in ('b4', 'b8')
      + b > 'b4'::varchar
      b > 'b2'
      b >= 'b'
      b < 'b5'
      b = 'b'
    lower(b) = 'b7'
      + lower(b) = 'b7'
      + lower(b) = 'b7' and a = 3
      lower(b) = 'b6'
      upper(b) = 'b7'
      b = 'b7'
      lower(b) = 'b7' or a = 3
    b like 'b1%'
      + b like 'b1%'
      b like 'b2%'
      b = 'b1'
    n > 10
      + n > 10
      + n > 10.5
      + n = 11.0
      + n = 'NaN'
      n > 9.5
      n >= 10
      n::int4 > 10
    f < 3
      + f < 3
      + f <= '-0'
      + f < 2.5
      + f < '-Infinity' or f = 2
      f <= 3
      f < 'NaN'
      f = 'NaN'
    g < 0.3::float4
      + g < 0.3::float4
      + g < 0.2::float4
      + g < 0.3
      g < 0.31
    big > 100
      + big > 100
      + big > 150
      + big = 5000000000
      + big > 120::int2
      big > 99
      big > -3000000000
    v = 'v1'
      + v = 'v1'
      + v in ('v1')
      + v = 'v1'::text
      v in ('v1', 'v2')
      v = 'v1 '
      v > 'v1'
    x = 'x1'
      + x = 'x1'
      + x = 'x1  '
      x = 'x2'
      x::text = 'x1'
    na > 'n2'
      + na > 'n2'
      + na = 'n3'
      + na = 'n3'::text
      na >= 'n2'
      na < 'n2'
    a <> 3
      + a <> 3
      + not a = 3
      + a = 4
      + a > 3
      + a < 3 or a = 7
      + a in (1, 5)
      + a >= 4 and b = 'b1'
      + a <> 3::int8
      a <> 4
      a >= 3
      a <= 3
      a in (1, 3)
      a is not null
      a is distinct from 3
      a > 2
      a <> 3 or flag
    v <> 'v2' and not n > 10
      + v <> 'v2' and n <= 10
      + v = 'v1' and n = 3
      + v > 'v2' and n = 3
      v = 'v1'
      v <> 'v2' and n < 11
      v = 'v2' and n = 3
    u = 'u3'
      + u = 'u3'
      + u in ('u3')
      u > 'u2' collate "C"
      u in ('u3', 'u4')
    (a, s) > (5, 3)
      a > 6
      s > 3
    ts >= '2020-01-03'
      + ts >= '2020-01-03'
      + ts = '2020-01-05 01:00'
      + ts > '2020-01-04'::date
      ts >= '2020-01-02'::date
      ts < '2020-01-05'
"#;

/// A condition for an index, and whether it is proven to imply the predicate of the index.
struct Case {
    /// The number of the table.
    table: usize,
    condition: &'static str,
    proven: bool,
    /// Every server proves it, too.
    by_server: bool,
}

/// The predicates, and the cases.
fn cases() -> (Vec<&'static str>, Vec<Case>) {
    let (mut predicates, mut cases) = (Vec::new(), Vec::new());
    for line in CASES.lines().filter(|line| !line.trim().is_empty()) {
        match line.strip_prefix("      ") {
            None => predicates.push(line.trim()),
            Some(condition) => {
                let by_server = condition.starts_with("+ ");
                let proven = condition.strip_prefix(['+', '*']);
                let table = predicates.len() - 1;
                let (condition, proven) = (proven.unwrap_or(condition).trim(), proven.is_some());
                cases.push(Case { table, condition, proven, by_server });
            }
        }
    }
    (predicates, cases)
}

/// The tables, each with the rows of another one and an index.
fn tables(name: &str, of: &str, predicates: &[&str]) -> String {
    let made = predicates.iter().enumerate().map(|(at, predicate)| {
        format!(
            "create table {name}{at} as select * from {of};\n\
             create index {name}{at}_index on {name}{at} (id) where {predicate};\n"
        )
    });
    made.collect()
}

/// The ids of the rows, in order, for each query.
fn answers(server: &Server, queries: &[String]) -> Vec<String> {
    let script: String = queries.iter().map(|sql| format!("{sql};\n")).collect();
    let output = String::from_utf8(server.script("postgres", &script, false)).expect("UTF-8");
    let lines: Vec<String> = output.lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), queries.len());
    lines
}

/// Whether a server uses an index, if it prefers it to everything else.
fn server_uses(server: &Server, queries: &[String]) -> Vec<bool> {
    let forced =
        "set enable_seqscan = off; set enable_bitmapscan = off; set enable_indexonlyscan = off;\n";
    let explained = queries.iter().map(|sql| format!("explain (costs off) {sql};\n\\echo ~\n"));
    let script: String = [forced.to_owned()].into_iter().chain(explained).collect();
    let output = String::from_utf8(server.script("postgres", &script, false)).expect("UTF-8");
    let mut plans: Vec<bool> =
        output.split("~\n").map(|plan| plan.contains("Index Scan using")).collect();
    plans.pop();
    plans
}

fn query(table: &str, condition: &str) -> String {
    format!(
        "select coalesce(string_agg(id::text, ',' order by id), '') from {table} where {condition}"
    )
}

async fn rows_by_path(session: &mut Session, sql: &str, expected: &str, wrong: &mut Vec<String>) {
    for (path, forced) in [("index", ["off", "on", "off"]), ("chosen", ["on"; 3])] {
        Compared::force(session, forced).await;
        let found = run(session, sql).await;
        if found != expected {
            wrong.push(format!("the {path} path of {sql}:\n  {found}\n  {expected}"));
        }
    }
}

/// A session in which an index is used if that is allowed, and what it explains.
async fn plan(session: &mut Session, sql: &str) -> String {
    Compared::force(session, ["off", "on", "off"]).await;
    run(session, &format!("explain (verbose, costs off) {sql}")).await
}

fn compare_with_server(bin: &Path, seed: u64, count: usize) {
    let server = Server::start(bin, &[]);
    let (predicates, cases) = cases();
    server.script("postgres", &format!("{TABLE}{}", tables("p", "p", &predicates)), false);
    let queries: Vec<String> =
        cases.iter().map(|case| query(&format!("p{}", case.table), case.condition)).collect();
    let expected = answers(&server, &queries);
    let used = server_uses(&server, &queries);
    // Random predicates, alone and with others.
    let table = generated_table(&server);
    let random = random_predicates(&table, seed, count.div_ceil(QUERIES_PER_INDEX));
    let borrowed: Vec<&str> = random.iter().map(|(predicate, _)| &**predicate).collect();
    server.script("postgres", &tables("few", "keys", &borrowed), false);
    let mut random_queries = Vec::new();
    for (at, (predicate, other)) in random.iter().enumerate() {
        let table = format!("few{at}");
        for condition in [
            predicate.clone(),
            format!("{other} and {predicate}"),
            format!("({predicate}) or ({other})"),
            other.clone(),
        ] {
            random_queries.push(query(&table, &condition));
        }
    }
    assert_eq!(random_queries.len(), random.len() * QUERIES_PER_INDEX);
    let random_expected = answers(&server, &random_queries);
    let random_used = server_uses(&server, &random_queries);
    server.script("postgres", "analyze; checkpoint", false);
    let stopped = server.stop();
    runtime().block_on(async {
        let session = open_on(stopped.data(), "postgres", &[], &[]).await;
        let (mut session, mut wrong) = (session.expect("a session"), Vec::new());
        for (((case, sql), expected), server_uses) in
            cases.iter().zip(&queries).zip(&expected).zip(used)
        {
            rows_by_path(&mut session, sql, expected, &mut wrong).await;
            let plan = plan(&mut session, sql).await;
            let is_used = plan.contains("Index Scan using");
            if is_used != case.proven || (case.by_server && !server_uses) {
                let predicate = predicates[case.table];
                wrong.push(format!("{predicate}: {server_uses} on a server: {sql}\n  {plan}"));
            }
            let why = format!("Unused Index: p{}_index: it is partial", case.table);
            assert!(is_used || plan.contains(&why) || plan.contains("One-Time Filter"), "{plan}");
        }
        let mut proven = 0;
        for ((sql, expected), server_uses) in
            random_queries.iter().zip(&random_expected).zip(random_used)
        {
            rows_by_path(&mut session, sql, expected, &mut wrong).await;
            let plan = plan(&mut session, sql).await;
            if plan.contains("Index Scan using") {
                proven += 1;
                if !server_uses {
                    wrong.push(format!("not on a server: {sql}\n  {plan}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
        print_counts(
            "partial",
            &[
                (random_queries.len(), "conditions"),
                (2 * (random_queries.len() + cases.len()), "results"),
                (proven, "proven"),
            ],
        );
        // Of most predicates, the predicate itself, and with another condition.
        assert!(proven >= random.len(), "{proven} proven of {}", random_queries.len());
    });
}

/// Random predicates, each with another one.
fn random_predicates(table: &Table, seed: u64, count: usize) -> Vec<(String, String)> {
    let all = table.predicates(seed, 2 * count);
    all.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}

#[test]
fn a_partial_index_is_used_only_if_it_has_all_rows() {
    let (seed, count) = (number("TRUNKLINE_SEED", 1) as u64, number("TRUNKLINE_QUERIES", QUERIES));
    for (bin, seed) in servers().iter().zip(seed..) {
        compare_with_server(bin, seed, count);
    }
}
