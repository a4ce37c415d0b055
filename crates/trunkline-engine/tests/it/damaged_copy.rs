//! A copy of a real cluster that tests damage. We recompute the page checksums, so that the damage can
//! only be found by checking the contents of the pages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use trunkline_aio::facade::Arc;
use trunkline_aio::{Aio, MethodKind};
use trunkline_engine::job::Unobserved;
use trunkline_engine::settings::Settings;
use trunkline_engine::verify::{ContentOptions, Only, verify_contents};
use trunkline_format::btree::BtreePage;
use trunkline_format::page::{LinePointer, LinePointerFlags, line_pointer, line_pointers};
use trunkline_format::{
    BLOCK_SIZE, CheckOptions, Fork, PageBytes, Verdict, check_page, page_checksum,
};

use crate::fixtures::fixtures;
use crate::jobs::engine;
use crate::tables::{Cluster, instance};

/// We append this suffix to a table's name to refer to its TOAST table.
pub(crate) const TOAST_OF: &str = " (toast)";

/// A copy of a cluster that the tests can damage and restore.
pub(crate) struct Copy {
    pub(crate) aio: Aio,
    root: tempfile::TempDir,
}

impl Copy {
    pub(crate) fn of(data: &Path) -> Self {
        let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        let mut copy = Command::new("cp");
        copy.arg("-R").arg("--preserve=mode").arg(data).arg(root.path().join("data"));
        assert!(copy.status().expect("runs").success());
        Self { aio: instance(MethodKind::Worker), root }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.root.path().join("data")
    }

    /// Returns a relation's file, and the options for verifying only that relation.
    pub(crate) fn find(&self, database: &str, name: &str, fork: Fork) -> (PathBuf, Only) {
        let mut cluster = Cluster::open(&self.aio, &self.data(), false, 64);
        let database = cluster.database(database);
        let table = database.resolve(name.trim_end_matches(TOAST_OF).as_bytes());
        let table = table.expect("a relation");
        let relation = match name.ends_with(TOAST_OF) {
            true => database.relation(table.toast).expect("a TOAST table"),
            false => table,
        };
        let main = database.files(relation).expect("files").path(0);
        let path = format!("{}{}", main.display(), fork.suffix()).into();
        (path, Only { database: database.info().oid, relation: Some(table.oid) })
    }

    /// The findings, one per line.
    pub(crate) fn verify(&self, only: Only) -> Vec<String> {
        let engine = engine(&self.aio, 512, false);
        let cluster = engine.cluster(self.data()).expect("opened");
        let (pool, dir, storage) = (engine.pool(), cluster.dir(), cluster.storage());
        let mut options = ContentOptions::of(&Settings::default(), true, true);
        options.only = Some(vec![only]);
        let report = verify_contents(pool, dir, storage, &options, Arc::new(Unobserved));
        let report = report.expect("verified");
        assert!(report.tables > 0);
        let line = |finding: &trunkline_engine::verify::Finding| {
            format!("{}: {finding}", finding.relation.as_deref().unwrap_or_default())
        };
        report.findings.iter().map(line).collect()
    }

    /// Damages a file, verifies, and restores it.
    pub(crate) fn broken(
        &self,
        place: (&str, &str, Fork),
        change: impl FnOnce(&mut Vec<PageBytes>),
    ) -> Vec<String> {
        let (database, name, fork) = place;
        let (path, only) = self.find(database, name, fork);
        let before = fs::read(&path).ok();
        let mut pages: Vec<PageBytes> =
            before.as_deref().unwrap_or_default().as_chunks::<BLOCK_SIZE>().0.to_vec();
        let sound = pages.clone();
        change(&mut pages);
        for (block, page) in (0_u32..).zip(&mut pages) {
            // New (all-zero) pages have no checksum.
            if sound.get(block as usize) == Some(page) || *page == [0; BLOCK_SIZE] {
                continue;
            }
            let checksum = page_checksum(page, block);
            page[8..10].copy_from_slice(&checksum.to_le_bytes());
            let options = CheckOptions { checksums: true, fork };
            assert_eq!(check_page(page, block, &options), Verdict::Good, "{name} block {block}");
        }
        assert!(sound != pages, "{name}: nothing was changed");
        fs::write(&path, pages.as_flattened()).expect("written");
        let lines = self.verify(only);
        match before {
            Some(bytes) => fs::write(&path, bytes).expect("written"),
            None => fs::remove_file(&path).expect("removed"),
        }
        lines
    }
}

pub(crate) fn pointer(page: &PageBytes, item: u16) -> LinePointer {
    line_pointer(page, item).expect("a line pointer")
}

pub(crate) fn set_pointer(page: &mut PageBytes, item: u16, pointer: LinePointer) {
    let at = 20 + 4 * usize::from(item);
    page[at..at + 4].copy_from_slice(&pointer.to_bits().to_le_bytes());
}

/// Returns the bytes of an item, which we find through its line pointer.
pub(crate) fn item(page: &mut PageBytes, number: u16) -> &mut [u8] {
    let found = pointer(page, number);
    &mut page[usize::from(found.offset)..usize::from(found.end())]
}

pub(crate) fn word(bytes: &mut [u8], at: usize, change: impl FnOnce(u16) -> u16) {
    let word = change(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    bytes[at..at + 2].copy_from_slice(&word.to_le_bytes());
}

pub(crate) fn double(bytes: &mut [u8], at: usize, change: impl FnOnce(u32) -> u32) {
    let old = u32::from_le_bytes(*bytes[at..].first_chunk().expect("four bytes"));
    bytes[at..at + 4].copy_from_slice(&change(old).to_le_bytes());
}

/// Returns the normal line pointers on a heap page.
pub(crate) fn normal(page: &PageBytes) -> Vec<u16> {
    let normal = |(_, pointer): &(u16, LinePointer)| pointer.flags == LinePointerFlags::Normal;
    line_pointers(page).filter(normal).map(|(item, _)| item).collect()
}

/// Returns the block number of an index page that is on the given level and has more than ten line
/// pointers. If it's a leaf, it must also have both a left and a right sibling.
pub(crate) fn inside(pages: &[PageBytes], level: u32) -> usize {
    let fits = |page: &PageBytes| {
        BtreePage::parse(page).is_ok_and(|page| {
            page.level() == level
                && !page.is_ignored()
                && page.count() > 10
                && (level > 0 || (page.left().is_some() && page.right().is_some()))
        })
    };
    (1..pages.len()).skip(3).find(|&block| fits(&pages[block])).expect("a page")
}

pub(crate) const ACCOUNTS: (&str, &str, Fork) = ("bench", "public.pgbench_accounts", Fork::Main);
pub(crate) const ACCOUNTS_MAP: (&str, &str, Fork) = ("bench", "public.pgbench_accounts", Fork::Vm);
pub(crate) const ACCOUNTS_KEY: (&str, &str, Fork) =
    ("bench", "public.pgbench_accounts_pkey", Fork::Main);

pub(crate) type Case =
    ((&'static str, &'static str, Fork), &'static [&'static str], fn(&mut Vec<PageBytes>));

pub(crate) fn run(cases: &[Case]) {
    // We only use the cluster of the newest server here, because other tests cover the differences
    // between versions.
    let Some((_, data)) = fixtures().into_iter().rfind(|(major, _)| *major <= 18) else { return };
    let copy = Copy::of(&data);
    for (place, texts, change) in cases {
        let found = copy.broken(*place, change);
        for text in *texts {
            let said = found.iter().any(|line| line.contains(text));
            assert!(said, "{place:?}: {text:?} expected, {found:#?} found");
        }
        if let [first, rest @ ..] = texts
            && first.ends_with(": ")
        {
            let together = found
                .iter()
                .any(|line| line.contains(first) && rest.iter().all(|it| line.contains(it)));
            assert!(together, "{place:?}: {found:#?}");
        }
    }
    for (place, ..) in cases {
        let (_, only) = copy.find(place.0, place.1, Fork::Main);
        assert_eq!(copy.verify(only), [""; 0], "mended");
    }
}
