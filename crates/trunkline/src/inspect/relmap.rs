//! `trunkline inspect relmap`: prints a relation map, the file numbers of mapped catalogs.
//!
//! PostgreSQL needs to read some catalogs, such as `pg_class`, before it can look up any file
//! numbers in `pg_class`. The file numbers of these catalogs are stored in `pg_filenode.map`. For
//! the shared catalogs, this file is in `global/`; for all others, it is in the database's
//! directory.

use std::ffi::OsString;
use std::fmt::Display;
use std::os::unix::ffi::OsStrExt;

use serde::Serialize;
use trunkline_aio::facade::Arc;
use trunkline_engine::catalog::Database;
use trunkline_format::Oid;
use trunkline_format::catalog::PG_CLASS;
use trunkline_format::relmap::{RELATION_MAP_NAME, RelationMap};

use crate::catalog_session::CatalogSession;
use crate::data_dir::{self, relative};
use crate::exit::{Exit, Failure};
use crate::options::Context;
use crate::output::{Column, object, print_report, table};

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct RelmapArgs {
    /// Database whose map to print [default: the map of the shared catalogs].
    #[arg(short = 'd', long, value_name = "DATABASE")]
    dbname: Option<OsString>,
}

#[derive(Serialize)]
struct Line {
    oid: u32,
    name: Option<String>,
    file: u32,
}

pub(super) fn run(context: &Context<'_>, args: &RelmapArgs) -> Result<Exit, Failure> {
    let dir = data_dir::open(context)?;
    data_dir::warn_of_files(&dir);
    let mut session = CatalogSession::open_with_sync_io(&dir, &context.settings)?;
    let database: Option<Arc<Database>> = match &args.dbname {
        Some(name) => Some(session.database(name.as_bytes())?),
        // The names of shared catalogs are in the catalog of every database.
        None => {
            let valid = session.catalog.databases().iter().find(|info| !info.is_invalid());
            let name = valid.map(|info| info.name.clone());
            name.and_then(|name| session.catalog.database(&mut session.backend, &name).ok())
        }
    };
    // A database's map is in the same directory as its pg_class.
    let path = match (&args.dbname, &database) {
        (Some(_), Some(database)) => {
            let class = database.relation(PG_CLASS.oid);
            let files = class.and_then(|class| database.files(class));
            let files = files.ok_or_else(|| Failure::cannot_run("the database has no pg_class"))?;
            files.path(0).with_file_name(RELATION_MAP_NAME)
        }
        _ => dir.path().join("global").join(RELATION_MAP_NAME),
    };
    let text = |error: &dyn Display| format!("\"{}\": {error}", path.display());
    let bytes = std::fs::read(&path).map_err(|error| Failure::cannot_run(text(&error)))?;
    let map = RelationMap::parse(&bytes, dir.control().version);
    let map = map.map_err(|error| Failure::findings(text(&error)))?;
    // We can do without the names: if the catalog can't be read, we just print the numbers.
    let name = |oid| {
        let database = database.as_ref()?;
        Some(database.qualified_name(database.relation(oid)?))
    };
    let line = |&(oid, file): &(Oid, u32)| Line { oid: oid.0, name: name(oid), file };
    let relations: Vec<Line> = map.pairs().iter().map(line).collect();
    let file = relative(&path, dir.path());
    let columns: [Column<Line>; _] = [
        (">oid", |line| line.oid.to_string()),
        (">file", |line| line.file.to_string()),
        ("relation", |line| line.name.clone().unwrap_or_default()),
    ];
    let json = object! { file: &file, relations: &relations };
    print_report(context.global, &json, || format!("{file}\n\n{}", table(&relations, &columns)))?;
    Ok(Exit::Good)
}
