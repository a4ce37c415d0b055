//! The simple protocol: a text of statements, executed one after the other. The first error ends them.
//! Several statements are one transaction, unless the text itself begins and ends some.

use trunkline_query::Outcome;
use trunkline_sql::SqlError;
use trunkline_sql::syntax::parse;

use crate::connection::{Broken, Connection, watched};
use crate::reply;

impl Connection {
    /// Answers a Query message.
    ///
    /// # Errors
    /// The connection can't go on.
    pub(crate) async fn simple(&mut self, text: &[u8]) -> Result<(), Broken> {
        let text = match self.decode(text) {
            Ok(text) => text,
            Err(error) => {
                self.session.fail();
                return self.report(&error, "");
            }
        };
        self.session.close_statement("");
        match self.statements(&text).await? {
            Ok(()) => {
                self.session.end_series();
                Ok(())
            }
            Err(error) => {
                self.session.fail();
                self.send_notices(&text);
                self.report(&error, &text)
            }
        }
    }

    async fn statements(&mut self, text: &str) -> Result<Result<(), SqlError>, Broken> {
        let statements = match parse(text) {
            Ok(statements) => statements,
            Err(error) => return Ok(Err(error)),
        };
        if statements.is_empty() {
            reply::message(&mut self.outgoing.buffer, b'I', |_| {});
        }
        let are_several = statements.len() > 1;
        for statement in &statements {
            self.session.close_portal("");
            if are_several {
                self.session.begin_in_series();
            }
            let canceller = self.session.canceller();
            let work = self.session.execute(text, statement);
            let outcome = match watched(&self.incoming, &self.statements, &canceller, work).await {
                Ok(outcome) => outcome,
                Err(error) => return Ok(Err(error)),
            };
            self.send_notices(text);
            let sent = match outcome {
                Outcome::Empty => Ok(()),
                Outcome::Command(tag) => {
                    reply::complete(&mut self.outgoing.buffer, &tag);
                    Ok(())
                }
                Outcome::Rows { rows, tag } => {
                    self.describe(rows.columns(), &[]);
                    match self.session.row_encoder(rows.columns(), &[]) {
                        Ok(encoder) => self.send_rows(rows, tag, &encoder, None).await?.map(|_| ()),
                        Err(error) => Err(error),
                    }
                }
                Outcome::CopyOut { rows, options } => self.copy_out(rows, options).await?,
            };
            if let Err(error) = sent {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }
}
