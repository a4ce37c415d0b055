//! Parameters of a pool workload, drawn from its seed.

use crate::fault::Rates;
use trunkline_aio::MethodKind;
use trunkline_aio::facade::random::Rng;
use trunkline_format::BlockNo;

/// The number of blocks a crowd reads most often.
pub(super) const HOT_BLOCKS: BlockNo = 3;

/// The parameters of a run.
#[derive(Debug, Clone, Copy)]
pub struct PoolWorkload {
    /// Determines the clients' steps and how their threads interleave.
    pub seed: u64,
    /// Clients that run concurrently.
    pub clients: u32,
    /// Steps of each client.
    pub steps: u32,
    /// Buffers of the shared pool.
    pub buffers: u32,
    /// Buffers of the local pool.
    pub local_buffers: u32,
    /// Fault rates of the simulated disk.
    pub rates: Rates,
    /// The I/O method at the start.
    pub method: MethodKind,
    /// Clients switch the I/O method during the run.
    pub switches: bool,
    /// The scheduler switches threads at one in this many switch points.
    pub switch_one_in: u32,
    /// All clients read the same few pages, so they join each other's reads and wait for content
    /// locks.
    pub crowd: bool,
    /// Makes streams issue large reads. The callbacks of large reads take too long for the thread
    /// that reaps them, so it leaves them to helpers or to waiting sessions.
    pub wide: bool,
    /// Consumers often abandon the reads they've requested.
    pub fickle: bool,
}

impl PoolWorkload {
    /// Returns the workload for a seed. The settings are chosen here rather than by the clients, so
    /// that we can print them when a run fails.
    pub fn of_seed(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x0077_6F72_6B6C);
        let mut one_of = |of: &[u32]| of[rng.below(of.len() as u64) as usize];
        let rate = one_of(&[20, 100, 150, 150]);
        let (crowd, wide, fickle) =
            (one_of(&[0, 1]) == 1, one_of(&[0, 1]) == 1, one_of(&[0, 1]) == 1);
        let buffers = if wide { &[64, 128, 256][..] } else { &[16, 16, 17, 24, 32, 64, 128, 256] };
        Self {
            seed,
            clients: one_of(if crowd { &[2, 5, 6, 8] } else { &[2, 2, 3, 4] }),
            steps: one_of(&[10, 20, 30]),
            buffers: one_of(buffers),
            local_buffers: one_of(if wide { &[72, 96, 128] } else { &[16, 24, 64] }),
            crowd,
            wide,
            fickle,
            rates: Rates {
                short: rate,
                again: rate,
                error: rate,
                delay: rate,
                reorder: rate,
                silent: rate,
            },
            method: match rng.below(4) {
                _ if wide => MethodKind::Custom,
                0 => MethodKind::Custom,
                1 => MethodKind::Sync,
                _ => MethodKind::Worker,
            },
            switches: rng.below(3) == 0,
            switch_one_in: [3, 5, 20, 100][rng.below(4) as usize],
        }
    }
}
