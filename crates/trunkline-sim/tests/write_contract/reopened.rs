//! A second engine opens the files left behind by a crash.
//!
//! Each page must either contain one of the allowed versions, or be torn and be reported as
//! corrupt. To test whether the engine can keep working with such files, we then have it rewrite
//! all pages, run a checkpoint, and crash again.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;
use trunkline_aio::Builder;
use trunkline_aio::facade::Arc;
use trunkline_engine::checkpoint::{CheckpointOptions, checkpoint};
use trunkline_engine::pool::{BackendType, Policy, Pool, ReadError};
use trunkline_engine::storage::StorageError;
use trunkline_format::{BLOCK_SIZE, page as format_page};
use trunkline_sim::matrix::{Cluster, is_sound, is_version, page};
use trunkline_sim::{Disk, FaultPlan, SimExecutor, SimFiles, SimMethod};

/// The version the second engine writes, larger than any version of the first.
const REWRITTEN: u32 = 1_000_000;

/// Opens relation 0 on the crashed disk. `known` contains the versions each block may have.
pub(crate) fn check(
    cluster: &Cluster,
    left: &Arc<Disk>,
    known: &BTreeMap<u32, RangeInclusive<u32>>,
) {
    let plan = FaultPlan::none();
    let aio = Builder::new()
        .region_bytes(64 * BLOCK_SIZE)
        .executor(Arc::new(SimExecutor::new(left, plan.clone())))
        .custom_method(Arc::new(SimMethod::new(left, plan, 4)))
        .method(cluster.environment.method)
        .start()
        .expect("starts");
    let system = Arc::new(SimFiles::new(&aio, left));
    let storage = trunkline_sim::matrix::cluster::storage(Path::new("/sim"), system, false);
    let relation = trunkline_sim::matrix::cluster::relation(&storage, 0);
    let pool = Pool::new(&aio, 16).expect("a pool");
    let mut backend = pool.backend(BackendType::Client).expect("a session");
    let blocks = relation.blocks().expect("a length");
    let path = relation.path(0);
    let name = path.to_str().expect("a name");
    let (bytes, mut torn) = (left.content(name), 0);
    for (&block, versions) in known {
        let at = block as usize * BLOCK_SIZE;
        match backend.read(&relation, block) {
            Ok(pin) => {
                let found = backend.read_lock(pin.page()).expect("locks");
                let new = format_page::is_new(&found) && *versions.start() == 0;
                let right = versions.clone().any(|version| is_version(&*found, 0, block, version));
                assert!(right || new, "block {block} is none of {versions:?}");
            }
            Err(ReadError::Corrupt { .. }) => {
                let found = &bytes[at..at + BLOCK_SIZE];
                // If a new page is torn, its header may still be zeros even though other sectors
                // were written.
                let headless = found[..24] == [0; 24] && found.iter().any(|&byte| byte != 0);
                assert!(headless || !is_sound(found, block), "block {block}");
                torn += 1;
            }
            Err(ReadError::Short { .. } | ReadError::Storage(StorageError::BeyondEnd { .. })) => {
                assert!(block >= blocks && *versions.start() == 0, "block {block} is missing");
            }
            Err(error) => panic!("{error}"),
        }
    }
    // Redo would restore torn pages from full-page images. Without redo, we zero them.
    backend.set_policy(Policy { zero_damaged_pages: true, ..Policy::default() });
    for block in 0..blocks {
        let pin = backend.read(&relation, block).expect("zeroed if it is torn");
        let mut bytes = backend.write_lock(pin.page()).expect("locks");
        bytes.mark_dirty();
        bytes.copy_from_slice(&page(0, block, REWRITTEN, 0));
    }
    assert!(backend.take_warnings().0.len() >= torn);
    checkpoint(&pool, &mut backend, CheckpointOptions::default(), |_| {}).expect("a checkpoint");
    for seed in 0..2 {
        let bytes = left.after_crash(seed).content(name);
        for (found, block) in bytes.chunks(BLOCK_SIZE).zip(0..blocks) {
            assert!(
                is_sound(found, block) && is_version(found, 0, block, REWRITTEN),
                "block {block}"
            );
        }
    }
}
