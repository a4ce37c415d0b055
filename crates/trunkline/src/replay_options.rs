//! Options of commands that read a directory through its log.

use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{Args, ValueHint};
use trunkline_aio::facade::{env, thread};
use trunkline_engine::replay::{REPLAY_MEMORY_MIN, ReplayOptions, Until};
use trunkline_engine::settings::Settings;
use trunkline_format::transam::FIRST_NORMAL_XID;
use trunkline_format::{BLOCK_SIZE, Lsn};

use crate::moment::parse_time;

/// How the log of a directory that was not shut down is replayed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Crashed directories and backups")]
pub(crate) struct ReplayArgs {
    /// Look for log segments in DIR too, such as an archive; plain files, .gz, .lz4 and .zst. May be
    /// repeated, but all of these options must come before the command or all of them after it. After
    /// verify, and without DIR, check the log instead of the files: that it can be read to its end,
    /// and, if it was written with wal_consistency_checking, that redo of its records makes the
    /// server's pages.
    #[arg(long = "wal", value_name = "DIR", global = true, value_hint = ValueHint::DirPath)]
    #[arg(num_args = 0..=1, default_missing_value = "")]
    #[arg(value_parser = OsStringValueParser::new().map(PathBuf::from))]
    wal: Vec<PathBuf>,

    /// Show a backup as of this moment: a position such as 0/1A3F0C8; a time with its zone such as
    /// "2026-11-29 20:31:00+00", which stops before the first transaction that ended later; xid:NUMBER
    /// for the end of a transaction; or name:RESTOREPOINT [default: the end of the log].
    #[arg(long, value_name = "MOMENT", global = true, value_parser = parse_until)]
    until: Option<Until>,

    /// Memory for the list of pages that the log changes; what doesn't fit goes to --scratch [default:
    /// a quarter of the buffer pool, at least 64MB].
    #[arg(long, value_name = "SIZE", global = true, value_parser = parse_memory)]
    replay_memory: Option<u64>,

    /// Directory for pages that were built from the log, and for what --replay-memory can't hold; never
    /// inside the cluster or a tablespace [default: $TMPDIR, or /tmp].
    #[arg(long, value_name = "DIR", global = true, value_hint = ValueHint::DirPath)]
    scratch: Option<PathBuf>,

    /// Read as far as the log goes if it ends too early. Changes are then missing, and pages may
    /// contradict each other.
    #[arg(long, global = true)]
    allow_incomplete: bool,

    /// Don't replay the log; read the files as they lie. The newest changes are then missing, and pages
    /// may be torn.
    #[arg(long, global = true)]
    pub(crate) no_replay: bool,
}

/// `--wal` with a directory, for [`ReplayArgs::given_besides`].
pub(crate) const ARCHIVE: &str = "--wal DIR";

/// `--wal` without a directory.
pub(crate) const LOG_CHECK: &str = "--wal without a directory";

/// `--allow-incomplete`.
pub(crate) const ALLOW_INCOMPLETE: &str = "--allow-incomplete";

/// `--no-replay`.
pub(crate) const NO_REPLAY: &str = "--no-replay";

impl ReplayArgs {
    /// Whether `--wal` was given without a directory.
    pub(crate) fn checks_log(&self) -> bool {
        self.wal.iter().any(|folder| folder.as_os_str().is_empty())
    }

    /// The folders of `--wal`.
    pub(crate) fn archives(&self) -> &[PathBuf] {
        &self.wal
    }

    /// The folder of `--scratch`, if it was given.
    pub(crate) fn scratch(&self) -> Option<&Path> {
        self.scratch.as_deref()
    }

    /// An option that was given, decides what is read, and is not in `allowed`. Where it would have no
    /// effect, it must be refused, because the user would take what is shown for something else.
    /// `--replay-memory` and `--scratch` only say which memory and disk are used, if any are.
    pub(crate) fn given_besides(&self, allowed: &[&str]) -> Option<&'static str> {
        let options = [
            (LOG_CHECK, self.checks_log()),
            (ARCHIVE, self.wal.iter().any(|folder| !folder.as_os_str().is_empty())),
            ("--until", self.until.is_some()),
            (ALLOW_INCOMPLETE, self.allow_incomplete),
            (NO_REPLAY, self.no_replay),
        ];
        let given = options.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name);
        { given }.find(|name| !allowed.contains(name))
    }

    /// The engine's options.
    pub(crate) fn options(&self, settings: &Settings) -> ReplayOptions {
        let pool = u64::from(settings.shared_buffers()) * BLOCK_SIZE as u64;
        let temporary = || env::var("TMPDIR").filter(|path| !path.is_empty()).map(PathBuf::from);
        ReplayOptions {
            wal: self.wal.clone(),
            until: self.until.clone().unwrap_or_default(),
            memory: self.replay_memory.unwrap_or((pool / 4).max(REPLAY_MEMORY_MIN)),
            threads: thread::available_parallelism() as u32,
            allow_incomplete: self.allow_incomplete,
            io: Some(settings.clone()),
            scratch: self.scratch.clone().or_else(temporary).unwrap_or_else(|| "/tmp".into()),
        }
    }
}

/// What `--until` accepts, for messages.
const MOMENTS: &str = "expected a position such as 0/1A3F0C8, a time such as 2026-11-29 20:31:00+00, \
                       xid:NUMBER or name:RESTOREPOINT";

fn parse_until(text: &str) -> Result<Until, String> {
    if let Some(time) = text.strip_prefix("time:") {
        return parse_time(time.trim()).map(Until::Time);
    }
    if let Some(name) = text.strip_prefix("name:") {
        return Ok(Until::RestorePoint(name.to_owned()));
    }
    if let Some(xid) = text.strip_prefix("xid:") {
        // Smaller numbers are no transactions of a log.
        let xid = xid.parse().ok().filter(|&xid| xid >= FIRST_NORMAL_XID);
        return xid.map(Until::Xid).ok_or_else(|| "expected xid:NUMBER, from 3 on".to_owned());
    }
    if let Some(lsn) = Lsn::parse(text) {
        return Ok(Until::Lsn(lsn));
    }
    // A date begins with a year.
    let is_date = text.len() > 8 && text.starts_with(|first: char| first.is_ascii_digit());
    if is_date { parse_time(text).map(Until::Time) } else { Err(MOMENTS.to_owned()) }
}

/// A size with one of PostgreSQL's units.
fn parse_memory(text: &str) -> Result<u64, &'static str> {
    let units = [("kB", 1 << 10), ("MB", 1 << 20), ("GB", 1 << 30), ("TB", 1_u64 << 40)];
    let bytes = units.into_iter().find_map(|(unit, factor)| {
        text.strip_suffix(unit)?.trim_end().parse::<u64>().ok()?.checked_mul(factor)
    });
    bytes.ok_or("expected a size such as 512MB or 2GB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_positions_transactions_and_restore_points() {
        assert_eq!(parse_until("0/1A3F0C8"), Ok(Until::Lsn(Lsn(0x01A3_F0C8))));
        assert_eq!(parse_until("xid:730"), Ok(Until::Xid(730)));
        assert_eq!(parse_until("name:before it"), Ok(Until::RestorePoint("before it".to_owned())));
        let time = Until::Time(849_299_460_000_000);
        for text in ["2026-11-29 20:31:00+00", "time:2026-11-29 20:31:00 UTC"] {
            assert_eq!(parse_until(text), Ok(time.clone()), "{text}");
        }
        for text in ["", "730", "xid:", "xid:-1", "xid:2", "time:now", "2026-11-29 20:31:00"] {
            assert!(parse_until(text).is_err(), "{text}");
        }
        assert_eq!(parse_memory("64MB"), Ok(64 << 20));
        for text in ["64", "MB", "-1MB", "99999999999999999TB"] {
            assert!(parse_memory(text).is_err(), "{text}");
        }
    }
}
