//! `EXPLAIN`, compared with a server where both choose the same plan, and its counts with those of
//! the pool.

use std::collections::BTreeMap;
use std::path::Path;

use trunkline_query::{Outcome, Session};
use trunkline_sql::syntax::parse;

use crate::answers::{all_answers, versions};
use crate::cluster::runtime;
use crate::server::{Server, servers};
use crate::sessions::{check, open, open_on, run};

const TABLES: &str = "
    create table t (a int, b text, c bigint, d varchar(10), e date);
    insert into t select i, 'b' || i % 10, i * 2, 'd' || i, '2020-01-01'::date + i
        from generate_series(1, 1000) i;
    create table u (a int, x numeric);
    insert into u select i, i / 2.0 from generate_series(1, 100) i;
    create table p (a int, b text) partition by range (a);
    create table p1 partition of p for values from (0) to (50);
    create table p2 partition of p for values from (50) to (100);
    insert into p select i, 'x' from generate_series(0, 99) i;
    create table large (a int, filler text);
    alter table large alter filler set storage plain;
    insert into large select i, repeat('x', 1900) from generate_series(1, 20000) i;
    vacuum analyze t, u, p, large;
";

/// Queries for which DataFusion and PostgreSQL choose the same plan in one task.
const SAME: &str = r#"
    select * from t
    select * from t z where z.a > 5
    select a from t where a > 5 and b <> 'x'
    select * from t where a = 5 or b is null
    select * from t where not (a = 1 and b = 'x')
    select * from t where a in (1, 2, 3)
    select * from t where a not in (1, 2)
    select * from t where b in ('a', 'b''c', 'd,e', 'NULL', '')
    select * from t where d = 'd7'
    select * from t where c > 100 and b like 'b1%'
    select * from t where c = 5000000000 or c = -3
    select * from t where a + 1 > 3 and lower(b) = 'x'
    select * from t where a between 3 and 7 and e > '2020-05-01'
    select * from t where (a > 3) is not true
    select * from t where coalesce(b, 'x') = 'y' and a::bigint < 1 + 2
    select * from t where a = 10 / 2 and 100 / a > 3
    select * from t where b ~ '^b' and concat(b, d) > 'x'
    select * from t where a is distinct from 3
    select case when a > 3 then 'p' else 'q' end from t where nullif(a, 3) = 4
    select count(*) from t
    select count(*), max(a), min(b), sum(c) filter (where a > 3) from t where a < 10
    select count(*) from t having count(*) > 3
    select b, count(*) from t group by b
    select b, count(*) from t group by b having count(*) > 3 and min(a) < 5
    select a % 10, count(*) from t group by a % 10
    select b, count(*) from t group by b order by count(*) desc, b
    select distinct b from t
    select a from t order by a
    select a, b from t order by b desc, a nulls first
    select a + 1 from t order by a + 1 desc
    select * from t order by a limit 5
    select * from t limit 5
    select * from t where a > 3 limit 5 offset 3
    select * from t fetch first 3 rows only
    select 1
    select 1 where false
    select * from t where false
    values (1), (2)
    select * from (values (1), (2)) v(x) where x > 1
    select * from generate_series(1, 10)
    select * from generate_series(1, 10) g where g > 3
    select generate_series(1, 3)
    select generate_series(1, a) from t where a < 4
    select a + generate_series(1, 2) from t where a < 4
    select * from t where a > 990 union all select * from t where a < 3 limit 4
    select extract(year from e), count(*) from t group by 1
    select avg(a) over (order by a rows between 1 preceding and 2 following) from t
    select 1 where (select max(a) from u) = 1
    select * from p
    select * from p where a > 3 and b = 'x'
    select a from t union all select a from u
    select a, (select max(a) from u) from t
    select * from t where (select min(a) from u) < a
    select a, (select count(*) from u where u.a = t.a) from t where a < 5
    select * from t join u on u.a = t.a
    select * from t join u using (a) where t.b = 'b1'
    select t.a, x from t join u on u.a = t.a and u.x < t.c order by x desc
    select rank() over (partition by b order by a) from t
    select row_number() over (order by a), a from t
    select sum(c) over (partition by b) from t
"#;

/// The lines that the server and we print for a query, with these options.
fn lines_of(server: &Server, options: &str, sql: &str) -> Vec<String> {
    let settings = "set enable_mergejoin = off; set enable_incremental_sort = off; \
                    set enable_nestloop = off; set enable_presorted_aggregate = off; set jit = off";
    let output = server.sql("postgres", &format!("{settings}; explain ({options}) {sql}"));
    String::from_utf8(output).expect("UTF-8").lines().map(plain).collect()
}

/// A line without what depends on the implementation: sizes in memory.
fn plain(line: &str) -> String {
    let line = line.split("  Memory: ").next().unwrap_or(line);
    let line = line.split("Buckets: ").next().unwrap_or(line);
    let line = line.split("Batches: ").next().unwrap_or(line);
    let line = line.split("Storage: ").next().unwrap_or(line);
    line.trim_end().to_owned()
}

async fn explained(session: &mut Session, options: &str, sql: &str) -> Vec<String> {
    let text = run(session, &format!("explain ({options}) {sql}")).await;
    text.split('|').map(plain).collect()
}

/// The lines without what joins and sorts have dropped early, which the server doesn't have: as if a
/// scan had returned those rows.
fn as_if_passed(lines: Vec<String>) -> Vec<String> {
    let mut shown: Vec<String> = Vec::new();
    for line in lines {
        let Some((_, dropped)) = line.split_once("Rows Removed by Dynamic Filter: ") else {
            shown.push(line);
            continue;
        };
        let scan = shown.iter_mut().rfind(|line| line.contains("rows=")).expect("a scan");
        let rows = number(scan, "rows=");
        let all = rows + dropped.parse::<f64>().expect("a number");
        *scan = scan.replace(&format!("rows={rows:.2}"), &format!("rows={all:.2}"));
    }
    shown
}

/// A server with the tables; the test is skipped without one of this version.
fn server() -> Option<Server> {
    let is_wanted = |bin: &Path| {
        let output = std::process::Command::new(bin.join("postgres")).arg("--version").output();
        output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(" 18"))
    };
    let bin = servers().into_iter().find(|bin| is_wanted(bin))?;
    let server = Server::start(&bin, &[]);
    server.script("postgres", TABLES, false);
    Some(server)
}

/// The queries of [`SAME`] that were shown in different ways.
async fn differences(
    session: &mut Session,
    options: &str,
    expected: &[(String, Vec<String>)],
) -> Vec<String> {
    let mut wrong = Vec::new();
    for (sql, expected) in expected {
        let found = as_if_passed(explained(session, options, sql).await);
        let without_empty = |lines: &[String]| {
            lines.iter().filter(|line| !line.is_empty()).cloned().collect::<Vec<_>>()
        };
        let (found, expected) = (without_empty(&found), without_empty(expected));
        if found != expected {
            let (found, expected) = (found.join("\n"), expected.join("\n"));
            wrong.push(format!("{sql}\n{found}\n-- expected\n{expected}\n"));
        }
    }
    wrong
}

#[test]
fn plans_and_counts_are_those_of_the_server() {
    let Some(server) = server() else { return };
    let all = ["costs off", "analyze, costs off, timing off, summary off, buffers off"];
    let queries: Vec<&str> = SAME.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let expected = all.map(|options| {
        let lines = |sql: &&str| ((*sql).to_owned(), lines_of(&server, options, sql));
        queries.iter().map(lines).collect::<Vec<_>>()
    });
    let stopped = server.stop();
    runtime().block_on(async {
        let one_task = [("max_parallel_workers_per_gather", "0")];
        let session = open_on(stopped.data(), "postgres", &[], &one_task).await;
        let mut session = session.expect("a session");
        for (options, expected) in all.into_iter().zip(&expected) {
            let wrong = differences(&mut session, options, expected).await;
            assert!(
                wrong.is_empty(),
                "{} of {}:\n{}",
                wrong.len(),
                expected.len(),
                wrong.join("\n")
            );
        }
        let mut large = open_on(stopped.data(), "postgres", &[], &[]).await.expect("a session");
        pages_are_counted(&mut large).await;
        workers_share_the_rows(&mut large).await;
        examples_of_documents(&mut large).await;
        let failed = run(&mut large, "explain analyze select 1 / (a - 5) from t").await;
        assert_eq!(failed, "22012 division by zero");
    });
}

/// The number that follows a text.
fn number(text: &str, label: &str) -> f64 {
    let (_, rest) = text.split_once(label).unwrap_or_else(|| panic!("no {label} in {text}"));
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().unwrap_or_else(|_| panic!("no number after {label} in {text}"))
}

fn number_or_zero(text: &str, label: &str) -> f64 {
    if text.contains(label) { number(text, label) } else { 0.0 }
}

/// Pages add up to the blocks of the table, and reads are those of `pg_stat_io`.
async fn pages_are_counted(session: &mut Session) {
    let totals = "select sum(reads), sum(read_bytes) / 8192, sum(hits) from pg_stat_get_io()";
    let parse = |text: String| -> Vec<f64> {
        text.split('\t').map(|value| value.parse().unwrap_or_else(|_| panic!("{text}"))).collect()
    };
    let blocks: f64 = parse(run(session, "select pg_relation_size('large') / 8192").await)[0];
    for workers in [0, 2] {
        run(session, &format!("set max_parallel_workers_per_gather = {workers}")).await;
        let before = parse(run(session, totals).await);
        let sql = "explain (analyze, io, timing off) select count(*) from large where a > 7";
        let text = run(session, sql).await;
        let after = parse(run(session, totals).await);
        let scan = text.split("Seq Scan").nth(1).expect("a scan");
        let (hits, reads) = (number_or_zero(scan, "hit="), number_or_zero(scan, "read="));
        assert_eq!(hits + reads, blocks, "{text}");
        let since: Vec<f64> = after.iter().zip(&before).map(|(after, one)| after - one).collect();
        assert_eq!((reads, hits), (since[1], since[2]), "{text}");
        assert_eq!(number(scan, "I/O: count="), since[0], "{text}");
        let size = number(scan, "size=");
        assert!((size - reads / since[0]).abs() < 0.01, "{text}");
        // The nodes above have the pages of the scan.
        let top = text.split('|').find(|line| line.contains("Buffers")).expect("pages");
        assert!(top.contains(&format!("read={reads}")), "{text}");
    }
}

/// Every task scans a part, and their rows add up.
async fn workers_share_the_rows(session: &mut Session) {
    for workers in [0_u32, 1, 2, 4] {
        run(session, &format!("set max_parallel_workers_per_gather = {workers}")).await;
        let sql =
            "explain (analyze, timing off, summary off) select count(*) from large where a > 7";
        let text = run(session, sql).await;
        let scan = text.split("Seq Scan on large").nth(1).expect("a scan");
        let loops = number(scan, "loops=");
        assert_eq!(loops, f64::from(workers + 1), "{text}");
        // Means have two digits.
        assert!((number(scan, "rows=") * loops - 19_993.0).abs() < 0.1, "{text}");
        let removed = number(scan, "Rows Removed by Filter: ");
        assert!((removed * loops - 7.0).abs() <= loops / 2.0, "{text}");
        if workers == 0 {
            assert!(!text.contains("Gather") && !text.contains("Parallel"), "{text}");
            continue;
        }
        assert_eq!(number(&text, "Workers Planned: "), f64::from(workers), "{text}");
        assert_eq!(number(&text, "Workers Launched: "), f64::from(workers), "{text}");
        for part in ["Finalize Aggregate (", "Gather (", "Partial Aggregate (", "Parallel Seq Scan"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

/// Lines with `N` for numbers.
fn masked(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.split('|') {
        let mut masked = String::new();
        for char in line.chars() {
            match (char.is_ascii_digit(), masked.ends_with('N')) {
                (true, false) => masked.push('N'),
                (false, _) if char != '.' => masked.push(char),
                (false, false) => masked.push(char),
                _ => {}
            }
        }
        // Whether a page is found in the pool depends on what was read before.
        lines.push(masked.replace("hit=N read=N", "read=N").replace("hit=N", "read=N"));
    }
    lines
}

/// The plans of which others have published what PostgreSQL shows.
async fn examples_of_documents(session: &mut Session) {
    run(session, "set max_parallel_workers_per_gather = 2").await;
    let text = run(session, "explain (analyze, buffers) select count(filler) from large").await;
    let expected = "Finalize Aggregate (actual time=NN rows=N loops=N)
  Buffers: shared read=N
  I/O Timings: shared read=N device=N
  ->  Gather (actual time=NN rows=N loops=N)
        Workers Planned: N
        Workers Launched: N
        Buffers: shared read=N
        I/O Timings: shared read=N device=N
        ->  Partial Aggregate (actual time=NN rows=N loops=N)
              Buffers: shared read=N
              I/O Timings: shared read=N device=N
              ->  Parallel Seq Scan on large (actual time=NN rows=N loops=N)
                    Buffers: shared read=N
                    I/O Timings: shared read=N device=N
Planning Time: N ms
Execution Time: N ms"
        .replace("NN", "N");
    assert_eq!(masked(&text).join("\n"), expected);

    let sql = "explain (analyze, verbose, io, timing off, summary off) select filler from large";
    let text = run(session, sql).await;
    let expected = "Gather (actual rows=N loops=N)
  Output: large.filler
  Workers Planned: N
  Workers Launched: N
  Buffers: shared read=N
  ->  Parallel Seq Scan on public.large (actual rows=N loops=N)
        Output: large.filler
        Prefetch: avg=N max=N capacity=N
        I/O: count=N waits=N size=N in-progress=N
        Buffers: shared read=N
        Worker N:  actual rows=N loops=N";
    let found = masked(&text);
    let is_of_worker = |line: &&String| !line.starts_with("          ");
    let found: Vec<&str> = found.iter().filter(is_of_worker).map(|line| &**line).collect();
    assert_eq!(found.join("\n"), format!("{expected}\n        Worker N:  actual rows=N loops=N"));

    let sql = "explain (analyze) select * from read_stream_for_blocks('large', array(
        select i + generate_series(0, 3) from generate_series(1, 100) g(i)))";
    let text = run(session, sql).await;
    let expected = "Function Scan on read_stream_for_blocks (actual time=N rows=N loops=N)
  Buffers: shared read=N
  I/O Timings: shared read=N device=N
  InitPlan N
    ->  Result (actual time=N rows=N loops=N)
          ->  ProjectSet (actual time=N rows=N loops=N)
                ->  Function Scan on generate_series g (actual time=N rows=N loops=N)
Planning Time: N ms
Execution Time: N ms";
    assert_eq!(masked(&text).join("\n"), expected);
    assert!(text.contains("rows=400.00"), "{text}");
    assert_eq!(number(&text, "hit=") + number(&text, "read="), 400.0, "{text}");
}

#[test]
fn options_are_checked_as_the_server_does() {
    check(&[
        ("explain (xyz) select 1", "42601 unrecognized EXPLAIN option \"xyz\""),
        (
            "explain (format xyz) select 1",
            "22023 unrecognized value for EXPLAIN option \"format\": \"xyz\"",
        ),
        ("explain (format) select 1", "42601 format requires a parameter"),
        ("explain (analyze maybe) select 1", "42601 analyze requires a Boolean value"),
        ("explain (timing) select 1", "22023 EXPLAIN option TIMING requires ANALYZE"),
        ("explain (wal) select 1", "22023 EXPLAIN option WAL requires ANALYZE"),
        ("explain (io) select 1", "22023 EXPLAIN option IO requires ANALYZE"),
        ("explain (serialize) select 1", "22023 EXPLAIN option SERIALIZE requires ANALYZE"),
        (
            "explain (analyze, wal) select 1",
            "0A000 EXPLAIN option WAL is not supported by trunkline",
        ),
        ("explain (memory) select 1", "0A000 EXPLAIN option MEMORY is not supported by trunkline"),
        (
            "explain (format xml) select 1",
            "0A000 EXPLAIN (FORMAT XML) is not supported by trunkline",
        ),
        ("explain delete from t", "0A000 EXPLAIN of DELETE is not supported by trunkline"),
        ("explain select no", "42703 column \"no\" does not exist"),
        ("explain select 1 / (1 - 1)", "Result"),
        ("explain analyze select 1 / (1 - 1)", "22012 division by zero"),
        ("explain (analyze off, verbose true, buffers 0) select 1", "Result|  Output: 1"),
        (
            "explain (analyze, timing off, summary off) with recursive r(i) as (select 1 union all \
             select i + 1 from r where i < 10) select * from r",
            "Recursive Union (actual rows=10.00 loops=1)|\
             \x20 ->  Result (actual rows=1.00 loops=1)|\
             \x20 ->  WorkTable Scan (actual rows=0.90 loops=10)|\
             \x20       Filter: (i < 10)",
        ),
        (
            "set work_mem = '8MB'; explain (settings) select 1",
            "SET;Result|Settings: work_mem = '8MB'",
        ),
    ]);
}

#[test]
fn sorts_show_what_they_have_written_and_so_do_joins_whose_table_was_too_large() {
    runtime().block_on(async {
        let Some(mut session) = open().await else { return };
        let series = "generate_series(1, 50000)";
        let settings = "set max_parallel_workers_per_gather = 0; set work_mem = '64kB'; \
                        explain (analyze, timing off, summary off)";
        let join = format!("{settings} select from {series} a join {series} b on a = b");
        let text = run(&mut session, &join).await;
        let expected = "SET;SET;Hash Join (actual rows=50000.00 loops=1)|\
                        \x20 Hash Cond: (b.b = a.a)|\
                        \x20 ->  Function Scan on generate_series b (actual rows=50000.00 loops=1)|\
                        \x20 ->  Hash (actual rows=50000.00 loops=1)|\
                        \x20       Sort Method: external merge  Disk: ";
        assert!(text.starts_with(expected), "{text}");
        let sort = format!("{settings} select from {series} a order by -a");
        let text = run(&mut session, &sort).await;
        assert!(text.contains("|  Sort Method: external merge  Disk: "), "{text}");
        let little = sort.replace("50000", "50");
        let text = run(&mut session, &little).await;
        assert!(text.contains("|  Sort Method: quicksort  Memory: "), "{text}");
    });
}

#[test]
fn an_explain_is_described_before_it_is_executed() {
    runtime().block_on(async {
        let Some(mut session) = open().await else { return };
        for (name, sql, ty) in [
            ("text", "explain select x from (values (1), (2)) v(x) where x > $1", 25),
            ("json", "explain (format json) select 1", 114),
        ] {
            session.prepare(name, sql, &[]).expect("prepared");
            let described = session.describe_statement(name).expect("a statement");
            let columns = described.columns.expect("columns");
            let [column] = &*columns else { panic!("{columns:?}") };
            assert_eq!((&*column.name, column.ty.oid.0), ("QUERY PLAN", ty));
        }
        let one = vec![Some(1_i32.to_le_bytes().into())];
        session.bind_portal("p", "text", one, Vec::new()).expect("bound");
        let Ok(Outcome::Rows { mut rows, tag }) = session.execute_portal("p").await else {
            panic!("rows")
        };
        let batch = rows.next().await.expect("no error").expect("rows");
        assert_eq!((tag, batch.num_rows()), ("EXPLAIN", 2));
    });
}

/// The number of rows of a query, or the SQLSTATE of its error.
async fn count_rows(session: &mut Session, sql: &str) -> Result<usize, String> {
    let code = |error: trunkline_sql::SqlError| error.code().as_str().to_owned();
    let statements = parse(sql).map_err(code)?;
    let mut count = 0;
    for statement in &statements {
        if let Outcome::Rows { mut rows, .. } =
            session.execute(sql, statement).await.map_err(code)?
        {
            while let Some(batch) = rows.next().await.map_err(code)? {
                count += batch.num_rows();
            }
        }
    }
    Ok(count)
}

/// Whatever can be executed can be explained, with its number of rows.
#[test]
fn every_query_can_be_explained() {
    let Some((_, directory)) = versions().pop() else { return };
    let data = directory.join("../../data");
    runtime().block_on(async {
        let (mut wrong, mut explained_queries) = (Vec::new(), 0);
        let mut sessions = BTreeMap::new();
        for (area, answer) in all_answers(&directory) {
            if !sessions.contains_key(&answer.database) {
                let session = open_on(data.clone(), &answer.database, &[], &[]).await;
                sessions.insert(answer.database.clone(), session.expect("a session"));
            }
            let session = sessions.get_mut(&answer.database).expect("a session");
            let Ok(count) = count_rows(session, &answer.sql).await else { continue };
            let name = format!("{area}/{}", answer.name);
            let options = "analyze, verbose, io, costs, timing off, format json";
            let sql = format!("explain ({options}) {}", answer.sql);
            let json = run(session, &sql).await;
            if !json.starts_with('[') {
                wrong.push(format!("{name}: {json}\n{}", answer.sql));
                continue;
            }
            explained_queries += 1;
            let rows = number(&json, "\"Actual Rows\": ");
            if rows != count as f64 {
                wrong.push(format!("{name}: {rows} rows, expected {count}\n{}", answer.sql));
            }
            let text = run(session, &format!("explain {}", answer.sql)).await;
            // Names that only plans have.
            if text.contains("Exec") || text.contains('@') && !answer.sql.contains('@') {
                wrong.push(format!("{name}: {text}\n{}", answer.sql));
            }
        }
        assert!(explained_queries > 500, "{explained_queries}");
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n\n"));
    });
}
