//! Statements that begin while the storage hangs. Without the fix, they end when the gate opens by itself,
//! with rows.

use std::sync::Arc;

use trunkline_aio::clock;

use crate::cluster::{fixtures, runtime};
use crate::gate::{Gate, PATIENCE, sessions};
use crate::sessions::run;

/// The size of a table is needed before the statement is planned.
const COUNT: &str = "select count(*) > 0 from pg_attribute";

#[test]
fn a_statement_that_waits_for_the_size_of_a_table_can_be_cancelled() {
    let Some(data) = fixtures().pop() else { return };
    let (reads, calls) = (Arc::default(), Arc::new(Gate::default()));
    runtime().block_on(async {
        let [mut session, mut watcher] = sessions(data, &reads, &calls).await;
        calls.set(true);
        let canceller = session.canceller();
        let shown = format!("select wait_event from pg_stat_get_activity({})", session.pid());
        let cancelling = async {
            // The function reads no catalog.
            let deadline = clock::now().after(PATIENCE);
            while run(&mut watcher, &shown).await != "AioIoCompletion" && clock::now() < deadline {
                tokio::task::yield_now().await;
            }
            canceller.cancel();
        };
        let (found, ()) = tokio::join!(run(&mut session, COUNT), cancelling);
        calls.set(false);
        assert_eq!(found, "57014 canceling statement due to user request");
        assert_eq!(run(&mut session, COUNT).await, "t");
    });
}

#[test]
fn a_statement_that_waits_for_the_size_of_a_table_ends_at_its_time_limit() {
    let Some(data) = fixtures().pop() else { return };
    let (reads, calls) = (Arc::default(), Arc::new(Gate::default()));
    runtime().block_on(async {
        let [mut session, _] = sessions(data, &reads, &calls).await;
        assert_eq!(run(&mut session, "set statement_timeout to '200ms'").await, "SET");
        calls.set(true);
        let found = run(&mut session, COUNT).await;
        calls.set(false);
        assert_eq!(found, "57014 canceling statement due to statement timeout");
        assert_eq!(run(&mut session, "reset statement_timeout").await, "RESET");
        assert_eq!(run(&mut session, COUNT).await, "t");
    });
}
