//! A small table in a temporary directory, for the examples: `(id int4, square int4)`.
//!
//! This example shows how to create and extend a relation without a server. It uses
//! [`Engine::writable_storage`] for the files, `extend` to add zeroed pages to the pool, an
//! exclusive content lock while it fills each page, and a checkpoint to write the pages to disk.

use std::error::Error;
use std::fs;

use tempfile::TempDir;
use trunkline_engine::Engine;
use trunkline_engine::storage::{DEFAULT_TABLESPACE, Layout, Relation, RelationLocator};
use trunkline_format::page_builder::NewTuple;
use trunkline_format::{BlockNo, Fork, HeapPageBuilder, Oid, PageBytes};

/// Creates a table with the given number of full pages, which are on disk but not in the pool.
/// Removing the directory also removes the table.
pub(crate) fn create(
    engine: &Engine,
    blocks: BlockNo,
) -> Result<(Relation, TempDir), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    fs::create_dir_all(directory.path().join("base/5"))?;
    let layout = Layout { checksums: true, tablespace_directory: "PG_18_202506291".into() };
    let storage = engine.writable_storage(directory.path(), layout);
    let locator =
        RelationLocator { tablespace: DEFAULT_TABLESPACE, database: Oid(5), relfilenode: 16_384 };
    let table = storage.relation(locator, Fork::Main);
    table.create()?;

    let mut session = engine.session()?;
    let method = engine.settings().file_extend_method();
    for first in (0..blocks).step_by(16) {
        // Zeroed pages at the end of the table, pinned in the pool.
        for pin in session.extend(&table, 16.min(blocks - first), method)? {
            let bytes = full_page(pin.page().block());
            let mut page = session.write_lock(pin.page())?;
            page.mark_dirty();
            page.copy_from_slice(&bytes);
        }
    }
    engine.checkpoint(&mut session)?;
    engine.pool().evict_all();
    Ok((table, directory))
}

/// A page full of frozen rows.
fn full_page(block: BlockNo) -> PageBytes {
    let mut page = HeapPageBuilder::new(block);
    page.all_visible();
    for id in block * 100..block * 100 + 100 {
        let data = [id.to_le_bytes(), id.wrapping_mul(id).to_le_bytes()].concat();
        let row = NewTuple { natts: 2, nulls: &[], var_width: false, xmin: None, data: &data };
        assert!(page.push(&row).is_ok(), "100 rows of 8 bytes fit into a page");
    }
    page.finish(true)
}
