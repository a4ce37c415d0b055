//! Functions whose results are rows from JSON. How a row is made of an object is in
//! [`super::populating`].
//!
//! Each gives one column, whose values are rows. For example, `jsonb_populate_recordset` gives a row
//! for each object in an array.

use arrow_array::ArrayRef;

use super::populating::{Json, Rows};
use super::rows::rows;
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{Reader, each_row};
use crate::functions::set_rows::{NoRows, SetFunction, SetRows};
use crate::values::{Carrier, ColumnBuilder};

/// The kernels of this module.
pub(in crate::functions) const RECORDS: &[(&str, Kernel)] = &[
    ("jsonb_populate_record", |call| each(call, "jsonb_populate_record", true)),
    ("json_populate_record", |call| each(call, "json_populate_record", false)),
];

/// The functions of this module that give rows.
pub(in crate::functions) const RECORD_SETS: &[(&str, SetFunction)] = &[
    ("jsonb_populate_record", |call, row| one(call, row, "jsonb_populate_record", true, true)),
    ("json_populate_record", |call, row| one(call, row, "json_populate_record", false, true)),
    ("jsonb_to_record", |call, row| one(call, row, "jsonb_to_record", true, false)),
    ("json_to_record", |call, row| one(call, row, "json_to_record", false, false)),
    ("jsonb_populate_recordset", |call, row| {
        all(call, row, "jsonb_populate_recordset", true, true)
    }),
    ("json_populate_recordset", |call, row| all(call, row, "json_populate_recordset", false, true)),
    ("jsonb_to_recordset", |call, row| all(call, row, "jsonb_to_recordset", true, false)),
    ("json_to_recordset", |call, row| all(call, row, "json_to_recordset", false, false)),
];

/// The arguments of a call: the row to start from, if there is one, and the JSON.
struct Arguments<'a> {
    base: Option<Reader<'a, &'a [u8]>>,
    json: Text<'a>,
}

enum Text<'a> {
    Json(Reader<'a, &'a str>),
    Jsonb(Reader<'a, &'a [u8]>),
}

impl<'a> Arguments<'a> {
    fn new(call: &'a Call<'_>, is_jsonb: bool, has_base: bool) -> Result<Self, SqlError> {
        let base = if has_base { Some(Reader::new(call, 0)?) } else { None };
        let place = usize::from(has_base);
        let json = match is_jsonb {
            true => Text::Jsonb(Reader::new(call, place)?),
            false => Text::Json(Reader::new(call, place)?),
        };
        Ok(Self { base, json })
    }

    fn base(&self, row: usize) -> Option<&'a [u8]> {
        self.base.as_ref()?.get(row)
    }

    fn json(&self, row: usize) -> Result<Option<Json<'a>>, SqlError> {
        match &self.json {
            Text::Json(texts) => texts.get(row).map(Json::of_json).transpose(),
            Text::Jsonb(values) => values.get(row).map(Json::of_jsonb).transpose(),
        }
    }
}

/// One row for each call. Without JSON, it is the row to start from.
fn each(call: &Call<'_>, function: &'static str, is_jsonb: bool) -> Result<ArrayRef, SqlError> {
    let made = Rows::new(call, function, true)?;
    let arguments = Arguments::new(call, is_jsonb, true)?;
    each_row(call.rows, |row| {
        let base = arguments.base(row);
        made.check_known(base)?;
        match arguments.json(row)? {
            Some(json) => made.row(&json, base, call).map(Some),
            None => Ok(base.map(<[u8]>::to_vec)),
        }
    })
}

/// One row, which is null if there is nothing to make it of.
fn one(
    call: &Call<'_>,
    row: usize,
    function: &'static str,
    is_jsonb: bool,
    has_base: bool,
) -> Result<Box<dyn SetRows>, SqlError> {
    let made = Rows::new(call, function, has_base)?;
    let arguments = Arguments::new(call, is_jsonb, has_base)?;
    let base = arguments.base(row);
    made.check_known(base)?;
    let found = match arguments.json(row)? {
        Some(json) => Some(made.row(&json, base, call)?),
        None => base.map(<[u8]>::to_vec),
    };
    column([found])
}

/// A row for each object of an array.
fn all(
    call: &Call<'_>,
    row: usize,
    function: &'static str,
    is_jsonb: bool,
    has_base: bool,
) -> Result<Box<dyn SetRows>, SqlError> {
    let made = Rows::new(call, function, has_base)?;
    let arguments = Arguments::new(call, is_jsonb, has_base)?;
    let base = arguments.base(row);
    made.check_known(base)?;
    let Some(json) = arguments.json(row)? else { return Ok(Box::new(NoRows)) };
    let invalid = |message: String| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
    let Some(elements) = json.elements()? else {
        let what = match (is_jsonb, json.is_object()?) {
            (true, _) => "a non-array",
            (false, true) => "an object",
            (false, false) => "a scalar",
        };
        return Err(invalid(format!("cannot call {function} on {what}")));
    };
    let mut found = Vec::with_capacity(elements.len());
    for element in elements {
        if !element.is_object()? {
            let message = format!("argument of {function} must be an array of objects");
            return Err(invalid(message));
        }
        found.push(Some(made.row(&element, base, call)?));
    }
    column(found)
}

fn column(values: impl IntoIterator<Item = Option<Vec<u8>>>) -> Result<Box<dyn SetRows>, SqlError> {
    let mut column = ColumnBuilder::new(Carrier::Bytes, 0);
    for value in values {
        match value {
            Some(value) => column.append(&value).map_err(crate::functions::printing::damaged)?,
            None => column.append_null(),
        }
    }
    Ok(rows(vec![column.finish()]))
}
