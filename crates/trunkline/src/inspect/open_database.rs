//! A database opened for `inspect`: looks up relations by name, copies pages, and formats values as
//! short text.

use std::ffi::OsString;

use trunkline_aio::facade::Arc;
use trunkline_engine::catalog::{Database, RelationInfo};
use trunkline_engine::datadir::DataDir;
use trunkline_engine::storage::Relation;
use trunkline_format::text_output::{TextOptions, Type, write_text};
use trunkline_format::{BlockNo, Oid, PageBytes};

use crate::catalog_session::CatalogSession;
use crate::data_dir::{self, storage_failure};
use crate::encoding::resolve;
use crate::exit::Failure;
use crate::options::{Context, DatabaseArgs};

/// Maximum number of characters of a value that are shown.
const VALUE_CHARS_MAX: usize = 60;

/// A database, and a session to read it.
pub(super) struct OpenDatabase {
    pub(super) dir: DataDir,
    pub(super) session: CatalogSession,
    pub(super) database: Arc<Database>,
}

impl OpenDatabase {
    /// Opens the database that the options select, or the one given in the name of the relation to
    /// inspect.
    pub(super) fn open(
        context: &Context<'_>,
        database: &DatabaseArgs,
        name: &OsString,
    ) -> Result<OpenDatabase, Failure> {
        Self::open_with(context, database, name, data_dir::open)
    }

    /// [`OpenDatabase::open`] in the data directory that `open` returns.
    pub(super) fn open_with(
        context: &Context<'_>,
        database: &DatabaseArgs,
        name: &OsString,
        open: impl FnOnce(&Context<'_>) -> Result<DataDir, Failure>,
    ) -> Result<OpenDatabase, Failure> {
        let database = database.of([name])?;
        let dir = open(context)?;
        let mut session = CatalogSession::open_with_sync_io(&dir, &context.settings)?;
        let database = session.database(&database)?;
        Ok(OpenDatabase { dir, session, database })
    }

    /// Looks up a relation by name.
    pub(super) fn relation(&self, name: &OsString) -> Result<RelationInfo, Failure> {
        Ok(resolve(&self.database, name)?.clone())
    }

    /// Returns the length of a relation. If its first file is missing, that is a finding, unless its
    /// tablespace has been moved.
    pub(super) fn blocks(&self, relation: &Relation) -> Result<BlockNo, Failure> {
        relation.blocks().map_err(|error| storage_failure(error, &self.dir))
    }

    /// Returns a copy of a page. The caller will look up names and transactions, and it should not
    /// hold a content lock on the page while it does so.
    pub(super) fn page(
        &mut self,
        relation: &Relation,
        block: BlockNo,
    ) -> Result<Box<PageBytes>, Failure> {
        let blocks = self.blocks(relation)?;
        if block >= blocks {
            let plural = if blocks == 1 { "" } else { "s" };
            return Err(Failure::usage(format_args!(
                "block {block} is past the end; the relation has {blocks} block{plural}"
            )));
        }
        let backend = &mut self.session.backend;
        let pin = backend.read(relation, block)?;
        let page = backend.read_lock(pin.page()).map_err(Failure::cannot_run)?;
        Ok(Box::new(*page))
    }

    /// Loads the catalogs needed to print values of these types, such as `regproc`.
    pub(super) fn load_names(&mut self, types: &[Oid]) -> Result<(), Failure> {
        let database = Arc::clone(&self.database);
        Ok(database.load_names(&mut self.session.backend, types.iter().copied())?)
    }

    /// Formats a value, shortened if necessary.
    pub(super) fn text(&self, type_oid: Oid, payload: &[u8]) -> String {
        let ty = match Type::resolve(type_oid, &*self.database) {
            Ok(ty) => ty,
            Err(error) => return format!("({error})"),
        };
        let options = TextOptions::new(self.dir.control().version.major(), &*self.database);
        let mut text = Vec::new();
        match write_text(&ty, payload, &options, &mut text) {
            Ok(()) => shortened(&text),
            Err(error) => format!("(damaged: {error})"),
        }
    }

    /// The name of a type.
    pub(super) fn type_name(&self, oid: Oid) -> String {
        use trunkline_format::text_output::TypeCatalog;
        let row = self.database.type_row(oid);
        row.map_or_else(|| oid.to_string(), |row| String::from_utf8_lossy(&row.name).into_owned())
    }
}

/// The beginning of a text, on one line. Like psql, we escape control characters but not
/// backslashes, because a person reads this: a bytea is `\x00ff`.
pub(super) fn shortened(text: &[u8]) -> String {
    // It would be wasteful to convert all of a long value, so we only convert a prefix. The prefix
    // contains at least one more character than we show, so that we can see whether the value was
    // truncated.
    let start = text.get(..VALUE_CHARS_MAX * 4 + 4).unwrap_or(text);
    let start = String::from_utf8_lossy(start);
    let mut shown: String = start.chars().take(VALUE_CHARS_MAX).collect();
    shown = escaped(&shown);
    if start.chars().count() > VALUE_CHARS_MAX {
        shown.push('…');
    }
    shown
}

fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\u{8}' => shown.push_str("\\b"),
            '\u{b}' => shown.push_str("\\v"),
            '\u{c}' => shown.push_str("\\f"),
            other if other.is_control() => shown.extend(other.escape_default()),
            other => shown.push(other),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn values_are_cut_and_escaped() {
        assert_eq!(shortened(b"a\tb\n"), "a\\tb\\n");
        let text = b"it's (1,\"a,b\"\"c\\d\") \x08\x0B\x0C\r\x1B";
        assert_eq!(shortened(text), "it's (1,\"a,b\"\"c\\d\") \\b\\v\\f\\r\\u{1b}");
        let long = "ä".repeat(100);
        assert_eq!(shortened(long.as_bytes()), "ä".repeat(60) + "…");
        assert_eq!(shortened("ä".repeat(60).as_bytes()), "ä".repeat(60));
        assert!(shortened(&[0xFF; 500]).ends_with('…'));
    }
}
