//! Objects that values name by their OIDs: functions, operators, roles and the like.
//!
//! Only a few types print such names, and some of the catalogs are the largest that there are, so
//! they are read when somebody is about to print such a type, and not before.

use trunkline_aio::sync::hash::Map;
use trunkline_format::Oid;
use trunkline_format::catalog::{
    CatalogTable, PG_AUTHID, PG_COLLATION, PG_OPERATOR, PG_PROC, PG_TS_CONFIG, PG_TS_DICT,
};
use trunkline_format::text_output::{ObjectClass, ObjectRow};

/// The objects of one class.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// By name.
    rows: Vec<ObjectRow>,
    /// Places in it.
    by_oid: Map<Oid, usize>,
}

impl Objects {
    pub(super) fn new(mut rows: Vec<ObjectRow>) -> Self {
        rows.sort_by(|one, other| (&one.name, one.oid).cmp(&(&other.name, other.oid)));
        let by_oid = rows.iter().enumerate().map(|(at, row)| (row.oid, at)).collect();
        Self { rows, by_oid }
    }

    pub(super) fn find(&self, oid: Oid) -> Option<&ObjectRow> {
        self.rows.get(*self.by_oid.get(&oid)?)
    }

    pub(super) fn named(&self, name: &[u8]) -> &[ObjectRow] {
        let first = self.rows.partition_point(|row| row.name.as_slice() < name);
        let behind = self.rows.partition_point(|row| row.name.as_slice() <= name);
        self.rows.get(first..behind).unwrap_or_default()
    }
}

/// The catalog of a class that is not read with the others.
pub(super) fn catalog_of(class: ObjectClass) -> Option<&'static CatalogTable> {
    match class {
        ObjectClass::Procedure => Some(&PG_PROC),
        ObjectClass::Operator => Some(&PG_OPERATOR),
        ObjectClass::Role => Some(&PG_AUTHID),
        ObjectClass::Collation => Some(&PG_COLLATION),
        ObjectClass::TextSearchConfig => Some(&PG_TS_CONFIG),
        ObjectClass::TextSearchDictionary => Some(&PG_TS_DICT),
        ObjectClass::Relation | ObjectClass::Schema | ObjectClass::Database | ObjectClass::Type => {
            None
        }
    }
}

/// Every class that is not read with the others.
pub(super) const READ_LATER: [ObjectClass; 6] = [
    ObjectClass::Procedure,
    ObjectClass::Operator,
    ObjectClass::Role,
    ObjectClass::Collation,
    ObjectClass::TextSearchConfig,
    ObjectClass::TextSearchDictionary,
];

/// The classes whose names values of a type consist of, of those that are read later.
pub(super) fn classes_of(type_oid: Oid) -> &'static [ObjectClass] {
    match type_oid.0 {
        // regproc, regprocedure
        24 | 2202 => &[ObjectClass::Procedure],
        // regoper, regoperator
        2203 | 2204 => &[ObjectClass::Operator],
        // aclitem, regrole
        1033 | 4096 => &[ObjectClass::Role],
        // regcollation
        4191 => &[ObjectClass::Collation],
        // regconfig
        3734 => &[ObjectClass::TextSearchConfig],
        // regdictionary
        3769 => &[ObjectClass::TextSearchDictionary],
        // anyarray, record, record[]: values say themselves what they are of.
        2277 | 2249 | 2287 => &READ_LATER,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(oid: u32, name: &str) -> ObjectRow {
        ObjectRow { oid: Oid(oid), schema: Oid(11), name: name.into(), arguments: Vec::new() }
    }

    #[test]
    fn by_name_and_number() {
        let rows = [row(3, "b"), row(1, "b"), row(2, "a"), row(4, "bb"), row(5, "")];
        let objects = Objects::new(rows.to_vec());
        let named = |name: &str| -> Vec<u32> {
            objects.named(name.as_bytes()).iter().map(|row| row.oid.0).collect()
        };
        assert_eq!(named("b"), [1, 3]);
        assert_eq!(named("a"), [2]);
        assert_eq!(named(""), [5]);
        assert_eq!(named("c"), []);
        assert_eq!(objects.find(Oid(4)), Some(&row(4, "bb")));
        assert_eq!(objects.find(Oid(9)), None);
    }

    #[test]
    fn classes_that_are_read_later_have_a_catalog() {
        assert!(READ_LATER.iter().all(|&class| catalog_of(class).is_some()));
        assert!(catalog_of(ObjectClass::Type).is_none());
        assert_eq!(classes_of(Oid(2202)), [ObjectClass::Procedure]);
        assert!(classes_of(Oid(23)).is_empty());
    }
}
