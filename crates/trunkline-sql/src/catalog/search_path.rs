//! The schemas in which names without a schema are looked up (`search_path`).
//!
//! The setting lists names of schemas. Those that don't exist are ignored, `"$user"` stands for the
//! schema with the name of the session's user, and `pg_catalog` comes first unless it is listed. There
//! are no temporary schemas, because the sessions that owned them have ended.

use std::borrow::Cow;

use trunkline_format::Oid;

use super::oids;
use super::sql_catalog::SqlCatalog;

/// The entry that stands for the session's user.
const USER: &str = "$user";

/// The schemas of a search path that exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPath {
    /// In the order in which they are searched.
    searched: Cow<'static, [Oid]>,
    /// Those that the setting lists.
    listed: Cow<'static, [Oid]>,
}

impl SearchPath {
    /// The path of no schema but `pg_catalog`.
    pub fn of_catalog() -> &'static Self {
        static PATH: SearchPath =
            SearchPath { searched: Cow::Borrowed(&[oids::PG_CATALOG]), listed: Cow::Borrowed(&[]) };
        &PATH
    }

    /// The path for a value of the setting, already split into names, such as `"$user"` and `public`.
    pub fn new(catalog: &SqlCatalog, setting: &[&str], user: Option<&str>) -> Self {
        let mut listed = Vec::new();
        for &entry in setting {
            let name = if entry == USER { user } else { Some(entry) };
            let schema = name.and_then(|name| schema_named(catalog, name));
            if let Some(schema) = schema.filter(|schema| !listed.contains(schema)) {
                listed.push(schema);
            }
        }
        let mut searched = listed.clone();
        if !searched.contains(&oids::PG_CATALOG) {
            searched.insert(0, oids::PG_CATALOG);
        }
        Self { searched: searched.into(), listed: listed.into() }
    }

    /// The schemas that are searched, in order, as `current_schemas(true)` lists them.
    pub fn searched(&self) -> &[Oid] {
        &self.searched
    }

    /// The schemas that the setting lists, as `current_schemas(false)` lists them.
    pub fn listed(&self) -> &[Oid] {
        &self.listed
    }

    /// The place of a schema in the order of the search; `None` if it isn't searched.
    pub(super) fn place(&self, schema: Oid) -> Option<usize> {
        self.searched.iter().position(|&searched| searched == schema)
    }
}

/// The schema with exactly this name.
pub(super) fn schema_named(catalog: &SqlCatalog, name: &str) -> Option<Oid> {
    let name = catalog.encoding().encode(name)?;
    catalog.database().schema_named(&name).ok().map(|schema| schema.oid)
}
