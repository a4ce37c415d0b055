//! Encoders for the rows that a session returns, with the settings of the statement.

use std::sync::Arc;

use trunkline_sql::SqlError;

use super::session::Session;
use crate::encode::{
    ClientEncoding, CopyEncoder, CopyOptions, JsonEncoder, RowEncoder, ValueFormat,
};
use crate::statement::ResultColumn;

impl Session {
    /// Encodes rows as values in text or binary, in the client's encoding.
    ///
    /// # Errors
    /// As for [`RowEncoder::new`].
    pub fn row_encoder(
        &self,
        columns: &[ResultColumn],
        formats: &[ValueFormat],
    ) -> Result<RowEncoder, SqlError> {
        let environment = self.environment(Arc::default());
        RowEncoder::new(columns, formats, &environment, self.client_encoding()?)
    }

    /// Encodes rows for COPY, in the encoding of the options, or else in the client's.
    ///
    /// # Errors
    /// As for [`CopyEncoder::new`].
    pub fn copy_encoder(
        &self,
        columns: &[ResultColumn],
        options: CopyOptions,
    ) -> Result<CopyEncoder, SqlError> {
        let environment = self.environment(Arc::default());
        let encoding = match options.encoding {
            Some(client) => {
                ClientEncoding::new(self.database().database().info().encoding, client)?
            }
            None => self.client_encoding()?,
        };
        CopyEncoder::new(columns, options, &environment, encoding)
    }

    /// Encodes rows as JSON, which is always in UTF-8.
    ///
    /// # Errors
    /// As for [`JsonEncoder::new`].
    pub fn json_encoder(&self, columns: &[ResultColumn]) -> Result<JsonEncoder, SqlError> {
        let environment = self.environment(Arc::default());
        JsonEncoder::new(columns, &environment, self.database().database().info().encoding)
    }
}
