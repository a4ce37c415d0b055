//! Rows as values: what columns a composite value has, which its header says.
//!
//! A value of a composite type names that type. A value of the type `record` that `ROW(…)` makes has
//! no such type, so we store a description of its columns behind it. The server keeps descriptions in a
//! registry of each session instead. In both cases the header has room for the place: what would be the
//! row's block number is the description's offset.
//!
//! ```text
//!   header │ values │ for each column: u32 type, u32 collation, u16 length of the name, name
//! ```

use super::base::{Base, StringType};
use super::catalog::TypeCatalog;
use super::description::{Field, Part, Record, Type};
use super::error::{UnsupportedType, ValueError};
use super::parts::CompositeParts;
use super::reader::Reader;
use crate::align::Align;
use crate::deform::Attribute;
use crate::ids::Oid;
use std::sync::Arc;

/// `record`.
pub const RECORD: Oid = Oid(2249);
/// `unknown`, the type of a literal in `ROW('a')`.
const UNKNOWN: Oid = Oid(705);

/// Where the header has the type, and the offset of the description; both count the varlena header.
const TYPE_AT: usize = 8;

/// A column of an anonymous record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordColumn {
    /// Its type.
    pub oid: Oid,
    /// Its collation; 0 if there is none.
    pub collation: Oid,
    /// Its name.
    pub name: Vec<u8>,
}

/// A column of a row with its value.
#[derive(Debug)]
pub struct RecordField<'a> {
    /// `attnum`.
    pub number: i16,
    /// The type's OID: the domain's own if the type is a domain.
    pub oid: Oid,
    /// The type.
    pub ty: &'a Type,
    /// The value in storage form; `None` if it is null.
    pub value: Option<Vec<u8>>,
}

impl Record {
    /// The type of rows with these columns, which is no type of the catalog.
    ///
    /// # Errors
    /// [`UnsupportedType`] if values of a column can't be printed.
    pub fn anonymous(
        columns: &[RecordColumn],
        catalog: &dyn TypeCatalog,
    ) -> Result<Self, UnsupportedType> {
        let field = |column: &RecordColumn| {
            let modifier = -1;
            if column.oid == UNKNOWN {
                let attribute = Attribute { len: -1, align: Align::Int };
                let ty = Some(Type::Base(Base::Text(StringType::Text)));
                return Ok(Field { attribute, ty, oid: column.oid, modifier, domain: false });
            }
            let Part { ty, oid, attribute, domain, .. } = Part::resolve(column.oid, catalog)?;
            Ok(Field { attribute, ty: Some(ty), oid, modifier, domain })
        };
        let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
        Ok(Self { oid: RECORD, fields })
    }

    /// The type's OID.
    pub fn oid(&self) -> Oid {
        self.oid
    }
}

/// The type that the header of a row names: `record`, or a composite type.
///
/// # Errors
/// The value is too short.
pub fn row_type(value: &[u8]) -> Result<Oid, ValueError> {
    let mut reader = Reader::new("record", value);
    reader.seek(TYPE_AT)?;
    reader.read::<u32>().map(Oid)
}

/// The columns of an anonymous record; none for a value of a composite type.
///
/// # Errors
/// The value is damaged.
pub fn record_columns(value: &[u8]) -> Result<Vec<RecordColumn>, ValueError> {
    let mut reader = Reader::new("record", value);
    reader.seek(TYPE_AT)?;
    if Oid(reader.read::<u32>()?) != RECORD {
        return Ok(Vec::new());
    }
    let offset = reader.read::<u32>()? as usize;
    reader.seek(offset)?;
    let mut columns = Vec::new();
    while !reader.rest().is_empty() {
        let (oid, collation) = (Oid(reader.read()?), Oid(reader.read()?));
        let length = usize::from(reader.read::<u16>()?);
        let name = reader.take(length)?.to_vec();
        columns.push(RecordColumn { oid, collation, name });
    }
    Ok(columns)
}

/// Appends the description of an anonymous record whose header and values are in `out` from `start`.
pub(crate) fn append_columns(columns: &[RecordColumn], start: usize, out: &mut Vec<u8>) {
    let offset = (out.len() - start + crate::varlena::HEADER) as u32;
    let place = start + TYPE_AT + 4 - crate::varlena::HEADER;
    if let Some(place) = out.get_mut(place..place + 4) {
        place.copy_from_slice(&offset.to_le_bytes());
    }
    for column in columns {
        out.extend(column.oid.0.to_le_bytes());
        out.extend(column.collation.0.to_le_bytes());
        // A name has at most 63 bytes.
        out.extend((column.name.len() as u16).to_le_bytes());
        out.extend_from_slice(&column.name);
    }
}

/// Resolves the types of rows. Rows of one column mostly have the same type, so the last one is kept.
#[derive(Debug, Default)]
pub struct RowTypes {
    last: Option<(Oid, Vec<RecordColumn>, Arc<Record>)>,
}

impl RowTypes {
    /// The type of a row.
    ///
    /// # Errors
    /// The value is damaged, or the catalog doesn't have its type.
    pub fn of(
        &mut self,
        value: &[u8],
        catalog: &dyn TypeCatalog,
    ) -> Result<Arc<Record>, ValueError> {
        let (oid, columns) = (row_type(value)?, record_columns(value)?);
        if let Some((last, known, record)) = &self.last
            && *last == oid
            && *known == columns
        {
            return Ok(Arc::clone(record));
        }
        let record = match oid {
            RECORD => Arc::new(Record::anonymous(&columns, catalog)?),
            oid => match Type::resolve(oid, catalog)? {
                Type::Composite(record) => record,
                _ => {
                    let (type_name, what) = ("record", "of a type that is not composite");
                    return Err(ValueError::Malformed { type_name, what });
                }
            },
        };
        self.last = Some((oid, columns, Arc::clone(&record)));
        Ok(record)
    }
}

/// The columns of a row and their values, without dropped columns.
///
/// # Errors
/// The value is damaged, or of another type.
pub fn row_fields<'a>(
    value: &[u8],
    record: &'a Record,
) -> Result<Vec<RecordField<'a>>, ValueError> {
    let mut parts = CompositeParts::parse(value, record.fields.len())?;
    let (mut room, mut fields) = (Vec::new(), Vec::with_capacity(record.fields.len()));
    for (number, field) in (1..).zip(&record.fields) {
        let value = parts.next(field.attribute, &mut room)?.map(<[u8]>::to_vec);
        if let Some(ty) = &field.ty {
            fields.push(RecordField { number, oid: field.oid, ty, value });
        }
    }
    Ok(fields)
}
