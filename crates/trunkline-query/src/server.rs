//! **What functions see of the server**: I/O in flight, statistics, buffers, caches.
//!
//! `trunkline-sql` has the names and types of these functions; here they get their rows, from the
//! state of the engine:
//!
//! ```text
//!   select * from pg_aios     the function pg_get_aios()    I/O handles, by trunkline-aio
//!   pg_stat_io                pg_stat_get_io()              the statistics of the buffer pool
//!   pg_buffercache            pg_buffercache_pages()        the descriptors of the buffer pool
//! ```
//!
//! A function that only looks at memory is called where it is evaluated. One that reads files or waits
//! for I/O, such as `pg_prewarm`, first moves the other tasks of its thread to another one. It reads
//! with a session of its own, which is cancelled with the statement, and closes it when it returns.

mod aio_rows;
mod block_stream;
mod buffer_cache;
mod functions;
mod io_statistics;
mod prewarm;
mod residency;
mod row_builder;
mod sequences;
mod view;

#[cfg(test)]
mod tests;

pub(crate) use row_builder::{RowBuilder, Value};
pub(crate) use view::ServerView;
