//! `COPY … TO STDOUT`: rows as lines or tuples, each in a message of its own.

use trunkline_query::Rows;
use trunkline_query::encode::{CopyFormat, CopyOptions};
use trunkline_sql::SqlError;

use crate::connection::{Broken, Connection, until_terminated, watched};
use crate::reply;

impl Connection {
    /// Sends rows as lines, or as tuples in binary.
    ///
    /// # Errors
    /// `Err(_)`: the connection can't go on. `Ok(Err(_))`: the statement has failed.
    pub(crate) async fn copy_out(
        &mut self,
        mut rows: Rows,
        options: CopyOptions,
    ) -> Result<Result<(), SqlError>, Broken> {
        let format = u8::from(options.format == CopyFormat::Binary);
        let encoder = match self.session.copy_encoder(rows.columns(), options) {
            Ok(encoder) => encoder,
            Err(error) => return Ok(Err(error)),
        };
        let columns = rows.columns().len();
        reply::message(&mut self.outgoing.buffer, b'H', |out| {
            out.push(format);
            out.extend_from_slice(&reply::count(columns));
            (0..columns).for_each(|_| out.extend_from_slice(&[0, format]));
        });
        let mut header = Vec::new();
        if let Err(error) = encoder.write_header(&mut header) {
            return Ok(Err(error));
        }
        if !header.is_empty() {
            reply::message(&mut self.outgoing.buffer, b'd', |out| out.extend_from_slice(&header));
        }
        let canceller = self.session.canceller();
        let mut sent: u64 = 0;
        loop {
            let batch =
                match watched(&self.incoming, &self.statements, &canceller, rows.next()).await {
                    Ok(Some(batch)) => batch,
                    Ok(None) => break,
                    Err(error) => return Ok(Err(error)),
                };
            let mut values = match encoder.batch(&batch) {
                Ok(values) => values,
                Err(error) => return Ok(Err(error)),
            };
            for row in 0..batch.num_rows() {
                let Self { incoming, outgoing, statements, .. } = self;
                let written = reply::try_message(&mut outgoing.buffer, b'd', |out| {
                    encoder.write_row(&mut values, row, out)
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
                sent += 1;
            }
        }
        let mut trailer = Vec::new();
        encoder.write_trailer(&mut trailer);
        let out = &mut self.outgoing.buffer;
        if !trailer.is_empty() {
            reply::message(out, b'd', |out| out.extend_from_slice(&trailer));
        }
        reply::message(out, b'c', |_| {});
        reply::complete(out, &format!("COPY {sent}"));
        Ok(Ok(()))
    }
}
