//! Defines the exit codes of the commands and the format of their error messages.
//!
//! ```text
//!   0  good: done, nothing wrong found        2  usage: wrong command line or setting
//!   1  findings: done, something is wrong     3  cannot run: permission, version, server, I/O
//!                                           130  Ctrl-C
//!                                           141  the reader of our output is gone (SIGPIPE)
//!                                           143  SIGTERM
//! ```
//! Messages go to standard error: `trunkline: error: ...`, followed by `trunkline: hint: ...`.
//!
//! Scripts need to distinguish exit codes 1 and 3: 1 means that we read the data and found it
//! damaged, whereas 3 means that we couldn't read it at all. The `From` implementations below make
//! this decision in one place for all of the engine's error types.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;
use trunkline_aio::facade::atomic::{AtomicBool, Ordering};
use trunkline_engine::EngineError;
use trunkline_engine::catalog::CatalogError;
use trunkline_engine::datadir::DataDirError;
use trunkline_engine::heap::HeapError;
use trunkline_engine::job::JobError;
use trunkline_engine::log_files::LogFilesError;
use trunkline_engine::pool::ReadError;
use trunkline_engine::prewarm::SelectError;
use trunkline_engine::seq_scan::SeqScanError;
use trunkline_engine::settings::SettingError;
use trunkline_engine::storage::StorageError;
use trunkline_engine::verify::ContentError;

use crate::escape::escape_control_characters;

/// How many warnings of one kind are listed.
const WARNINGS_MAX: usize = 100;

/// Exit code of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, and nothing wrong was found.
    Good = 0,
    /// Done, and something is wrong with the data, or missing on this machine.
    Findings = 1,
    /// The command line is invalid.
    Usage = 2,
    /// The command could not do its work.
    CannotRun = 3,
    /// The command was interrupted by Ctrl-C, and has printed partial results. A shell uses the
    /// same code to report that a program was killed by SIGINT.
    Interrupted = 130,
    /// The process that reads our output has closed the pipe. A shell reports SIGPIPE, which ends
    /// most other programs in this case, as this code.
    BrokenPipe = 141,
    /// The same as [`Exit::Interrupted`] for SIGTERM.
    Terminated = 143,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// Why a command did not complete.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) exit: Exit,
    /// The message, in lower case and without a full stop. `None` means that the process reading
    /// our output has closed the pipe. In that case we exit without a message.
    text: Option<String>,
    hint: Option<String>,
    /// The file system does not support direct I/O.
    is_of_direct_io: bool,
}

impl Failure {
    fn new(exit: Exit, text: impl Display) -> Failure {
        Failure { exit, text: Some(text.to_string()), hint: None, is_of_direct_io: false }
    }

    /// The command could not do its work: [`Exit::CannotRun`].
    pub(crate) fn cannot_run(text: impl Display) -> Failure {
        Failure::new(Exit::CannotRun, text)
    }

    /// The command line is invalid: [`Exit::Usage`].
    pub(crate) fn usage(text: impl Display) -> Failure {
        Failure::new(Exit::Usage, text)
    }

    /// The data is damaged: [`Exit::Findings`].
    pub(crate) fn findings(text: impl Display) -> Failure {
        Failure::new(Exit::Findings, text)
    }

    /// We lacked the permission to read `count` files. `others` is the number of other findings. The
    /// user must not overlook them because of the exit status.
    pub(crate) fn denied(count: u64, others: u64) -> Failure {
        let what = if count == 1 { "file or directory" } else { "files or directories" };
        let others = match others {
            0 => String::new(),
            1 => "; 1 other finding".to_owned(),
            others => format!("; {others} other findings"),
        };
        let text = format!("{count} {what} could not be read: permission denied{others}");
        Failure::cannot_run(text).with_hint("run as the user that owns the data directory")
    }

    /// A signal ended the command before it had a result. `exit` is [`Exit::Interrupted`] or
    /// [`Exit::Terminated`].
    pub(crate) fn interrupted(exit: Exit) -> Failure {
        Failure::new(exit, "interrupted")
    }

    /// Sets the hint, replacing any previous hint.
    pub(crate) fn with_hint(self, hint: impl Display) -> Failure {
        Failure { hint: Some(hint.to_string()), ..self }
    }

    /// Sets the hint, unless there is one.
    pub(crate) fn with_hint_if_none(self, hint: impl Display) -> Failure {
        if self.hint.is_some() { self } else { self.with_hint(hint) }
    }

    /// Adds a hint, if there is one.
    pub(crate) fn with_hint_if_any(self, hint: Option<impl Display>) -> Failure {
        match hint {
            Some(hint) => self.with_hint(hint),
            None => self,
        }
    }

    /// Writing to standard output failed. If the reader has closed the pipe, as in
    /// `trunkline ... | head`, no message is printed.
    pub(crate) fn output(error: &io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure { exit: Exit::BrokenPipe, text: None, ..Failure::cannot_run("") };
        }
        Failure::cannot_run(format_args!("could not write to standard output: {error}"))
    }

    /// Whether the file system does not support direct I/O. The same files may still be readable
    /// through the page cache.
    pub(crate) fn is_of_direct_io(&self) -> bool {
        self.is_of_direct_io
    }

    /// Prints error and hint to standard error. As JSON, they are one object with the exit code.
    pub(crate) fn report(&self) {
        let Some(text) = &self.text else { return };
        if MESSAGES_ARE_JSON.load(Ordering::Relaxed) {
            let hint = self.hint.as_deref().map(without_error_numbers);
            write_json_message("error", text, hint, Some(self.exit as u8));
            return;
        }
        self.report_part();
    }

    /// Prints error and hint for a part that could not be done. The command continues, so its exit
    /// code is not known yet.
    pub(crate) fn report_part(&self) {
        let Some(text) = &self.text else { return };
        message("error", text);
        if let Some(hint) = &self.hint {
            message("hint", hint);
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text.as_deref().unwrap_or_default())
    }
}

/// Whether messages are printed as JSON. Global, because even an error in the command line, which
/// leaves us without options, must have the form that the command line asks for.
static MESSAGES_ARE_JSON: AtomicBool = AtomicBool::new(false);

/// Prints all further messages as JSON, one object per line.
pub(crate) fn print_messages_as_json() {
    MESSAGES_ARE_JSON.store(true, Ordering::Relaxed);
}

/// A message as JSON.
#[derive(Serialize)]
struct JsonMessage<'m> {
    kind: &'m str,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_status: Option<u8>,
}

fn write_json_message(kind: &str, text: &str, hint: Option<String>, exit_status: Option<u8>) {
    let message = JsonMessage { kind, text: without_error_numbers(text), hint, exit_status };
    if let Ok(line) = serde_json::to_string(&message) {
        let _ = writeln!(io::stderr(), "{line}");
    }
}

/// Prints `trunkline: kind: text` to standard error. If we can't even write there, the message is
/// lost.
pub(crate) fn message(kind: &str, text: impl Display) {
    let text = text.to_string();
    if MESSAGES_ARE_JSON.load(Ordering::Relaxed) {
        write_json_message(kind, &text, None, None);
        return;
    }
    let text = without_error_numbers(&text);
    // We escape control characters, because a relation's name may contain them. Line feeds are
    // kept, because clap's messages have several lines.
    let text = escape_control_characters(&text, &['\n', '\t']);
    let _ = writeln!(io::stderr(), "trunkline: {kind}: {text}");
}

/// Prints warnings, and then the number of further warnings that are not listed.
pub(crate) fn warnings(listed: impl IntoIterator<Item = impl Display>, omitted: u64) {
    for text in listed {
        message("warning", text);
    }
    if omitted > 0 {
        message("warning", format_args!("… and {omitted} more"));
    }
}

/// Prints a warning for each of the first hundred, and then the number of the others.
pub(crate) fn first_warnings(all: impl ExactSizeIterator<Item = impl Display>) {
    let omitted = all.len().saturating_sub(WARNINGS_MAX) as u64;
    warnings(all.take(WARNINGS_MAX), omitted);
}

/// The text of an error for a report, without error numbers.
pub(crate) fn plain(error: impl Display) -> String {
    without_error_numbers(&error.to_string())
}

/// Removes the ` (os error 2)` that Rust appends to libc's error messages.
fn without_error_numbers(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((number, rest)) if number.parse::<u32>().is_ok() => shown.push_str(rest),
            _ => {
                shown.push_str(" (os error ");
                shown.push_str(part);
            }
        }
    }
    shown
}

// If we refuse to open a directory, or if a job can't start or can't read its files, we haven't
// learned anything about the data. For these errors, we therefore exit with 3 rather than 1.
impl From<DataDirError> for Failure {
    fn from(error: DataDirError) -> Failure {
        Failure::cannot_run(&error).with_hint_if_any(error.hint())
    }
}

impl From<LogFilesError> for Failure {
    fn from(error: LogFilesError) -> Failure {
        match error {
            LogFilesError::Duplicate { .. } => {
                Failure::usage(error).with_hint("select one with --timeline")
            }
            error if error.is_damage() => Failure::findings(error),
            error => Failure::cannot_run(error),
        }
    }
}

impl From<JobError> for Failure {
    fn from(error: JobError) -> Failure {
        Failure::cannot_run(&error).with_hint_if_any(error.hint())
    }
}

// If a selection of relations or blocks is invalid, we report a usage error, because the selection
// comes from the command line.
impl From<SelectError> for Failure {
    fn from(error: SelectError) -> Failure {
        Failure::usage(&error).with_hint_if_any(error.hint())
    }
}

impl From<SettingError> for Failure {
    fn from(error: SettingError) -> Failure {
        Failure::usage(&error).with_hint_if_any(error.hint())
    }
}

impl From<SeqScanError> for Failure {
    fn from(error: SeqScanError) -> Failure {
        match error {
            SeqScanError::Job(error) => error.into(),
            SeqScanError::Read(error) => error.into(),
        }
    }
}

impl From<ContentError> for Failure {
    fn from(error: ContentError) -> Failure {
        match error {
            ContentError::Catalog(error) => error.into(),
            ContentError::Job(error) => error.into(),
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Failure {
        match &error {
            // The files are readable, but part of the relation is missing or damaged.
            ReadError::Storage(
                StorageError::SegmentMissing { .. }
                | StorageError::TooLong { .. }
                | StorageError::Replay { .. },
            )
            | ReadError::Corrupt { .. }
            | ReadError::Short { .. } => Failure::findings(&error),
            ReadError::Storage(storage) => Failure {
                is_of_direct_io: matches!(
                    storage,
                    StorageError::Direct { .. } | StorageError::Alignment { .. }
                ),
                ..Failure::cannot_run(&error).with_hint_if_any(storage.hint())
            },
            _ => Failure::cannot_run(&error),
        }
    }
}

impl From<CatalogError> for Failure {
    fn from(error: CatalogError) -> Failure {
        let text = error.to_string();
        let exit = match error {
            CatalogError::Directory(error) => return error.into(),
            CatalogError::Heap(HeapError::Read(error)) => return error.into(),
            CatalogError::File { source, .. } => {
                return Failure { text: Some(text), ..ReadError::Storage(source).into() };
            }
            _ if error.is_usage() => Exit::Usage,
            // A file is missing that records whether the row is visible. The row may be fine.
            _ if error.file_fault().is_some() => Exit::CannotRun,
            // We could read the files, but their contents are invalid.
            _ => Exit::Findings,
        };
        Failure::new(exit, text).with_hint_if_any(error.hint())
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Failure {
        match error {
            EngineError::DataDir(error) => error.into(),
            EngineError::Catalog(error) => error.into(),
            EngineError::Storage(error) => ReadError::Storage(error).into(),
            error => Failure::cannot_run(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_format::catalog::PG_CLASS;

    #[test]
    fn only_a_missing_feature_of_the_file_system_is_of_direct_io() {
        let path = || "/data/base/5/1259".into();
        let failure = |source| Failure::from(CatalogError::File { table: &PG_CLASS, source });
        let direct = StorageError::Direct { path: path(), file_system: "9p".to_owned() };
        assert!(failure(direct).is_of_direct_io());
        let file_system = "9p".to_owned();
        let alignment = StorageError::Alignment { path: path(), file_system, alignment: 65536 };
        assert!(failure(alignment).is_of_direct_io());
        let source = io::Error::from_raw_os_error(5);
        let io = StorageError::Io { operation: "read file", path: path(), source };
        assert!(!failure(io).is_of_direct_io());
    }

    /// If a thread panics, we have learned nothing about the data.
    #[test]
    fn a_panic_of_a_thread_is_not_a_finding() {
        for failure in [
            Failure::from(JobError::Panicked),
            SeqScanError::Job(JobError::Panicked).into(),
            ContentError::Job(JobError::Panicked).into(),
        ] {
            assert_eq!(failure.exit, Exit::CannotRun);
            assert_eq!(failure.to_string(), "a worker thread panicked");
        }
    }

    #[test]
    fn error_numbers_of_the_system_are_removed() {
        for (text, expected) in [
            ("\"x\": No such file or directory (os error 2)", "\"x\": No such file or directory"),
            ("a (os error 5); b (os error 13).", "a; b."),
            ("a (os error x) (os error ", "a (os error x) (os error "),
        ] {
            assert_eq!(without_error_numbers(text), expected);
        }
    }
}
