//! How statements are executed: with little memory, with one task, and until they are cancelled.

use std::future::poll_fn;
use std::task::{Context, Poll};

use trunkline_query::{StatementContext, StatementOptions, execute};
use trunkline_sql::SqlState;

use crate::answers::versions;
use crate::cluster::{lines, open, runtime};
use crate::queries::bound;

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
