//! Rows that are values, divided into columns: `FROM unnest(array_of_rows)`.
//!
//! ```text
//!   (1,"a b")         1    │ a b
//!   null         ─▶   null │ null
//!   (2,)              2    │ null
//! ```

use arrow_array::{Array, ArrayRef, BinaryViewArray};
use trunkline_format::Oid;
use trunkline_format::text_output::{RowTypes, row_fields};
use trunkline_sql::functions::CallSettings;
use trunkline_sql::values::{Carrier, ColumnBuilder};
use trunkline_sql::{SqlError, SqlState};

use super::arrays::append;
use super::row_values::damaged;

/// How rows are divided.
#[derive(Debug)]
pub(crate) struct Division {
    carriers: Vec<Carrier>,
    types: Vec<Oid>,
    /// The type of the rows is `record`, so each row must be compared with the columns.
    is_record: bool,
}

impl Division {
    /// Divides rows into columns of these types, which have these carriers.
    pub(crate) fn new(carriers: Vec<Carrier>, types: Vec<Oid>, is_record: bool) -> Self {
        Self { carriers, types, is_record }
    }

    /// The columns of these rows. A null is a row of nulls.
    ///
    /// # Errors
    /// 42804: a row doesn't have the columns that the query wants. XX001: a row is damaged.
    pub(crate) fn columns(
        &self,
        rows: &ArrayRef,
        settings: &CallSettings,
    ) -> Result<Vec<ArrayRef>, SqlError> {
        let rows = rows.as_any().downcast_ref::<BinaryViewArray>();
        let rows = rows.ok_or_else(|| SqlError::internal("rows are not bytes"))?;
        let columns = self.carriers.iter().map(|&carrier| ColumnBuilder::new(carrier, rows.len()));
        let mut columns: Vec<ColumnBuilder> = columns.collect();
        let mut types = RowTypes::default();
        for row in rows {
            let Some(row) = row else {
                columns.iter_mut().for_each(ColumnBuilder::append_null);
                continue;
            };
            let record = types.of(row, &*settings.catalog).map_err(damaged)?;
            let fields = row_fields(row, &record).map_err(damaged)?;
            if self.is_record {
                let found: Vec<Oid> = fields.iter().map(|field| field.oid).collect();
                self.check(&found, settings)?;
            }
            let mut fields = fields.into_iter();
            for column in &mut columns {
                append(column, fields.next().and_then(|field| field.value).as_deref())?;
            }
        }
        Ok(columns.iter_mut().map(ColumnBuilder::finish).collect())
    }

    /// The columns must be those that the query describes (`tupledesc_match`).
    fn check(&self, found: &[Oid], settings: &CallSettings) -> Result<(), SqlError> {
        let wrong = |detail: String| {
            let message = "function return row and query-specified return row do not match";
            Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).with_detail(detail))
        };
        let (has, wants) = (found.len(), self.types.len());
        if has != wants {
            let attributes = if has == 1 { "attribute" } else { "attributes" };
            let detail = format!("Returned row contains {has} {attributes}, but query expects");
            return wrong(format!("{detail} {wants}."));
        }
        for (place, (&has, &wants)) in (1..).zip(found.iter().zip(&self.types)) {
            if has != wants {
                let session = settings.session()?;
                let names = session.names();
                let (has, wants) = (names.type_name(has), names.type_name(wants));
                let at = format!("at ordinal position {place}");
                return wrong(format!("Returned type {has} {at}, but query expects {wants}."));
            }
        }
        Ok(())
    }
}
