//! Samples written to disk, verified, found again and summed through the pool.
#![expect(clippy::expect_used, reason = "a test that cannot go on ends, also in its helpers")]

mod accounts;
mod column_sum;

use trunkline_aio::{Aio, Builder, MethodKind};
use trunkline_engine::file_scan::ReadOptions;
use trunkline_engine::verify;

/// The methods that every test runs with.
const METHODS: [MethodKind; 3] = [MethodKind::Sync, MethodKind::Worker, MethodKind::IoUring];

const READ: ReadOptions = ReadOptions { direct: false, depth: 16, combine_blocks: 16 };

const OPTIONS: verify::Options = verify::Options { read: READ, findings_listed: 10_000 };

fn instance(method: MethodKind) -> Aio {
    Builder::new().method(method).start().expect("started")
}
