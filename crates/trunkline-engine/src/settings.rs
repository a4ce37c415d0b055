//! Settings under PostgreSQL's names, units, ranges and messages.
//!
//! A [`Settings`] value holds one value per row of one table ([`specs`]); that table drives
//! parsing, `SHOW` and the command line's help, so that no name, unit or bound is written down
//! twice. Values are strings from outside (a command line, later a configuration file or `SET`)
//! until [`Settings::set`] has checked them; after that the typed getters hand out numbers that are
//! in range.
//!
//! Nothing here is global: an engine is given its `Settings` at start, so two engines in one
//! process can differ. A setting that would have no effect is not in the table.

mod definitions;
mod error;
mod io;
mod number;

use std::time::Duration;

pub use self::definitions::{ExtendMethod, IoMethod, Kind, Spec, Unit, specs};
pub use self::error::SettingError;

use self::definitions::{ALIASES, Alias, Id, Value};

/// One set of checked values, by default PostgreSQL's.
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
    /// In the order of the table. Numbers as they are, a choice as its index, a list as a bit set
    /// of its words, on and off as 1 and 0.
    values: [Value; definitions::COUNT],
}

impl Default for Settings {
    fn default() -> Settings {
        let mut values = [Value::Whole(0); definitions::COUNT];
        for (value, spec) in values.iter_mut().zip(specs()) {
            *value = spec.default;
        }
        Settings { values }
    }
}

impl Settings {
    /// Checks `value` and stores it under `name`, whose case does not matter. Nothing changes on
    /// error.
    ///
    /// # Errors
    /// [`SettingError`] with PostgreSQL's text for an unknown name, a malformed value or one out of
    /// range.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SettingError> {
        match definitions::find(name) {
            Some(definitions::Found::Spec(id)) => {
                let parsed = parse(id.spec(), id.spec().name, value)?;
                self.put(id, parsed);
            }
            Some(definitions::Found::Alias(alias)) => {
                let parsed = parse(alias.targets[0].spec(), alias.name, value)?;
                for &id in alias.targets {
                    self.put(id, parsed);
                }
            }
            None => return Err(SettingError::Unknown { name: name.to_owned() }),
        }
        Ok(())
    }

    /// Takes `name=value` apart as PostgreSQL's `-c` does (dashes in the name mean underscores) and
    /// stores it.
    ///
    /// # Errors
    /// As [`Settings::set`], and where there is no `=`.
    pub fn set_assignment(&mut self, assignment: &str) -> Result<(), SettingError> {
        match assignment.split_once('=') {
            Some((name, value)) => self.set(&name.replace('-', "_"), value),
            None => Err(SettingError::NoValue { name: assignment.to_owned() }),
        }
    }

    /// The value as `SHOW` prints it: in the largest unit that holds it exactly (`128kB`, `1min`).
    /// An alias shows the last setting that it stands for (`io_workers` the upper bound).
    ///
    /// # Errors
    /// [`SettingError::Unknown`].
    pub fn show(&self, name: &str) -> Result<String, SettingError> {
        let id = match definitions::find(name) {
            Some(definitions::Found::Spec(id)) => id,
            Some(definitions::Found::Alias(Alias { targets: [.., last], .. })) => *last,
            _ => return Err(SettingError::Unknown { name: name.to_owned() }),
        };
        Ok(show(id.spec(), self.values[id as usize]))
    }

    /// Every setting with its value as [`Settings::show`] prints it, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Spec, String)> + '_ {
        specs().iter().zip(self.values).map(|(spec, value)| (spec, show(spec, value)))
    }

    /// The names that stand for other settings, each with the names they set.
    pub fn aliases() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
        ALIASES
            .iter()
            .map(|alias| (alias.name, alias.targets.iter().map(|id| id.spec().name).collect()))
    }

    /// How I/O is carried out.
    pub fn io_method(&self) -> IoMethod {
        IoMethod::from_index(self.get(Id::IoMethod))
    }

    /// Whether relation files are opened for direct I/O, past the operating system's cache.
    pub fn io_direct_data(&self) -> bool {
        self.get(Id::IoDirect) & 1 != 0
    }

    /// How many reads one stream keeps in flight, 0 to 1000; 0 means no look-ahead.
    pub fn effective_io_concurrency(&self) -> u32 {
        self.count(Id::EffectiveIoConcurrency)
    }

    /// The same for maintenance work, 0 to 1000.
    pub fn maintenance_io_concurrency(&self) -> u32 {
        self.count(Id::MaintenanceIoConcurrency)
    }

    /// Largest combined I/O in blocks, 1 to 128: the smaller of `io_combine_limit` and
    /// `io_max_combine_limit`.
    pub fn io_combine_limit(&self) -> u32 {
        self.count(Id::IoCombineLimit).min(self.io_max_combine_limit())
    }

    /// Upper bound of every combined I/O in blocks, 1 to 128.
    pub fn io_max_combine_limit(&self) -> u32 {
        self.count(Id::IoMaxCombineLimit)
    }

    /// I/O handles that one session may hold, 1 to 1024; `None` leaves the choice to the engine.
    pub fn io_max_concurrency(&self) -> Option<u32> {
        u32::try_from(self.get(Id::IoMaxConcurrency)).ok()
    }

    /// Fewest I/O workers kept running, 1 to 256, never more than [`Settings::io_max_workers`].
    pub fn io_min_workers(&self) -> u32 {
        self.count(Id::IoMinWorkers).min(self.io_max_workers())
    }

    /// Most I/O workers, 1 to 256.
    pub fn io_max_workers(&self) -> u32 {
        self.count(Id::IoMaxWorkers)
    }

    /// How long a worker above the minimum stays without work.
    pub fn io_worker_idle_timeout(&self) -> Duration {
        Duration::from_millis(u64::from(self.count(Id::IoWorkerIdleTimeout)))
    }

    /// Least time between the starts of two workers.
    pub fn io_worker_launch_interval(&self) -> Duration {
        Duration::from_millis(u64::from(self.count(Id::IoWorkerLaunchInterval)))
    }

    /// Pages of the shared buffer pool, 16 to 1,073,741,823.
    pub fn shared_buffers(&self) -> u32 {
        self.count(Id::SharedBuffers)
    }

    /// Most pages of a session's own buffers, 100 to 1,073,741,823.
    pub fn temp_buffers(&self) -> u32 {
        self.count(Id::TempBuffers)
    }

    /// Whether a damaged page becomes a page of zeros in memory, with a warning, instead of an
    /// error.
    pub fn zero_damaged_pages(&self) -> bool {
        self.get(Id::ZeroDamagedPages) != 0
    }

    /// Whether a page with a wrong checksum and a sane header is taken as it is, with a warning.
    pub fn ignore_checksum_failure(&self) -> bool {
        self.get(Id::IgnoreChecksumFailure) != 0
    }

    /// Most relation files that are kept open, 64 and more.
    pub fn max_files_per_process(&self) -> u32 {
        self.count(Id::MaxFilesPerProcess)
    }

    /// From the beginning of one timed checkpoint to that of the next, 30 s to a day.
    pub fn checkpoint_timeout(&self) -> Duration {
        Duration::from_secs(u64::from(self.count(Id::CheckpointTimeout)))
    }

    /// The part of that time over which a timed checkpoint's writes are spread, 0 to 1.
    pub fn checkpoint_completion_target(&self) -> f64 {
        self.real(Id::CheckpointCompletionTarget)
    }

    /// Pages after which the system is told to write back what a checkpoint wrote, 0 to 256; 0 never.
    pub fn checkpoint_flush_after(&self) -> u32 {
        self.count(Id::CheckpointFlushAfter)
    }

    /// Between two rounds of the background writer, 10 ms to 10 s.
    pub fn bgwriter_delay(&self) -> Duration {
        Duration::from_millis(u64::from(self.count(Id::BgwriterDelay)))
    }

    /// Pages that the background writer writes in a round at most; 0 turns it off.
    pub fn bgwriter_lru_maxpages(&self) -> u32 {
        self.count(Id::BgwriterLruMaxpages)
    }

    /// Clean buffers that the background writer wants ready, as a multiple of those lately needed in
    /// a round, 0 to 10.
    pub fn bgwriter_lru_multiplier(&self) -> f64 {
        self.real(Id::BgwriterLruMultiplier)
    }

    /// Pages after which the system is told to write back what the background writer wrote, 0 to
    /// 256; 0 never.
    pub fn bgwriter_flush_after(&self) -> u32 {
        self.count(Id::BgwriterFlushAfter)
    }

    /// Pages after which the system is told to write back what a session wrote, 0 to 256; 0 never.
    pub fn backend_flush_after(&self) -> u32 {
        self.count(Id::BackendFlushAfter)
    }

    /// How room for new blocks is made.
    pub fn file_extend_method(&self) -> ExtendMethod {
        ExtendMethod::from_index(self.get(Id::FileExtendMethod))
    }

    /// A setting that is no real number.
    fn get(&self, id: Id) -> i32 {
        match self.values[id as usize] {
            Value::Whole(value) => value,
            Value::Real(_) => unreachable!("{} is a real number", id.spec().name),
        }
    }

    /// One that is.
    fn real(&self, id: Id) -> f64 {
        match self.values[id as usize] {
            Value::Real(value) => value,
            Value::Whole(value) => f64::from(value),
        }
    }

    /// A setting whose lower bound is not negative.
    fn count(&self, id: Id) -> u32 {
        self.get(id).unsigned_abs()
    }

    fn put(&mut self, id: Id, value: Value) {
        self.values[id as usize] = value;
    }
}

/// Checks one value; `name` is the one the user wrote, which may be an alias.
fn parse(spec: &Spec, name: &'static str, value: &str) -> Result<Value, SettingError> {
    let invalid = |hint| SettingError::Invalid { name, value: value.to_owned(), hint };
    let whole = match spec.kind {
        Kind::Integer { unit, min, max, auto } => {
            let number = number::parse(value, unit).map_err(invalid)?;
            match number {
                -1 if auto => {}
                0 if auto => return Err(SettingError::OnlyAutoOrPositive { name }),
                _ if number < min || number > max => {
                    let min = if auto { -1 } else { min };
                    return Err(SettingError::OutOfRange { name, number, unit, min, max });
                }
                _ => {}
            }
            number
        }
        Kind::Real { min, max } => {
            let number = number::parse_real(value).ok_or_else(|| invalid(None))?;
            if !(min..=max).contains(&number) {
                return Err(SettingError::RealOutOfRange { name, number, min, max });
            }
            return Ok(Value::Real(number));
        }
        Kind::Choice { words } => words
            .iter()
            .zip(0..)
            .find(|(word, _)| word.eq_ignore_ascii_case(value))
            .map(|(_, index)| index)
            .ok_or_else(|| SettingError::NotAChoice { name, value: value.to_owned(), words })?,
        Kind::Boolean => boolean(value).map(i32::from).ok_or(SettingError::NotBoolean { name })?,
        Kind::List { words, unsupported } => parse_list(name, value, words, unsupported)?,
    };
    Ok(Value::Whole(whole))
}

/// What PostgreSQL takes for on or off: a word or its beginning, whatever the case, no blanks.
fn boolean(value: &str) -> Option<bool> {
    let begins = |word: &str, least: usize| {
        let part = word.get(..value.len());
        value.len() >= least && part.is_some_and(|part| part.eq_ignore_ascii_case(value))
    };
    // A bare `o` could be either.
    if value == "1" || begins("true", 1) || begins("yes", 1) || begins("on", 2) {
        Some(true)
    } else if value == "0" || begins("false", 1) || begins("no", 1) || begins("off", 2) {
        Some(false)
    } else {
        None
    }
}

/// A list as PostgreSQL reads one: words between commas, blanks around them, each perhaps in double
/// quotes.
fn parse_list(
    name: &'static str,
    value: &str,
    words: &'static [&'static str],
    unsupported: &'static [&'static str],
) -> Result<i32, SettingError> {
    let mut bits = 0;
    if value.trim_ascii().is_empty() {
        return Ok(bits);
    }
    for item in value.split(',') {
        let item = item.trim_ascii();
        let word = item.strip_prefix('"').and_then(|w| w.strip_suffix('"')).unwrap_or(item);
        if word.is_empty() || word.contains(|c: char| c == '"' || c.is_ascii_whitespace()) {
            return Err(SettingError::ListSyntax { name, value: value.to_owned() });
        }
        if let Some(word) = unsupported.iter().find(|w| w.eq_ignore_ascii_case(word)) {
            return Err(SettingError::NotYet { name, word });
        }
        match words.iter().position(|w| w.eq_ignore_ascii_case(word)) {
            Some(index) => bits |= 1 << index,
            None => {
                return Err(SettingError::NotInList {
                    name,
                    value: value.to_owned(),
                    word: word.to_owned(),
                    words,
                });
            }
        }
    }
    Ok(bits)
}

fn show(spec: &Spec, value: Value) -> String {
    let value = match value {
        Value::Whole(value) => value,
        Value::Real(value) => return number::show_real(value),
    };
    match spec.kind {
        Kind::Integer { unit, .. } => number::show(value, unit),
        Kind::Boolean => if value == 0 { "off" } else { "on" }.to_owned(),
        Kind::Choice { words } => {
            usize::try_from(value).ok().and_then(|i| words.get(i)).copied().unwrap_or("").to_owned()
        }
        Kind::List { words, .. } => {
            let chosen = words.iter().zip(0..).filter(|(_, i)| value & (1 << i) != 0);
            chosen.map(|(word, _)| *word).collect::<Vec<_>>().join(", ")
        }
        Kind::Real { .. } => number::show_real(f64::from(value)),
    }
}

#[cfg(test)]
mod tests;
