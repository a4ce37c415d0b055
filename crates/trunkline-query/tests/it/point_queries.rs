//! Statements that look up one row by a unique key: the rows are a server's, and no plan is made for them.

use trunkline_query::in_session_thread;

use crate::cluster::runtime;
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
    let check = async || {
        let session = open_on(stopped.data(), "postgres", &[], &[]).await;
        let mut session = session.expect("a session");
        let mut expected = expected.iter();
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
            let counted = if *is_look_up { format!("{plans}\t0") } else { format!("0\t{plans}") };
            assert_eq!(run(&mut session, &counts).await, counted, "{statement}");
        }
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
