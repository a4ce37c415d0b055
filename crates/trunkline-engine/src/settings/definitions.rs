//! The definitions of all settings (PostgreSQL's `guc_tables.c`), each with its name, kind, unit,
//! bounds, default, and a line of help.
//!
//! The names, units and defaults are those of PostgreSQL 18 and 19. The bounds differ only where we
//! can allow more. For example, we allow up to 256 I/O workers instead of 32, because ours are
//! threads and are woken in batches.
//!
//! We use a macro that generates both the enum of settings and the table of definitions from a
//! single list, so the two can't get out of sync.

use super::number::Unit;
use trunkline_aio::limits::SESSIONS_MAX;

/// The type of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// An integer within bounds, both inclusive.
    Integer {
        /// Its unit.
        unit: Unit,
        /// Smallest value.
        min: i32,
        /// Largest value.
        max: i32,
        /// Whether -1 is accepted too, in which case the engine chooses the value.
        auto: bool,
    },
    /// A floating-point number within bounds, both inclusive.
    Real {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// One of these words.
    Choice {
        /// The words, in lower case.
        words: &'static [&'static str],
    },
    /// On or off; also true, false, yes, no, 1, 0, and their unique prefixes.
    Boolean,
    /// Any of these words, separated by commas.
    List {
        /// The words, in lower case.
        words: &'static [&'static str],
        /// Words that PostgreSQL accepts, but which would have no effect here. We reject them by
        /// name.
        unsupported: &'static [&'static str],
    },
}

/// The definition of a setting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spec {
    /// PostgreSQL's name, in lower case.
    pub name: &'static str,
    /// Type, unit and bounds.
    pub kind: Kind,
    /// One line of help, without a trailing period.
    pub short: &'static str,
}

/// `io_method`: how I/O is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IoMethod {
    /// The session executes each of its I/Os synchronously.
    Sync,
    /// A pool of worker threads.
    Worker,
    /// The kernel, through io_uring.
    IoUring,
}

impl IoMethod {
    /// All methods, in the order of their names in messages.
    pub const ALL: [IoMethod; 3] = [IoMethod::Sync, IoMethod::Worker, IoMethod::IoUring];

    /// Its name in PostgreSQL.
    pub fn name(self) -> &'static str {
        IO_METHODS[self as usize]
    }
}

impl std::fmt::Display for IoMethod {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// `file_extend_method`: how space for new blocks is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ExtendMethod {
    /// Uses posix_fallocate(3). We still write zeros if just a few blocks are added, or if the file
    /// system doesn't support posix_fallocate.
    #[default]
    PosixFallocate,
    /// By writing zeros.
    WriteZeros,
}

impl ExtendMethod {
    /// All methods, in the order of their names in messages.
    pub const ALL: [ExtendMethod; 2] = [ExtendMethod::PosixFallocate, ExtendMethod::WriteZeros];

    /// Its name in PostgreSQL.
    pub fn name(self) -> &'static str {
        EXTEND_METHODS[self as usize]
    }
}

/// An alternative name for a setting, or a name that sets several settings.
#[derive(Debug)]
pub(super) struct Alias {
    pub(super) name: &'static str,
    pub(super) targets: &'static [Id],
}

/// PostgreSQL's limit: half the range of an `i32`, 8 TiB.
const BUFFERS_MAX: i32 = i32::MAX / 2;

/// PostgreSQL's `WRITEBACK_MAX_PENDING_FLUSHES`.
const FLUSH_AFTER_MAX: i32 = 256;

const IO_METHODS: &[&str] = &["sync", "worker", "io_uring"];

const EXTEND_METHODS: &[&str] = &["posix_fallocate", "write_zeros"];

/// Defines [`Id`] and the table of definitions in the same order, so that an `Id` can be used as an
/// index.
macro_rules! settings {
    ($($(#[$comment:meta])* $id:ident: $name:literal, $kind:expr, $default:expr, $help:literal;)*) => {
        /// A setting: its index in the table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Id {
            $($(#[$comment])* $id),*
        }

        static IDS: [Id; COUNT] = [$(Id::$id),*];

        static SPECS: [Spec; COUNT] =
            [$(Spec { name: $name, kind: $kind, short: $help }),*];

        pub(super) const COUNT: usize = [$($name),*].len();

        pub(super) const DEFAULTS: [f64; COUNT] = [$($default),*];
    };
}

settings! {
    /// The default is `worker`, as in PostgreSQL. It works with every kernel, container and seccomp
    /// profile, so we never have to fall back to another method by default.
    IoMethod: "io_method", Kind::Choice { words: IO_METHODS },
        IoMethod::Worker as u8 as f64, "selects the method for executing I/O";
    IoDirect: "io_direct", Kind::List { words: &["data"], unsupported: &["wal", "wal_init"] },
        0.0, "files to open for direct I/O, past the operating system's cache";
    EffectiveIoConcurrency: "effective_io_concurrency", count(0, 1000),
        16.0, "I/Os that one stream keeps in flight";
    MaintenanceIoConcurrency: "maintenance_io_concurrency", count(0, 1000),
        16.0, "I/Os that one stream of maintenance work keeps in flight";
    IoCombineLimit: "io_combine_limit", blocks(1, 128),
        16.0, "largest I/O that adjacent blocks are combined into";
    IoMaxCombineLimit: "io_max_combine_limit", blocks(1, 128),
        16.0, "upper bound of io_combine_limit";
    IoMaxConcurrency: "io_max_concurrency",
        Kind::Integer { unit: Unit::None, min: 1, max: 1024, auto: true },
        -1.0, "I/Os that one session may have in flight; -1 chooses automatically";
    IoMinWorkers: "io_min_workers", count(1, 256),
        2.0, "minimum number of I/O workers";
    IoMaxWorkers: "io_max_workers", count(1, 256),
        8.0, "maximum number of I/O workers";
    IoWorkerIdleTimeout: "io_worker_idle_timeout", milliseconds(),
        60_000.0, "time after which an idle I/O worker exits";
    IoWorkerLaunchInterval: "io_worker_launch_interval", milliseconds(),
        100.0, "minimum time between the launches of two I/O workers";
    SharedBuffers: "shared_buffers", blocks(16, BUFFERS_MAX),
        16_384.0, "size of the shared buffer pool";
    TempBuffers: "temp_buffers", blocks(100, BUFFERS_MAX),
        1024.0, "maximum size of the local buffers of a session";
    ZeroDamagedPages: "zero_damaged_pages", Kind::Boolean,
        0.0, "treats damaged pages as empty, in memory, and continues";
    IgnoreChecksumFailure: "ignore_checksum_failure", Kind::Boolean,
        0.0, "uses pages with a wrong checksum if their header is valid";
    MaxSessions: "max_sessions", count(1, SESSIONS_MAX as i32),
        255.0, "maximum number of concurrent sessions";
    MaxFilesPerProcess: "max_files_per_process", count(64, i32::MAX),
        1000.0, "maximum number of relation files kept open";
    CheckpointTimeout: "checkpoint_timeout",
        Kind::Integer { unit: Unit::Seconds, min: 30, max: 86_400, auto: false },
        300.0, "maximum time between the starts of two checkpoints";
    CheckpointCompletionTarget: "checkpoint_completion_target", Kind::Real { min: 0.0, max: 1.0 },
        0.9, "part of that time over which a checkpoint spreads its writes";
    CheckpointFlushAfter: "checkpoint_flush_after", blocks(0, FLUSH_AFTER_MAX),
        32.0, "writeback of a checkpoint's writes starts after this much; 0 disables it";
    BgwriterDelay: "bgwriter_delay",
        Kind::Integer { unit: Unit::Milliseconds, min: 10, max: 10_000, auto: false },
        200.0, "time between two rounds of the background writer";
    BgwriterLruMaxpages: "bgwriter_lru_maxpages", count(0, i32::MAX / 2),
        100.0, "pages that the background writer flushes per round; 0 disables it";
    BgwriterLruMultiplier: "bgwriter_lru_multiplier", Kind::Real { min: 0.0, max: 10.0 },
        2.0, "clean buffers to keep ready, as a multiple of recent use per round";
    BgwriterFlushAfter: "bgwriter_flush_after", blocks(0, FLUSH_AFTER_MAX),
        64.0, "writeback of the background writer's writes starts after this much; 0 disables it";
    BackendFlushAfter: "backend_flush_after", blocks(0, FLUSH_AFTER_MAX),
        0.0, "writeback of a session's writes starts after this much; 0 disables it";
    FileExtendMethod: "file_extend_method", Kind::Choice { words: EXTEND_METHODS },
        ExtendMethod::PosixFallocate as u8 as f64, "selects the method for extending files";
}

impl Id {
    pub(super) fn spec(self) -> &'static Spec {
        &SPECS[self as usize]
    }
}

/// `debug_io_direct` is PostgreSQL's name for `io_direct`. `io_workers` is the PostgreSQL 18
/// setting that PostgreSQL 19 split into a minimum and a maximum.
pub(super) static ALIASES: [Alias; 2] = [
    Alias { name: "debug_io_direct", targets: &[Id::IoDirect] },
    Alias { name: "io_workers", targets: &[Id::IoMinWorkers, Id::IoMaxWorkers] },
];

/// All settings, not including aliases.
pub fn specs() -> &'static [Spec] {
    &SPECS
}

/// Looks up a name, ignoring ASCII case. Returns it in lower case, with the settings that it sets.
pub(super) fn find(name: &str) -> Option<(&'static str, &'static [Id])> {
    let settings = IDS.iter().map(|id| (id.spec().name, std::slice::from_ref(id)));
    let aliases = ALIASES.iter().map(|alias| (alias.name, alias.targets));
    settings.chain(aliases).find(|(known, _)| known.eq_ignore_ascii_case(name))
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
