//! What a new cluster is created with, and its configuration files.

use trunkline_aio::clock;
use trunkline_aio::facade::random;
use trunkline_format::wal::SegmentSize;

/// What a new cluster is created with.
#[derive(Debug, Clone)]
pub struct NewClusterOptions {
    /// The system identifier.
    pub system_identifier: u64,
    /// The size of WAL segments.
    pub wal_segment_size: SegmentSize,
    /// Whether pages have checksums.
    pub checksums: bool,
    /// The time in seconds since 1970.
    pub time: i64,
    /// `mock_authentication_nonce`: random.
    pub nonce: [u8; 32],
}

impl NewClusterOptions {
    /// A cluster created now, with an identifier of its own. As `initdb` does, the identifier has the seconds in its
    /// upper half, then the microseconds, and in the last 12 bits the number of the process.
    pub fn now(wal_segment_size: SegmentSize, checksums: bool) -> Self {
        let microseconds = clock::unix_micros().unsigned_abs();
        let (seconds, rest) = (microseconds / 1_000_000, microseconds % 1_000_000);
        let process = u64::from(std::process::id()) & 0xFFF;
        let nonce = [(); 4].map(|()| random::seed().to_le_bytes());
        Self {
            system_identifier: seconds << 32 | rest << 12 | process,
            wal_segment_size,
            checksums,
            time: seconds as i64,
            nonce: std::array::from_fn(|at| nonce[at / 8][at % 8]),
        }
    }
}

/// A server with these settings reads no catalog before it is asked for one.
pub(super) const POSTGRESQL_CONF: &str = "\
# This cluster has no catalogs: a server of PostgreSQL 18 can start, recover and stop, but not run queries.
wal_level = minimal
max_wal_senders = 0
autovacuum = off
max_logical_replication_workers = 0
";

/// Local connections only, with peer authentication.
pub(super) const PG_HBA_CONF: &str = "local all all peer\n";
