//! The pages of the generated table's indexes. A scan has to step over deleted pages and to read posting
//! lists, so tests of scans are worth little without them.

use std::fs;
use std::path::Path;

use trunkline_format::BLOCK_SIZE;
use trunkline_format::btree::{BtreePage, Target};

use crate::compared_counts::print_counts;
use crate::server::Server;

/// The files of a table's indexes.
pub(crate) struct IndexPages {
    files: Vec<String>,
}

impl IndexPages {
    pub(crate) fn of(server: &Server, table: &str) -> Self {
        let sql = format!(
            "select pg_relation_filepath(indexrelid) from pg_index where indrelid = '{table}'::regclass"
        );
        let files = String::from_utf8(server.sql("postgres", &sql)).expect("UTF-8");
        Self { files: files.lines().map(str::to_owned).collect() }
    }

    /// There are deleted pages in most indexes, and posting lists in many.
    pub(crate) fn check(&self, data: &Path) {
        let (mut deleted, mut posting_lists) = (Vec::new(), Vec::new());
        for file in &self.files {
            let bytes = fs::read(data.join(file)).expect("read");
            let (pages, _) = bytes.as_chunks::<BLOCK_SIZE>();
            // Behind the metapage.
            let pages = pages.iter().skip(1).map(|page| BtreePage::parse(page).expect("a page"));
            let (gone, live): (Vec<_>, Vec<_>) = pages.partition(BtreePage::is_deleted);
            deleted.push(gone.len());
            let entries = live.iter().flat_map(BtreePage::entries);
            let targets = entries.map(|entry| entry.expect("an entry").target());
            posting_lists.push(targets.filter(|target| matches!(target, Target::Rows(_))).count());
        }
        print_counts(
            "pages",
            &[
                (self.files.len(), "indexes"),
                (deleted.iter().sum(), "deleted pages"),
                (posting_lists.iter().sum(), "posting lists"),
            ],
        );
        let with = |counts: &[usize]| counts.iter().filter(|count| **count > 0).count();
        assert!(with(&deleted) * 2 > self.files.len(), "{deleted:?}");
        assert!(with(&posting_lists) * 4 > self.files.len(), "{posting_lists:?}");
    }
}
