//! Settings (GUCs) with PostgreSQL's names, units, ranges and messages.
//!
//! [`specs`] is the only place where settings are defined. Parsing, `SHOW` and the command-line
//! help all use that table. A [`Settings`] contains one value per setting. [`Settings::set`] checks
//! each string from the command line, so the typed getters always return values within range.
//!
//! A PostgreSQL administrator should be able to use values from a `postgresql.conf` unchanged, and
//! get the same error for a wrong value. The parser therefore follows `guc.c`, including its
//! rounding. We deliberately don't have contexts, sources, assign hooks or reloading. There is no
//! global state either: an engine receives its `Settings` at startup, so two engines in one process
//! can use different settings. We don't define settings that would have no effect. Trying to set
//! one is an error, which is better than silently ignoring it.

mod definitions;
mod error;
mod io;
mod number;

use std::time::Duration;

pub use self::definitions::{ExtendMethod, IoMethod, Kind, Spec, specs};
pub use self::error::SettingError;
pub use self::number::Unit;

use self::definitions::{ALIASES, Id};

/// A value for every setting, initially PostgreSQL's default.
///
/// ```
/// # use trunkline_engine::settings::Settings;
/// let mut settings = Settings::default();
/// settings.set("io_combine_limit", "0.5MB")?;
/// assert_eq!(settings.io_combine_limit(), 16); // bounded by io_max_combine_limit, 16 blocks
/// assert_eq!(settings.show("io_combine_limit")?, "512kB");
/// # Ok::<(), trunkline_engine::settings::SettingError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Indexed by [`Id`]. The values are never NaN. A choice is stored as the index of its word, a
    /// list as a bit set, and a Boolean as 0 or 1. An `f64` can represent all of these exactly, and
    /// also any `i32`.
    values: [f64; definitions::COUNT],
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { values: definitions::DEFAULTS }
    }
}

impl Settings {
    /// Checks `value` and assigns it to `name`. The name is case-insensitive. On error, nothing
    /// changes.
    ///
    /// # Errors
    /// [`SettingError`], with PostgreSQL's text for an unknown name, or for a malformed or
    /// out-of-range value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SettingError> {
        let (name, targets) = find(name)?;
        let parsed = parse(targets[0].spec(), name, value)?;
        for &id in targets {
            self.values[id as usize] = parsed;
        }
        Ok(())
    }

    /// Sets `name=value`, like PostgreSQL's `-c` option. Dashes in the name are treated as
    /// underscores (`ParseLongOption`).
    ///
    /// # Errors
    /// As for [`Settings::set`], and if there is no `=`.
    pub fn set_assignment(&mut self, assignment: &str) -> Result<(), SettingError> {
        match assignment.split_once('=') {
            Some((name, value)) => self.set(&name.replace('-', "_"), value),
            None => Err(SettingError::NoValue { name: assignment.to_owned() }),
        }
    }

    /// The value as `SHOW` prints it, using the largest unit that can represent it exactly
    /// (`128kB`, `1min`). For an alias that sets several settings, this is the value of the last
    /// one, so `io_workers` shows the maximum.
    ///
    /// # Errors
    /// [`SettingError::Unknown`].
    pub fn show(&self, name: &str) -> Result<String, SettingError> {
        let (_, targets) = find(name)?;
        let id = targets[targets.len() - 1];
        Ok(show(id.spec(), self.values[id as usize]))
    }

    /// All settings in the order of [`specs`], with their values as printed by [`Settings::show`].
    pub fn iter(&self) -> impl Iterator<Item = (&'static Spec, String)> + '_ {
        specs().iter().zip(self.values).map(|(spec, value)| (spec, show(spec, value)))
    }

    /// The aliases, each with the names of the settings it sets.
    pub fn aliases() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
        ALIASES
            .iter()
            .map(|alias| (alias.name, alias.targets.iter().map(|id| id.spec().name).collect()))
    }

    /// How I/O is executed.
    pub fn io_method(&self) -> IoMethod {
        IoMethod::ALL[self.get(Id::IoMethod) as usize]
    }

    /// Whether relation files are opened for direct I/O, bypassing the page cache.
    pub fn io_direct_data(&self) -> bool {
        self.get(Id::IoDirect) & 1 != 0
    }

    /// Maximum number of reads one stream keeps in flight, 0 to 1000; 0 disables read-ahead.
    pub fn effective_io_concurrency(&self) -> u32 {
        self.count(Id::EffectiveIoConcurrency)
    }

    /// Maximum number of reads a maintenance stream, such as verification, keeps in flight, 0 to
    /// 1000.
    pub fn maintenance_io_concurrency(&self) -> u32 {
        self.count(Id::MaintenanceIoConcurrency)
    }

    /// Maximum combined I/O size in blocks, 1 to 128: the smaller of `io_combine_limit` and
    /// `io_max_combine_limit`.
    pub fn io_combine_limit(&self) -> u32 {
        self.count(Id::IoCombineLimit).min(self.io_max_combine_limit())
    }

    /// Upper limit for all combined I/O sizes, in blocks, 1 to 128.
    pub fn io_max_combine_limit(&self) -> u32 {
        self.count(Id::IoMaxCombineLimit)
    }

    /// Maximum number of I/O handles per session, 1 to 1024; `None` lets the engine choose.
    pub fn io_max_concurrency(&self) -> Option<u32> {
        u32::try_from(self.get(Id::IoMaxConcurrency)).ok()
    }

    /// Minimum number of I/O workers, 1 to 256, at most [`Settings::io_max_workers`].
    pub fn io_min_workers(&self) -> u32 {
        self.count(Id::IoMinWorkers).min(self.io_max_workers())
    }

    /// Maximum number of I/O workers, 1 to 256.
    pub fn io_max_workers(&self) -> u32 {
        self.count(Id::IoMaxWorkers)
    }

    /// How long a worker beyond the minimum may be idle before it exits.
    pub fn io_worker_idle_timeout(&self) -> Duration {
        Duration::from_millis(u64::from(self.count(Id::IoWorkerIdleTimeout)))
    }

    /// Minimum time between two worker launches.
    pub fn io_worker_launch_interval(&self) -> Duration {
        Duration::from_millis(u64::from(self.count(Id::IoWorkerLaunchInterval)))
    }

    /// Size of the shared buffer pool in pages, 16 to 1,073,741,823.
    pub fn shared_buffers(&self) -> u32 {
        self.count(Id::SharedBuffers)
    }

    /// Maximum number of local buffers per session, 100 to 1,073,741,823.
    pub fn temp_buffers(&self) -> u32 {
        self.count(Id::TempBuffers)
    }

    /// Whether to replace a damaged page with zeros in memory and issue a warning, instead of
    /// raising an error.
    pub fn zero_damaged_pages(&self) -> bool {
        self.get(Id::ZeroDamagedPages) != 0
    }

    /// Whether to use a page that has a wrong checksum but a valid header, and issue a warning.
    pub fn ignore_checksum_failure(&self) -> bool {
        self.get(Id::IgnoreChecksumFailure) != 0
    }

    /// Maximum number of concurrent sessions of an engine, 1 to 8,191. PostgreSQL computes its
    /// counterpart, `MaxBackends`, from `max_connections` and the numbers of its worker processes.
    pub fn max_sessions(&self) -> u32 {
        self.count(Id::MaxSessions)
    }

    /// Maximum number of relation files kept open, at least 64.
    pub fn max_files_per_process(&self) -> u32 {
        self.count(Id::MaxFilesPerProcess)
    }

    /// Time from the start of one timed checkpoint to the start of the next, 30 s to one day.
    pub fn checkpoint_timeout(&self) -> Duration {
        Duration::from_secs(u64::from(self.count(Id::CheckpointTimeout)))
    }

    /// The fraction of [`Settings::checkpoint_timeout`] over which a timed checkpoint spreads its
    /// writes, 0 to 1.
    pub fn checkpoint_completion_target(&self) -> f64 {
        self.real(Id::CheckpointCompletionTarget)
    }

    /// Number of pages a checkpoint writes before it requests writeback, 0 to 256; 0 disables it.
    pub fn checkpoint_flush_after(&self) -> u32 {
        self.count(Id::CheckpointFlushAfter)
    }

    /// Time between two rounds of the background writer, 10 ms to 10 s.
    pub fn bgwriter_delay(&self) -> Duration {
        Duration::from_millis(u64::from(self.count(Id::BgwriterDelay)))
    }

    /// Maximum number of pages the background writer flushes per round; 0 disables it.
    pub fn bgwriter_lru_maxpages(&self) -> u32 {
        self.count(Id::BgwriterLruMaxpages)
    }

    /// How many clean buffers the background writer tries to keep ready, as a multiple (0 to 10) of
    /// the number of buffers recently used per round.
    pub fn bgwriter_lru_multiplier(&self) -> f64 {
        self.real(Id::BgwriterLruMultiplier)
    }

    /// Number of pages the background writer writes before it requests writeback, 0 to 256; 0
    /// disables it.
    pub fn bgwriter_flush_after(&self) -> u32 {
        self.count(Id::BgwriterFlushAfter)
    }

    /// Number of pages a session writes before it requests writeback, 0 to 256; 0 disables it.
    pub fn backend_flush_after(&self) -> u32 {
        self.count(Id::BackendFlushAfter)
    }

    /// How space for new blocks is allocated.
    pub fn file_extend_method(&self) -> ExtendMethod {
        ExtendMethod::ALL[self.get(Id::FileExtendMethod) as usize]
    }

    /// The value of a setting other than a [`Kind::Real`].
    fn get(&self, id: Id) -> i32 {
        self.values[id as usize] as i32
    }

    /// The value of a [`Kind::Real`].
    fn real(&self, id: Id) -> f64 {
        self.values[id as usize]
    }

    /// The value of a setting that can't be negative.
    fn count(&self, id: Id) -> u32 {
        self.get(id).unsigned_abs()
    }
}

impl Spec {
    /// Checks a value, written as in a configuration file. The number is as in [`Spec::show`].
    ///
    /// # Errors
    /// [`SettingError`], with PostgreSQL's text.
    pub fn parse(&self, value: &str) -> Result<f64, SettingError> {
        parse(self, self.name, value)
    }

    /// The value as `SHOW` prints it. A choice is the index of its word, a Boolean is 0 or 1.
    pub fn show(&self, value: f64) -> String {
        show(self, value)
    }
}

/// Returns the name in lower case, and the settings that it sets. There is always at least one.
fn find(name: &str) -> Result<(&'static str, &'static [Id]), SettingError> {
    definitions::find(name).ok_or_else(|| SettingError::Unknown { name: name.to_owned() })
}

/// Parses and checks a value. `name` is the name the user wrote, which may be an alias.
fn parse(spec: &Spec, name: &'static str, value: &str) -> Result<f64, SettingError> {
    let invalid = |hint| SettingError::Invalid { name, value: value.to_owned(), hint };
    Ok(match spec.kind {
        Kind::Integer { unit, min, max, auto } => {
            let number = number::parse(value, unit);
            let number = number.map_err(|hint| invalid(hint.map(str::to_owned)))?;
            if auto && number == 0 {
                return Err(SettingError::OnlyAutoOrPositive { name });
            }
            let min = if auto { -1 } else { min };
            if !(min..=max).contains(&number) {
                let number = format!("{number}{}", unit.suffix());
                let (min, max) = (min.to_string(), max.to_string());
                return Err(SettingError::OutOfRange { name, number, min, max });
            }
            f64::from(number)
        }
        Kind::Real { min, max } => {
            let number = number::parse_real(value).ok_or_else(|| invalid(None))?;
            if !(min..=max).contains(&number) {
                let [number, min, max] = [number, min, max].map(number::show_real);
                return Err(SettingError::OutOfRange { name, number, min, max });
            }
            number
        }
        Kind::Choice { words } => {
            let chosen = words.iter().position(|word| word.eq_ignore_ascii_case(value));
            chosen.ok_or_else(|| invalid(Some(available(words))))? as f64
        }
        Kind::Boolean => f64::from(boolean(value).ok_or(SettingError::NotBoolean { name })?),
        Kind::List { words, unsupported } => {
            f64::from(parse_list(name, value, words, unsupported)?)
        }
    })
}

/// The hint that lists the valid words.
fn available(words: &[&str]) -> String {
    format!("Available values: {}.", words.join(", "))
}

/// Parses a Boolean as PostgreSQL does: a word or a unique prefix, case-insensitive, without
/// blanks.
fn boolean(value: &str) -> Option<bool> {
    // A unique prefix is enough, as in `parse_bool_with_len`: `t`, `tr`, `tru`, `true`.
    let begins = |word: &str, least: usize| {
        let part = word.get(..value.len());
        value.len() >= least && part.is_some_and(|part| part.eq_ignore_ascii_case(value))
    };
    // `o` alone is ambiguous.
    if value == "1" || begins("true", 1) || begins("yes", 1) || begins("on", 2) {
        Some(true)
    } else if value == "0" || begins("false", 1) || begins("no", 1) || begins("off", 2) {
        Some(false)
    } else {
        None
    }
}

/// Parses a list as PostgreSQL does: words separated by commas, with optional blanks and double
/// quotes.
fn parse_list(
    name: &'static str,
    value: &str,
    words: &'static [&'static str],
    unsupported: &'static [&'static str],
) -> Result<i32, SettingError> {
    let invalid = |hint| SettingError::Invalid { name, value: value.to_owned(), hint: Some(hint) };
    let mut bits = 0;
    if value.trim_ascii().is_empty() {
        return Ok(bits);
    }
    for item in value.split(',') {
        let item = item.trim_ascii();
        let word = item.strip_prefix('"').and_then(|w| w.strip_suffix('"')).unwrap_or(item);
        if word.is_empty() || word.contains(|c: char| c == '"' || c.is_ascii_whitespace()) {
            return Err(invalid(format!("Invalid list syntax in parameter \"{name}\".")));
        }
        if let Some(word) = unsupported.iter().find(|w| w.eq_ignore_ascii_case(word)) {
            return Err(SettingError::NotYet { name, word });
        }
        match words.iter().position(|w| w.eq_ignore_ascii_case(word)) {
            Some(index) => bits |= 1 << index,
            None => {
                return Err(invalid(format!("Invalid option \"{word}\". {}", available(words))));
            }
        }
    }
    Ok(bits)
}

fn show(spec: &Spec, value: f64) -> String {
    let whole = value as i32;
    match spec.kind {
        Kind::Integer { unit, .. } => number::show(whole, unit),
        Kind::Real { .. } => number::show_real(value),
        Kind::Boolean => if whole == 0 { "off" } else { "on" }.to_owned(),
        Kind::Choice { words } => words[whole as usize].to_owned(),
        Kind::List { words, .. } => {
            let chosen = words.iter().zip(0..).filter(|(_, i)| whole & (1 << i) != 0);
            chosen.map(|(word, _)| *word).collect::<Vec<_>>().join(", ")
        }
    }
}

#[cfg(test)]
mod tests;
