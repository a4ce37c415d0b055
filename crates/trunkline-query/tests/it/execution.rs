//! How statements are executed: with little memory, with one task, and until they are cancelled.

use std::future::poll_fn;
use std::task::{Context, Poll};

use trunkline_aio::facade::channel::bounded;
use trunkline_aio::facade::thread::spawn;
use trunkline_query::{StatementContext, StatementOptions, execute, explain};
use trunkline_sql::{SqlError, SqlState};

use crate::answers::versions;
use crate::cluster::{lines, open, runtime};
use crate::queries::{bound, merging};

/// The database of the newest server that the queries were asked on.
fn shop(options: StatementOptions) -> Option<StatementContext> {
    let (_, directory) = versions().pop()?;
    let mut context = open(&directory.join("../../data"), "shop");
    context.options = options;
    Some(context)
}

fn one_task() -> StatementOptions {
    StatementOptions { workers: 0, ..StatementOptions::default() }
}

#[test]
fn operands_of_union_all_and_partitions_come_in_order_in_one_task() {
    let Some(context) = shop(one_task()) else { return };
    let check = |sql: &str, expected: &[&str]| {
        let found = lines(&context, &bound(&context, sql).expect("bound"));
        assert_eq!(found, expected, "{sql}");
    };
    // The answers of a server with max_parallel_workers_per_gather = 0.
    check(
        "select id from departments where id > 2 union all select id from employees where id < 4 \
         union all select 7",
        &["3", "4", "1", "2", "3", "7"],
    );
    check(
        "select id from (select id from employees union all select id from departments) u limit 13",
        &["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "1"],
    );
}

#[test]
fn sorts_spill_in_one_task() {
    let directory = tempfile::tempdir().expect("a directory");
    let temporary_directory = Some(directory.path().to_owned());
    let little = StatementOptions { work_mem: 1 << 20, temporary_directory, ..one_task() };
    let (Some(large), Some(small)) = (shop(one_task()), shop(little)) else { return };
    let sql = "select a.id, b.id, a.name, b.joined from customers a, customers b \
               order by b.joined, a.id desc";
    let statement = bound(&large, sql).expect("bound");
    let mut large = large;
    large.options.work_mem = 1 << 30;
    let (expected, found) = (lines(&large, &statement), lines(&small, &statement));
    assert_eq!(found.len(), 160_000);
    assert_eq!(found, expected);
    // The same without a directory, to see that the rows didn't fit into memory.
    let mut small = small;
    small.options.temporary_directory = None;
    assert_eq!(failure(&small, sql).code(), SqlState::OUT_OF_MEMORY);
}

/// Each task sorts half of the rows in many runs. A row of the merge's input needs no more memory than in the
/// runs, although its text is a view into the memory of its run.
#[test]
fn sorts_of_several_tasks_are_merged_in_little_memory() {
    let directory = tempfile::tempdir().expect("a directory");
    let little = StatementOptions {
        workers: 1,
        work_mem: 1 << 20,
        temporary_directory: Some(directory.path().to_owned()),
        ..StatementOptions::default()
    };
    let Some(context) = shop(little) else { return };
    let half = |first: i32, last: i32| {
        format!(
            "select md5(g::text) || md5((g + 1)::text) m from generate_series({first}, {last}) g"
        )
    };
    let sql = format!("{} union all {} order by m", half(1, 60_000), half(60_001, 120_000));
    let found = lines(&context, &bound(&context, &sql).expect("bound"));
    assert_eq!(found.len(), 120_000);
    assert!(found.is_sorted());
}

/// Joins of 10,000 rows with 10,000, of which a third matches, and their SQL.
const LARGE_JOINS: [&str; 10] = [
    "select count(*), sum(a.n), sum(b.n), sum(b.n - a.n) from A join B on a.k = b.k",
    "select count(*), sum(a.n), sum(b.n) from A left join B on a.k = b.k and a.n < b.n",
    "select count(*), sum(a.n), sum(b.n) from A right join B on a.k = b.k and a.n % 2 = b.n % 3",
    "select count(*), sum(a.n), sum(b.n) from A full join B on a.k = b.k",
    "select count(*), sum(a.n), sum(b.n) from A full join B on a.k = b.k and a.n % 3 = b.n % 3",
    "select count(*), sum(a.n) from A where exists (select from B where a.k = b.k and b.n > a.n)",
    "select count(*), sum(a.n) from A where not exists (select from B where a.k = b.k)",
    "select count(*), count(f), sum(n) filter (where f) from (select n, k in (select b.k from B) f from A) s",
    "select count(*), sum(a.n) from A where a.k not in (select b.k from B where b.k < 2000)",
    "select a.n, b.n from A join B on a.k = b.k order by b.n desc, a.n limit 10",
];

#[test]
fn joins_sort_what_does_not_fit_into_memory() {
    let directory = tempfile::tempdir().expect("a directory");
    let temporary_directory = Some(directory.path().to_owned());
    for workers in [0, 2] {
        let options = StatementOptions { workers, ..StatementOptions::default() };
        let large = StatementOptions { work_mem: 1 << 30, ..options.clone() };
        let temporary_directory = temporary_directory.clone();
        let little = StatementOptions { work_mem: 64 << 10, temporary_directory, ..options };
        let (Some(large), Some(little)) = (shop(large), shop(little)) else { return };
        let mut without = little.clone();
        without.options.temporary_directory = None;
        for sql in LARGE_JOINS {
            let rows = "(select n, case when n % 7 > 0 then n * 3 % 5000 end k \
                        from generate_series(1, 10000) n)";
            let sql = sql.replace('A', &format!("{rows} a"));
            let other = rows.replace("n * 3", "n * 2");
            let sql = sql.replace('B', &format!("{other} b"));
            let statement = bound(&large, &sql).expect("bound");
            assert_eq!(lines(&little, &statement), lines(&large, &statement), "{workers} {sql}");
            // The parts of three tasks can be sorted in memory.
            if workers == 0 {
                assert_eq!(failure(&without, &sql).code(), SqlState::OUT_OF_MEMORY, "{sql}");
            }
        }
    }
}

/// The rows of the hash join in the middle are divided by the groups below it, and nodes above rely on that.
#[test]
fn a_join_that_sorts_divides_its_rows_as_its_parents_expect() {
    let directory = tempfile::tempdir().expect("a directory");
    let (Some(hashing), Some(sorting)) =
        (shop(StatementOptions::default()), shop(StatementOptions::default()))
    else {
        return;
    };
    let sorting = merging(sorting, directory.path());
    let groups = "(select n % 1000 k, count(*) c from generate_series(1, 5000) n group by 1) g";
    let rows = "(select n % 1000 k from generate_series(1, 2000) n) b";
    for sql in [
        format!(
            "select count(*), sum(k), max(amname::text) from {groups} join pg_am d on d.oid::int8 = g.c - 3 \
             join {rows} using (k)"
        ),
        format!(
            "select count(*), sum(n) from (select k, count(*) n from (select k from {groups} \
             join pg_am d on d.oid::int8 = g.c - 3 union all select k from {rows}) u group by k) x"
        ),
    ] {
        let statement = bound(&hashing, &sql).expect("bound");
        assert_eq!(lines(&sorting, &statement), lines(&hashing, &statement), "{sql}");
        let plan = runtime().block_on(explain(&statement, &hashing)).expect("a plan");
        assert!(plan.contains("mode=CollectLeft"), "{plan}");
    }
}

/// The error of a statement.
fn failure(context: &StatementContext, sql: &str) -> SqlError {
    let statement = bound(context, sql).expect("bound");
    runtime().block_on(async {
        let mut rows = execute(&statement, context).await.expect("rows");
        loop {
            match rows.next().await {
                Ok(batch) => assert!(batch.is_some(), "it fails"),
                Err(error) => return error,
            }
        }
    })
}

/// The error of a statement that another thread cancels when it has started.
fn cancelled(sql: &str) -> Option<SqlError> {
    let context = shop(StatementOptions { work_mem: 1 << 30, ..one_task() })?;
    let statement = bound(&context, sql).expect("bound");
    let (start, started) = bounded(1);
    let cancellation = context.cancellation.clone();
    let other = spawn("canceller", move || {
        started.receive().expect("the statement starts");
        cancellation.cancel();
    })
    .expect("a thread");
    let error = runtime().block_on(async {
        let mut rows = execute(&statement, &context).await.expect("rows");
        assert!(start.send(()).is_ok(), "the thread waits");
        rows.next().await.expect_err("it was cancelled")
    });
    other.join().expect("it has cancelled");
    Some(error)
}

#[test]
fn set_functions_windows_and_joins_without_rows_are_cancelled() {
    // Each of them takes minutes.
    for sql in [
        "select count(*) from generate_series(1, 1000000000000)",
        "select sum(g) over (order by g rows 100000 preceding) from generate_series(1, 1000000) g",
        "select array_agg(g) over (order by g) from generate_series(1, 100000) g",
        "select sum(g) over (order by g range between 9 preceding and 9 following) \
         from generate_series(1, 10000000) g",
        "select count(*) from generate_series(1, 1000000) a \
         join generate_series(1, 1000000) b on a % 2 = b % 2 and a + b < 0",
        "select count(*) from generate_series(1, 1000000) a \
         join generate_series(1, 1000000) b on a + b < 0",
    ] {
        let Some(error) = cancelled(sql) else { return };
        assert_eq!(error.code(), SqlState::QUERY_CANCELED, "{sql}");
    }
}

#[test]
fn a_window_accounts_for_its_memory() {
    let (Some(large), Some(small)) = (shop(one_task()), shop(one_task())) else { return };
    // Each row's state holds all rows before it: 40 MB for 3000 of them.
    let sql = "select max(array_length(a, 1)) from \
               (select array_agg(g) over (order by g) from generate_series(1, 3000) g) s(a)";
    let (mut large, mut small) = (large, small);
    (large.options.work_mem, small.options.work_mem) = (1 << 30, 1 << 20);
    assert_eq!(lines(&large, &bound(&large, sql).expect("bound")), ["3000"]);
    assert_eq!(failure(&small, sql).code(), SqlState::OUT_OF_MEMORY);
}

#[test]
fn a_cross_join_is_cancelled_after_its_scans_have_ended() {
    let Some(context) = shop(one_task()) else { return };
    let sql = "select count(*), max(a.id + f.id) from customers a, customers b, customers c, \
               customers d, customers e, customers f";
    let statement = bound(&context, sql).expect("bound");
    let error = runtime().block_on(async {
        let mut rows = execute(&statement, &context).await.expect("rows");
        let mut next = Box::pin(rows.next());
        for _ in 0..20 {
            let poll = |context: &mut Context<'_>| Poll::Ready(next.as_mut().poll(context));
            assert!(poll_fn(poll).await.is_pending(), "400^6 rows take longer");
            tokio::task::yield_now().await;
        }
        context.cancellation.cancel();
        next.await.expect_err("it was cancelled")
    });
    assert_eq!(error.code(), SqlState::QUERY_CANCELED);
}
