//! Statements that look up one row by a unique key: the rows are a server's, and no plan is made for them.

use std::fs;
use std::path::Path;

use trunkline_format::{BLOCK_SIZE, PageBytes, page_checksum};
use trunkline_query::{Session, in_session_thread};

use crate::cluster::runtime;
use crate::compared_counts::print_counts;
use crate::server::{Server, servers};
use crate::sessions::{open_on, run};

const TABLES: &str = r#"
    create table k (id int primary key, a int8, b text collate "C", n name unique, num numeric unique,
        x text, f float4 unique, part int);
    alter table k alter x set storage external;
    insert into k select i, i % 40, 'b' || i / 40, 'n' || i, nullif(i, 70) / 4.0,
        repeat(md5(i::text), 80), i / 10.0, i from generate_series(1, 2000) i;
    create unique index on k (a, b);
    create index on k (x);
    create unique index on k (part) where part > 100;
    update k set x = 'updated' where id % 11 = 0;
    update k set id = id + 10000 where id % 17 = 0;
    delete from k where id % 13 = 0;

    create table parts (id int primary key, x text) partition by range (id);
    create table parts_1 partition of parts for values from (1) to (100);
    create table parts_2 partition of parts for values from (100) to (200);
    insert into parts select i, 'x' || i from generate_series(1, 150) i;
    create table parent (id int primary key);
    create table child (id int primary key) inherits (parent);
    insert into parent values (1);
    insert into child values (1), (2);
    analyze;
    checkpoint;
"#;

/// Statements, whether they are look-ups, and what they are executed with.
const STATEMENTS: &[(bool, &str, &[&str])] = &[
    (false, "(int) as select length(x) from k where id = $1", &["1"]),
    (true, "(int) as select x, id, num from k where id = $1", &["5", "-1", "null", "13", "22"]),
    (true, "(int) as select ctid, xmin, id from k where id = $1", &["5", "17", "10017", "10034"]),
    (true, "(int) as select id, id from k where $1 = id", &["1999", "2000"]),
    (true, "(int8) as select id from k where id = $1", &["7", "5000000000"]),
    (true, "(text, int8) as select id from k where b = $1 and a = $2", &["'b7', 9", "'b7', null"]),
    (true, "as select id from k where a = 3 and b = 'b2'", &[""]),
    (true, "(text) as select id from k where n = $1", &["'n44'", "'N44'", "repeat('n', 70)"]),
    (true, "(numeric) as select id, num from k where num = $1", &["7.2500", "'NaN'", "null"]),
    (true, "(float4) as select id from k where f = $1", &["0.3", "'-0'"]),
    (true, "(int) as select id from k where id = $1 + 4", &["5", "8"]),
    (true, "(int) as select id from only parent where id = $1", &["1", "2"]),
    (true, "(float8) as select id from k where f = $1", &["0.5", "0.3"]),
    (false, "(int) as select id + 1 from k where id = $1", &["5"]),
    (false, "(int) as select id from k where id = $1 and num > 2", &["5", "9"]),
    (false, "(int) as select id from k where id = $1 or a = 3", &["5"]),
    (false, "(int) as select id from k where id in ($1, 6)", &["5"]),
    (false, "(int) as select id from k where id >= $1 and id < 9", &["5"]),
    (false, "(int8) as select id from k where a = $1", &["39"]),
    (false, "(text) as select id from k where x = $1", &["'updated'"]),
    (false, "(int) as select id from k where part = $1", &["5", "500"]),
    (false, "(int) as select x from parts where id = $1", &["5", "120"]),
    (false, "(int) as select id from parent where id = $1", &["1", "2"]),
    (true, "(int) as select id from k where id = 6 / $1", &["2"]),
    // The planner reports the error.
    (false, "(int) as select id from k where id = 6 / $1", &["0"]),
];

/// The values of all rows, sorted. They are between tabs, and rows between lines of a server, and between
/// bars here.
fn parts(text: &str) -> Vec<String> {
    let text = text.replace('\t', "|").replace("\\N", "");
    let mut parts: Vec<String> =
        text.split('|').filter(|part| !part.is_empty()).map(str::to_owned).collect();
    parts.sort_unstable();
    parts
}

#[test]
fn a_row_is_looked_up_without_a_plan() {
    let Some(bin) = servers().pop() else { return };
    let server = Server::start(&bin, &[]);
    server.script("postgres", TABLES, false);
    let execute = |at: usize, values: &str| match values {
        "" => format!("execute p{at}"),
        values => format!("execute p{at}({values})"),
    };
    let mut expected = Vec::new();
    for (at, (_, statement, values)) in STATEMENTS.iter().enumerate() {
        for values in *values {
            let execute = execute(at, values);
            // A script would end at the error.
            let script = format!("prepare p{at} {statement}; {execute}");
            expected.push(match execute.contains("(0)") {
                true => vec!["22012 division by zero".to_owned()],
                false => {
                    let output = String::from_utf8(server.sql("postgres", &script));
                    let output = output.expect("UTF-8");
                    let mut lines: Vec<String> = output.lines().map(str::to_owned).collect();
                    lines.retain(|line| line != "PREPARE");
                    lines.sort_unstable();
                    lines
                }
            });
        }
    }
    let stopped = server.stop();
    let results = 2 * expected.len();
    let check = async || {
        let session = open_on(stopped.data(), "postgres", &[], &[]).await;
        let mut session = session.expect("a session");
        let (mut expected, mut look_ups) = (expected.iter(), 0);
        for (at, (is_look_up, statement, values)) in STATEMENTS.iter().enumerate() {
            assert_eq!(run(&mut session, &format!("prepare p{at} {statement}")).await, "PREPARE");
            for values in *values {
                let sql = execute(at, values);
                let found = parts(&run(&mut session, &sql).await);
                let wanted = parts(&expected.next().expect("an answer").join("|"));
                assert_eq!(found, wanted, "{statement} {values}");
                // Now all pages are in the pool.
                let again = parts(&run(&mut session, &sql).await);
                assert_eq!(again, wanted, "{statement} {values}, again");
            }
            let counts = format!(
                "select generic_plans, custom_plans from pg_prepared_statements where name = 'p{at}'"
            );
            let plans = 2 * values.len();
            look_ups += if *is_look_up { plans } else { 0 };
            let counted = if *is_look_up { format!("{plans}\t0") } else { format!("0\t{plans}") };
            assert_eq!(run(&mut session, &counts).await, counted, "{statement}");
        }
        let statements = STATEMENTS.len();
        print_counts(
            "look-ups",
            &[(statements, "statements"), (results, "results"), (look_ups, "without a plan")],
        );
    };
    runtime().block_on(check());
    // This thread may block, so it reads missing pages itself.
    in_session_thread(|| runtime().block_on(check()));
}

#[test]
fn a_look_up_is_an_index_scan() {
    let Some(bin) = servers().pop() else { return };
    let server = Server::start(&bin, &[]);
    server.script("postgres", TABLES, false);
    let stopped = server.stop();
    runtime().block_on(async {
        let session = open_on(stopped.data(), "postgres", &[], &[]).await;
        let mut session = session.expect("a session");
        let results = [
            ("prepare p(int) as select id, a from k where id = $1", "PREPARE"),
            ("set enable_indexscan = off", "SET"),
            ("execute p(5)", "5\t5"),
            ("select generic_plans, custom_plans from pg_prepared_statements", "0\t1"),
            ("reset enable_indexscan", "RESET"),
            ("execute p(5)", "5\t5"),
            ("select generic_plans, custom_plans from pg_prepared_statements", "1\t1"),
            // Of a plan, EXPLAIN shows the same node.
            (
                "explain (costs off) select id, a from k where id = 5",
                "Index Scan using k_pkey on k|  Index Cond: (id = 5)",
            ),
            ("begin", "BEGIN"),
            ("declare c cursor for select id from k where id = 8", "DECLARE CURSOR"),
            ("fetch all from c", "8"),
            ("commit", "COMMIT"),
            ("select id from k where id = 9", "9"),
        ];
        for (sql, expected) in results {
            assert_eq!(run(&mut session, sql).await, expected, "{sql}");
        }
    });
}

/// The files of a table and of its index.
const FILES: &str = "
    create table t (k int primary key, v int);
    insert into t select i, i * 2 from generate_series(1, 5000) i;
    vacuum analyze t;
    checkpoint;
    select pg_relation_filepath('t'), pg_relation_filepath('t_pkey');
";

const LOOK_UP: &str = "prepare p(int) as select k, v from t where k = $1";

async fn session_on(data: &Path) -> Session {
    open_on(data.to_owned(), "postgres", &[], &[]).await.expect("a session")
}

/// The executions of the statement without a plan, and with one.
async fn plans(session: &mut Session) -> String {
    run(session, "select generic_plans, custom_plans from pg_prepared_statements").await
}

#[test]
fn what_is_wrong_with_a_file_is_not_kept() {
    let Some(bin) = servers().pop() else { return };
    let server = Server::start(&bin, &[]);
    let files = String::from_utf8(server.script("postgres", FILES, false)).expect("UTF-8");
    let (table, index) = files.trim().split_once('\t').expect("two files");
    let stopped = server.stop();
    let (table, index) = (stopped.data().join(table), stopped.data().join(index));
    let away = stopped.data().join("away");
    runtime().block_on(async {
        // Without its index, the row is found as in any other plan.
        let mut session = session_on(&stopped.data()).await;
        assert_eq!(run(&mut session, LOOK_UP).await, "PREPARE");
        fs::rename(&index, &away).expect("renamed");
        for sql in ["execute p(5)", "select k, v from t where k = 5"] {
            assert_eq!(run(&mut session, sql).await, "5\t10", "{sql}");
        }
        assert_eq!(plans(&mut session).await, "0\t1");
        fs::rename(&away, &index).expect("renamed");
        assert_eq!(run(&mut session, "execute p(5)").await, "5\t10");
        assert_eq!(plans(&mut session).await, "1\t1");
        // Without the table, there is no row.
        let mut session = session_on(&stopped.data()).await;
        assert_eq!(run(&mut session, LOOK_UP).await, "PREPARE");
        fs::rename(&table, &away).expect("renamed");
        let error = run(&mut session, "execute p(5)").await;
        assert!(error.contains("could not open file"), "{error}");
        fs::rename(&away, &table).expect("renamed");
        assert_eq!(run(&mut session, "execute p(5)").await, "5\t10");
    });
}

/// Waits, reads and hits for the pages of the index and of the table.
async fn page_counts(session: &mut Session) -> [[u64; 3]; 2] {
    let sql = "select coalesce(sum(waits), 0)::int8, coalesce(sum(reads), 0)::int8, \
        coalesce(sum(hits), 0)::int8 from trunkline_io_relations where relation = ";
    let mut found: Vec<[u64; 3]> = Vec::new();
    for relation in ["public.t_pkey", "public.t"] {
        let counts = run(session, &format!("{sql}'{relation}'")).await;
        let counts: Vec<u64> =
            counts.split('\t').map(|count| count.parse().expect("a number")).collect();
        found.push(counts.try_into().expect("three counts"));
    }
    found.try_into().expect("two relations")
}

/// A scan would wait for the pages of the index, though not long.
#[test]
fn a_cached_row_is_found_without_a_scan() {
    let Some(bin) = servers().pop() else { return };
    let server = Server::start(&bin, &[]);
    server.script("postgres", FILES, false);
    let stopped = server.stop();
    runtime().block_on(async {
        let mut session = session_on(&stopped.data()).await;
        assert_eq!(run(&mut session, LOOK_UP).await, "PREPARE");
        let rows = [("execute p(5)", "5\t10"), ("execute p(17)", "17\t34"), ("execute p(0)", "")];
        let mut before = None;
        for round in 0..6 {
            for (sql, row) in rows {
                assert_eq!(run(&mut session, sql).await, row, "{sql}");
            }
            let found = page_counts(&mut session).await;
            if let Some(before) = before.replace(found) {
                let [index, table] = found;
                let [before_index, before_table]: [[u64; 3]; 2] = before;
                // The metapage, the root and a leaf for each key, and a page of the table for each row.
                let [waits, reads, hits] = before_index;
                assert_eq!(index, [waits, reads, hits + 3 * 3], "round {round}");
                let [waits, reads, hits] = before_table;
                assert_eq!(table, [waits, reads, hits + 2], "round {round}");
            }
        }
        // The same rows through a scan.
        let before = page_counts(&mut session).await;
        for (key, row) in [(5, "5\t10"), (17, "17\t34")] {
            let sql = format!("select k, v from t where k = {key} and v > 0");
            assert_eq!(run(&mut session, &sql).await, row, "{sql}");
        }
        let found = page_counts(&mut session).await;
        assert!(found[0][0] > before[0][0], "{found:?} after {before:?}");
    });
}

#[test]
fn an_entry_that_leads_to_another_row_finds_nothing() {
    let Some(bin) = servers().pop() else { return };
    let server = Server::start(&bin, &[]);
    let files = String::from_utf8(server.script("postgres", FILES, false)).expect("UTF-8");
    let (_, index) = files.trim().split_once('\t').expect("two files");
    let stopped = server.stop();
    let index = stopped.data().join(index);
    let mut bytes = fs::read(&index).expect("read");
    let page: &mut PageBytes = bytes[BLOCK_SIZE..].first_chunk_mut().expect("a page");
    // The fifth entry of the first leaf, which begins with its high key. Its pointer to the row ends with
    // the number of the line pointer.
    let at = 24 + 4 * 5;
    let pointer = u32::from_le_bytes(page[at..at + 4].try_into().expect("four bytes"));
    let item = (pointer & 0x7FFF) as usize + 4;
    assert_eq!(page[item..item + 2], 5_u16.to_le_bytes());
    page[item..item + 2].copy_from_slice(&6_u16.to_le_bytes());
    let checksum = page_checksum(page, 1);
    page[8..10].copy_from_slice(&checksum.to_le_bytes());
    fs::write(&index, bytes).expect("written");
    runtime().block_on(async {
        let mut session = session_on(&stopped.data()).await;
        assert_eq!(run(&mut session, LOOK_UP).await, "PREPARE");
        // Through a scan, and without one.
        for (sql, row) in [("execute p(5)", ""), ("execute p(5)", ""), ("execute p(6)", "6\t12")] {
            assert_eq!(run(&mut session, sql).await, row, "{sql}");
        }
        assert_eq!(plans(&mut session).await, "3\t0");
    });
}
