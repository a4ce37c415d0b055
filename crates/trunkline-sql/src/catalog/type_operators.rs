//! The operators that sort, compare and hash values of a type (`typcache.c`).
//!
//! `ORDER BY`, `DISTINCT`, `GROUP BY` and set operations don't name an operator. They use those of the
//! type's default operator class for B-trees, or for hash indexes if the type can't be sorted. Arrays
//! and rows all share one class, so their elements or fields must be checked besides.

use trunkline_format::Oid;
use trunkline_format::catalog::OperatorClassRow;

use super::oids;
use super::sql_catalog::SqlCatalog;

/// `BTLessStrategyNumber`.
const LESS: i16 = 1;

/// `BTEqualStrategyNumber`.
const EQUAL: i16 = 3;

/// `BTGreaterStrategyNumber`.
const GREATER: i16 = 5;

/// `HTEqualStrategyNumber`, the only one of hash indexes.
const HASH_EQUAL: i16 = 1;

/// `BTORDER_PROC` and `HASHSTANDARD_PROC`.
const STANDARD_FUNCTION: i16 = 1;

/// `HASHEXTENDED_PROC`.
const EXTENDED_FUNCTION: i16 = 2;

/// Nesting of arrays and rows at which we take a damaged catalog for a cycle.
const DEPTH_MAX: usize = 100;

/// Operators of a type, and functions that compute the same. Operators are given by their OIDs in
/// `pg_operator`, functions by those in `pg_proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TypeOperators {
    /// `<`.
    pub less: Option<Oid>,
    /// `=`.
    pub equal: Option<Oid>,
    /// `>`.
    pub greater: Option<Oid>,
    /// The function that compares two values, as `btint4cmp` does.
    pub compare: Option<Oid>,
    /// The function that hashes a value so that equal values have equal hashes.
    pub hash: Option<Oid>,
    /// The same with a seed and a result of 64 bits.
    pub hash_extended: Option<Oid>,
    /// The operator family that sorts.
    pub sort_family: Option<Oid>,
}

/// An operator family and the type for which its operators are declared.
#[derive(Clone, Copy)]
struct Family {
    family: Oid,
    input: Oid,
}

/// What can be done with the components of a type: elements, fields or bounds.
#[derive(Clone, Copy)]
struct Abilities {
    equality: bool,
    order: bool,
    hash: bool,
    hash_extended: bool,
}

impl Abilities {
    const ALL: Self = Self { equality: true, order: true, hash: true, hash_extended: true };
    const NONE: Self = Self { equality: false, order: false, hash: false, hash_extended: false };
}

impl SqlCatalog {
    /// The operators with which values of a type are sorted, compared and hashed.
    pub fn type_operators(&self, oid: Oid) -> TypeOperators {
        self.operators_at(oid, 0)
    }

    fn operators_at(&self, oid: Oid, depth: usize) -> TypeOperators {
        let (sorts, hashes) =
            (self.default_class(oid, oids::BTREE), self.default_class(oid, oids::HASH));
        let sorting = |strategy: i16| {
            let Family { family, input } = sorts?;
            self.family_operator(family, input, input, strategy)
        };
        let hash_equal = hashes.and_then(|Family { family, input }| {
            self.family_operator(family, input, input, HASH_EQUAL)
        });
        let function = |of: Option<Family>, number: i16| {
            let Family { family, input } = of?;
            self.family_function(family, input, input, number)
        };
        let able = self.abilities(oid, depth);
        let equal = sorting(EQUAL).or(hash_equal).filter(|_| able.equality);
        let order = |found: Option<Oid>| found.filter(|_| able.order);
        // A hash function is of use only if it agrees with the equality.
        let agreeing = hashes.filter(|_| equal.is_none() || equal == hash_equal);
        TypeOperators {
            less: order(sorting(LESS)),
            equal,
            greater: order(sorting(GREATER)),
            compare: order(function(sorts, STANDARD_FUNCTION)),
            hash: function(agreeing, STANDARD_FUNCTION).filter(|_| able.hash),
            hash_extended: function(agreeing, EXTENDED_FUNCTION).filter(|_| able.hash_extended),
            sort_family: sorts.map(|sorts| sorts.family),
        }
    }

    /// The default operator class of a type (`GetDefaultOpClass`): one for exactly this type, or else
    /// the only one, or the only preferred one, for a type to which it is binary-coercible.
    fn default_class_row(&self, oid: Oid, method: Oid) -> Option<&OperatorClassRow> {
        let oid = self.base_type(oid);
        let category = self.category(oid);
        let (mut preferred, mut compatible) = (Vec::new(), Vec::new());
        for class in self.default_classes(method) {
            if class.input_type == oid {
                return Some(class);
            }
            if self.is_binary_coercible(oid, class.input_type) {
                match self.is_preferred(category, class.input_type) {
                    true => preferred.push(class),
                    false => compatible.push(class),
                }
            }
        }
        match (&*preferred, &*compatible) {
            ([only], _) | ([], [only]) => Some(*only),
            _ => None,
        }
    }

    /// The family of a type's default operator class.
    fn default_class(&self, oid: Oid, method: Oid) -> Option<Family> {
        let class = self.default_class_row(oid, method)?;
        Some(Family { family: class.family, input: class.input_type })
    }

    /// The default operator class of a type for an access method.
    pub fn default_operator_class(&self, oid: Oid, method: Oid) -> Option<Oid> {
        self.default_class_row(oid, method).map(|class| class.oid)
    }

    /// What can be done with the components of a type, if its own operators depend on theirs.
    fn abilities(&self, oid: Oid, depth: usize) -> Abilities {
        if depth > DEPTH_MAX {
            return Abilities::NONE;
        }
        let base = self.base_type(oid);
        if base == oids::RECORD {
            // The fields are known only when the query runs. Sorting may then fail, and so may
            // hashing, but a plan that sorts is the safer choice.
            return Abilities { hash: false, hash_extended: false, ..Abilities::ALL };
        }
        if let Some(element) = self.element_type(base).filter(|_| self.is_generic_array(base)) {
            return self.abilities_of(&[element], depth);
        }
        if let Some(relation) = self.row_relation(base) {
            let database = self.database();
            let columns = database.relation(relation).map(|found| database.columns(found));
            let Some(Ok(columns)) = columns else { return Abilities::NONE };
            let fields = columns.iter().filter(|column| !column.dropped);
            let fields: Vec<Oid> = fields.map(|column| column.type_oid).collect();
            return self.abilities_of(&fields, depth);
        }
        let range = self.multirange_range(base).unwrap_or(base);
        match self.range_subtype(range) {
            // A range can't be created unless its bounds can be sorted.
            Some(subtype) => {
                Abilities { equality: true, order: true, ..self.abilities_of(&[subtype], depth) }
            }
            None => Abilities::ALL,
        }
    }

    /// What can be done with values of all of these types.
    fn abilities_of(&self, components: &[Oid], depth: usize) -> Abilities {
        components.iter().fold(Abilities::ALL, |able, &oid| {
            let found = self.operators_at(oid, depth + 1);
            Abilities {
                equality: able.equality && found.equal.is_some(),
                order: able.order && found.compare.is_some(),
                hash: able.hash && found.hash.is_some(),
                hash_extended: able.hash_extended && found.hash_extended.is_some(),
            }
        })
    }

    /// Whether an array type has no operator class of its own, as `oidvector` does.
    fn is_generic_array(&self, oid: Oid) -> bool {
        self.data_type(oid).is_some_and(|row| row.is_array())
            || !self.default_classes(oids::BTREE).any(|class| class.input_type == oid)
    }
}
