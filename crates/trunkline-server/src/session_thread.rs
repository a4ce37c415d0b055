//! The thread of a session.
//!
//! Each session has a thread of its own, as each session of PostgreSQL has a process. It waits for its
//! client in a runtime of its own, so the kernel wakes the thread that will execute the message. A
//! statement may keep this thread busy for as long as it likes: the kernel divides the processors among
//! the sessions, and the thread of the network notices cancel requests and the ends of clients.
//!
//! The tasks that a plan is divided into run in the runtime of statements
//! ([`crate::connection::watched`]).

use std::io;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use trunkline_query::in_session_thread;

use crate::connection::{Broken, Connection};
use crate::io::move_here;

/// Serves a session in a thread of the runtime `statements`. If this is dropped, the session ends when
/// it waits the next time. `started` is kept until the session has ended.
pub(crate) async fn run(connection: Connection, started: impl Send + 'static, statements: &Handle) {
    let (kept, cut_off) = oneshot::channel::<()>();
    let thread = statements.spawn_blocking(move || {
        // The client learns nothing if the system has no room, because its socket can't be used then.
        let _served = in_session_thread(|| serve(connection, cut_off));
        drop(started);
    });
    // A panic has been reported by then.
    let _ended = thread.await;
    drop(kept);
}

fn serve(connection: Connection, cut_off: oneshot::Receiver<()>) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let Connection { incoming, outgoing, .. } = connection;
        let (incoming, outgoing) = move_here(incoming, outgoing)?;
        let mut connection = Connection { incoming, outgoing, ..connection };
        let run = async {
            // Unless the connection is broken, its client knows why it ends.
            if !matches!(connection.run().await, Err(Broken::Io)) {
                connection.end().await;
            }
        };
        tokio::select! {
            biased;
            () = run => {}
            _ = cut_off => {}
        }
        Ok(())
    })
}
