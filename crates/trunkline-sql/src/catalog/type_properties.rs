//! What kind of type a type is, and which types it is made of.
//!
//! All functions take OIDs, and treat an OID without a type as a type without any property. They
//! mirror PostgreSQL's `lsyscache.c` and, for [`SqlCatalog::is_binary_coercible`], `parse_coerce.c`.

use trunkline_format::Oid;

use super::oids;
use super::sql_catalog::SqlCatalog;

/// `F_RAW_ARRAY_SUBSCRIPT_HANDLER`: the `typsubscript` of `point` and its like.
const RAW_SUBSCRIPT_HANDLER: Oid = Oid(6180);

/// `F_ARRAY_SUBSCRIPT_HANDLER`: the `typsubscript` of true arrays, `int2vector` and `oidvector`.
const ARRAY_SUBSCRIPT_HANDLER: Oid = Oid(6179);

/// Domains can be defined over domains. This is more than any real database has, and ends a cycle in a
/// damaged catalog.
const DOMAIN_DEPTH_MAX: usize = 1000;

/// `typcategory`: types of a category are alternatives when an operator or function is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Category(pub u8);

impl Category {
    /// The category of a type that doesn't exist.
    pub const INVALID: Self = Self(0);
    /// Strings.
    pub const STRING: Self = Self(b'S');
}

impl SqlCatalog {
    /// The type under a domain, or under a domain over a domain; any other type itself
    /// (`getBaseType`).
    pub fn base_type(&self, oid: Oid) -> Oid {
        self.base_type_and_modifier(oid, -1).0
    }

    /// The type under a domain, and the modifier that the domain declares for it. For any other type,
    /// returns the type and `modifier` (`getBaseTypeAndTypmod`).
    pub fn base_type_and_modifier(&self, mut oid: Oid, mut modifier: i32) -> (Oid, i32) {
        for _ in 0..DOMAIN_DEPTH_MAX {
            match self.data_type(oid) {
                Some(row) if row.kind == b'd' => (oid, modifier) = (row.base, row.base_modifier),
                _ => break,
            }
        }
        (oid, modifier)
    }

    /// The element type of an array type; `None` for any other type, domains over arrays included
    /// (`get_element_type`).
    pub fn element_type(&self, oid: Oid) -> Option<Oid> {
        let row = self.data_type(oid)?;
        let is_array = row.element != oids::NONE && row.subscript == ARRAY_SUBSCRIPT_HANDLER;
        is_array.then_some(row.element)
    }

    /// The type of the parts of a fixed-length type that is subscripted like an array from 0, such as
    /// `point`.
    pub fn fixed_element_type(&self, oid: Oid) -> Option<Oid> {
        let row = self.data_type(oid)?;
        let is_array = row.element != oids::NONE && row.subscript == RAW_SUBSCRIPT_HANDLER;
        is_array.then_some(row.element)
    }

    /// As [`SqlCatalog::element_type`], but looks into domains (`get_base_element_type`).
    pub fn base_element_type(&self, oid: Oid) -> Option<Oid> {
        self.element_type(self.base_type(oid))
    }

    /// The array type whose elements have this type (`get_array_type`).
    pub fn array_type(&self, oid: Oid) -> Option<Oid> {
        self.data_type(oid).map(|row| row.array).filter(|&array| array != oids::NONE)
    }

    /// The array type for elements of this type; an array type itself, because arrays of arrays are
    /// arrays with more dimensions (`get_promoted_array_type`).
    pub fn promoted_array_type(&self, oid: Oid) -> Option<Oid> {
        self.array_type(oid).or_else(|| self.element_type(oid).map(|_| oid))
    }

    /// Whether the type is an enum.
    pub fn is_enum(&self, oid: Oid) -> bool {
        self.data_type(oid).is_some_and(|row| row.kind == b'e')
    }

    /// Whether the type is a range.
    pub fn is_range(&self, oid: Oid) -> bool {
        self.data_type(oid).is_some_and(|row| row.kind == b'r')
    }

    /// Whether the type is a multirange.
    pub fn is_multirange(&self, oid: Oid) -> bool {
        self.data_type(oid).is_some_and(|row| row.kind == b'm')
    }

    /// Whether the type is a row type with a relation, or a domain over one; not `record`
    /// (`ISCOMPLEX`).
    pub fn is_composite(&self, oid: Oid) -> bool {
        self.row_relation(oid).is_some()
    }

    /// The relation whose columns are the fields of a row type, or of a domain over one
    /// (`typeOrDomainTypeRelid`).
    pub fn row_relation(&self, oid: Oid) -> Option<Oid> {
        let row = self.data_type(self.base_type(oid))?;
        Some(row.relation).filter(|&relation| relation != oids::NONE)
    }

    /// The type's category (`TypeCategory`).
    pub fn category(&self, oid: Oid) -> Category {
        self.data_type(oid).map_or(Category::INVALID, |row| Category(row.category))
    }

    /// Whether the type is a preferred one of `category`. If the category is
    /// [`Category::INVALID`], whether it is preferred in its own (`IsPreferredType`).
    pub fn is_preferred(&self, category: Category, oid: Oid) -> bool {
        self.data_type(oid).is_some_and(|row| {
            let is_candidate = category == Category::INVALID || category.0 == row.category;
            row.preferred && is_candidate
        })
    }

    /// Whether a row type is that of a table which inherits from the table of another row type, or a
    /// typed table of it (`typeInheritsFrom`, `typeIsOfTypedTable`).
    pub fn is_subtype_row(&self, sub: Oid, above: Oid) -> bool {
        // A domain over the row type above has no subtypes.
        let above_row = self.data_type(above).filter(|row| row.relation != oids::NONE);
        let (Some(table), Some(wanted)) = (self.row_relation(sub), above_row) else {
            return false;
        };
        if self.database().relation(table).is_some_and(|found| found.of_type == above) {
            return true;
        }
        // Damaged rows can form a cycle.
        let (mut found, mut next) = (vec![table], 0);
        while let Some(&at) = found.get(next) {
            next += 1;
            if at == wanted.relation {
                return true;
            }
            let parents = self.parents(at).iter().copied();
            let new: Vec<Oid> = parents.filter(|parent| !found.contains(parent)).collect();
            found.extend(new);
        }
        false
    }

    /// Whether a value of one type can be used as one of the other without any conversion, anywhere
    /// (`IsBinaryCoercible`).
    pub fn is_binary_coercible(&self, source: Oid, target: Oid) -> bool {
        if source == target {
            return true;
        }
        if [oids::ANY, oids::ANYELEMENT, oids::ANYCOMPATIBLE].contains(&target) {
            return true;
        }
        let source = self.base_type(source);
        if source == target {
            return true;
        }
        let is_kind = match target {
            oids::ANYARRAY | oids::ANYCOMPATIBLEARRAY => self.element_type(source).is_some(),
            oids::ANYNONARRAY | oids::ANYCOMPATIBLENONARRAY => self.element_type(source).is_none(),
            oids::ANYENUM => self.is_enum(source),
            oids::ANYRANGE | oids::ANYCOMPATIBLERANGE => self.is_range(source),
            oids::ANYMULTIRANGE | oids::ANYCOMPATIBLEMULTIRANGE => self.is_multirange(source),
            oids::RECORD => self.is_composite(source),
            oids::RECORDARRAY => self.is_composite_array(source),
            _ => false,
        };
        let cast = self.cast(source, target);
        is_kind || cast.is_some_and(|row| row.method == b'b' && row.context == b'i')
    }

    /// Whether the type is an array of rows (`is_complex_array`).
    pub fn is_composite_array(&self, oid: Oid) -> bool {
        self.element_type(oid).is_some_and(|element| self.is_composite(element))
    }
}
