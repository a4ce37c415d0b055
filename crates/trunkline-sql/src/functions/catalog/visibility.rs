//! `pg_table_is_visible` and the like: null if there is no such object.

use trunkline_format::Oid;

use crate::catalog::Namespace;
use crate::error::SqlError;
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{Reader, each_row};

/// The kernels of this module.
pub(in crate::functions) const VISIBILITY: &[(&str, Kernel)] = &[
    ("pg_table_is_visible", |call| each(call, |names, oid| Ok(names.is_relation_visible(oid)))),
    ("pg_type_is_visible", |call| {
        each(call, |names, oid| {
            Ok(names.catalog().data_type(oid).map(|row| names.is_type_visible(row)))
        })
    }),
    ("pg_function_is_visible", |call| each(call, |names, oid| Ok(names.is_function_visible(oid)))),
    ("pg_operator_is_visible", |call| each(call, |names, oid| Ok(names.is_operator_visible(oid)))),
    ("pg_opclass_is_visible", |call| {
        each(call, |names, oid| Ok(names.is_operator_class_visible(oid)))
    }),
    ("pg_opfamily_is_visible", |call| {
        each(call, |names, oid| Ok(names.is_operator_family_visible(oid)))
    }),
    ("pg_collation_is_visible", |call| each(call, |names, oid| names.is_collation_visible(oid))),
    ("pg_conversion_is_visible", |call| {
        each(call, |names, oid| {
            let rows = names.catalog().definitions().catalogs()?.conversions.iter();
            Ok(names.is_object_visible(oid, rows.map(|row| (row.oid, row.schema, &*row.name))))
        })
    }),
    ("pg_statistics_obj_is_visible", |call| {
        each(call, |names, oid| {
            let rows = names.catalog().definitions().catalogs()?.statistics.iter();
            Ok(names.is_object_visible(oid, rows.map(|row| (row.oid, row.schema, &*row.name))))
        })
    }),
    ("pg_ts_parser_is_visible", |call| {
        each(call, |names, oid| {
            let rows = names.catalog().definitions().catalogs()?.text_search_parsers.iter();
            Ok(names.is_object_visible(oid, rows.map(|row| (row.oid, row.schema, &*row.name))))
        })
    }),
    ("pg_ts_template_is_visible", |call| {
        each(call, |names, oid| {
            let rows = names.catalog().definitions().catalogs()?.text_search_templates.iter();
            Ok(names.is_object_visible(oid, rows.map(|row| (row.oid, row.schema, &*row.name))))
        })
    }),
    ("pg_ts_config_is_visible", |call| {
        each(call, |names, oid| {
            let rows = names.catalog().definitions().catalogs()?.text_search_configs.iter();
            Ok(names.is_object_visible(oid, rows.map(|row| (row.oid, row.schema, &*row.name))))
        })
    }),
    ("pg_ts_dict_is_visible", |call| {
        each(call, |names, oid| {
            let rows = names.catalog().definitions().catalogs()?.text_search_dictionaries.iter();
            Ok(names.is_object_visible(oid, rows.map(|row| (row.oid, row.schema, &*row.name))))
        })
    }),
    ("pg_my_temp_schema", |call| each_row(call.rows, |_| Ok(Some(0_u32)))),
    // Sessions that owned temporary schemas have ended, so every one of them is another's.
    ("pg_is_other_temp_schema", |call| {
        each(call, |names, oid| {
            let schema = names.catalog().database().schema(oid);
            Ok(Some(schema.is_some_and(|schema| schema.name.starts_with(b"pg_temp_"))))
        })
    }),
];

/// Answers for each OID.
fn each(
    call: &Call<'_>,
    answer: impl Fn(Namespace<'_>, Oid) -> Result<Option<bool>, SqlError>,
) -> Result<arrow_array::ArrayRef, SqlError> {
    let names = call.settings.session()?.names();
    let oids = Reader::<u32>::new(call, 0)?;
    each_row(call.rows, |row| match oids.get(row) {
        Some(oid) => answer(names, Oid(oid)),
        None => Ok(None),
    })
}
