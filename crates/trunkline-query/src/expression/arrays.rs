//! Expressions that make arrays and take them apart: `ARRAY[a, b]`, casts of arrays, subscripts.
//!
//! The arrays are made as they are stored. For example, `ARRAY[1, NULL]` becomes the payload that
//! `'{1,NULL}'::int4[]` is read into.

use std::borrow::Cow;

use arrow_array::{Array, ArrayRef};
use trunkline_format::Oid;
use trunkline_format::deform::Attribute;
use trunkline_sql::functions::{
    Argument, ArrayBuilder, ArrayView, DIMENSIONS_MAX, Dimension, attribute_of, slice, subscript,
};
use trunkline_sql::values::{Carrier, ColumnBuilder, PayloadReader};
use trunkline_sql::{SqlError, SqlState};

use crate::environment::Environment;

/// The element type of an array type, and how its values are held and stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct ElementType {
    pub(super) oid: Oid,
    pub(super) carrier: Carrier,
    attribute: Attribute,
    /// For a type of fixed length that has parts, such as `point`, how its own values are held.
    container: Option<Carrier>,
}

impl ElementType {
    /// That of an array type, or of a domain over one.
    ///
    /// # Errors
    /// 0A000: we can't hold values of the element type.
    pub(super) fn of(environment: &Environment, array: Oid) -> Result<Self, SqlError> {
        let catalog = &environment.settings.catalog;
        let mut row = catalog.type_row(array);
        // A chain of domains ends in a sound catalog; the limit is for others.
        for _ in 0..32 {
            match &row {
                Some(domain) if domain.kind == b'd' => row = catalog.type_row(domain.base),
                _ => break,
            }
        }
        let missing = || SqlError::internal(format!("type {array} is not an array type"));
        let fixed = row.as_ref().filter(|row| row.len > 0);
        let container = match fixed {
            Some(_) => Some(environment.carrier(array)?),
            None => None,
        };
        let oid = row.map(|row| row.element).filter(|oid| *oid != Oid(0)).ok_or_else(missing)?;
        Ok(Self {
            oid,
            carrier: environment.carrier(oid)?,
            attribute: attribute_of(oid, &**catalog)?,
            container,
        })
    }
}

/// A part of a value of fixed length, whose parts have one subscript from 0.
fn fixed_part<'a>(value: &'a [u8], attribute: Attribute, subscripts: &[i32]) -> Option<&'a [u8]> {
    let [at] = subscripts else { return None };
    let (at, size) = (usize::try_from(*at).ok()?, usize::try_from(attribute.len).ok()?);
    let start = at.checked_mul(size)?;
    value.get(start..start.checked_add(size)?)
}

/// The values of an argument, row by row, as stored.
pub(super) struct Values<'a> {
    argument: &'a Argument,
    reader: PayloadReader<'a>,
}

impl<'a> Values<'a> {
    pub(super) fn new(carrier: Carrier, argument: &'a Argument) -> Result<Self, SqlError> {
        Ok(Self { argument, reader: PayloadReader::new(carrier, argument.array())? })
    }

    pub(super) fn get(&mut self, row: usize) -> Option<&[u8]> {
        self.reader.get(self.argument.row(row))
    }
}

/// Builds a result. If all arguments are constants, so is the result, which then has one row.
pub(super) fn build(
    carrier: Carrier,
    arguments: &[&Argument],
    rows: usize,
    mut value: impl FnMut(usize, &mut ColumnBuilder) -> Result<(), SqlError>,
) -> Result<Argument, SqlError> {
    let constant = arguments.iter().all(|argument| argument.is_constant());
    let rows = if constant { 1 } else { rows };
    let mut column = ColumnBuilder::new(carrier, rows);
    for row in 0..rows {
        value(row, &mut column)?;
    }
    let array = column.finish();
    Ok(if constant { Argument::constant(array) } else { Argument::column(array) })
}

/// Appends a payload, or a null.
pub(super) fn append(column: &mut ColumnBuilder, value: Option<&[u8]>) -> Result<(), SqlError> {
    match value {
        Some(value) => column.append(value).map_err(|error| SqlError::internal(error.to_string())),
        None => {
            column.append_null();
            Ok(())
        }
    }
}

/// `ARRAY[…]` of values, in one dimension.
pub(super) fn list(
    element: ElementType,
    elements: &[Argument],
    rows: usize,
) -> Result<Argument, SqlError> {
    let readers = elements.iter().map(|argument| Values::new(element.carrier, argument));
    let mut readers = readers.collect::<Result<Vec<_>, _>>()?;
    let arguments: Vec<&Argument> = elements.iter().collect();
    build(Carrier::Bytes, &arguments, rows, |row, column| {
        let mut array = ArrayBuilder::new(element.oid, element.attribute);
        for reader in &mut readers {
            array.push(reader.get(row))?;
        }
        append(column, Some(&array.finish_list()?))
    })
}

/// `ARRAY[…]` of arrays, which become the inner dimensions. As in PostgreSQL, null arrays count as
/// empty ones.
pub(super) fn nested(
    element: ElementType,
    arrays: &[Argument],
    rows: usize,
) -> Result<Argument, SqlError> {
    let readers = arrays.iter().map(|argument| Values::new(Carrier::Bytes, argument));
    let mut readers = readers.collect::<Result<Vec<_>, _>>()?;
    let arguments: Vec<&Argument> = arrays.iter().collect();
    build(Carrier::Bytes, &arguments, rows, |row, column| {
        let mut array = ArrayBuilder::new(element.oid, element.attribute);
        let (mut inner, mut has_empty): (Option<Vec<Dimension>>, _) = (None, false);
        for reader in &mut readers {
            let Some(payload) = reader.get(row) else {
                has_empty = true;
                continue;
            };
            let view = ArrayView::parse(payload)?;
            if view.is_empty() {
                has_empty = true;
                continue;
            }
            match &inner {
                Some(inner) if inner != view.dimensions() => return Err(mismatch()),
                Some(_) => {}
                None if view.dimensions().len() >= DIMENSIONS_MAX => {
                    return Err(too_many_dimensions(view.dimensions().len() + 1));
                }
                None => inner = Some(view.dimensions().to_vec()),
            }
            for value in view.elements(element.attribute)? {
                array.push(value.as_deref())?;
            }
        }
        let payload = match inner {
            None => array.finish(&[])?,
            Some(_) if has_empty => return Err(mismatch()),
            Some(inner) => {
                let outer = Dimension { size: readers.len(), lower: 1 };
                let dimensions: Vec<Dimension> = std::iter::once(outer).chain(inner).collect();
                array.finish(&dimensions)?
            }
        };
        append(column, Some(&payload))
    })
}

fn mismatch() -> SqlError {
    let message = "multidimensional arrays must have array expressions with matching dimensions";
    SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message)
}

fn too_many_dimensions(count: usize) -> SqlError {
    let message = format!(
        "number of array dimensions ({count}) exceeds the maximum allowed ({DIMENSIONS_MAX})"
    );
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}

/// Converts the elements of arrays. `convert` is called once, with the elements of all rows.
pub(super) fn cast(
    from: ElementType,
    to: ElementType,
    arrays: &Argument,
    convert: impl FnOnce(ArrayRef) -> Result<ArrayRef, SqlError>,
) -> Result<Argument, SqlError> {
    let mut values = Values::new(Carrier::Bytes, arrays)?;
    let rows = arrays.array().len();
    let mut elements = ColumnBuilder::new(from.carrier, rows);
    // For each row, the dimensions and the number of elements; `None` if the array is null.
    let mut shapes: Vec<Option<(Vec<Dimension>, usize)>> = Vec::with_capacity(rows);
    for row in 0..rows {
        let Some(payload) = values.get(row) else {
            shapes.push(None);
            continue;
        };
        let view = ArrayView::parse(payload)?;
        for value in view.elements(from.attribute)? {
            append(&mut elements, value.as_deref())?;
        }
        shapes.push(Some((view.dimensions().to_vec(), view.len())));
    }
    let converted = convert(elements.finish())?;
    let mut converted = PayloadReader::new(to.carrier, &converted)?;
    let mut at = 0;
    let mut column = ColumnBuilder::new(Carrier::Bytes, rows);
    for shape in shapes {
        let Some((dimensions, count)) = shape else {
            column.append_null();
            continue;
        };
        let mut array = ArrayBuilder::new(to.oid, to.attribute);
        for place in at..at + count {
            array.push(converted.get(place))?;
        }
        at += count;
        append(&mut column, Some(&array.finish(&dimensions)?))?;
    }
    let array = column.finish();
    Ok(if arrays.is_constant() { Argument::constant(array) } else { Argument::column(array) })
}

/// The bounds of a slice in one row; `None` if one of them is null.
type Bounds = Option<Vec<(Option<i32>, Option<i32>)>>;

/// `array[i][j]`. The result is null if a subscript is, or if there is no such element.
pub(super) fn element(
    element: ElementType,
    array: &Argument,
    subscripts: &[Argument],
    rows: usize,
) -> Result<Argument, SqlError> {
    let mut arrays = Values::new(element.container.unwrap_or(Carrier::Bytes), array)?;
    let readers = subscripts.iter().map(|argument| Values::new(Carrier::Int32, argument));
    let mut readers = readers.collect::<Result<Vec<_>, _>>()?;
    let arguments: Vec<&Argument> = std::iter::once(array).chain(subscripts).collect();
    build(element.carrier, &arguments, rows, |row, column| {
        let subscripts = readers.iter_mut().map(|reader| int4(reader.get(row)));
        let subscripts: Option<Vec<i32>> = subscripts.collect();
        let found: Option<Cow<'_, [u8]>> = match (arrays.get(row), subscripts) {
            (Some(payload), Some(at)) if element.container.is_some() => {
                fixed_part(payload, element.attribute, &at).map(Cow::Borrowed)
            }
            (Some(payload), Some(at)) => subscript(payload, element.attribute, &at)?,
            _ => None,
        };
        append(column, found.as_deref())
    })
}

/// `array[i:j]`. A bound that is not written is that of the array. As in PostgreSQL, a value of fixed
/// length has no slices, which is noticed in the first row without a null.
pub(super) fn part(
    element: ElementType,
    array: &Argument,
    bounds: &[(Option<Argument>, Option<Argument>)],
    rows: usize,
) -> Result<Argument, SqlError> {
    let carrier = element.container.unwrap_or(Carrier::Bytes);
    let mut arrays = Values::new(carrier, array)?;
    let mut arguments = vec![array];
    let mut readers = Vec::with_capacity(bounds.len());
    for (lower, upper) in bounds {
        arguments.extend(lower.iter().chain(upper));
        let lower = lower.as_ref().map(|bound| Values::new(Carrier::Int32, bound)).transpose()?;
        let upper = upper.as_ref().map(|bound| Values::new(Carrier::Int32, bound)).transpose()?;
        readers.push((lower, upper));
    }
    build(carrier, &arguments, rows, |row, column| {
        let bound = |reader: &mut Option<Values<'_>>| match reader {
            None => Some(None),
            Some(reader) => int4(reader.get(row)).map(Some),
        };
        let pairs = readers.iter_mut().map(|(lower, upper)| Some((bound(lower)?, bound(upper)?)));
        let pairs: Bounds = pairs.collect();
        match (arrays.get(row), pairs) {
            (Some(_), Some(_)) if element.container.is_some() => {
                Err(SqlError::unsupported("slices of fixed-length arrays not implemented"))
            }
            (Some(payload), Some(pairs)) => {
                append(column, Some(&slice(payload, element.attribute, &pairs)?))
            }
            _ => append(column, None),
        }
    })
}

fn int4(payload: Option<&[u8]>) -> Option<i32> {
    payload?.first_chunk().map(|bytes| i32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::cast::AsArray;
    use arrow_array::{BinaryViewArray, Int32Array};
    use trunkline_format::Align;

    use super::*;

    const INT4: ElementType = ElementType {
        container: None,
        oid: Oid(23),
        carrier: Carrier::Int32,
        attribute: Attribute { len: 4, align: Align::Int },
    };

    fn numbers(values: &[Option<i32>]) -> Argument {
        Argument::column(Arc::new(Int32Array::from(values.to_vec())))
    }

    fn stored(argument: &Argument, row: usize) -> Vec<u8> {
        argument.array().as_binary_view().value(row).to_vec()
    }

    /// `ARRAY[ARRAY[1,2], ARRAY[3,NULL]]`, then subscripts and slices of it, as on a server.
    #[test]
    fn arrays_are_made_and_taken_apart() {
        let one = list(INT4, &[numbers(&[Some(1)]), numbers(&[Some(2)])], 1).expect("an array");
        let other = list(INT4, &[numbers(&[Some(3)]), numbers(&[None])], 1).expect("an array");
        let both = nested(INT4, &[one.clone(), other], 1).expect("an array of arrays");
        let dimensions = [Dimension { size: 2, lower: 1 }; 2];
        let payload = stored(&both, 0);
        let view = ArrayView::parse(&payload).expect("an array");
        assert_eq!(view.dimensions(), dimensions);
        let at = |row, column| {
            let subscripts = [numbers(&[Some(row)]), numbers(&[Some(column)])];
            let found = element(INT4, &both, &subscripts, 1).expect("a result");
            let found = found.array().as_primitive::<arrow_array::types::Int32Type>().clone();
            found.iter().next().flatten()
        };
        assert_eq!([at(1, 1), at(2, 1), at(2, 2), at(3, 1)], [Some(1), Some(3), None, None]);
        let bounds = [(Some(numbers(&[Some(1)])), None)];
        let whole = part(INT4, &one, &bounds, 1).expect("a slice");
        assert_eq!(stored(&whole, 0), stored(&one, 0));
    }

    #[test]
    fn arrays_of_other_sizes_and_empty_ones_cannot_be_put_together() {
        let one = list(INT4, &[numbers(&[Some(1)])], 1).expect("an array");
        let two = list(INT4, &[numbers(&[Some(1)]), numbers(&[Some(2)])], 1).expect("an array");
        let empty = list(INT4, &[], 1).expect("an array");
        for arrays in [[one.clone(), two], [one, empty.clone()]] {
            let error = nested(INT4, &arrays, 1).expect_err("they do not match");
            assert_eq!(error.code().as_str(), "2202E");
        }
        // Without any elements, the result is an empty array.
        let found = nested(INT4, &[empty.clone(), empty], 1).expect("an array");
        assert!(ArrayView::parse(&stored(&found, 0)).expect("an array").is_empty());
    }

    #[test]
    fn a_cast_keeps_dimensions_and_null_arrays() {
        let payload =
            stored(&list(INT4, &[numbers(&[Some(7)]), numbers(&[None])], 1).expect("ok"), 0);
        let arrays: BinaryViewArray = [Some(payload.as_slice()), None].into_iter().collect();
        let arrays = Argument::column(Arc::new(arrays));
        let found = cast(INT4, INT4, &arrays, |elements| {
            assert_eq!(elements.len(), 2);
            Ok(elements)
        });
        let found = found.expect("arrays");
        assert_eq!(stored(&found, 0), payload);
        assert!(found.is_null(1));
    }
}
