//! The sizes of the tables of a statement, of their visibility maps, and of their indexes, which workers
//! ask for.
//!
//! A task must not ask by itself, because the call doesn't return while a file system hangs, and the
//! statement could neither be cancelled nor reach its time limit. So all sizes are asked for before a
//! statement is planned, and the task waits for the answers.

use trunkline_aio::facade::hash::Map;
use trunkline_engine::Engine;
use trunkline_engine::storage::{Relation, StorageError};
use trunkline_format::{BlockNo, Fork, Oid};
use trunkline_sql::SqlError;

use super::cancellation::Cancellation;
use super::failure::storage_error;

/// The number of blocks of each fork, or why it is unknown.
#[derive(Debug, Default)]
pub(crate) struct TableSizes(Map<(Oid, Fork), Result<BlockNo, StorageError>>);

impl TableSizes {
    /// Asks for the sizes of tables. Tables may occur more than once.
    ///
    /// # Errors
    /// 57014 if the statement was cancelled; 53300 if no session is free.
    pub(crate) async fn ask(
        engine: &Engine,
        cancellation: &Cancellation,
        tables: &[(Oid, Relation)],
    ) -> Result<Self, SqlError> {
        if tables.is_empty() {
            return Ok(Self::default());
        }
        let mut backend = cancellation.open_session(engine)?;
        let session = backend.session();
        session.set_may_block(false);
        let mut calls = Map::default();
        for (oid, relation) in tables {
            let key = (*oid, relation.fork());
            calls.entry(key).or_insert_with(|| relation.count_blocks(session));
        }
        cancellation.wait_for_calls(session, calls.values()).await?;
        let sizes = calls.into_iter().filter_map(|(key, mut call)| Some((key, call.take()?)));
        Ok(Self(sizes.collect()))
    }

    /// The number of blocks of a table.
    ///
    /// # Errors
    /// Those of its files. XX000 if its size was not asked for, which would be a bug.
    pub(super) fn blocks(&self, table: Oid) -> Result<BlockNo, SqlError> {
        match self.0.get(&(table, Fork::Main)) {
            Some(Ok(blocks)) => Ok(*blocks),
            Some(Err(error)) => Err(storage_error(error)),
            None => Err(SqlError::internal(format!("the size of relation {table} is unknown"))),
        }
    }

    /// Whether the number of blocks of a table or an index is known.
    pub(crate) fn is_known(&self, relation: Oid) -> bool {
        matches!(self.0.get(&(relation, Fork::Main)), Some(Ok(_)))
    }

    /// Whether there was no error. Otherwise, another question may have another answer.
    pub(crate) fn are_all_known(&self) -> bool {
        self.0.values().all(Result::is_ok)
    }

    /// The number of blocks of a table's visibility map: none if it can't be used, so that all rows
    /// are looked up in the table. `None` if its size was not asked for.
    pub(super) fn map_blocks(&self, table: Oid) -> Option<BlockNo> {
        self.0.get(&(table, Fork::Vm)).map(|blocks| blocks.as_ref().copied().unwrap_or_default())
    }
}
