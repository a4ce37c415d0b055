//! Settings for the tests of kernels.

use std::collections::BTreeMap;
use std::sync::Arc;

use trunkline_format::catalog::{ObjectRow, TypeRow};
use trunkline_format::text_output::{
    ByteaOutput, ColumnRow, IntervalStyle, ObjectClass, TypeCatalog, Utc,
};
use trunkline_format::{Align, Oid};

use super::{CallSettings, Collation, Collations, Provider};

/// Catalogs with the built-in base types and their arrays, and without any other objects.
struct BuiltIn(BTreeMap<Oid, TypeRow>);

impl BuiltIn {
    fn new() -> Self {
        let lines = include_str!("../../testdata/types.txt").lines();
        Self(lines.filter(|line| !line.starts_with('#')).map(Self::row).collect())
    }

    fn row(line: &str) -> (Oid, TypeRow) {
        let fields: Vec<&str> = line.split(' ').collect();
        let oid = |at: usize| Oid(fields[at].parse().unwrap());
        let row = TypeRow {
            oid: oid(0),
            name: fields[1].as_bytes().into(),
            schema: Oid(11),
            len: fields[2].parse().unwrap(),
            by_value: false,
            kind: b'b',
            category: b'U',
            preferred: false,
            defined: true,
            delimiter: fields[4].as_bytes()[0],
            relation: Oid(0),
            subscript: Oid(0),
            element: oid(5),
            array: Oid(0),
            input: Oid(0),
            output: oid(6),
            receive: Oid(0),
            send: Oid(0),
            modifier_in: Oid(0),
            modifier_out: Oid(0),
            align: Align::from_code(fields[3].as_bytes()[0]).unwrap(),
            not_null: false,
            base: Oid(0),
            base_modifier: -1,
            dimensions: 0,
            collation: Oid(0),
        };
        (row.oid, row)
    }
}

impl TypeCatalog for BuiltIn {
    fn type_row(&self, oid: Oid) -> Option<TypeRow> {
        self.0.get(&oid).cloned()
    }

    fn columns(&self, _: Oid) -> Option<Vec<ColumnRow>> {
        None
    }

    fn enum_labels(&self, _: Oid) -> Vec<(Oid, Vec<u8>)> {
        Vec::new()
    }

    fn range_subtype(&self, _: Oid) -> Option<Oid> {
        None
    }

    fn multirange_range(&self, _: Oid) -> Option<Oid> {
        None
    }

    fn printed_as(&self, _: Oid) -> Option<Oid> {
        None
    }

    fn object(&self, _: ObjectClass, _: Oid) -> Option<ObjectRow> {
        None
    }

    fn objects_named(&self, _: ObjectClass, _: &[u8]) -> Vec<ObjectRow> {
        Vec::new()
    }
}

/// The collations `C` and `pg_c_utf8`, and a German one as the database's default.
fn collations() -> Collations {
    let german = Collation::new(Provider::Libc, "de_DE.UTF-8", "de_DE.UTF-8", true);
    let c_utf8 = Collation::new(Provider::Builtin, "C.UTF-8", "C.UTF-8", true);
    Collations::from([(Oid(950), Collation::C), (Oid(811), c_utf8), (Oid(100), german)])
}

/// PostgreSQL's default settings in UTC, with the built-in types.
pub(crate) fn settings() -> CallSettings {
    CallSettings {
        major: 18,
        catalog: Arc::new(BuiltIn::new()),
        session: None,
        collations: Arc::new(collations()),
        zone: Arc::new(Utc),
        extra_float_digits: 1,
        bytea_output: ByteaOutput::default(),
        date_order: Default::default(),
        interval_style: IntervalStyle::default(),
        transaction_start: 0,
        statement_start: 0,
        server: None,
    }
}
