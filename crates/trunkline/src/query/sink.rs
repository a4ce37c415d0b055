//! Where the command writes its rows: standard output, or a file that gets its name at the end.

use std::path::Path;

use trunkline_engine::copy::{Output, Outputs};

use crate::copy::outputs::{Files, Stdout};
use crate::exit::Failure;

/// How many bytes are written at once.
const PIECE: usize = 64 << 10;

/// An output with a buffer.
pub(super) struct Sink {
    output: Box<dyn Output>,
    is_file: bool,
    /// What wasn't written yet.
    pub(super) buffer: Vec<u8>,
}

impl Sink {
    /// Opens a file, or standard output if there is no path.
    ///
    /// # Errors
    /// The file can't be created.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let output = match path {
            Some(path) => Files(vec![path.to_owned()]).open(0),
            None => Stdout.open(0),
        };
        let output =
            output.map_err(|error| Failure::cannot_run(format!("could not write to {error}")))?;
        Ok(Self { output, is_file: path.is_some(), buffer: Vec::new() })
    }

    /// Whether the rows go to a file.
    pub(super) fn is_file(&self) -> bool {
        self.is_file
    }

    /// Writes the buffer if it is large.
    ///
    /// # Errors
    /// The output can't be written.
    pub(super) fn flush_if_large(&mut self) -> Result<(), Failure> {
        if self.buffer.len() < PIECE { Ok(()) } else { self.flush() }
    }

    /// Writes the buffer.
    ///
    /// # Errors
    /// The output can't be written.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        let written = self.output.write(&self.buffer);
        self.buffer.clear();
        let is_file = self.is_file;
        written.map_err(|error| output_failure(is_file, &error))
    }

    /// Completes the output. A file is synced and gets its name.
    ///
    /// # Errors
    /// The output can't be written.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        self.flush()?;
        let is_file = self.is_file;
        let finished = self.output.sync().and_then(|()| self.output.finish(true));
        finished.map_err(|error| output_failure(is_file, &error))
    }

    /// Ends the output after an error. A file is removed.
    ///
    /// # Errors
    /// Standard output can't be written.
    pub(super) fn abandon(mut self) -> Result<(), Failure> {
        if self.is_file { Ok(()) } else { self.flush() }
    }
}

fn output_failure(is_file: bool, error: &std::io::Error) -> Failure {
    match is_file {
        true if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Failure::cannot_run(format!("could not write to {error}"))
        }
        _ => Failure::output(error),
    }
}
