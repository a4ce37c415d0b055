//! Resolves a type's OID into a description that prints its values without further look-ups.
//!
//! Domains are replaced by their base type. Arrays contain their element type, and composites their
//! columns. A damaged catalog could define a type that contains itself, so we limit both the
//! nesting depth and the number of parts.

use super::catalog::{ObjectClass, TypeCatalog};
use super::compound::{Bounds, Columns, Part};
use super::error::{UnsupportedReason, UnsupportedType};
use super::reader::Layout;
use super::reg_types::RegType;
use crate::catalog::TypeRow;
use crate::ids::Oid;
use std::sync::Arc;

/// Maximum nesting depth. An array of composites that contain an array has depth three.
pub const DEPTH_MAX: u32 = 32;
/// Maximum number of types within a type. A type that occurs twice is counted twice.
pub const PARTS_MAX: u32 = 100_000;

/// OID of `array_out`, the output function that identifies an array type.
const ARRAY_OUT: Oid = Oid(751);
/// `FirstNormalObjectId`: lower OIDs belong to objects that initdb created.
const FIRST_USER_OID: u32 = 16_384;

/// A resolved type. It holds everything needed to print a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// A built-in type without parts.
    Base(Base),
    /// An enum, with its labels sorted by OID.
    Enum(Arc<[(Oid, Vec<u8>)]>),
    /// An array with any number of dimensions.
    Array(Arc<Element>),
    /// A composite type, or the rows of a table.
    Composite(Arc<Record>),
    /// A range.
    Range(Arc<Interval>),
    /// A multirange: its OID and its range type.
    Multirange(Oid, Arc<Interval>),
}

/// An array's element type.
#[derive(Debug, PartialEq)]
pub struct Element(Part);

impl Element {
    pub(super) fn part(&self) -> &Part {
        &self.0
    }

    /// The element type.
    pub fn ty(&self) -> &Type {
        &self.0.ty
    }
}

/// The columns of a composite type.
#[derive(Debug, PartialEq)]
pub struct Record(Columns);

impl Record {
    pub(super) fn columns(&self) -> &Columns {
        &self.0
    }

    /// The types of the columns, in order, without dropped columns.
    pub fn types(&self) -> impl Iterator<Item = &Type> {
        self.0.0.iter().filter_map(|(_, ty)| ty.as_ref())
    }
}

/// The type of a range's bounds.
#[derive(Debug, PartialEq)]
pub struct Interval(Arc<Bounds>);

impl Interval {
    pub(super) fn bounds(&self) -> &Arc<Bounds> {
        &self.0
    }

    /// The type of the bounds.
    pub fn ty(&self) -> &Type {
        &self.0.bound.ty
    }
}

/// A built-in type without parts. If a variant holds a string, it is the type name for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the types")]
pub enum Base {
    Bool,
    Char,
    Name,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Numeric,
    Money,
    /// Text, varchar, bpchar, json, refcursor, pg_node_tree: shown as stored.
    Text,
    Xml,
    /// Bytea and pg_mcv_list.
    Bytea,
    Date,
    Time,
    Timetz,
    Timestamp,
    Timestamptz,
    Interval,
    Uuid,
    /// Oid, xid, cid.
    U32(&'static str),
    /// Xid8, oid8.
    U64(&'static str),
    RegType(RegType),
    Tid,
    Lsn,
    /// Pg_snapshot and txid_snapshot.
    Snapshot,
    Inet,
    Cidr,
    Macaddr,
    Macaddr8,
    /// Bit and varbit.
    Bits(&'static str),
    Jsonb,
    Jsonpath,
    /// Point, lseg, box, line, circle.
    Points(&'static str),
    Path,
    Polygon,
    Tsvector,
    Tsquery,
    /// Int2vector and oidvector.
    Vector(&'static str),
    Aclitem,
    /// An array whose element type is recorded in its header only, as in pg_statistic.
    AnyArray,
    Ndistinct,
    Dependencies,
}

impl Base {
    /// The built-in type with this OID. `None` if it has parts or is not built in.
    pub fn from_oid(oid: Oid) -> Option<Self> {
        use ObjectClass as Class;
        Some(match oid.0 {
            16 => Self::Bool,
            17 | 5017 => Self::Bytea,
            18 => Self::Char,
            19 => Self::Name,
            20 => Self::Int8,
            21 => Self::Int2,
            22 => Self::Vector("int2vector"),
            23 => Self::Int4,
            24 => Self::RegType(RegType::Proc),
            25 | 114 | 194 | 1042 | 1043 | 1790 => Self::Text,
            26 => Self::U32("oid"),
            27 => Self::Tid,
            28 => Self::U32("xid"),
            29 => Self::U32("cid"),
            30 => Self::Vector("oidvector"),
            142 => Self::Xml,
            600 => Self::Points("point"),
            601 => Self::Points("lseg"),
            602 => Self::Path,
            603 => Self::Points("box"),
            604 => Self::Polygon,
            628 => Self::Points("line"),
            650 => Self::Cidr,
            700 => Self::Float4,
            701 => Self::Float8,
            718 => Self::Points("circle"),
            774 => Self::Macaddr8,
            790 => Self::Money,
            829 => Self::Macaddr,
            869 => Self::Inet,
            1033 => Self::Aclitem,
            1082 => Self::Date,
            1083 => Self::Time,
            1114 => Self::Timestamp,
            1184 => Self::Timestamptz,
            1186 => Self::Interval,
            1266 => Self::Timetz,
            1560 => Self::Bits("bit"),
            1562 => Self::Bits("varbit"),
            1700 => Self::Numeric,
            2202 => Self::RegType(RegType::Procedure),
            2203 => Self::RegType(RegType::Oper),
            2204 => Self::RegType(RegType::Operator),
            2205 => Self::RegType(RegType::Named(Class::Relation)),
            2206 => Self::RegType(RegType::Type),
            2277 => Self::AnyArray,
            2950 => Self::Uuid,
            2970 | 5038 => Self::Snapshot,
            3220 => Self::Lsn,
            3361 => Self::Ndistinct,
            3402 => Self::Dependencies,
            3614 => Self::Tsvector,
            3615 => Self::Tsquery,
            3734 => Self::RegType(RegType::Named(Class::TextSearchConfig)),
            3769 => Self::RegType(RegType::Named(Class::TextSearchDictionary)),
            3802 => Self::Jsonb,
            4072 => Self::Jsonpath,
            4089 => Self::RegType(RegType::Named(Class::Schema)),
            4096 => Self::RegType(RegType::Named(Class::Role)),
            4191 => Self::RegType(RegType::Named(Class::Collation)),
            5069 => Self::U64("xid8"),
            6437 => Self::U64("oid8"),
            6490 => Self::RegType(RegType::Named(Class::Database)),
            _ => return None,
        })
    }
}

impl Type {
    /// Resolves the type with this OID. The type modifier isn't needed, because a stored value
    /// already reflects it.
    ///
    /// # Errors
    ///
    /// [`UnsupportedType`] if this type, or a type it contains, cannot be printed.
    pub fn resolve(oid: Oid, catalog: &dyn TypeCatalog) -> Result<Self, UnsupportedType> {
        Part::resolve(oid, catalog).map(|part| part.ty)
    }

    /// Whether `test` returns true for this type or any type it contains.
    pub fn contains(&self, test: &dyn Fn(Base) -> bool) -> bool {
        match self {
            Self::Base(base) => test(*base),
            Self::Enum(_) => false,
            Self::Array(element) => element.ty().contains(test),
            Self::Composite(record) => record.types().any(|ty| ty.contains(test)),
            Self::Range(range) | Self::Multirange(_, range) => range.ty().contains(test),
        }
    }
}

impl Part {
    /// Resolves the type with this OID, and records how its values are stored within others.
    pub(super) fn resolve(oid: Oid, catalog: &dyn TypeCatalog) -> Result<Self, UnsupportedType> {
        Resolver { catalog, left: PARTS_MAX }.part(oid, 0)
    }
}

/// Resolves one type.
struct Resolver<'a> {
    catalog: &'a dyn TypeCatalog,
    /// How many more types may still be resolved.
    left: u32,
}

impl Resolver<'_> {
    fn part(&mut self, oid: Oid, depth: u32) -> Result<Part, UnsupportedType> {
        let unknown = UnsupportedReason::Unknown;
        let row = self.catalog.type_row(oid);
        let row = row.ok_or(UnsupportedType { oid, name: String::new(), reason: unknown })?;
        let layout = Layout { len: row.len, align: row.align };
        let delimiter = row.delimiter;
        let ty = match self.left.checked_sub(1) {
            Some(left) if depth < DEPTH_MAX => {
                self.left = left;
                self.resolve(row, depth + 1)?
            }
            _ => return Err(refuse(&row, UnsupportedReason::TooComplex)),
        };
        Ok(Part { ty, oid, layout, delimiter })
    }

    fn resolve(&mut self, row: TypeRow, depth: u32) -> Result<Type, UnsupportedType> {
        let oid = row.oid;
        if let Some(base) = Base::from_oid(oid) {
            return Ok(Type::Base(base));
        }
        match row.kind {
            b'b' if row.len == -1 && row.output == ARRAY_OUT && row.element != Oid(0) => {
                Ok(Type::Array(Arc::new(Element(self.part(row.element, depth)?))))
            }
            b'd' => self.part(row.base, depth).map(|part| part.ty),
            b'e' => {
                let mut labels = self.catalog.enum_labels(oid);
                labels.sort();
                Ok(Type::Enum(labels.into()))
            }
            b'c' => {
                let broken = || refuse(&row, UnsupportedReason::BrokenCatalog);
                let columns = self.catalog.columns(row.relation).ok_or_else(broken)?;
                let mut resolved = Vec::with_capacity(columns.len());
                for column in columns {
                    let layout = Layout { len: column.len, align: column.align };
                    let ty = match column.dropped {
                        true => None,
                        false => Some(self.part(column.type_oid, depth)?.ty),
                    };
                    resolved.push((layout, ty));
                }
                Ok(Type::Composite(Arc::new(Record(Columns(resolved)))))
            }
            b'r' => Ok(Type::Range(self.range(&row, oid, depth)?)),
            b'm' => {
                let range = self.catalog.multirange_range(oid);
                let range = range.ok_or_else(|| refuse(&row, UnsupportedReason::BrokenCatalog))?;
                Ok(Type::Multirange(oid, self.range(&row, range, depth)?))
            }
            b'b' if oid.0 >= FIRST_USER_OID => Err(refuse(&row, UnsupportedReason::NotBuiltIn)),
            _ => Err(refuse(&row, UnsupportedReason::NotStored)),
        }
    }

    /// The bounds of the range type `range`. Errors report the type in `row`.
    fn range(
        &mut self,
        row: &TypeRow,
        range: Oid,
        depth: u32,
    ) -> Result<Arc<Interval>, UnsupportedType> {
        let subtype = self.catalog.range_subtype(range);
        let subtype = subtype.ok_or_else(|| refuse(row, UnsupportedReason::BrokenCatalog))?;
        let bound = self.part(subtype, depth)?;
        Ok(Arc::new(Interval(Arc::new(Bounds { oid: range, bound }))))
    }
}

fn refuse(row: &TypeRow, reason: UnsupportedReason) -> UnsupportedType {
    let name = String::from_utf8_lossy(&row.name).into_owned();
    UnsupportedType { oid: row.oid, name, reason }
}
