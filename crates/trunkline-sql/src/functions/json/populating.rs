//! Rows from JSON: `jsonb_populate_record`, `jsonb_to_record`, their sets and those of `json`.
//!
//! ```text
//!   jsonb_to_record('{"a": 1, "b": ["x"]}') AS r(a int, b text[])
//!
//!   field by field:   1 ─▶ int4 1      ["x"] ─▶ text[] {x}       a field that is missing ─▶ null
//! ```
//!
//! An object becomes a row, an array becomes an array, and anything else goes through the input
//! function of the column's type. A column of an array or a composite type also takes a string with
//! the text of a value. Mirrors `populate_record_field` of PostgreSQL's `utils/adt/jsonfuncs.c`.

use trunkline_format::stored_record::write_row;
use trunkline_format::text_input::{JsonKind, JsonParts, read_text};
use trunkline_format::text_output::{
    Base, ColumnType, Part, RECORD, Record, RecordColumn, RowTypes, StringType, Type,
    record_columns, row_fields, write_json_string,
};

use std::sync::Arc;

use super::access::text as text_of;
use super::container::{Container, Kind, Value};
use super::writing::column_names;
use crate::error::{SqlError, SqlState};
use crate::functions::array::{ArrayBuilder, DIMENSIONS_MAX, Dimension, attribute_of};
use crate::functions::call::Call;
use crate::functions::printing::{damaged, resolve};

/// A JSON value: a part of a `json` or of a `jsonb`.
#[derive(Clone)]
pub(super) enum Json<'a> {
    /// The text of a value; the characters of a string are without escapes.
    Text { text: &'a str, kind: JsonKind, string: String },
    /// A value in a `jsonb`.
    Stored(Value<'a>),
}

impl<'a> Json<'a> {
    /// A whole `json`.
    pub(super) fn of_json(text: &'a str) -> Result<Self, SqlError> {
        let whole = JsonParts::parse(text, true)?.whole;
        let text = text.get(whole.place).unwrap_or_default();
        Ok(Self::Text { text, kind: whole.kind, string: whole.string })
    }

    /// A whole `jsonb`.
    pub(super) fn of_jsonb(bytes: &'a [u8]) -> Result<Self, SqlError> {
        let whole = Value { kind: Kind::Container, bytes };
        Ok(Self::Stored(Container::parse(bytes)?.scalar().unwrap_or(whole)))
    }

    fn is_null(&self) -> bool {
        match self {
            Self::Text { kind, .. } => *kind == JsonKind::Null,
            Self::Stored(value) => value.kind == Kind::Null,
        }
    }

    fn is_string(&self) -> bool {
        match self {
            Self::Text { kind, .. } => *kind == JsonKind::String,
            Self::Stored(value) => value.kind == Kind::String,
        }
    }

    /// The elements of an array; `None` for anything else.
    pub(super) fn elements(&self) -> Result<Option<Vec<Self>>, SqlError> {
        match self {
            Self::Text { text, kind: JsonKind::Array, .. } => {
                let parts = JsonParts::parse(text, true)?.parts.into_iter();
                let parts = parts.map(|part| Self::Text {
                    text: text.get(part.place).unwrap_or_default(),
                    kind: part.kind,
                    string: part.string,
                });
                Ok(Some(parts.collect()))
            }
            Self::Stored(value) => match value.container()? {
                Some(array) if !array.is_object && !array.is_scalar => {
                    Ok(Some(array.values.into_iter().map(Self::Stored).collect()))
                }
                _ => Ok(None),
            },
            Self::Text { .. } => Ok(None),
        }
    }

    /// The fields of an object. Of equal keys, the last one counts.
    fn fields(&self) -> Result<Option<Fields<'a>>, SqlError> {
        match self {
            Self::Text { text, kind: JsonKind::Object, .. } => {
                let parts = JsonParts::parse(text, true)?.parts.into_iter();
                let parts = parts.map(|part| {
                    let text = text.get(part.place).unwrap_or_default();
                    (part.key, Self::Text { text, kind: part.kind, string: part.string })
                });
                Ok(Some(Fields::Text(parts.collect())))
            }
            Self::Stored(value) => match value.container()? {
                Some(object) if object.is_object => Ok(Some(Fields::Stored(object))),
                _ => Ok(None),
            },
            Self::Text { .. } => Ok(None),
        }
    }

    /// Whether it is an object.
    pub(super) fn is_object(&self) -> Result<bool, SqlError> {
        Ok(self.fields()?.is_some())
    }

    /// The text that an input function gets. `quoted`: a string is written as JSON.
    fn text(&self, quoted: bool, call: &Call<'_>) -> Result<Vec<u8>, SqlError> {
        match self {
            Self::Text { kind: JsonKind::String, string, .. } if quoted => {
                let mut out = Vec::new();
                write_json_string(string.as_bytes(), &mut out);
                Ok(out)
            }
            Self::Text { kind: JsonKind::String, string, .. } => Ok(string.clone().into_bytes()),
            Self::Text { text, .. } => Ok(text.as_bytes().to_vec()),
            Self::Stored(value) if value.kind == Kind::String && quoted => {
                let mut out = Vec::new();
                write_json_string(value.bytes, &mut out);
                Ok(out)
            }
            Self::Stored(value) => Ok(text_of(*value, call)?.unwrap_or_default().into_bytes()),
        }
    }
}

enum Fields<'a> {
    Text(Vec<(String, Json<'a>)>),
    Stored(Container<'a>),
}

impl<'a> Fields<'a> {
    fn get(&self, name: &[u8]) -> Option<Json<'a>> {
        match self {
            Self::Text(fields) => {
                let found = fields.iter().rev().find(|(key, _)| key.as_bytes() == name);
                found.map(|(_, json)| json.clone())
            }
            Self::Stored(object) => object.get(name).map(Json::Stored),
        }
    }
}

/// The shape of rows: the types of the columns and their names.
pub(super) struct Shape {
    record: Arc<Record>,
    /// For an anonymous record, how a value describes its columns.
    columns: Vec<RecordColumn>,
    names: Vec<Vec<u8>>,
}

impl Shape {
    /// That of a composite type.
    fn composite(record: &Arc<Record>, call: &Call<'_>) -> Result<Self, SqlError> {
        let names = column_names(record.oid(), call.settings)?;
        Ok(Self { record: Arc::clone(record), columns: Vec::new(), names })
    }

    /// That of an anonymous record.
    fn anonymous(record: Arc<Record>, columns: Vec<RecordColumn>) -> Self {
        let names = columns.iter().map(|column| column.name.clone()).collect();
        Self { record, columns, names }
    }
}

/// Makes rows of one call, which all have the same shape.
pub(super) struct Rows {
    /// The function's name.
    pub(super) function: &'static str,
    /// `None` if only the base row of each call can tell it.
    shape: Option<Shape>,
}

impl Rows {
    /// `has_base`: the first argument is a row, whose type is that of the result unless it is `record`.
    pub(super) fn new(
        call: &Call<'_>,
        function: &'static str,
        has_base: bool,
    ) -> Result<Self, SqlError> {
        if let (RECORD, Some(row)) = (call.result_type, call.row) {
            let shape = Shape::anonymous(Arc::clone(&row.record), row.columns.clone());
            return Ok(Self { function, shape: Some(shape) });
        }
        let shape = match call.result_type {
            RECORD => None,
            oid => match resolve(oid, call.settings)? {
                Type::Composite(record) => Some(Shape::composite(&record, call)?),
                _ if has_base => {
                    let message = format!("first argument of {function} must be a row type");
                    return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
                }
                _ => None,
            },
        };
        Ok(Self { function, shape })
    }

    /// The row that `json` makes of `base`.
    pub(super) fn row(
        &self,
        json: &Json<'_>,
        base: Option<&[u8]>,
        call: &Call<'_>,
    ) -> Result<Vec<u8>, SqlError> {
        // A row whose declared type is `record` knows its own type.
        if let Some(base) = base.filter(|_| call.result_type == RECORD) {
            let record = RowTypes::default().of(base, &*call.settings.catalog).map_err(damaged)?;
            let columns = record_columns(base).map_err(damaged)?;
            let shape = match record.oid() {
                RECORD => Shape::anonymous(record, columns),
                _ => Shape::composite(&record, call)?,
            };
            return populated(&shape, json, Some(base), call);
        }
        let shape = self.shape.as_ref().ok_or_else(|| self.undetermined())?;
        populated(shape, json, base, call)
    }

    /// Whether the shape is known without a row.
    pub(super) fn check_known(&self, base: Option<&[u8]>) -> Result<(), SqlError> {
        match (&self.shape, base) {
            (None, None) => Err(self.undetermined()),
            _ => Ok(()),
        }
    }

    fn undetermined(&self) -> SqlError {
        let message = format!("could not determine row type for result of {}", self.function);
        SqlError::unsupported(message).with_hint(
            "Provide a non-null record argument, or call the function in the FROM clause using a \
             column definition list.",
        )
    }
}

/// A row of this shape. Fields that the object doesn't have keep the values of `base`.
fn populated(
    shape: &Shape,
    json: &Json<'_>,
    base: Option<&[u8]>,
    call: &Call<'_>,
) -> Result<Vec<u8>, SqlError> {
    let Some(fields) = json.fields()? else {
        let what = if json.elements()?.is_some() { "an array" } else { "a scalar" };
        let message = format!("cannot call populate_composite on {what}");
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    };
    let base = match base {
        Some(base) => Some(row_fields(base, &shape.record).map_err(damaged)?),
        None => None,
    };
    let mut values: Vec<Option<Vec<u8>>> = Vec::new();
    for (at, (column, name)) in shape.record.columns().zip(&shape.names).enumerate() {
        let old = base.as_ref().and_then(|base| base.get(at)).and_then(|field| field.value.clone());
        let value = match fields.get(name) {
            Some(json) => field(&column, Some(name), &json, old.as_deref(), call)?,
            None if base.is_some() => old,
            // A domain may not allow the null.
            None => {
                check_domain(column.is_domain)?;
                None
            }
        };
        values.push(value);
    }
    let mut out = Vec::new();
    let values = values.iter().map(Option::as_deref);
    write_row(&shape.record, &shape.columns, values, &mut out);
    Ok(out)
}

/// A domain's constraints are checked only where the binder sees the value.
fn check_domain(is_domain: bool) -> Result<(), SqlError> {
    let message = "reading a value of a domain within another value is not supported by trunkline";
    if is_domain { Err(SqlError::unsupported(message)) } else { Ok(()) }
}

/// The value of a column or an element; `None` for a JSON null.
fn field(
    column: &ColumnType<'_>,
    name: Option<&[u8]>,
    json: &Json<'_>,
    old: Option<&[u8]>,
    call: &Call<'_>,
) -> Result<Option<Vec<u8>>, SqlError> {
    check_domain(column.is_domain)?;
    if json.is_null() {
        return Ok(None);
    }
    stacker::maybe_grow(64 << 10, 1 << 20, || match column.ty {
        Type::Array(element) if !json.is_string() => {
            array(element, column.modifier, name, json, call).map(Some)
        }
        Type::Composite(record) if !json.is_string() => {
            populated(&Shape::composite(record, call)?, json, old, call).map(Some)
        }
        ty => scalar(ty, column.modifier, json, call).map(Some),
    })
}

/// What the input function of a type makes of a value.
fn scalar(ty: &Type, modifier: i32, json: &Json<'_>, call: &Call<'_>) -> Result<Vec<u8>, SqlError> {
    if let (Type::Base(Base::Jsonb), Json::Stored(value)) = (ty, json) {
        return value.to_jsonb();
    }
    let is_json = matches!(ty, Type::Base(Base::Jsonb | Base::Text(StringType::Json)));
    let text = json.text(is_json, call)?;
    let mut out = Vec::new();
    read_text(ty, &text, modifier, &call.settings.input_options(), &mut out)?;
    Ok(out)
}

/// An array under construction. The number of dimensions is known when the first element that isn't an
/// array is reached.
struct Elements<'a> {
    column: ColumnType<'a>,
    /// The key, for messages.
    name: Option<&'a [u8]>,
    values: Vec<Option<Vec<u8>>>,
    /// 0 if it isn't known yet.
    rank: usize,
    /// The number of elements of each dimension that have been read in the current array.
    sizes: Vec<usize>,
    /// The sizes of the inner dimensions.
    expected: Vec<Option<usize>>,
}

fn array(
    element: &Part,
    modifier: i32,
    name: Option<&[u8]>,
    json: &Json<'_>,
    call: &Call<'_>,
) -> Result<Vec<u8>, SqlError> {
    let (ty, oid, is_domain) = (element.ty(), element.oid(), element.is_domain());
    let column = ColumnType { ty, oid, modifier, is_domain };
    let (values, sizes, expected) = (Vec::new(), Vec::new(), Vec::new());
    let mut elements = Elements { column, name, values, rank: 0, sizes, expected };
    elements.read(json, 1, call)?;
    let mut builder = ArrayBuilder::new(oid, attribute_of(oid, &*call.settings.catalog)?);
    for value in &elements.values {
        builder.push(value.as_deref())?;
    }
    let outer = elements.sizes.first().copied().unwrap_or_default();
    let inner = elements.expected.iter().skip(1).map(|size| size.unwrap_or_default());
    let sizes = std::iter::once(outer).chain(inner);
    let dimensions: Vec<Dimension> = sizes.map(|size| Dimension { size, lower: 1 }).collect();
    builder.finish(&dimensions)
}

impl Elements<'_> {
    /// Reads an array at a level, counted from 1 (`populate_array_dim_jsonb`).
    fn read(&mut self, json: &Json<'_>, level: usize, call: &Call<'_>) -> Result<(), SqlError> {
        let Some(parts) = json.elements()? else { return Err(self.no_array(level - 1)) };
        let is_innermost = match parts.first() {
            Some(first) => first.elements()?.is_none(),
            None => true,
        };
        if self.rank == 0 && is_innermost {
            if level > DIMENSIONS_MAX {
                let message = format!(
                    "number of array dimensions ({level}) exceeds the maximum allowed \
                     ({DIMENSIONS_MAX})"
                );
                return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
            }
            self.rank = level;
            self.sizes = vec![0; level];
            self.expected = vec![None; level];
        }
        for part in parts {
            if self.rank > 0 && level >= self.rank {
                let value = field(&self.column, None, &part, None, call)?;
                self.values.push(value);
                self.count(level - 1);
                continue;
            }
            stacker::maybe_grow(64 << 10, 1 << 20, || self.read(&part, level + 1, call))?;
            let size = self.sizes.get_mut(level).map(std::mem::take);
            match self.expected.get_mut(level) {
                Some(known) if known.is_none_or(|known| Some(known) == size) => *known = size,
                _ => {
                    let message = "malformed JSON array";
                    let detail = "Multidimensional arrays must have sub-arrays with matching \
                                  dimensions.";
                    let error = SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message);
                    return Err(error.with_detail(detail));
                }
            }
            self.count(level - 1);
        }
        Ok(())
    }

    fn count(&mut self, dimension: usize) {
        self.sizes.get_mut(dimension).into_iter().for_each(|size| *size += 1);
    }

    /// The error for something that is no array, at these subscripts.
    fn no_array(&self, levels: usize) -> SqlError {
        let places: String = self.sizes.iter().take(levels).map(|at| format!("[{at}]")).collect();
        let key = self.name.map(|name| String::from_utf8_lossy(name));
        let error = SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "expected JSON array");
        match (places.is_empty(), key) {
            (true, Some(key)) => error.with_hint(format!("See the value of key \"{key}\".")),
            (false, Some(key)) => {
                error.with_hint(format!("See the array element {places} of key \"{key}\"."))
            }
            (false, None) => error.with_hint(format!("See the array element {places}.")),
            (true, None) => error,
        }
    }
}
