//! Names of objects that values refer to by OID: functions, operators, roles and others.
//!
//! Only values of `regproc` and a few other types are printed as object names, and `pg_proc` is one
//! of the largest catalogs. We therefore don't load these catalogs unless a value of one of those
//! types may be printed.

use trunkline_aio::facade::hash::Map;
use trunkline_format::Oid;
use trunkline_format::catalog::{
    CatalogTable, ObjectRow, PG_AUTHID, PG_COLLATION, PG_OPERATOR, PG_PROC, PG_TS_CONFIG,
    PG_TS_DICT,
};
use trunkline_format::text_output::ObjectClass;

/// The objects of one class.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// By name.
    rows: Vec<ObjectRow>,
    /// Indexes into `rows`.
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
        let first = self.rows.partition_point(|row| *row.name < *name);
        let behind = self.rows.partition_point(|row| *row.name <= *name);
        self.rows.get(first..behind).unwrap_or_default()
    }
}

/// The catalog of a class that is loaded on demand; `None` if the snapshot contains it.
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

/// Every class that is loaded on demand.
pub(super) const ON_DEMAND: [ObjectClass; 6] = [
    ObjectClass::Procedure,
    ObjectClass::Operator,
    ObjectClass::Role,
    ObjectClass::Collation,
    ObjectClass::TextSearchConfig,
    ObjectClass::TextSearchDictionary,
];

/// The classes loaded on demand that values of a type can refer to.
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
        // anyarray, record, record[]: the types they contain are only known from the values
        // themselves, so we have to load everything.
        2277 | 2249 | 2287 => &ON_DEMAND,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(oid: u32, name: &str) -> ObjectRow {
        ObjectRow {
            oid: Oid(oid),
            schema: Oid(11),
            name: name.as_bytes().into(),
            arguments: Vec::new(),
        }
    }

    #[test]
    fn objects_are_found_by_name_and_by_oid() {
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
    fn classes_loaded_on_demand_have_a_catalog() {
        assert!(ON_DEMAND.iter().all(|&class| catalog_of(class).is_some()));
        assert!(catalog_of(ObjectClass::Type).is_none());
        assert_eq!(classes_of(Oid(2202)), [ObjectClass::Procedure]);
        assert!(classes_of(Oid(23)).is_empty());
    }
}
