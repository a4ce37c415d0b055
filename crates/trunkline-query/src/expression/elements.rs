//! The elements of constant arrays, such as the list of `x IN (1, 2, 3)`.

use arrow_array::ArrayRef;
use trunkline_format::Oid;
use trunkline_format::deform::Attribute;
use trunkline_sql::SqlError;
use trunkline_sql::bound::{Expr, ExprKind, SqlType};
use trunkline_sql::functions::ArrayView;

use super::constant::{constant, parameter};
use crate::environment::Environment;

/// The element type and the elements of an array that is a constant, each as an array of one value;
/// `None` if it isn't a constant.
///
/// # Errors
/// 0A000: we can't hold the elements. XX001: the array is damaged.
pub(crate) fn constant_elements(
    environment: &Environment,
    array: &Expr,
) -> Result<Option<(Oid, Vec<ArrayRef>)>, SqlError> {
    let catalog = &environment.settings.catalog;
    let Some(row) = catalog.type_row(array.ty.oid) else { return Ok(None) };
    let Some(element) = catalog.type_row(row.element) else { return Ok(None) };
    let ty = SqlType::new(row.element);
    let payload = match &array.kind {
        ExprKind::Array { elements, nested: false } => {
            let elements = elements.iter().map(|expr| match &expr.kind {
                ExprKind::Constant(payload) => {
                    constant(environment, ty, payload.as_deref()).map(Some)
                }
                ExprKind::Parameter(number) => {
                    constant(environment, ty, parameter(environment, *number)?).map(Some)
                }
                _ => Ok(None),
            });
            let elements: Option<Vec<ArrayRef>> = elements.collect::<Result<_, SqlError>>()?;
            return Ok(elements.map(|elements| (row.element, elements)));
        }
        ExprKind::Constant(payload) => payload.as_deref(),
        ExprKind::Parameter(number) => parameter(environment, *number)?,
        _ => return Ok(None),
    };
    // A null array gives null, which a single null element does as well.
    let Some(payload) = payload else {
        return Ok(Some((row.element, vec![constant(environment, ty, None)?])));
    };
    let attribute = Attribute { len: element.len, align: element.align };
    let payloads = ArrayView::parse(payload)?.elements(attribute)?;
    let elements = payloads.iter().map(|payload| constant(environment, ty, payload.as_deref()));
    Ok(Some((row.element, elements.collect::<Result<_, _>>()?)))
}
