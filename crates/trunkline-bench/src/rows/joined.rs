//! **Joined reads**: blocks that are requested again, by the same stream or by another session,
//! while they are still being read.
//!
//! Both halves of a pair read the same distinct blocks. The baseline requests each block once,
//! whereas the contender requests it several times. A stream must join a read that is already in
//! flight rather than stall on it, and must never read a block twice, which we assert in every run.
//! See `docs/postgres-lessons.md#lesson-15`.

use super::comparison::{Experiment, Measured, Stage};
use super::options::BLOCK;
use crate::failure::Result;
use crate::pairs::{Half, measure};
use crate::pooled::{PoolSetup, Pooled};
use crate::report::Names;
use crate::work::{Done, Work};

/// A pool with room for all blocks, and the requests of both sides.
pub(super) struct Joined {
    pub(super) setup: PoolSetup,
    /// Each distinct block once, for one session.
    pub(super) once: Work,
    /// The same blocks with repetitions; one session for each list.
    pub(super) repeated: Vec<Work>,
}

impl Experiment for Joined {
    fn measure(&self, stage: &Stage<'_>, _: &Names) -> Result<Measured> {
        let data = stage.data()?;
        let mut pooled = Pooled::open(data, self.setup, self.repeated.len())?;
        let distinct = self.once.offsets.len() as u64;
        stage.pairs(|half, _| {
            pooled.empty()?;
            data.evict()?;
            let requests = match half {
                Half::Reference => std::slice::from_ref(&self.once),
                Half::Contender => &self.repeated,
            };
            measure(|| {
                let before = pooled.total();
                let done = pooled.run(requests)?;
                let counted = pooled.total().since(&before);
                let hits = done.operations - distinct;
                if (counted.read_blocks, counted.hits) != (distinct, hits) {
                    let expected = format!("expected {distinct} blocks and {hits} hits");
                    return Err(format!("{counted:?}, {expected}").into());
                }
                let bytes = distinct * u64::from(BLOCK);
                Ok(Done { operations: distinct, bytes, ..done })
            })
        })
    }
}
