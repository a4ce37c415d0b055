//! Encoders for the rows that a session returns, with the settings of the statement.

use std::sync::Arc;

use trunkline_sql::SqlError;

use super::prepared::KeptEncoders;
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

    /// Encodes rows of a portal with these columns, in the formats that it was bound with.
    ///
    /// # Errors
    /// As for [`RowEncoder::new`]. 34000: it doesn't exist.
    pub fn portal_encoder(
        &self,
        portal: &str,
        columns: &Arc<[ResultColumn]>,
    ) -> Result<RowEncoder, SqlError> {
        let portal = self.portal(portal)?;
        let formats = &portal.result_formats;
        let encoding = self.client_encoding()?;
        let mut kept = portal.statement.encoders.lock();
        let known = kept.as_ref().filter(|kept| {
            (Arc::ptr_eq(&kept.columns, columns) || kept.columns == *columns)
                && kept.formats == *formats
                && kept.encoders.are_for(&encoding)
        });
        if let Some(known) = known {
            return Ok(RowEncoder::of(&known.encoders, &self.settings));
        }
        let environment = self.environment(Arc::default());
        let encoder = RowEncoder::new(columns, formats, &environment, encoding)?;
        let (columns, formats) = (Arc::clone(columns), Arc::clone(formats));
        let encoders = encoder.columns().clone();
        *kept = Some(KeptEncoders { columns, formats, encoders });
        Ok(encoder)
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
