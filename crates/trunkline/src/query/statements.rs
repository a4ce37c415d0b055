//! Executes the statements one after the other and prints what each returns.

use std::borrow::Cow;

use trunkline_aio::clock;
use trunkline_query::{Outcome, Rows, Session};
use trunkline_sql::syntax::{RawStatement, parse};
use trunkline_sql::{SqlError, SqlState};

use super::arguments::{Format, QueryArgs};
use super::explanation::explained;
use super::messages::Messages;
use super::printer::Printer;
use super::sink::Sink;
use super::timing::time;
use crate::exit::Failure;

/// Runs statements in a session.
pub(super) struct Runner<'a> {
    pub(super) session: Session,
    pub(super) sink: Sink,
    pub(super) format: Format,
    pub(super) args: &'a QueryArgs,
    pub(super) messages: Messages,
}

/// Why a statement did not complete.
enum Stop {
    /// It failed.
    Statement(SqlError),
    /// Its rows can't be written.
    Output(Failure),
}

impl From<SqlError> for Stop {
    fn from(error: SqlError) -> Self {
        Self::Statement(error)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Output(failure)
    }
}

impl Runner<'_> {
    /// Executes all statements of a text, up to the first that fails. Returns whether none did; the
    /// error was printed.
    ///
    /// # Errors
    /// The output can't be written.
    pub(super) async fn run(&mut self, text: &str) -> Result<bool, Failure> {
        self.print_notices(text);
        let parsed = match self.args.explain {
            Some(kind) => explained(text, kind),
            None => parse(text).map(|statements| (Cow::Borrowed(text), statements)),
        };
        let (text, statements) = match parsed {
            Ok((text, statements)) => (text, statements),
            Err(error) => {
                self.messages.error(&error, text);
                return Ok(false);
            }
        };
        let text = &*text;
        // As with psql -c, several statements of an argument are one transaction. Those of a file aren't.
        let is_series = statements.len() > 1 && self.args.sql.is_some();
        for statement in &statements {
            let start = clock::now();
            if is_series {
                self.session.begin_in_series();
            }
            let result = self.execute(text, statement).await;
            self.print_notices(text);
            match result {
                Ok(()) => {}
                Err(Stop::Output(failure)) => return Err(failure),
                Err(Stop::Statement(error)) => {
                    self.sink.flush()?;
                    // A signal has ended the session. The caller says so.
                    if error.code() != SqlState::ADMIN_SHUTDOWN {
                        self.messages.error(&error, text);
                    }
                    return Ok(false);
                }
            }
            if self.args.timing {
                self.print_time(&time(clock::now().since(start)))?;
            }
        }
        if is_series {
            self.session.end_series();
        }
        Ok(true)
    }

    fn print_notices(&mut self, text: &str) {
        for notice in self.session.take_notices() {
            self.messages.notice(&notice, text);
        }
    }

    /// As psql, we print the time where rows are printed, unless they are for a program.
    fn print_time(&mut self, time: &str) -> Result<(), Failure> {
        if self.is_text() && !self.sink.is_file() {
            self.sink.buffer.extend_from_slice(time.as_bytes());
            self.sink.buffer.push(b'\n');
            return self.sink.flush();
        }
        crate::exit::message("note", time);
        Ok(())
    }

    fn is_text(&self) -> bool {
        matches!(self.format, Format::Aligned | Format::Unaligned)
    }

    async fn execute(&mut self, text: &str, statement: &RawStatement) -> Result<(), Stop> {
        match self.session.execute(text, statement).await? {
            Outcome::Empty => Ok(()),
            Outcome::Command(tag) => {
                if self.is_text() {
                    self.sink.buffer.extend_from_slice(tag.as_bytes());
                    self.sink.buffer.push(b'\n');
                    self.sink.flush_if_large()?;
                }
                Ok(())
            }
            Outcome::Rows { rows, .. } => {
                let (columns, out) = (rows.columns(), &mut self.sink.buffer);
                let printer =
                    Printer::of_query(&self.session, columns, self.format, self.args, out)?;
                self.print(rows, printer).await
            }
            Outcome::CopyOut { rows, options } => {
                let (columns, out) = (rows.columns(), &mut self.sink.buffer);
                let printer = Printer::of_copy(&self.session, columns, options, out)?;
                self.print(rows, printer).await
            }
        }
    }

    async fn print(&mut self, mut rows: Rows, mut printer: Printer) -> Result<(), Stop> {
        while let Some(batch) = rows.next().await? {
            printer.batch(&batch, &mut self.sink.buffer)?;
            self.sink.flush_if_large()?;
        }
        printer.end(&mut self.sink.buffer);
        self.sink.flush_if_large()?;
        Ok(())
    }
}
