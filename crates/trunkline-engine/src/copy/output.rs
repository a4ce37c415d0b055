//! Copy tasks, and the destinations of their rows.
//!
//! Each task has its own output. A [`LineBuffer`] collects the task's lines, so that we can pass
//! them to the output in a few large writes rather than many small ones.

use std::io;

use super::error::CopyError;
use super::plan::Plan;

/// One output, and the tables that are written to it, one after another.
#[derive(Debug)]
pub struct CopyTask {
    /// The tables.
    pub plans: Vec<Plan>,
    /// Whether these are all tables whose rows belong into the output. If not, the output is
    /// finished as incomplete.
    pub whole: bool,
}

/// The destination of a task's rows. If an output is dropped without calling [`Output::finish`], it
/// is incomplete, and the implementation may delete the partial file.
pub trait Output {
    /// Writes whole lines.
    ///
    /// # Errors
    /// The lines cannot be written. The copy ends.
    fn write(&mut self, lines: &[u8]) -> io::Result<()>;

    /// Makes the lines durable, if the output supports that. This may take a long time, so it is
    /// separate from [`Output::finish`]: between the two calls we check for the last time that no
    /// server has started.
    ///
    /// # Errors
    /// The lines cannot be made durable. The copy ends.
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Completes the output. `whole` is false if damaged rows or tables were skipped.
    ///
    /// # Errors
    /// The output cannot be completed. The copy ends.
    fn finish(self: Box<Self>, whole: bool) -> io::Result<()>;
}

/// Opens the outputs of tasks.
pub trait Outputs: Send + Sync {
    /// Opens the output for the task with this number. We call this in the thread that will write
    /// to the output, so the output doesn't have to be `Send`.
    ///
    /// # Errors
    /// The output cannot be opened. The copy ends.
    fn open(&self, task: usize) -> io::Result<Box<dyn Output>>;
}

/// We pass lines to an output in pieces of at least this many bytes.
const PIECE: usize = 128 << 10;

/// Buffers the lines of an output.
pub(super) struct LineBuffer {
    output: Box<dyn Output>,
    /// Lines not yet passed to the output.
    pub(super) pending: Vec<u8>,
    /// Bytes passed to the output.
    pub(super) bytes: u64,
}

impl LineBuffer {
    pub(super) fn new(output: Box<dyn Output>) -> Self {
        Self { output, pending: Vec::with_capacity(2 * PIECE), bytes: 0 }
    }

    /// Flushes the buffer if it is full.
    #[inline]
    pub(super) fn flush_if_full(&mut self, plan: &Plan) -> Result<(), CopyError> {
        if self.pending.len() < PIECE { Ok(()) } else { self.flush(&plan.name) }
    }

    /// Passes all lines to the output. We need `table` only for error messages.
    pub(super) fn flush(&mut self, table: &str) -> Result<(), CopyError> {
        let written = self.output.write(&self.pending);
        written.map_err(|source| CopyError::output(table, source))?;
        self.bytes += self.pending.len() as u64;
        self.pending.clear();
        // If there was a huge value, don't hold on to its memory for the rest of the copy.
        self.pending.shrink_to(16 * PIECE);
        Ok(())
    }

    /// Completes the output, unless `recheck` fails once all lines are durable.
    pub(super) fn finish(
        mut self,
        table: &str,
        whole: bool,
        recheck: impl FnOnce() -> Result<(), CopyError>,
    ) -> Result<u64, CopyError> {
        self.flush(table)?;
        self.output.sync().map_err(|source| CopyError::output(table, source))?;
        recheck()?;
        self.output.finish(whole).map_err(|source| CopyError::output(table, source))?;
        Ok(self.bytes)
    }
}
