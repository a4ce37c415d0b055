//! The elements of constant arrays, such as the list of `x IN (1, 2, 3)`.
//!
//! An array's payload is the number of dimensions, the offset of the elements (0 if none is null), the
//! element type, a length and a lower bound for each dimension, perhaps a null bitmap, and then the
//! elements, each aligned as in a row. Offsets and alignment include the varlena header, which a
//! payload doesn't have.

use arrow_array::ArrayRef;
use trunkline_format::Oid;
use trunkline_format::deform::{Attribute, Column, Deformer};
use trunkline_format::varlena::Varlena;
use trunkline_sql::bound::{Expr, ExprKind, SqlType};
use trunkline_sql::{SqlError, SqlState};

use super::constant::{constant, parameter};
use crate::environment::Environment;

/// The size of a varlena header, which offsets in an array include.
const HEADER: usize = 4;

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
    let damaged = || SqlError::new(SqlState::DATA_CORRUPTED, "a constant array is damaged");
    let payloads = element_payloads(payload, attribute).ok_or_else(damaged)?;
    let elements = payloads.iter().map(|payload| constant(environment, ty, payload.as_deref()));
    Ok(Some((row.element, elements.collect::<Result<_, _>>()?)))
}

/// The payloads of an array's elements, in storage order; `None` if the array is damaged.
fn element_payloads(array: &[u8], attribute: Attribute) -> Option<Vec<Option<Vec<u8>>>> {
    let int = |at: usize| array.get(at..)?.first_chunk().map(|bytes| i32::from_le_bytes(*bytes));
    let dimensions = usize::try_from(int(0)?).ok().filter(|&count| count <= 6)?;
    let mut count = usize::from(dimensions > 0);
    for dimension in 0..dimensions {
        count = count.checked_mul(usize::try_from(int(12 + dimension * 4)?).ok()?)?;
    }
    let bounds_end = 12 + dimensions * 8;
    let (nulls, data) = match usize::try_from(int(4)?).ok()? {
        // Without nulls, the elements follow the bounds, aligned to 8 with the header.
        0 => (&[][..], (bounds_end + HEADER).next_multiple_of(8) - HEADER),
        offset => {
            let data = offset.checked_sub(HEADER)?;
            (array.get(bounds_end..data)?, data)
        }
    };
    let elements = array.get(data..).unwrap_or_default();
    // Each element takes at least a byte or a bit of the bitmap.
    if count > elements.len() + nulls.len() * 8 {
        return None;
    }
    let present = |at: usize| nulls.get(at / 8).is_none_or(|byte| byte >> (at % 8) & 1 == 1);
    // A row has at most 65,535 columns, but an array any number of elements, so each element is
    // deformed by itself. Elements start at a multiple of 8, as a row's data does.
    let (mut offset, mut found) = (0, Vec::with_capacity(count));
    for at in 0..count {
        if !present(at) {
            found.push(None);
            continue;
        }
        offset = attribute.align.up(offset);
        let mut walk = Deformer::new(1, &[], elements.get(offset..)?);
        let Ok(Column::Value(datum)) = walk.next(attribute) else { return None };
        offset += walk.offset();
        found.push(Some(match attribute.len {
            -1 => {
                let mut room = Vec::new();
                Varlena::parse(datum).ok()?.payload(&mut room).ok()?.to_vec()
            }
            _ => datum.to_vec(),
        }));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_format::Align;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn elements_of_arrays_with_and_without_nulls() {
        let int = Attribute { len: 4, align: Align::Int };
        // '{7,8}', '{7,NULL}', '{}' as int[], and '{ab,c}' as text[]
        let plain = words(&[1, 0, 23, 2, 1, 7, 8]);
        let seven = Some(vec![7, 0, 0, 0]);
        let eight = Some(vec![8, 0, 0, 0]);
        assert_eq!(element_payloads(&plain, int), Some(vec![seven.clone(), eight]));
        let mut nulls = words(&[1, 32, 23, 2, 1]);
        nulls.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        nulls.extend(words(&[7]));
        assert_eq!(element_payloads(&nulls, int), Some(vec![seven, None]));
        assert_eq!(element_payloads(&words(&[0, 0, 23]), int), Some(vec![]));
        let text = Attribute { len: -1, align: Align::Int };
        let mut texts = words(&[1, 0, 25, 2, 1, 6 << 2]);
        texts.extend(b"ab\0\0");
        texts.extend(words(&[5 << 2]));
        texts.extend(b"c");
        let expected = vec![Some(b"ab".to_vec()), Some(b"c".to_vec())];
        assert_eq!(element_payloads(&texts, text), Some(expected));
        assert_eq!(element_payloads(&plain[..22], int), None);
        assert_eq!(element_payloads(&words(&[1, 0, 23, u32::MAX, 1]), int), None);
    }
}
