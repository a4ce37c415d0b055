//! The extended protocol: Parse, Bind, Describe, Execute, Close.

use std::sync::Arc;

use trunkline_format::Oid;
use trunkline_query::Outcome;
use trunkline_sql::SqlError;

use crate::connection::{Broken, Connection, watched};
use crate::message::{Bind, Message, Target};
use crate::reply;
use crate::rows::Sent;

impl Connection {
    /// Answers one of its messages. An error is reported, and the rest of the series is skipped.
    ///
    /// # Errors
    /// The connection can't go on.
    pub(crate) async fn extended(&mut self, message: Message) -> Result<(), Broken> {
        // The text in which the position of an error is.
        let mut statement = String::new();
        let result = match message {
            Message::Parse { name, text, types } => self.decode(&text).and_then(|text| {
                statement = text;
                self.parse(&name, &statement, &types)
            }),
            Message::Bind(bind) => self.bind(bind),
            Message::Describe(target) => self.describe_target(&target),
            Message::Close(target) => self.close(&target),
            Message::Execute { portal, limit } => self.execute(&portal, limit).await?,
            _ => Ok(()),
        };
        self.send_notices(&statement);
        match result {
            Ok(()) => Ok(()),
            Err(error) => self.failed(&error, &statement),
        }
    }

    fn parse(&mut self, name: &[u8], text: &str, types: &[u32]) -> Result<(), SqlError> {
        let types: Vec<Oid> = types.iter().copied().map(Oid).collect();
        let name = self.name(name)?;
        self.session.prepare(&name, text, &types)?;
        reply::message(&mut self.outgoing.buffer, b'1', |_| {});
        Ok(())
    }

    fn bind(&mut self, bind: Bind) -> Result<(), SqlError> {
        let (portal, statement) = (self.name(&bind.portal)?, self.name(&bind.statement)?);
        let types = self.session.parameter_types(&statement)?;
        let format = |at: usize| match &*bind.formats {
            [one] => *one,
            formats => formats.get(at).copied().unwrap_or_default(),
        };
        // Too many or too few values are reported by the session.
        let values = bind.values.iter().enumerate().map(|(at, value)| {
            let Some(&ty) = types.get(at) else { return Ok(None) };
            self.session.read_parameter(ty, format(at), value.as_deref())
        });
        let values = values.collect::<Result<_, _>>()?;
        self.session.bind_portal(&portal, &statement, values, bind.result_formats)?;
        if let Some(columns) = self.session.describe_portal(&portal)? {
            // The number of formats is checked here.
            if let Err(error) = self.session.portal_encoder(&portal, &columns) {
                self.session.close_portal(&portal);
                return Err(error);
            }
        }
        reply::message(&mut self.outgoing.buffer, b'2', |_| {});
        Ok(())
    }

    fn describe_target(&mut self, target: &Target) -> Result<(), SqlError> {
        let (columns, formats) = match target {
            Target::Statement(name) => {
                let name = self.name(name)?;
                let description = self.session.describe_statement(&name)?;
                reply::message(&mut self.outgoing.buffer, b't', |out| {
                    out.extend_from_slice(&reply::count(description.parameters.len()));
                    for ty in &description.parameters {
                        out.extend_from_slice(&ty.0.to_be_bytes());
                    }
                });
                (description.columns, Arc::default())
            }
            Target::Portal(name) => {
                let name = self.name(name)?;
                (self.session.describe_portal(&name)?, self.session.result_formats(&name))
            }
        };
        match columns {
            Some(columns) => self.describe(&columns, &formats),
            None => reply::message(&mut self.outgoing.buffer, b'n', |_| {}),
        }
        Ok(())
    }

    fn close(&mut self, target: &Target) -> Result<(), SqlError> {
        match target {
            Target::Statement(name) => {
                let name = self.name(name)?;
                self.session.close_statement(&name);
            }
            Target::Portal(name) => {
                let name = self.name(name)?;
                self.session.close_portal(&name);
            }
        }
        reply::message(&mut self.outgoing.buffer, b'3', |_| {});
        Ok(())
    }

    async fn execute(&mut self, portal: &[u8], limit: u32) -> Result<Result<(), SqlError>, Broken> {
        let name = match self.name(portal) {
            Ok(name) => name,
            Err(error) => return Ok(Err(error)),
        };
        let canceller = self.session.canceller();
        let work = self.session.execute_portal(&name);
        let outcome = match watched(&self.incoming, &self.statements, &canceller, work).await {
            Ok(outcome) => outcome,
            Err(error) => return Ok(Err(error)),
        };
        self.send_notices("");
        match outcome {
            Outcome::Empty => reply::message(&mut self.outgoing.buffer, b'I', |_| {}),
            Outcome::Command(tag) => reply::complete(&mut self.outgoing.buffer, &tag),
            Outcome::CopyOut { rows, options } => return self.copy_out(rows, options).await,
            Outcome::Rows { rows, tag } => {
                let limit = usize::try_from(limit).ok().filter(|limit| *limit > 0);
                let encoder = match self.session.portal_encoder(&name, rows.columns()) {
                    Ok(encoder) => encoder,
                    Err(error) => return Ok(Err(error)),
                };
                match self.send_rows(rows, tag, &encoder, limit).await? {
                    Ok(Sent::All) => self.session.complete_portal(&name),
                    Ok(Sent::Some(rows)) => self.session.put_back_portal(&name, rows, tag),
                    Err(error) => return Ok(Err(error)),
                }
            }
        }
        Ok(Ok(()))
    }
}
