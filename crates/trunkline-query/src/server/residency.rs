//! `trunkline_residency`: how much of each relation is in the buffer pool, in the page cache, or in
//! both.

use arrow_array::ArrayRef;
use trunkline_format::{BlockNo, Fork};
use trunkline_sql::SqlError;
use trunkline_sql::values::Carrier;

use super::row_builder::{RowBuilder, Value};
use super::view::{ServerView, blocking};
use crate::scan::storage_error;

impl ServerView {
    /// A row for each fork that has blocks. Relations whose files are missing are an error, as in a
    /// scan of them.
    pub(super) fn residency(&self) -> Result<Vec<ArrayRef>, SqlError> {
        blocking(|| self.residency_rows())
    }

    fn residency_rows(&self) -> Result<Vec<ArrayRef>, SqlError> {
        let (text, count) = (Carrier::Text, Carrier::Int64);
        let mut rows =
            RowBuilder::new(&[Carrier::UInt32, text, text, text, count, count, count, count]);
        let name = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        for (relation, files) in self.stored_relations() {
            for fork in [Fork::Main, Fork::Fsm, Fork::Vm] {
                self.cancellation.check()?;
                let files = files.storage().relation(files.locator(), fork);
                // Only the main fork must exist.
                if fork != Fork::Main && files.blocks().is_err() {
                    continue;
                }
                let pool = self.engine.pool();
                let found = pool.residency(&files, 0..BlockNo::MAX);
                let found = found.map_err(|error| storage_error(&error))?;
                if fork != Fork::Main && found.blocks == 0 {
                    continue;
                }
                rows.push(&[
                    Value::Oid(relation.oid.0),
                    Value::Text(name(&self.database.schema_name(relation))),
                    Value::Text(name(&relation.name)),
                    Value::Text(fork.to_string()),
                    Value::count(found.blocks),
                    Value::count(found.pool),
                    Value::count(found.cache),
                    Value::count(found.both),
                ])?;
            }
        }
        Ok(rows.finish())
    }
}
