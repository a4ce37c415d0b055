//! Resolves a type's OID into a description that prints its values without further look-ups.
//!
//! A domain is replaced with its base type. An array type contains its resolved element type, and a
//! composite type contains the resolved types of its columns. In a damaged catalog, a type could
//! contain itself, so we limit both the nesting depth and the total number of types.

use super::base::Base;
use super::catalog::{ColumnRow, TypeCatalog};
use super::description::{Bounds, Field, Part, Record, Type};
use super::error::{UnsupportedReason, UnsupportedType};
use crate::catalog::TypeRow;
use crate::deform::Attribute;
use crate::ids::Oid;
use std::sync::Arc;

/// Maximum nesting depth. An array of composites that contain an array has depth three.
pub const DEPTH_MAX: u32 = 32;
/// Maximum number of types within a type. A type that occurs twice is counted twice.
pub const PARTS_MAX: u32 = 100_000;

/// `record`.
const RECORD: Oid = Oid(2249);

/// `FirstNormalObjectId`: lower OIDs belong to objects that initdb created.
pub const FIRST_USER_OID: u32 = 16_384;

impl Type {
    /// Resolves the type with the given OID. We don't need the type modifier, because it has
    /// already been applied to every stored value.
    ///
    /// # Errors
    ///
    /// [`UnsupportedType`] if this type, or a type it contains, cannot be printed.
    pub fn resolve(oid: Oid, catalog: &dyn TypeCatalog) -> Result<Self, UnsupportedType> {
        Part::resolve(oid, catalog).map(|part| part.ty)
    }
}

impl Part {
    /// Resolves the type with this OID, and records how its values are stored within others.
    pub(crate) fn resolve(oid: Oid, catalog: &dyn TypeCatalog) -> Result<Self, UnsupportedType> {
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
        let attribute = Attribute { len: row.len, align: row.align };
        let (delimiter, domain) = (row.delimiter, row.kind == b'd');
        let ty = match self.left.checked_sub(1) {
            Some(left) if depth < DEPTH_MAX => {
                self.left = left;
                self.resolve(row, depth + 1)?
            }
            _ => return Err(refuse(&row, UnsupportedReason::TooComplex)),
        };
        Ok(Part { ty, oid, attribute, delimiter, domain })
    }

    fn resolve(&mut self, row: TypeRow, depth: u32) -> Result<Type, UnsupportedType> {
        let oid = row.oid;
        if let Some(base) = Base::from_oid(oid) {
            return Ok(Type::Base(base));
        }
        match row.kind {
            // An array of records, which is no base type.
            b'p' if row.element == RECORD => Ok(Type::Array(Arc::new(self.part(RECORD, depth)?))),
            b'b' if row.is_array() => Ok(Type::Array(Arc::new(self.part(row.element, depth)?))),
            b'd' => self.part(row.base, depth).map(|part| part.ty),
            b'e' => {
                let mut labels = self.catalog.enum_labels(oid);
                labels.sort();
                Ok(Type::Enum(oid, labels.into()))
            }
            b'c' => {
                let broken = || refuse(&row, UnsupportedReason::BrokenCatalog);
                let columns = self.catalog.columns(row.relation).ok_or_else(broken)?;
                let resolve = |column: ColumnRow| {
                    let ColumnRow { type_oid, modifier, attribute, dropped } = column;
                    let part = (!dropped).then(|| self.part(type_oid, depth)).transpose()?;
                    let domain = part.as_ref().is_some_and(|part| part.domain);
                    let ty = part.map(|part| part.ty);
                    Ok(Field { attribute, ty, oid: type_oid, modifier, domain })
                };
                let fields = columns.into_iter().map(resolve).collect::<Result<_, _>>()?;
                Ok(Type::Composite(Arc::new(Record { oid, fields })))
            }
            b'r' => Ok(Type::Range(self.range(&row, oid, depth)?)),
            b'm' => {
                let range = self.catalog.multirange_range(oid);
                let range = range.ok_or_else(|| refuse(&row, UnsupportedReason::BrokenCatalog))?;
                Ok(Type::Multirange(oid, self.range(&row, range, depth)?))
            }
            b'b' if oid.0 >= FIRST_USER_OID => {
                let base = self.printed_as(&row).map(Type::Base);
                base.ok_or_else(|| refuse(&row, UnsupportedReason::NotBuiltIn))
            }
            _ => Err(refuse(&row, UnsupportedReason::NotStored)),
        }
    }

    /// Returns a built-in type that has the same output function. We only accept it if its values
    /// have the same length, because the function expects values of that length. With any other
    /// values, even a server would print garbage.
    fn printed_as(&self, row: &TypeRow) -> Option<Base> {
        let like = self.catalog.type_row(self.catalog.printed_as(row.oid)?)?;
        Base::from_oid(like.oid).filter(|_| like.len == row.len)
    }

    /// The bounds of the range type `range`. Errors report the type in `row`.
    fn range(
        &mut self,
        row: &TypeRow,
        range: Oid,
        depth: u32,
    ) -> Result<Arc<Bounds>, UnsupportedType> {
        let subtype = self.catalog.range_subtype(range);
        let subtype = subtype.ok_or_else(|| refuse(row, UnsupportedReason::BrokenCatalog))?;
        Ok(Arc::new(Bounds { oid: range, bound: self.part(subtype, depth)? }))
    }
}

fn refuse(row: &TypeRow, reason: UnsupportedReason) -> UnsupportedType {
    let name = String::from_utf8_lossy(&row.name).into_owned();
    UnsupportedType { oid: row.oid, name, reason }
}
