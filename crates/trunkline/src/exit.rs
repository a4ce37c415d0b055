//! How a command ends: four exit codes, and one form of error message.
//!
//! ```text
//!   0  good: done, nothing wrong found        2  usage: wrong command line or setting
//!   1  findings: done, something is wrong     3  cannot run: permission, version, server, I/O
//!                                           130  Ctrl-C
//! ```
//! Messages are `trunkline: error: ...` with `trunkline: hint: ...` below, on standard error.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use trunkline_engine::EngineError;
use trunkline_engine::catalog::CatalogError;
use trunkline_engine::datadir::DataDirError;
use trunkline_engine::heap::HeapError;
use trunkline_engine::job::JobError;
use trunkline_engine::pool::ReadError;
use trunkline_engine::prewarm::SelectError;
use trunkline_engine::seq_scan::SeqScanError;
use trunkline_engine::settings::SettingError;
use trunkline_engine::storage::StorageError;
use trunkline_engine::verify::ContentError;

use crate::output::harmless;

/// How a command that ran ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, and nothing wrong was found.
    Good = 0,
    /// Done, and something is wrong with the data.
    Findings = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// It could not be done.
    CannotRun = 3,
    /// Ctrl-C ended it early, and it said so; what a shell reports for that signal.
    Interrupted = 130,
    /// The same by SIGTERM.
    Terminated = 143,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// Why a command did not run to its end.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) exit: Exit,
    /// Lower case, no full stop; `None` ends without a word, since nobody reads any longer.
    text: Option<String>,
    hint: Option<String>,
}

impl Failure {
    /// Something prevents it: [`Exit::CannotRun`].
    pub(crate) fn cannot_run(text: impl Display) -> Failure {
        Failure { exit: Exit::CannotRun, text: Some(text.to_string()), hint: None }
    }

    /// The command line asks for what cannot be: [`Exit::Usage`].
    pub(crate) fn usage(text: impl Display) -> Failure {
        Failure { exit: Exit::Usage, text: Some(text.to_string()), hint: None }
    }

    /// The data is not what it should be: [`Exit::Findings`].
    pub(crate) fn findings(text: impl Display) -> Failure {
        Failure { exit: Exit::Findings, text: Some(text.to_string()), hint: None }
    }

    /// With advice.
    pub(crate) fn with_hint(self, hint: impl Display) -> Failure {
        Failure { hint: Some(hint.to_string()), ..self }
    }

    /// Standard output could not be written. A reader that went away (`trunkline ... | head`) is no
    /// error worth a message.
    pub(crate) fn output(error: &io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure { exit: Exit::CannotRun, text: None, hint: None };
        }
        Failure::cannot_run(format_args!("could not write to standard output: {error}"))
    }

    /// Prints it to standard error.
    pub(crate) fn report(&self) {
        if let Some(text) = &self.text {
            message("error", text);
        }
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

/// One line on standard error: `trunkline: kind: text`. Where standard error is gone, nothing can
/// be said.
pub(crate) fn message(kind: &str, text: impl Display) {
    use std::io::Write;
    let text = text.to_string();
    // Names may have anything; clap's texts have several lines.
    let text = harmless(&text, &['\n', '\t']);
    let _ = writeln!(io::stderr(), "trunkline: {kind}: {text}");
}

impl From<DataDirError> for Failure {
    fn from(error: DataDirError) -> Failure {
        let failure = Failure::cannot_run(&error);
        match error.hint() {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}

impl From<JobError> for Failure {
    fn from(error: JobError) -> Failure {
        let failure = Failure::cannot_run(&error);
        match error.hint() {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
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

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Failure {
        let failure = Failure::cannot_run(&error);
        match error {
            ReadError::Storage(
                StorageError::SegmentMissing { .. } | StorageError::TooLong { .. },
            )
            | ReadError::Corrupt { .. }
            | ReadError::Short { .. } => Failure { exit: Exit::Findings, ..failure },
            ReadError::Storage(error) => match error.hint() {
                Some(hint) => failure.with_hint(hint),
                None => failure,
            },
            _ => failure,
        }
    }
}

impl From<CatalogError> for Failure {
    fn from(error: CatalogError) -> Failure {
        let exit = match error {
            CatalogError::Directory(error) => return error.into(),
            CatalogError::Heap(HeapError::Read(error)) => return error.into(),
            CatalogError::Storage(error) => return ReadError::Storage(error).into(),
            _ if error.is_usage() => Exit::Usage,
            // The files say so, not their reading.
            _ => Exit::Findings,
        };
        let failure = Failure { exit, ..Failure::cannot_run(&error) };
        match error.hint() {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
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

impl From<ContentError> for Failure {
    fn from(error: ContentError) -> Failure {
        match error {
            ContentError::Catalog(error) => error.into(),
            ContentError::Job(error) => error.into(),
        }
    }
}

impl From<SelectError> for Failure {
    fn from(error: SelectError) -> Failure {
        let failure = Failure::usage(&error);
        match error.hint() {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}

impl From<SettingError> for Failure {
    fn from(error: SettingError) -> Failure {
        let failure = Failure::usage(&error);
        match error.hint() {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}
