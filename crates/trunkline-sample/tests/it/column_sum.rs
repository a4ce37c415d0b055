//! The sum of a column through the pool: independent of the I/O method, the pool size and the
//! number of workers.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use trunkline_aio::{Aio, Builder};
use trunkline_engine::job::{End, Observer, Unobserved};
use trunkline_engine::pool::{BackendType, Pool, ReadError, Strategy};
use trunkline_engine::seq_scan::{SeqScanError, SeqScanOptions};
use trunkline_engine::settings::Settings;
use trunkline_engine::storage::{Layout, OpenFiles, Relation, RelationLocator, Storage};
use trunkline_format::Fork;
use trunkline_sample::FixedColumn;
use trunkline_sample::accounts::{Accounts, accounts_sum, create};
use trunkline_sample::column_sum::{SumReport, sum};

use crate::{METHODS, instance};

fn relation(aio: &Aio, root: &Path, direct: bool) -> Relation {
    let layout = Layout { checksums: true, tablespace_directory: "PG_18_202506291".into() };
    let files = OpenFiles::kernel(aio, 64);
    let locator = RelationLocator {
        tablespace: Accounts::TABLESPACE,
        database: Accounts::DATABASE,
        relfilenode: Accounts::RELATION,
    };
    Storage::new(root, layout, &files, direct).relation(locator, Fork::Main)
}

const COLUMN: FixedColumn = FixedColumn::ABALANCE;

fn options(workers: u32) -> SeqScanOptions {
    SeqScanOptions::of(&Settings::default(), workers)
}

fn summed(pool: &Pool, relation: &Relation, workers: u32) -> Result<SumReport, SeqScanError> {
    sum(pool, relation, COLUMN, options(workers), Arc::new(Unobserved))
}

#[test]
fn every_method_and_pool_size_gives_the_same_sum() {
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("temporary directory");
    let root = home.path().join("accounts");
    for method in METHODS {
        let aio = Builder::new().method(method).region_bytes(64 << 20).start().expect("started");
        let accounts = create(&aio, &root, 1, &mut |_| true).expect("made");
        let blocks = u64::from(accounts.blocks());
        for direct in [false, true] {
            let relation = relation(&aio, &root, direct);
            for (buffers, strategy) in [(16, Strategy::BulkRead), (7000, Strategy::Normal)] {
                let pool = Pool::new(&aio, buffers).expect("a pool");
                for workers in [0, 1, 4] {
                    let report = summed(&pool, &relation, workers).expect("summed");
                    let case = format!("{method} {direct} {buffers} {workers}: {report:?}");
                    assert_eq!(
                        (report.scan.end, report.scan.strategy),
                        (End::Complete, strategy),
                        "{case}"
                    );
                    assert_eq!(report.total.sum, accounts_sum(1), "{case}");
                    assert_eq!(
                        (report.total.rows, report.scan.blocks),
                        (100_000, blocks),
                        "{case}"
                    );
                    assert!(report.is_exact() && report.corrupt.is_none(), "{case}");
                    assert_eq!(report.scan.streams.pages, blocks, "{case}");
                    let hits = if workers > 0 && buffers > 16 { blocks } else { 0 };
                    if buffers > 16 {
                        assert_eq!(report.scan.counts.hits, hits, "{case}");
                    }
                }
                let kinds: Vec<BackendType> =
                    pool.counts().iter().map(|(key, _)| key.backend).collect();
                assert!(kinds.contains(&BackendType::BackgroundWorker), "{kinds:?}");
                assert_eq!(pool.rows().iter().map(|row| row.pins).sum::<u32>(), 0);
            }
        }
    }
}

#[test]
fn the_first_unreadable_page_ends_the_scan() {
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("temporary directory");
    let root = home.path().join("accounts");
    let aio = instance(METHODS[1]);
    create(&aio, &root, 1, &mut |_| true).expect("made");
    let path = root.join("base/5/16385");
    let mut bytes = fs::read(&path).expect("read");
    bytes[700 * 8192 + 5000] ^= 1;
    fs::write(&path, bytes).expect("written");
    for method in METHODS {
        let aio = instance(method);
        let relation = relation(&aio, &root, false);
        let pool = Pool::new(&aio, 256).expect("a pool");
        for workers in [0, 3] {
            let error = summed(&pool, &relation, workers).expect_err("refused");
            let SeqScanError::Read(ReadError::Corrupt { location, .. }) = error else {
                panic!("{method}: {error}");
            };
            assert_eq!(location.block(), Some(700), "{method}");
        }
        let mut tolerant = options(2);
        tolerant.policy.ignore_checksum_failure = true;
        let report = sum(&pool, &relation, COLUMN, tolerant, Arc::new(Unobserved)).expect("summed");
        assert_eq!((report.scan.warnings.len(), report.scan.blocks), (1, 1640));
        assert_eq!(pool.rows().iter().map(|row| row.pins).sum::<u32>(), 0);
    }
    fs::remove_file(&path).expect("removed");
    let relation = relation(&aio, &root, false);
    let pool = Pool::new(&aio, 256).expect("a pool");
    let error = summed(&pool, &relation, 1).expect_err("refused");
    assert!(matches!(error, SeqScanError::Read(ReadError::Storage(_))), "{error}");
}

#[test]
fn a_cancelled_scan_stops_early() {
    struct Stop;
    impl Observer for Stop {
        fn cancelled(&self) -> bool {
            true
        }
    }
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("temporary directory");
    let root = home.path().join("accounts");
    for method in METHODS {
        let aio = instance(method);
        create(&aio, &root, 1, &mut |_| true).expect("made");
        let pool = Pool::new(&aio, 64).expect("a pool");
        let relation = relation(&aio, &root, false);
        // The scan's threads may finish before the leader first checks for cancellation, but not
        // every time.
        let stopped = (0..30).any(|attempt| {
            let options = options(attempt % 3);
            let report = sum(&pool, &relation, COLUMN, options, Arc::new(Stop)).expect("stopped");
            report.scan.end == End::Cancelled && report.scan.blocks < 1640
        });
        assert!(stopped, "{method}");
    }
}
