//! The relations of the demo: its table, which is only read, and the copy that checkpoints write.

use trunkline_engine::Engine;
use trunkline_engine::storage::{Layout, Relation, RelationLocator, Storage};
use trunkline_format::Fork;
use trunkline_sample::accounts::Accounts;

/// The file number of the copy.
pub(super) const COPY: u32 = Accounts::RELATION + 1;

/// Opens the table or its copy, with either buffered or direct I/O. Each call opens it as a
/// separate cluster. If a page is read through two of them, it gets two different buffer tags in
/// the pool.
pub(super) fn relation(
    engine: &Engine,
    table: &Accounts,
    relfilenode: u32,
    direct: bool,
) -> Relation {
    let layout = Layout { checksums: true, tablespace_directory: String::new() };
    let open = if relfilenode == COPY { Storage::for_writing } else { Storage::new };
    let (tablespace, database) = (Accounts::TABLESPACE, Accounts::DATABASE);
    let locator = RelationLocator { tablespace, database, relfilenode };
    open(&table.path, layout, engine.files(), direct).relation(locator, Fork::Main)
}
