//! Which columns of its table the rows of a scan are sorted by, as the keys of a sort say.

use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr, ScalarFunctionExpr};

use super::columns::Source;
use super::exec::ScanExec;
use crate::access_path::{SortColumn, SortedBy};
use crate::expression::ProgramFunction;

impl ScanExec {
    /// The columns of the table that these keys stand for, which are expressions over the result;
    /// `None` if one of them is anything else.
    pub(crate) fn sort_columns(&self, keys: &LexOrdering) -> Option<Vec<SortColumn>> {
        keys.iter().map(|key| self.sort_column(key)).collect()
    }

    fn sort_column(&self, key: &PhysicalSortExpr) -> Option<SortColumn> {
        let (column, keys) = match key.expr.downcast_ref::<ScalarFunctionExpr>() {
            None => (&key.expr, None),
            Some(call) => {
                let function = call.fun().inner().downcast_ref::<ProgramFunction>()?;
                let [argument] = call.args() else { return None };
                (argument, Some(function.key_of_column()?))
            }
        };
        let column = column.downcast_ref::<Column>()?;
        let decoded = self.columns().decoded.get(column.index())?;
        let Source::Stored { place, .. } = decoded.source else { return None };
        Some(SortColumn {
            place,
            by: keys.map_or(SortedBy::Values(decoded.carrier), SortedBy::Keys),
            descending: key.options.descending,
            nulls_first: key.options.nulls_first,
        })
    }
}
