//! Extensions that a database can have: `pg_available_extensions`.
//!
//! A server reads the control files in its share directory, which we don't have. What is available here
//! are the extensions that are installed, in the version that is installed, and those whose functions
//! are built in. Of the installed ones, a control file would say which users may create them, so that
//! is null.

use std::sync::Arc;

use arrow_array::builder::BinaryViewBuilder;
use arrow_array::{ArrayRef, BooleanArray, StringViewArray};
use trunkline_format::Oid;

use crate::catalog::{BUILT_IN_EXTENSIONS, SqlCatalog};
use crate::error::SqlError;
use crate::functions::call::Call;
use crate::functions::set_rows::{AllRows, SetFunction, SetRows};

/// The OID of `pg_extension`.
const PG_EXTENSION: Oid = Oid(3079);

/// The set-returning functions of this module.
pub(in crate::functions) const EXTENSIONS: &[(&str, SetFunction)] = &[
    ("pg_available_extensions", |call, _| {
        let rows = available(call)?;
        Ok(Box::new(AllRows::new(vec![
            texts(rows.iter().map(|row| Some(&*row.name))),
            texts(rows.iter().map(|row| Some(&*row.version))),
            texts(rows.iter().map(|row| row.comment.as_deref())),
        ])))
    }),
    ("pg_available_extension_versions", versions),
];

/// An extension in a version.
struct Extension {
    name: String,
    version: String,
    comment: Option<String>,
    /// Whether only a superuser can create it, and whether it can be trusted; `None` if only its
    /// control file says so.
    superuser: Option<bool>,
    relocatable: bool,
    /// The schema that it must be in.
    schema: Option<String>,
}

fn versions(call: &Call<'_>, _: usize) -> Result<Box<dyn SetRows>, SqlError> {
    let rows = available(call)?;
    let superuser: BooleanArray = rows.iter().map(|row| row.superuser).collect();
    let relocatable: BooleanArray = rows.iter().map(|row| Some(row.relocatable)).collect();
    let mut requires = BinaryViewBuilder::new();
    rows.iter().for_each(|_| requires.append_null());
    Ok(Box::new(AllRows::new(vec![
        texts(rows.iter().map(|row| Some(&*row.name))),
        texts(rows.iter().map(|row| Some(&*row.version))),
        Arc::new(superuser),
        // One that every user may create is trusted.
        Arc::new(
            rows.iter().map(|row| row.superuser.map(|needs| !needs)).collect::<BooleanArray>(),
        ),
        Arc::new(relocatable),
        texts(rows.iter().map(|row| row.schema.as_deref())),
        Arc::new(requires.finish()),
        texts(rows.iter().map(|row| row.comment.as_deref())),
    ])))
}

/// The extensions, by name.
fn available(call: &Call<'_>) -> Result<Vec<Extension>, SqlError> {
    let catalog = &call.settings.session()?.catalog;
    let installed = &catalog.definitions().catalogs()?.extensions;
    let mut found = Vec::new();
    for row in installed {
        let schema = catalog.database().schema(row.schema).filter(|_| !row.relocatable);
        found.push(Extension {
            name: catalog.encoding().decode(&row.name),
            version: catalog.encoding().decode(&row.version),
            comment: comment(catalog, row.oid)?,
            superuser: None,
            relocatable: row.relocatable,
            schema: schema.map(|schema| catalog.encoding().decode(&schema.name)),
        });
    }
    for (name, version, comment) in BUILT_IN_EXTENSIONS {
        if found.iter().any(|other| (&*other.name, &*other.version) == (name, version)) {
            continue;
        }
        found.push(Extension {
            name: name.to_owned(),
            version: version.to_owned(),
            comment: Some(comment.to_owned()),
            superuser: Some(false),
            relocatable: false,
            schema: Some("pg_catalog".to_owned()),
        });
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

fn comment(catalog: &SqlCatalog, extension: Oid) -> Result<Option<String>, SqlError> {
    let text = catalog.definitions().description(extension, PG_EXTENSION, 0)?;
    Ok(text.map(|text| catalog.encoding().decode(text)))
}

fn texts<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(texts.collect::<StringViewArray>())
}
