//! Settings for the tests of kernels.

use std::sync::Arc;

use trunkline_format::Oid;
use trunkline_format::catalog::{ObjectRow, TypeRow};
use trunkline_format::text_output::{
    ByteaOutput, ColumnRow, IntervalStyle, ObjectClass, TypeCatalog, Utc,
};

use super::CallSettings;

/// Catalogs without any objects.
struct Empty;

impl TypeCatalog for Empty {
    fn type_row(&self, _: Oid) -> Option<TypeRow> {
        None
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

/// PostgreSQL's default settings in UTC, with empty catalogs.
pub(crate) fn settings() -> CallSettings {
    CallSettings {
        major: 18,
        catalog: Arc::new(Empty),
        zone: Arc::new(Utc),
        extra_float_digits: 1,
        bytea_output: ByteaOutput::default(),
        interval_style: IntervalStyle::default(),
        transaction_start: 0,
        statement_start: 0,
    }
}
