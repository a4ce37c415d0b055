//! Sends rows while they are computed.

use trunkline_query::encode::{RowEncoder, ValueFormat};
use trunkline_query::{Outcome, ResultColumn, Rows};
use trunkline_sql::SqlError;

use crate::connection::{Broken, Connection, until_terminated, watched};
use crate::reply;

/// What was sent of the rows.
pub(crate) enum Sent {
    /// All of them.
    All,
    /// As many as the client wanted. There may be more.
    Some(Rows),
}

impl Connection {
    /// Describes columns.
    pub(crate) fn describe(&mut self, columns: &[ResultColumn], formats: &[ValueFormat]) {
        let encoding = self.encoding();
        let Self { session, outgoing, .. } = self;
        let announced = |column: &ResultColumn| session.announced_type(column);
        reply::row_description(&mut outgoing.buffer, &encoding, columns, formats, announced);
    }

    /// Sends rows, at most `limit`, and how the statement has ended.
    ///
    /// # Errors
    /// `Err(_)`: the connection can't go on. `Ok(Err(_))`: the statement has failed.
    pub(crate) async fn send_rows(
        &mut self,
        mut rows: Rows,
        tag: &str,
        encoder: &RowEncoder,
        limit: Option<usize>,
    ) -> Result<Result<Sent, SqlError>, Broken> {
        let columns = reply::count(rows.columns().len());
        let canceller = self.session.canceller();
        let mut sent = 0;
        loop {
            if limit == Some(sent) {
                reply::message(&mut self.outgoing.buffer, b's', |_| {});
                return Ok(Ok(Sent::Some(rows)));
            }
            let batch =
                match watched(&self.incoming, &self.statements, &canceller, rows.next()).await {
                    Ok(Some(batch)) => batch,
                    Ok(None) => break,
                    Err(error) => return Ok(Err(error)),
                };
            let left = limit.map_or(usize::MAX, |limit| limit - sent);
            let batch = match batch.num_rows().checked_sub(left) {
                None | Some(0) => batch,
                Some(more) => {
                    rows.put_back(batch.slice(left, more));
                    batch.slice(0, left)
                }
            };
            let mut values = match encoder.batch(&batch) {
                Ok(values) => values,
                Err(error) => return Ok(Err(error)),
            };
            for row in 0..batch.num_rows() {
                let Self { incoming, outgoing, statements, .. } = self;
                let written = reply::try_message(&mut outgoing.buffer, b'D', |out| {
                    out.extend_from_slice(&columns);
                    values.write_row(row, out)
                });
                if let Err(error) = written {
                    return Ok(Err(error));
                }
                if outgoing.is_full() {
                    // A shared reference across the wait would need rows that threads can share.
                    let rows = &mut rows;
                    let written = outgoing.write(move || rows.release_ahead());
                    let written = until_terminated(&canceller, written);
                    watched(incoming, statements, &canceller, written).await?;
                }
            }
            sent += batch.num_rows();
        }
        let tag = match Outcome::is_counted(tag) {
            true => format!("{tag} {sent}"),
            false => tag.to_owned(),
        };
        reply::complete(&mut self.outgoing.buffer, &tag);
        Ok(Ok(Sent::All))
    }
}
