//! The value of one execution of a subplan.
//!
//! ```text
//!   Quantified ANY: false, null, false   → null      (a comparison with each row)
//!   Quantified ANY: false, true …        → true, without looking at the rest
//! ```

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use datafusion::common::{Result, ScalarValue, internal_datafusion_err};
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use trunkline_format::Oid;
use trunkline_format::deform::Attribute;
use trunkline_sql::functions::ArrayBuilder;
use trunkline_sql::values::{Carrier, ColumnBuilder, PayloadReader};
use trunkline_sql::{SqlError, SqlState};

use crate::error::to_datafusion;

/// What the rows of a subplan become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubplanKind {
    /// The only value; null without rows, and an error with more than one.
    Scalar,
    /// Whether there is a row.
    Exists,
    /// Whether a boolean is true in any row.
    Any,
    /// Whether a boolean is true in all rows.
    All,
    /// An array of the values.
    Array {
        /// The type of the elements.
        element: Oid,
        /// How elements are stored.
        attribute: Attribute,
        /// How elements are held in batches.
        carrier: Carrier,
    },
    /// Rows, which are joined with the outer row; with `outer`, an outer row without any is joined
    /// with nulls.
    Rows {
        /// `LEFT JOIN LATERAL`.
        outer: bool,
    },
}

fn first_column(batch: &RecordBatch) -> Result<&ArrayRef> {
    batch.columns().first().ok_or_else(|| internal_datafusion_err!("a subplan without columns"))
}

/// Reads the rows of a subplan as far as they are needed, and returns its value.
pub(super) async fn value(
    kind: SubplanKind,
    rows: &mut SendableRecordBatchStream,
) -> Result<ScalarValue> {
    match kind {
        SubplanKind::Scalar => scalar(rows).await,
        SubplanKind::Exists => {
            while let Some(batch) = rows.next().await {
                if batch?.num_rows() > 0 {
                    return Ok(ScalarValue::Boolean(Some(true)));
                }
            }
            Ok(ScalarValue::Boolean(Some(false)))
        }
        SubplanKind::Any => quantified(true, rows).await,
        SubplanKind::All => quantified(false, rows).await,
        SubplanKind::Array { element, attribute, carrier } => {
            array(element, attribute, carrier, rows).await
        }
        SubplanKind::Rows { .. } => {
            Err(internal_datafusion_err!("the rows of a subplan aren't a value"))
        }
    }
}

async fn scalar(rows: &mut SendableRecordBatchStream) -> Result<ScalarValue> {
    let schema = rows.schema();
    let field = schema.fields().first();
    let field = field.ok_or_else(|| internal_datafusion_err!("a subplan without columns"))?;
    let mut found = None;
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        if batch.num_rows() == 0 {
            continue;
        }
        if found.is_some() || batch.num_rows() > 1 {
            let message = "more than one row returned by a subquery used as an expression";
            return Err(to_datafusion(SqlError::new(SqlState::CARDINALITY_VIOLATION, message)));
        }
        found = Some(ScalarValue::try_from_array(first_column(&batch)?, 0)?);
    }
    match found {
        Some(found) => Ok(found),
        None => ScalarValue::try_from(field.data_type()),
    }
}

/// The first row whose boolean is `decisive` decides. Otherwise, the value is null if any is null.
async fn quantified(decisive: bool, rows: &mut SendableRecordBatchStream) -> Result<ScalarValue> {
    let mut is_null = false;
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        let matches = first_column(&batch)?.as_boolean();
        is_null |= matches.null_count() > 0;
        let count = if decisive { matches.true_count() } else { matches.false_count() };
        if count > 0 {
            return Ok(ScalarValue::Boolean(Some(decisive)));
        }
    }
    Ok(ScalarValue::Boolean((!is_null).then_some(!decisive)))
}

async fn array(
    element: Oid,
    attribute: Attribute,
    carrier: Carrier,
    rows: &mut SendableRecordBatchStream,
) -> Result<ScalarValue> {
    let mut builder = ArrayBuilder::new(element, attribute);
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        let mut values =
            PayloadReader::new(carrier, first_column(&batch)?).map_err(to_datafusion)?;
        for row in 0..batch.num_rows() {
            builder.push(values.get(row)).map_err(to_datafusion)?;
        }
    }
    let payload = builder.finish_list().map_err(to_datafusion)?;
    let mut column = ColumnBuilder::new(Carrier::Bytes, 1);
    column.append(&payload).map_err(|error| internal_datafusion_err!("{error}"))?;
    ScalarValue::try_from_array(&column.finish(), 0)
}
