//! Index-only scans: the columns of entries are those of the rows, and rows that aren't visible don't come.
//!
//! Columns are compared with a server's output, for random predicates and for shapes of indexes that could go
//! wrong: `INCLUDE` columns of types without an order, values that are compressed, names, columns that were
//! added later, and rows that were changed after the last `VACUUM`.

use std::fs;
use std::path::Path;

use trunkline_format::{BLOCK_SIZE, PageBytes, page_checksum};
use trunkline_query::Session;

use crate::access_paths::{Compared, TYPES, Table, generated_table, number};
use crate::cluster::runtime;
use crate::compared_counts::print_counts;
use crate::server::{Server, servers};
use crate::sessions::{open_on, run};

/// How many predicates CI evaluates for each server, a part of them for each index.
const PREDICATES: usize = 58;

/// Settings that leave index scans, of which those that need the table are dearer.
const FORCED: [&str; 4] = [
    "set enable_seqscan = off",
    "set enable_bitmapscan = off",
    "set enable_indexscan = on",
    "set enable_indexonlyscan = on",
];

/// Rows of the generated table that are changed after `VACUUM`, so that some pages are not all-visible.
const CHANGES: &str = "
    vacuum keys;
    update keys set c1 = c1 + 3, c6 = c6 || 'y', c8 = 'u' where id between 500 and 700 and id % 3 = 0;
    update keys set id = id + 5000 where id between 900 and 950;
    delete from keys where id between 1500 and 1600 and id % 2 = 0;
    insert into keys select * from keys where id between 100 and 130;
";

/// Tables for particular shapes.
const SHAPES: &str = r#"
    create table inc (a int, b int[], j jsonb, t text, n name, u text collate "und-x-icu", r int4range, gone int);
    insert into inc select i % 500, array[i % 7, null, i % 3], jsonb_build_object('k', i % 9),
        case when i % 5 <> 0 then repeat('t' || i % 40, 400) end, 'n' || i % 90, 'u' || i % 60,
        int4range(i % 9, i % 9 + 3) from generate_series(1, 2000) i;
    alter table inc drop column gone;
    alter table inc add column later int default 7, add column word text default 'missing';
    create index inc_a on inc (a) include (b, j, t, n, r);
    create index inc_u on inc (u, a);
    create index inc_n on inc (n desc, later) include (n, word);
    create index inc_t on inc (t);
    create index inc_expression on inc ((a + 1), b);
    create index inc_partial on inc (word) where a > 3;
    create index inc_twice on inc (a, later, a);
    create table inc_child (more text) inherits (inc);
    insert into inc_child (more, a, n) select 'm', i % 50, 'c' || i from generate_series(1, 900) i;
    create index inc_child_n on inc_child (a, n);
    create table parts (id int, k int, x text) partition by range (id);
    create table parts_1 partition of parts for values from (1) to (1000);
    create table parts_2 (x text, gone int, id int, k int);
    alter table parts_2 drop column gone;
    alter table parts attach partition parts_2 for values from (1000) to (5000);
    insert into parts select i, i % 45, 'x' || i % 11 from generate_series(1, 2500) i;
    create index on parts (k, x);
    create index on parts (id);
    create table x (a int, b text, c bigint, d text);
    insert into x select i, 'b' || i % 100, i % 50, repeat('d', 60) from generate_series(1, 20000) i;
    create index x_a on x (a);
    create index x_bc on x (b, c) include (a);
    create table never (a int primary key);
    insert into never select generate_series(1, 1000);
    vacuum analyze inc, inc_child, parts, x;
    update inc set a = a + 1 where a between 100 and 120;
    update inc set word = 'changed' where a between 200 and 220;
    delete from inc where a between 300 and 310;
    insert into x select i, 'b7', i, 'd' from generate_series(20001, 20050) i;
    checkpoint;
"#;

/// Queries of these tables. Those that begin with `+` must be index-only scans.
const QUERIES: &str = r#"
    + select a, b, j, r from only inc where a between 90 and 130
    + select t, a from only inc where a in (5, 210, 305)
    + select n, a from only inc where a < 40
    + select n, later, word from only inc where n = 'n7'
    + select word, later, n from only inc where n > 'n5' and word <> 'missing'
    + select tableoid::regclass, n from only inc where n >= 'n88'
    + select count(*) from only inc where a > 250
    + select count(t) from only inc where t > 't1' and t < 't3'
    + select u, a from only inc where u <> 'u3'
    + select u from only inc where u like '%7'
    + select a, later from only inc where a = 101 and later = 7
    + select n from only inc where n is null
    + select a from only inc where a is null or a = 3
    + select count(*), count(a), sum(a) from only inc
    select ctid, a from only inc where a = 9
    select xmin is null, a from only inc where a = 9
    + select a + 1, b from only inc where a + 1 = 5
    + select word from only inc where word = 'missing'
    + select a, n from inc where a < 7
    + select count(*) from inc where a = 9
    + select tableoid::regclass, a from inc where a = 11
    + select k, x from parts where k = 7
    + select x from parts where k in (3, 9) and x > 'x2'
    + select count(*) from parts where id between 900 and 1100
    + select count(*) from (select k from parts where k > 5 limit 1234) s
    + select b, c, a from x where b = 'b7' and c > 40
    + select count(*) from x
    + select max(a) - min(a) from x where a > 500
    + select count(*) from x where b = 'b7' and a > 15000
    + select p.a, q.c from x p, x q where p.a = 5 and q.b = 'b3' and q.c = 3 and q.a < 900
    + select a, (select count(*) from x where b = 'b9' and c = i.a) from only inc i where a < 4
"#;

/// Plans that a server prints in the same way, with only index scans enabled.
const PLANS: &str = "
    select a from x where a = 5
    select a from x where a = 5 and a + 1 > 3
    select c, b from x where b = 'b7' and c in (1, 2)
    select count(*) from x where b = 'b7' and a > 30
    select b from x where c = 7
    select d from x where a = 5
    select ctid from x where a = 5
    select a from x
";

/// A plan in which all rows of a page are looked up that isn't all-visible.
const FETCHED: &str = "select b, c from x where b = 'b7'";

fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

/// A query, its rows on a server, and whether it must be an index-only scan. `None` if another index may be
/// cheaper.
struct Case {
    sql: String,
    expected: Vec<String>,
    must: Option<bool>,
}

/// Runs queries on a server.
fn cases(server: &Server, queries: Vec<(String, Option<bool>)>) -> Vec<Case> {
    let script: String = queries.iter().map(|(sql, _)| format!("{sql};\n\\echo ~\n")).collect();
    let output = server.script("postgres", &format!("\\pset null '\\\\N'\n{script}"), false);
    let output = String::from_utf8(output).expect("UTF-8");
    let mut results: Vec<&str> = output.split("~\n").collect();
    assert_eq!(results.pop(), Some(""), "nothing after the last result");
    assert_eq!(results.len(), queries.len());
    let results = results.into_iter().zip(queries);
    results.map(|(rows, (sql, must))| Case { sql, expected: sorted(rows, '\n'), must }).collect()
}

fn sorted(rows: &str, separator: char) -> Vec<String> {
    let rows = rows.trim_end_matches('\n');
    let mut rows: Vec<String> = rows.split(separator).map(str::to_owned).collect();
    rows.sort_unstable();
    rows
}

/// Queries of the generated table, each with the columns of one of its indexes.
fn random_queries(table: &Table, seed: u64, count: usize) -> Vec<(String, Option<bool>)> {
    let columns = &table.columns;
    let mut queries = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        let next = columns.get((at + 1) % columns.len()).expect("a column");
        let (searched, selected) = match at % 3 {
            0 => (vec![column], column.name.clone()),
            1 => (vec![column, next], format!("{}, {}", next.name, column.name)),
            _ => (vec![column], format!("id, {}", column.name)),
        };
        let searched = searched.into_iter().cloned().collect();
        let part = Table { name: table.name.clone(), columns: searched };
        for predicate in part.predicates(seed + at as u64, count) {
            queries.push((format!("select {selected} from keys where {predicate}"), None));
        }
        queries.push((format!("select {selected} from keys"), Some(true)));
    }
    queries
}

async fn set_all(session: &mut Session, commands: &[&str]) {
    for command in commands {
        assert_eq!(run(session, command).await, "SET");
    }
}

/// Compares the rows. Returns the number of index-only scans, among which are predicates that are never true.
async fn compare(session: &mut Session, cases: &[Case]) -> usize {
    let (mut wrong, mut fetched, mut index_only) = (Vec::new(), false, 0);
    for Case { sql, expected, must } in cases {
        Compared::force(session, ["on"; 3]).await;
        let found = sorted(&run(session, sql).await, '|');
        if found != *expected {
            wrong.push(format!("the chosen path of {sql}:\n  {found:?}\n  {expected:?}"));
        }
        set_all(session, &FORCED).await;
        let found = sorted(&run(session, sql).await, '|');
        if found != *expected {
            wrong.push(format!("the index-only path of {sql}:\n  {found:?}\n  {expected:?}"));
        }
        let explain = "explain (analyze, costs off, timing off, summary off)";
        let plan = run(session, &format!("{explain} {sql}")).await;
        let is_index_only = plan.contains("Index Only Scan");
        let is_empty = plan.contains("One-Time Filter: false");
        index_only += usize::from(is_index_only || is_empty);
        if must.is_some_and(|must| is_index_only != must) && !is_empty {
            wrong.push(format!("{sql}: {plan}"));
        }
        fetched |= plan.split('|').any(|line| {
            line.trim().strip_prefix("Heap Fetches: ").is_some_and(|count| count != "0")
        });
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(fetched, "no row was looked up");
    assert!(index_only * 10 >= cases.len() * 8, "{index_only} of {}", cases.len());
    index_only
}

/// What a server explains with only index scans enabled.
fn explained(server: &Server, options: &str, sql: &str) -> String {
    let script = format!("{}; explain ({options}) {sql}", FORCED.join("; "));
    let output = String::from_utf8(server.sql("postgres", &script)).expect("UTF-8");
    output.trim_end().replace('\n', "|")
}

const MEASURED: &str = "analyze, costs off, timing off, summary off, buffers off";

fn compare_with_server(bin: &Path, seed: u64, count: usize) {
    let server = Server::start(bin, &[("autovacuum", "off")]);
    let table = generated_table(&server);
    server.script("postgres", &format!("{CHANGES}{SHAPES}"), false);
    let random = cases(&server, random_queries(&table, seed, count.div_ceil(TYPES.len())));
    let shapes = listed(QUERIES).map(|line| match line.strip_prefix("+ ") {
        Some(sql) => (sql.to_owned(), Some(true)),
        None => (line.to_owned(), Some(false)),
    });
    let shapes = cases(&server, shapes.collect());
    let plans: Vec<(&str, String)> =
        listed(PLANS).map(|sql| (sql, explained(&server, "costs off", sql))).collect();
    let measured = explained(&server, MEASURED, FETCHED);
    let fetches = measured.split('|').find(|line| line.contains("Heap Fetches"));
    let fetches = fetches.expect("an index-only scan").trim().to_owned();
    // Since PostgreSQL 19, queries set pages all-visible, so those above may have left no row to look up.
    let may_be_visible = server.major() >= 19;
    let stopped = server.stop();
    runtime().block_on(async {
        let session = open_on(stopped.data(), "postgres", &[], &[]).await;
        let mut session = session.expect("a session");
        let random_index_only = compare(&mut session, &random).await;
        let index_only = random_index_only + compare(&mut session, &shapes).await;
        print_counts(
            "index-only",
            &[
                (random.len() - TYPES.len(), "predicates"),
                (2 * (random.len() + shapes.len()), "results"),
                (index_only, "index-only scans"),
            ],
        );
        set_all(&mut session, &FORCED).await;
        for (sql, expected) in plans {
            let found = run(&mut session, &format!("explain (costs off) {sql}")).await;
            assert_eq!(found, expected, "{sql}");
        }
        let found = run(&mut session, &format!("explain ({MEASURED}) {FETCHED}")).await;
        assert!(found.contains(&fetches), "{fetches}: {found}");
        assert!(may_be_visible || !fetches.ends_with(" 0"), "{fetches}");
        choices(&mut session).await;
    });
}

/// What is chosen, and what settings change.
async fn choices(session: &mut Session) {
    let plan = async |session: &mut Session, sql: &str| {
        run(session, &format!("explain (costs off) {sql}")).await
    };
    Compared::force(session, ["on"; 3]).await;
    // The index is smaller than the table.
    let found = plan(session, "select count(*) from x").await;
    assert!(found.contains("Index Only Scan using x_a on x"), "{found}");
    let found = plan(session, "select a from x where a < 2000").await;
    assert!(found.contains("Index Only Scan using x_a on x"), "{found}");
    // Without a page that is all-visible, it would save nothing.
    let found = plan(session, "select a from never where a = 5").await;
    assert!(found.contains("Index Scan using never_pkey on never"), "{found}");
    set_all(session, &["set enable_indexonlyscan = off"]).await;
    let found = plan(session, "select count(*) from x").await;
    assert!(found.contains("Seq Scan on x"), "{found}");
    let found = plan(session, "select a from x where a = 5").await;
    assert!(found.contains("Index Scan using x_a on x"), "{found}");
    // As in PostgreSQL up to 18, it is an index scan like others.
    set_all(session, &["set enable_indexonlyscan = on", "set enable_indexscan = off"]).await;
    let found = plan(session, "select a from x where a = 5").await;
    assert!(found.contains("Bitmap Heap Scan on x"), "{found}");
    Compared::force(session, ["on"; 3]).await;
}

#[test]
fn entries_have_the_columns_of_their_rows() {
    let (seed, count) =
        (number("TRUNKLINE_SEED", 1) as u64, number("TRUNKLINE_QUERIES", PREDICATES));
    for (bin, seed) in servers().iter().zip(seed..) {
        compare_with_server(bin, seed, count);
    }
}

/// A table in random order, of which no page is all-visible any more, although the statistics say so.
const DOUBTFUL: &str = "
    create table doubtful (a int, b int, c text);
    insert into doubtful select i, i % 100, repeat('x', 350) from generate_series(1, 12000) i
        order by md5(i::text);
    create index doubtful_a on doubtful (a) include (b);
    vacuum analyze doubtful;
    begin;
    delete from doubtful where (ctid::text::point)[1] = 1;
    rollback;
    checkpoint;
";

/// Queries that need few rows, and one that needs all, with the rows that PostgreSQL 15 looks up. We don't
/// ask a server, because PostgreSQL 19 would set pages all-visible then.
const LIMITED: [(&str, u64); 6] = [
    ("select a from doubtful where a > 5000 limit 1", 1),
    ("select a from doubtful where a > 5000 limit 100", 100),
    ("select a from doubtful where a > 5000 and b = 7 limit 1", 7),
    ("select a from doubtful where a > 0 and b = 7 limit 13", 1207),
    ("select a from doubtful where a > 0 and b <> 7 limit 300", 303),
    ("select a from doubtful where a > 0 and b = 7 limit 1000", 12000),
];

/// The rows that an index-only scan has looked up.
fn heap_fetches(plan: &str) -> u64 {
    assert!(plan.contains("Index Only Scan using doubtful_a"), "{plan}");
    let count = plan.split('|').find_map(|line| line.trim().strip_prefix("Heap Fetches: "));
    count.unwrap_or_else(|| panic!("{plan}")).parse().expect("a number")
}

#[test]
fn a_limit_needs_few_rows_of_the_table() {
    let Some(bin) = servers().pop() else { return };
    let server = Server::start(&bin, &[]);
    server.script("postgres", DOUBTFUL, false);
    let stopped = server.stop();
    runtime().block_on(async {
        let session = open_on(stopped.data(), "postgres", &[], &[]).await;
        let mut session = session.expect("a session");
        set_all(&mut session, &FORCED).await;
        for (sql, needed) in LIMITED {
            let found = run(&mut session, &format!("explain ({MEASURED}) {sql}")).await;
            let found = heap_fetches(&found);
            // The rows of the last page that aren't wanted, and 1/64 of those before.
            let most = needed + needed / 64 + 1;
            assert!(found >= needed && found <= most, "{sql}: {found}, not {needed}");
        }
    });
}

/// A table whose index has a text that nothing is compared with.
const INCLUDED: &str = "
    create table t (a int, b text);
    insert into t select i, 'text ' || i from generate_series(1, 20000) i;
    create index t_a on t (a) include (b);
    vacuum analyze t;
    checkpoint;
    select pg_relation_filepath('t_a'), pg_relation_filepath('t');
";

#[test]
fn damaged_entries_are_errors_and_a_damaged_map_is_not() {
    let Some(bin) = servers().pop() else { return };
    let server = Server::start(&bin, &[]);
    let files = server.script("postgres", INCLUDED, false);
    let files = String::from_utf8(files).expect("UTF-8");
    let (index, table) = files.trim().split_once('\t').expect("two files");
    let stopped = server.stop();
    let index = stopped.data().join(index);
    let map = stopped.data().join(format!("{table}_vm"));
    let whole = fs::read(&index).expect("read");
    // The fifth entry of the first leaf, which begins with its high key.
    let start = {
        let at = BLOCK_SIZE + 24 + 4 * 5;
        let pointer = u32::from_le_bytes(whole[at..at + 4].try_into().expect("four bytes"));
        BLOCK_SIZE + (pointer & 0x7FFF) as usize
    };
    // Behind the header and an int4, the length of a text: as a short one, a long one, a TOAST pointer, and
    // a text that isn't UTF-8.
    let length = start + 8 + 4;
    for (at, bytes) in [(length, vec![0xFF]), (length, vec![0, 0xFF, 0xFF]), (length, vec![1, 18])]
        .into_iter()
        .chain([(length + 1, vec![0xFF])])
    {
        let mut damaged = whole.clone();
        damaged[at..at + bytes.len()].copy_from_slice(&bytes);
        with_checksum(&mut damaged, 1);
        fs::write(&index, damaged).expect("written");
        let found = results(&stopped.data());
        assert!(
            found[0].starts_with("XX002 ")
                && found[0].contains("block 1")
                && found[0].contains("line pointer 6"),
            "{at} {bytes:?}: {found:?}"
        );
        assert_eq!(found[1], "300", "the rest of the index");
        assert_eq!(found[2], "300", "without the text");
    }
    fs::write(&index, whole).expect("written");
    // Without a map that can be read, all rows are looked up.
    let sound = fs::read(&map).expect("read");
    assert!(sound.len() >= BLOCK_SIZE);
    for bytes in [vec![7; BLOCK_SIZE], Vec::new()] {
        fs::write(&map, bytes).expect("written");
        assert_eq!(results(&stopped.data()), ["300", "300", "300", "Heap Fetches: 300"]);
    }
    fs::remove_file(&map).expect("removed");
    assert_eq!(results(&stopped.data()), ["300", "300", "300", "Heap Fetches: 300"]);
    fs::write(&map, sound).expect("written");
    assert_eq!(results(&stopped.data()), ["300", "300", "300", "Heap Fetches: 0"]);
}

fn with_checksum(bytes: &mut [u8], block: u32) {
    let page = bytes.get_mut(block as usize * BLOCK_SIZE..).expect("a block");
    let page: &mut PageBytes = page.first_chunk_mut().expect("a page");
    let checksum = page_checksum(page, block);
    page[8..10].copy_from_slice(&checksum.to_le_bytes());
}

/// Rows with the first entries, others, and the first ones without their text; and how many rows were looked
/// up for these.
async fn counts(session: &mut Session) -> Vec<String> {
    set_all(session, &FORCED).await;
    let mut found = Vec::new();
    for sql in [
        "select count(b) from t where a between 1 and 300",
        "select count(b) from t where a between 10001 and 10300",
        "select count(*) from t where a between 1 and 300",
    ] {
        let plan = run(session, &format!("explain (costs off) {sql}")).await;
        assert!(plan.contains("Index Only Scan using t_a"), "{plan}");
        found.push(run(session, sql).await);
    }
    let sql = "select count(*) from t where a between 1 and 300";
    let plan = run(session, &format!("explain ({MEASURED}) {sql}")).await;
    let fetches = plan.split('|').map(str::trim).find(|line| line.contains("Heap Fetches"));
    found.push(fetches.expect("an index-only scan").to_owned());
    found
}

fn results(data: &Path) -> Vec<String> {
    runtime().block_on(async {
        let session = open_on(data.to_owned(), "postgres", &[], &[]).await;
        counts(&mut session.expect("a session")).await
    })
}
