//! **Keys of values with parts**: bytes that compare as PostgreSQL compares rows, ranges, enums and
//! arrays of them.
//!
//! ```text
//!   row         for each column: 01 and its key, or 02 if it is null
//!   range       00 if it is empty; otherwise 01, then the bounds
//!   bound       lower: 00 if infinite, or 01, the key, whether it is exclusive
//!               upper: 01, the key, whether it is inclusive, or 02 if infinite
//!   multirange  01 and its key for each range; 00
//!   enum        its place among the labels
//! ```
//!
//! No key is the beginning of another one of the same type, so the first part that differs decides.

use trunkline_aio::facade::hash::{Map, Set};
use trunkline_format::Oid;
use trunkline_format::text_output::{
    Base, RECORD, RangeBounds, Record, RecordColumn, RowTypes, StringType, Type, multirange_bounds,
    range_bounds, record_columns, row_fields,
};

use crate::error::{SqlError, SqlState};
use crate::functions::array::{ArrayView, append_array_end, append_base_key, attribute_of};
use crate::functions::call::CallSettings;
use crate::functions::json::append_jsonb_key;
use crate::functions::printing::{damaged, resolve};
use crate::values::OrderKey;

/// The collation `default`, in which parts are compared unless their column has another one.
const DEFAULT_COLLATION: Oid = Oid(100);

/// The type of a literal in `ROW('a')`.
const UNKNOWN: Oid = Oid(705);

/// Makes keys of values of any type that can be compared.
pub struct ValueKeys<'a> {
    settings: &'a CallSettings,
    /// The keys must sort; otherwise they must only be equal for equal values.
    order: bool,
    rows: RowTypes,
    ranks: Map<Oid, Map<Oid, u32>>,
    elements: Map<Oid, Type>,
    /// Composite types whose columns have collations that we can compare in.
    checked: Set<Oid>,
}

impl<'a> ValueKeys<'a> {
    /// Makes keys for sorting if `order` is true, otherwise only for equality.
    pub fn new(settings: &'a CallSettings, order: bool) -> Self {
        Self {
            settings,
            order,
            rows: RowTypes::default(),
            ranks: Map::default(),
            elements: Map::default(),
            checked: Set::default(),
        }
    }

    /// Appends the key of a value.
    ///
    /// # Errors
    /// 0A000: we can't compare it. 42883: its type has no order. XX001: the value is damaged.
    pub fn append(
        &mut self,
        ty: &Type,
        value: &[u8],
        collation: Oid,
        key: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        stacker::maybe_grow(64 << 10, 1 << 20, || match ty {
            Type::Base(Base::Jsonb) => {
                self.check_collation(DEFAULT_COLLATION)?;
                append_jsonb_key(value, key)
            }
            Type::Base(Base::Record) | Type::Composite(_) => self.append_row(value, key),
            Type::Base(base) => self.append_base(*base, value, collation, key),
            Type::Enum(oid, _) => {
                let rank = self.rank(*oid, value)?;
                key.extend(rank.to_be_bytes());
                Ok(())
            }
            Type::Array(_) => self.append_array(value, collation, key),
            Type::Range(bounds) => {
                let range = range_bounds(value, bounds).map_err(damaged)?;
                self.append_range(range, bounds.subtype(), key)
            }
            Type::Multirange(oid, bounds) => {
                for range in multirange_bounds(value, *oid, bounds).map_err(damaged)? {
                    key.push(1);
                    self.append_range(Some(range), bounds.subtype(), key)?;
                }
                key.push(0);
                Ok(())
            }
        })
    }

    fn append_base(
        &mut self,
        base: Base,
        value: &[u8],
        collation: Oid,
        key: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        if matches!(base, Base::Text(_) | Base::Name) {
            self.check_collation(if base == Base::Name { Oid(950) } else { collation })?;
        }
        let is_known = match base {
            Base::Text(StringType::Json | StringType::NodeTree) | Base::Xml => false,
            Base::U32("xid" | "cid") if self.order => false,
            base => OrderKey::of(&Type::Base(base)).is_some(),
        };
        if !is_known {
            return Err(self.no_function(type_name(base)));
        }
        append_base_key(base, value, key)
    }

    /// Text must be equal only if its bytes are, and for sorting, in the order of its bytes.
    fn check_collation(&self, collation: Oid) -> Result<(), SqlError> {
        let collation = if collation == Oid(0) { DEFAULT_COLLATION } else { collation };
        let found = self.settings.collations.get(&collation);
        let suits = match self.order {
            true => found.is_some_and(|found| found.orders_by_bytes()),
            false => found.is_some_and(|found| found.is_deterministic()),
        };
        if suits {
            return Ok(());
        }
        let message = "comparing parts of values by a locale is not supported by trunkline";
        Err(SqlError::unsupported(message))
    }

    fn rank(&mut self, oid: Oid, value: &[u8]) -> Result<u32, SqlError> {
        let label = value.first_chunk().map(|bytes| Oid(u32::from_le_bytes(*bytes)));
        let settings = self.settings;
        let ranks = self.ranks.entry(oid).or_insert_with(|| {
            let labels = settings.catalog.enum_labels(oid);
            (0..).zip(labels).map(|(rank, (label, _))| (label, rank)).collect()
        });
        let rank = label.and_then(|label| ranks.get(&label).copied());
        rank.ok_or_else(|| SqlError::new(SqlState::DATA_CORRUPTED, "enum: an unknown label"))
    }

    fn append_row(&mut self, value: &[u8], key: &mut Vec<u8>) -> Result<(), SqlError> {
        let record = self.rows.of(value, &*self.settings.catalog).map_err(damaged)?;
        let columns = record_columns(value).map_err(damaged)?;
        self.check_columns(&record, &columns)?;
        for field in row_fields(value, &record).map_err(damaged)? {
            self.check_known(field.oid)?;
            match field.value {
                None => key.push(2),
                Some(value) => {
                    key.push(1);
                    self.append(field.ty, &value, DEFAULT_COLLATION, key)?;
                }
            }
        }
        Ok(())
    }

    /// A literal without a type can't be compared.
    pub(super) fn check_known(&self, oid: Oid) -> Result<(), SqlError> {
        match oid {
            UNKNOWN => Err(self.no_function("unknown")),
            _ => Ok(()),
        }
    }

    fn no_function(&self, type_name: &str) -> SqlError {
        let what = if self.order { "a comparison function" } else { "an equality operator" };
        let message = format!("could not identify {what} for type {type_name}");
        SqlError::new(SqlState::UNDEFINED_FUNCTION, message)
    }

    /// The columns of a row may have collations of their own.
    pub(super) fn check_columns(
        &mut self,
        record: &Record,
        columns: &[RecordColumn],
    ) -> Result<(), SqlError> {
        if record.oid() == RECORD {
            let own = columns.iter().filter(|column| column.collation != Oid(0));
            return own
                .map(|column| column.collation)
                .try_for_each(|own| self.check_collation(own));
        }
        if !self.checked.insert(record.oid()) {
            return Ok(());
        }
        let catalog = &self.settings.session()?.catalog;
        let database = catalog.database();
        let found = catalog.row_relation(record.oid()).and_then(|oid| database.relation(oid));
        let Some(Ok(infos)) = found.map(|relation| database.columns(relation)) else {
            return Ok(());
        };
        let own = infos.iter().filter(|info| !info.dropped && info.collation != Oid(0));
        own.map(|info| info.collation).try_for_each(|own| self.check_collation(own))
    }

    fn append_array(
        &mut self,
        value: &[u8],
        collation: Oid,
        key: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        let view = ArrayView::parse(value)?;
        let oid = view.element();
        let ty = match self.elements.get(&oid) {
            Some(ty) => ty.clone(),
            None => {
                let ty = resolve(oid, self.settings)?;
                self.elements.insert(oid, ty.clone());
                ty
            }
        };
        for element in view.elements(attribute_of(oid, &*self.settings.catalog)?)? {
            match element {
                None => key.push(2),
                Some(value) => {
                    key.push(1);
                    self.append(&ty, &value, collation, key)?;
                }
            }
        }
        append_array_end(&view, key);
        Ok(())
    }

    fn append_range(
        &mut self,
        range: Option<RangeBounds>,
        subtype: &Type,
        key: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        let Some(range) = range else {
            key.push(0);
            return Ok(());
        };
        key.push(1);
        match range.lower {
            None => key.push(0),
            Some((value, inclusive)) => {
                key.push(1);
                self.append(subtype, &value, DEFAULT_COLLATION, key)?;
                key.push(u8::from(!inclusive));
            }
        }
        match range.upper {
            None => key.push(2),
            Some((value, inclusive)) => {
                key.push(1);
                self.append(subtype, &value, DEFAULT_COLLATION, key)?;
                key.push(u8::from(inclusive));
            }
        }
        Ok(())
    }
}

/// The names of types that have no equality, for messages.
fn type_name(base: Base) -> &'static str {
    match base {
        Base::Text(StringType::Json) => "json",
        Base::Text(StringType::NodeTree) => "pg_node_tree",
        Base::Xml => "xml",
        Base::Jsonpath => "jsonpath",
        Base::U32(name) | Base::Points(name) => name,
        Base::Path => "path",
        Base::Polygon => "polygon",
        Base::Aclitem => "aclitem",
        _ => "of this kind",
    }
}
