//! The one table of settings: name, kind, unit, bounds, default, a line of help.
//!
//! Names, units and defaults are those of PostgreSQL 18 and 19. Where ours differs it is to allow
//! more: up to 256 I/O workers instead of 32, since ours are threads that are woken in batches.

use super::error::SettingError;

/// What a plain number of a setting counts, and which units may follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A bare count; no unit may follow.
    None,
    /// Blocks of 8192 bytes; `B`, `kB`, `MB`, `GB`, `TB` may follow.
    Blocks,
    /// Milliseconds; `us`, `ms`, `s`, `min`, `h`, `d` may follow.
    Milliseconds,
    /// Seconds; the same units may follow.
    Seconds,
}

/// The type of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A whole number within bounds, both included.
    Integer {
        /// What it counts.
        unit: Unit,
        /// Smallest value.
        min: i32,
        /// Largest value.
        max: i32,
        /// Whether -1 is accepted too and means that the engine chooses.
        auto: bool,
    },
    /// A number, perhaps with a fraction, within bounds, both included.
    Real {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// One word out of these.
    Choice {
        /// The words, in lower case.
        words: &'static [&'static str],
    },
    /// On or off; also true, false, yes, no, 1, 0, and their beginnings where only one fits.
    Boolean,
    /// Any of these words, separated by commas.
    List {
        /// The words, in lower case.
        words: &'static [&'static str],
        /// Words that PostgreSQL knows and that would have no effect here: refused by name.
        unsupported: &'static [&'static str],
    },
}

/// What a setting is set to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    /// A number in the setting's unit, the index of a choice, a bit set of list words, or 1 for on.
    Whole(i32),
    /// Of a [`Kind::Real`]; never "not a number".
    Real(f64),
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spec {
    /// PostgreSQL's name, in lower case.
    pub name: &'static str,
    /// Type, unit and bounds.
    pub kind: Kind,
    pub(super) default: Value,
    /// One line of help, without full stop.
    pub short: &'static str,
}

/// `io_method`: who carries out I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IoMethod {
    /// The session itself, at once.
    Sync,
    /// A pool of worker threads.
    Worker,
    /// The kernel, through io_uring.
    IoUring,
}

impl IoMethod {
    /// All methods, in the order of their names in messages.
    pub const ALL: [IoMethod; 3] = [IoMethod::Sync, IoMethod::Worker, IoMethod::IoUring];

    /// PostgreSQL's word for it.
    pub fn name(self) -> &'static str {
        IO_METHODS[self as usize]
    }

    pub(super) fn from_index(index: i32) -> IoMethod {
        match index {
            0 => IoMethod::Sync,
            1 => IoMethod::Worker,
            _ => IoMethod::IoUring,
        }
    }
}

impl std::fmt::Display for IoMethod {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for IoMethod {
    type Err = SettingError;

    fn from_str(word: &str) -> Result<IoMethod, SettingError> {
        IoMethod::ALL.into_iter().find(|m| m.name().eq_ignore_ascii_case(word)).ok_or_else(|| {
            SettingError::NotAChoice {
                name: "io_method",
                value: word.to_owned(),
                words: IO_METHODS,
            }
        })
    }
}

/// `file_extend_method`: how room for new blocks is made on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ExtendMethod {
    /// The system reserves blocks; zeros are written for few blocks, and where it cannot.
    #[default]
    PosixFallocate,
    /// Zeros are written.
    WriteZeros,
}

impl ExtendMethod {
    /// PostgreSQL's word for it.
    pub fn name(self) -> &'static str {
        EXTEND_METHODS[self as usize]
    }

    pub(super) fn from_index(index: i32) -> ExtendMethod {
        match index {
            0 => ExtendMethod::PosixFallocate,
            _ => ExtendMethod::WriteZeros,
        }
    }
}

/// Positions in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Id {
    IoMethod,
    IoDirect,
    EffectiveIoConcurrency,
    MaintenanceIoConcurrency,
    IoCombineLimit,
    IoMaxCombineLimit,
    IoMaxConcurrency,
    IoMinWorkers,
    IoMaxWorkers,
    IoWorkerIdleTimeout,
    IoWorkerLaunchInterval,
    SharedBuffers,
    TempBuffers,
    ZeroDamagedPages,
    IgnoreChecksumFailure,
    MaxFilesPerProcess,
    CheckpointTimeout,
    CheckpointCompletionTarget,
    CheckpointFlushAfter,
    BgwriterDelay,
    BgwriterLruMaxpages,
    BgwriterLruMultiplier,
    BgwriterFlushAfter,
    BackendFlushAfter,
    FileExtendMethod,
}

impl Id {
    pub(super) fn spec(self) -> &'static Spec {
        &SPECS[self as usize]
    }
}

/// A second name, for one setting or several at once.
#[derive(Debug)]
pub(super) struct Alias {
    pub(super) name: &'static str,
    pub(super) targets: &'static [Id],
}

/// What a name stands for.
pub(super) enum Found {
    Spec(Id),
    Alias(&'static Alias),
}

pub(super) const COUNT: usize = 25;

/// PostgreSQL's: half of what an `i32` holds, 8 TiB.
const BUFFERS_MAX: i32 = i32::MAX / 2;

/// PostgreSQL's `WRITEBACK_MAX_PENDING_FLUSHES`.
const FLUSH_AFTER_MAX: i32 = 256;

const IO_METHODS: &[&str] = &["sync", "worker", "io_uring"];

const EXTEND_METHODS: &[&str] = &["posix_fallocate", "write_zeros"];

/// In the order of [`Id`], which a test checks.
static SPECS: [Spec; COUNT] = [
    // Worker as in PostgreSQL: it works on every kernel, in every container and under every seccomp
    // profile, so the default never has to fall back; io_uring is for those who ask for it.
    Spec {
        name: "io_method",
        kind: Kind::Choice { words: IO_METHODS },
        default: Value::Whole(IoMethod::Worker as i32),
        short: "selects how I/O is carried out",
    },
    Spec {
        name: "io_direct",
        kind: Kind::List { words: &["data"], unsupported: &["wal", "wal_init"] },
        default: Value::Whole(0),
        short: "reads and writes these past the operating system's cache",
    },
    Spec {
        name: "effective_io_concurrency",
        kind: count(0, 1000),
        default: Value::Whole(16),
        short: "I/Os that one stream keeps in flight",
    },
    Spec {
        name: "maintenance_io_concurrency",
        kind: count(0, 1000),
        default: Value::Whole(16),
        short: "I/Os that maintenance work keeps in flight",
    },
    Spec {
        name: "io_combine_limit",
        kind: blocks(1, 128),
        default: Value::Whole(16),
        short: "largest size of neighbouring blocks read or written as one",
    },
    Spec {
        name: "io_max_combine_limit",
        kind: blocks(1, 128),
        default: Value::Whole(16),
        short: "upper bound of io_combine_limit",
    },
    Spec {
        name: "io_max_concurrency",
        kind: Kind::Integer { unit: Unit::None, min: 1, max: 1024, auto: true },
        default: Value::Whole(-1),
        short: "I/Os that one session may have under way, -1 to choose by itself",
    },
    Spec {
        name: "io_min_workers",
        kind: count(1, 256),
        default: Value::Whole(2),
        short: "fewest I/O workers that are kept",
    },
    Spec {
        name: "io_max_workers",
        kind: count(1, 256),
        default: Value::Whole(8),
        short: "most I/O workers",
    },
    Spec {
        name: "io_worker_idle_timeout",
        kind: milliseconds(),
        default: Value::Whole(60_000),
        short: "time after which an idle I/O worker ends",
    },
    Spec {
        name: "io_worker_launch_interval",
        kind: milliseconds(),
        default: Value::Whole(100),
        short: "least time between the starts of two I/O workers",
    },
    Spec {
        name: "shared_buffers",
        kind: blocks(16, BUFFERS_MAX),
        default: Value::Whole(16_384),
        short: "size of the buffer pool that all sessions share",
    },
    Spec {
        name: "temp_buffers",
        kind: blocks(100, BUFFERS_MAX),
        default: Value::Whole(1024),
        short: "most memory that one session uses for pages of its own",
    },
    Spec {
        name: "zero_damaged_pages",
        kind: Kind::Boolean,
        default: Value::Whole(0),
        short: "takes damaged pages as empty ones, in memory, and goes on",
    },
    Spec {
        name: "ignore_checksum_failure",
        kind: Kind::Boolean,
        default: Value::Whole(0),
        short: "takes pages whose checksum is wrong and whose header is sane",
    },
    Spec {
        name: "max_files_per_process",
        kind: count(64, i32::MAX),
        default: Value::Whole(1000),
        short: "most relation files that are kept open",
    },
    Spec {
        name: "checkpoint_timeout",
        kind: Kind::Integer { unit: Unit::Seconds, min: 30, max: 86_400, auto: false },
        default: Value::Whole(300),
        short: "time between the beginnings of two checkpoints",
    },
    Spec {
        name: "checkpoint_completion_target",
        kind: Kind::Real { min: 0.0, max: 1.0 },
        default: Value::Real(0.9),
        short: "part of that time over which a checkpoint's writes are spread",
    },
    Spec {
        name: "checkpoint_flush_after",
        kind: blocks(0, FLUSH_AFTER_MAX),
        default: Value::Whole(32),
        short: "pages after which what a checkpoint wrote is flushed to disk, 0 never",
    },
    Spec {
        name: "bgwriter_delay",
        kind: Kind::Integer { unit: Unit::Milliseconds, min: 10, max: 10_000, auto: false },
        default: Value::Whole(200),
        short: "time between two rounds of the background writer",
    },
    Spec {
        name: "bgwriter_lru_maxpages",
        kind: count(0, i32::MAX / 2),
        default: Value::Whole(100),
        short: "pages that the background writer writes in a round at most, 0 for none at all",
    },
    Spec {
        name: "bgwriter_lru_multiplier",
        kind: Kind::Real { min: 0.0, max: 10.0 },
        default: Value::Real(2.0),
        short: "clean buffers to have ready, as a multiple of those lately needed in a round",
    },
    Spec {
        name: "bgwriter_flush_after",
        kind: blocks(0, FLUSH_AFTER_MAX),
        default: Value::Whole(64),
        short: "pages after which what the background writer wrote is flushed to disk, 0 never",
    },
    Spec {
        name: "backend_flush_after",
        kind: blocks(0, FLUSH_AFTER_MAX),
        default: Value::Whole(0),
        short: "pages after which what a session wrote is flushed to disk, 0 never",
    },
    Spec {
        name: "file_extend_method",
        kind: Kind::Choice { words: EXTEND_METHODS },
        default: Value::Whole(ExtendMethod::PosixFallocate as i32),
        short: "selects how room for new blocks is made",
    },
];

pub(super) static ALIASES: [Alias; 2] = [
    Alias { name: "debug_io_direct", targets: &[Id::IoDirect] },
    Alias { name: "io_workers", targets: &[Id::IoMinWorkers, Id::IoMaxWorkers] },
];

const IDS: [Id; COUNT] = [
    Id::IoMethod,
    Id::IoDirect,
    Id::EffectiveIoConcurrency,
    Id::MaintenanceIoConcurrency,
    Id::IoCombineLimit,
    Id::IoMaxCombineLimit,
    Id::IoMaxConcurrency,
    Id::IoMinWorkers,
    Id::IoMaxWorkers,
    Id::IoWorkerIdleTimeout,
    Id::IoWorkerLaunchInterval,
    Id::SharedBuffers,
    Id::TempBuffers,
    Id::ZeroDamagedPages,
    Id::IgnoreChecksumFailure,
    Id::MaxFilesPerProcess,
    Id::CheckpointTimeout,
    Id::CheckpointCompletionTarget,
    Id::CheckpointFlushAfter,
    Id::BgwriterDelay,
    Id::BgwriterLruMaxpages,
    Id::BgwriterLruMultiplier,
    Id::BgwriterFlushAfter,
    Id::BackendFlushAfter,
    Id::FileExtendMethod,
];

/// Every setting there is, aliases apart.
pub fn specs() -> &'static [Spec] {
    &SPECS
}

/// Looks a name up without regard to ASCII case.
pub(super) fn find(name: &str) -> Option<Found> {
    let spec = IDS.into_iter().find(|id| id.spec().name.eq_ignore_ascii_case(name));
    spec.map(Found::Spec).or_else(|| {
        ALIASES.iter().find(|alias| alias.name.eq_ignore_ascii_case(name)).map(Found::Alias)
    })
}

const fn count(min: i32, max: i32) -> Kind {
    Kind::Integer { unit: Unit::None, min, max, auto: false }
}

const fn blocks(min: i32, max: i32) -> Kind {
    Kind::Integer { unit: Unit::Blocks, min, max, auto: false }
}

const fn milliseconds() -> Kind {
    Kind::Integer { unit: Unit::Milliseconds, min: 0, max: i32::MAX, auto: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_positions() {
        for (position, id) in IDS.into_iter().enumerate() {
            assert_eq!(id as usize, position, "{id:?}");
        }
        assert_eq!(Id::IoWorkerLaunchInterval.spec().name, "io_worker_launch_interval");
        assert_eq!(Id::MaxFilesPerProcess.spec().name, "max_files_per_process");
        assert_eq!(Id::IoMaxConcurrency.spec().name, "io_max_concurrency");
        assert_eq!(Id::BgwriterLruMultiplier.spec().name, "bgwriter_lru_multiplier");
        assert_eq!(Id::FileExtendMethod.spec().name, "file_extend_method");
    }
}
