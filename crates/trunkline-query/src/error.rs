//! Errors on their way through DataFusion.
//!
//! A kernel or a scan fails with an [`SqlError`]. DataFusion only passes on its own errors, so ours
//! travels inside one of those and is unpacked when the statement's stream returns it. An error that
//! DataFusion made itself is a bug of ours, unless memory ran out.
//!
//! ```
//! use trunkline_query::error::{from_datafusion, to_datafusion};
//! use trunkline_sql::{SqlError, SqlState};
//! let error = SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero");
//! let passed = to_datafusion(error.clone()).context("while computing a column");
//! assert_eq!(from_datafusion(&passed), error);
//! ```

use std::error::Error;

use datafusion::error::DataFusionError;
use trunkline_sql::{SqlError, SqlState};

/// Packs an error, so that [`from_datafusion`] returns the same one.
pub fn to_datafusion(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Finds our error in an error of DataFusion. If there is none, the result says what DataFusion did.
pub fn from_datafusion(error: &DataFusionError) -> SqlError {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(found) = cause {
        if let Some(ours) = found.downcast_ref::<SqlError>() {
            return ours.clone();
        }
        cause = found.source();
    }
    if let DataFusionError::ResourcesExhausted(detail) = error.find_root() {
        let (code, message) = (SqlState::OUT_OF_MEMORY, "out of memory");
        let hint = "Raise work_mem, or let the statement spill to a temporary directory.";
        return SqlError::new(code, message).with_detail(detail.clone()).with_hint(hint);
    }
    SqlError::internal(error.strip_backtrace())
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::error::ArrowError;
    use std::sync::Arc;

    #[test]
    fn our_error_is_found_at_any_depth() {
        let ours = SqlError::new(SqlState::UNDEFINED_TABLE, "relation \"t\" does not exist").at(3);
        let arrow = ArrowError::ExternalError(Box::new(to_datafusion(ours.clone())));
        for packed in [
            to_datafusion(ours.clone()),
            DataFusionError::Shared(Arc::new(to_datafusion(ours.clone()))),
            DataFusionError::ArrowError(Box::new(arrow), None).context("a").context("b"),
        ] {
            assert_eq!(from_datafusion(&packed), ours);
        }
    }

    #[test]
    fn an_error_of_datafusion_is_internal_unless_memory_ran_out() {
        let plan = from_datafusion(&DataFusionError::Plan("no such column".into()));
        assert_eq!(plan.code(), SqlState::INTERNAL_ERROR);
        let memory = DataFusionError::ResourcesExhausted("too big".into()).context("sort");
        let memory = from_datafusion(&memory);
        assert_eq!((memory.code().as_str(), memory.detail()), ("53200", Some("too big")));
    }
}
