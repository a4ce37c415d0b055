//! Which columns a scan decodes, and where they are in a row.
//!
//! A statement names the columns of one table. Its partitions and children may have the same columns
//! in another order, and dropped ones in between, so columns are matched by name for each table.

use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use trunkline_engine::catalog::{CatalogError, ColumnInfo, Database, RelationInfo};
use trunkline_format::Oid;
use trunkline_format::catalog::Generated;
use trunkline_format::deform::Attribute;
use trunkline_format::varlena::Varlena;
use trunkline_sql::bound::TableColumn;
use trunkline_sql::values::Carrier;
use trunkline_sql::{SqlError, SqlState};

use super::text_encoding::TextEncoding;
use crate::access_path::FilterColumn;
use crate::environment::Environment;

/// The name of the column with the numbers of keys.
pub(super) const KEY_NUMBER: &str = "key number";

/// A column that every table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SystemColumn {
    Ctid,
    Xmin,
    Xmax,
    /// `cmin` and `cmax` share a field.
    Command,
    TableOid,
    /// No column of the table: [`HeapRow::entry`](trunkline_engine::heap::HeapRow::entry).
    KeyNumber,
}

/// Where the values of a column come from.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// A stored column: its place in [`ScanColumns::stored`], and the value of rows that are older
    /// than it.
    Stored {
        place: usize,
        missing: Option<Box<[u8]>>,
    },
    System(SystemColumn),
}

/// A column that a scan decodes.
#[derive(Debug, Clone)]
pub(super) struct Decoded {
    pub(super) name: String,
    pub(super) source: Source,
    pub(super) carrier: Carrier,
    /// Values have a varlena header.
    pub(super) has_header: bool,
    /// Values are text in the encoding of the database.
    pub(super) is_text: bool,
}

/// The columns of a table that a scan decodes.
#[derive(Debug, Clone)]
pub(crate) struct ScanColumns {
    /// The layout of a row, dropped columns included.
    pub(super) stored: Vec<Attribute>,
    pub(super) decoded: Vec<Decoded>,
    pub(super) encoding: TextEncoding,
    pub(super) table: Oid,
}

impl ScanColumns {
    /// The columns of `relation` that stand for `columns` of `parent`, which is the same table or one
    /// that it inherits from.
    ///
    /// # Errors
    /// 0A000: a column can't be decoded. XX000: the catalogs contradict each other.
    pub(crate) fn new(
        environment: &Environment,
        database: &Database,
        parent: &RelationInfo,
        relation: &RelationInfo,
        columns: &[TableColumn],
    ) -> Result<Self, SqlError> {
        let parent_columns = database.columns(parent).map_err(|error| catalog_error(&error))?;
        let own_columns = database.columns(relation).map_err(|error| catalog_error(&error))?;
        let decoded = columns.iter().map(|column| {
            if column.number < 0 {
                return system_column(column.number);
            }
            let number = usize::try_from(column.number).unwrap_or_default();
            if number == 0 {
                let message = "a whole-row reference is not supported by trunkline";
                return Err(SqlError::unsupported(message));
            }
            let place = place_of((parent, parent_columns), (relation, own_columns), number)?;
            let own = own_columns.get(place).ok_or_else(|| missing_column(relation, number))?;
            stored_column(environment, own, place)
        });
        Ok(Self {
            decoded: decoded.collect::<Result<_, _>>()?,
            stored: own_columns.iter().map(|column| column.attribute).collect(),
            encoding: TextEncoding::new(database.info().encoding)?,
            table: relation.oid,
        })
    }

    /// The schema of a batch of these columns under these names.
    pub(crate) fn schema(&self, names: &[String]) -> SchemaRef {
        let fields = names.iter().zip(&self.decoded);
        // Nothing is declared NOT NULL, because rows of outer joins pass through the same schema.
        let fields =
            fields.map(|(name, column)| Field::new(name, column.carrier.data_type(), true));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// A decoded column, as filters know it; `None` for a system column, which no index has.
    pub(crate) fn filter_column(&self, at: usize) -> Option<FilterColumn> {
        let decoded = self.decoded.get(at)?;
        match decoded.source {
            Source::Stored { place, .. } => Some(FilterColumn { place, carrier: decoded.carrier }),
            Source::System(_) => None,
        }
    }

    /// Whether a decoded column may have TOAST values.
    pub(super) fn has_varlena(&self) -> bool {
        self.decoded.iter().any(|column| column.has_header)
    }

    /// The estimated bytes of a row. As in PostgreSQL, a value of variable length counts 32.
    pub(super) fn width(&self) -> f64 {
        let widths = self.stored.iter().map(|column| match column.len {
            len if len > 0 => f64::from(len),
            _ => 32.0,
        });
        widths.sum()
    }

    /// The same columns, and behind them the number of the key that has led to each row.
    pub(super) fn with_key_number(&self) -> Self {
        let mut columns = self.clone();
        columns.decoded.push(Decoded {
            name: KEY_NUMBER.to_owned(),
            source: Source::System(SystemColumn::KeyNumber),
            carrier: Carrier::UInt32,
            has_header: false,
            is_text: false,
        });
        columns
    }

    /// The places of the stored columns; `None` if a system column is decoded, too, that only the
    /// rows themselves have.
    pub(super) fn stored_places(&self) -> Option<Vec<usize>> {
        let mut places = Vec::new();
        for column in &self.decoded {
            match column.source {
                Source::Stored { place, .. } => places.push(place),
                Source::System(SystemColumn::TableOid) => {}
                Source::System(_) => return None,
            }
        }
        Some(places)
    }

    /// Only these columns, in this order.
    pub(super) fn select(&self, places: &[usize]) -> Self {
        let decoded = places.iter().filter_map(|&place| self.decoded.get(place).cloned());
        Self { decoded: decoded.collect(), ..self.clone() }
    }
}

/// The place of column `number` of `parent` among the columns of `relation`, which is the same table or
/// one that inherits from it.
fn place_of(
    (parent, parent_columns): (&RelationInfo, &[ColumnInfo]),
    (relation, own_columns): (&RelationInfo, &[ColumnInfo]),
    number: usize,
) -> Result<usize, SqlError> {
    let place = number.wrapping_sub(1);
    let wanted = parent_columns.get(place).ok_or_else(|| missing_column(parent, number))?;
    if parent.oid == relation.oid {
        return Ok(place);
    }
    let same = |own: &ColumnInfo| !own.dropped && own.name == wanted.name;
    own_columns.iter().position(same).ok_or_else(|| missing_column(relation, number))
}

/// The places of `columns` of `parent` in `relation`, before anything is decoded. `None` if one of them
/// is a system column that only the rows themselves have, or is missing, which the scan will report.
pub(crate) fn stored_places(
    database: &Database,
    parent: &RelationInfo,
    relation: &RelationInfo,
    columns: &[TableColumn],
) -> Option<Vec<usize>> {
    let parent_columns = (parent, database.columns(parent).ok()?);
    let own_columns = (relation, database.columns(relation).ok()?);
    let stored = columns.iter().filter(|column| column.number != TABLE_OID);
    let places = stored.map(|column| {
        let number = usize::try_from(column.number).ok()?;
        place_of(parent_columns, own_columns, number).ok()
    });
    places.collect()
}

/// The number of the system column `tableoid`.
const TABLE_OID: i16 = -6;

fn stored_column(
    environment: &Environment,
    column: &ColumnInfo,
    place: usize,
) -> Result<Decoded, SqlError> {
    let name = String::from_utf8_lossy(&column.name).into_owned();
    if column.generated == Generated::Virtual {
        let message =
            format!("the virtual generated column \"{name}\" is not supported by trunkline");
        return Err(SqlError::unsupported(message));
    }
    let carrier = environment.carrier(column.type_oid)?;
    let has_header = column.attribute.len == -1;
    let missing = match &column.missing {
        Some(datum) if has_header => {
            let mut room = Vec::new();
            let payload = Varlena::parse(datum).and_then(|value| value.payload(&mut room));
            let payload = payload.map_err(|error| SqlError::internal(error.to_string()))?;
            Some(payload.into())
        }
        other => other.clone(),
    };
    let is_text = matches!(carrier, Carrier::Text | Carrier::Name);
    Ok(Decoded { name, source: Source::Stored { place, missing }, carrier, has_header, is_text })
}

/// A column by its negative number in `access/sysattr.h`.
fn system_column(number: i16) -> Result<Decoded, SqlError> {
    let (name, column, carrier) = match number {
        -1 => ("ctid", SystemColumn::Ctid, Carrier::Tid),
        -2 => ("xmin", SystemColumn::Xmin, Carrier::UInt32),
        -3 => ("cmin", SystemColumn::Command, Carrier::UInt32),
        -4 => ("xmax", SystemColumn::Xmax, Carrier::UInt32),
        -5 => ("cmax", SystemColumn::Command, Carrier::UInt32),
        TABLE_OID => ("tableoid", SystemColumn::TableOid, Carrier::UInt32),
        _ => return Err(SqlError::internal(format!("there is no system column {number}"))),
    };
    let (has_header, is_text, source) = (false, false, Source::System(column));
    Ok(Decoded { name: name.to_owned(), source, carrier, has_header, is_text })
}

/// A damaged or unsupported catalog entry.
pub(crate) fn catalog_error(error: &CatalogError) -> SqlError {
    let code = match error {
        CatalogError::NotReadable { .. } => SqlState::WRONG_OBJECT_TYPE,
        _ => SqlState::DATA_CORRUPTED,
    };
    SqlError::new(code, error.to_string())
}

fn missing_column(relation: &RelationInfo, number: usize) -> SqlError {
    let name = relation.quoted_name();
    SqlError::internal(format!("column {number} of relation {name} does not exist"))
}
