//! `trunkline inspect relmap`: which files the catalogs are in that no catalog says.
//!
//! `global/pg_filenode.map` is for those that all databases share, the one of each database for its
//! own.

use std::ffi::OsString;
use std::fmt::Display;
use std::os::unix::ffi::OsStrExt;

use serde::Serialize;
use trunkline_aio::sync::Arc;
use trunkline_engine::catalog::Database;
use trunkline_engine::settings::Settings;
use trunkline_format::Oid;
use trunkline_format::catalog::PG_CLASS;
use trunkline_format::relmap::{RELATION_MAP_NAME, RelationMap};

use crate::cli::Global;
use crate::cluster::Cluster;
use crate::exit::{Exit, Failure};
use crate::output::{self, Table};
use crate::verify::{self, relative};

/// Options of the subject.
#[derive(Debug, clap::Args)]
pub(crate) struct RelmapArgs {
    /// The database; by default what all databases share.
    #[arg(short = 'd', long, value_name = "DATABASE")]
    dbname: Option<OsString>,
}

#[derive(Serialize)]
struct Report {
    file: String,
    relations: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    oid: u32,
    name: Option<String>,
    file: u32,
}

pub(super) fn run(
    global: &Global,
    settings: &Settings,
    args: &RelmapArgs,
) -> Result<Exit, Failure> {
    let dir = verify::open(global)?;
    let mut cluster = Cluster::aside(&dir, settings)?;
    let database: Option<Arc<Database>> = match &args.dbname {
        Some(name) => Some(cluster.database(name.as_bytes())?),
        // Any database knows the names.
        None => {
            let valid = cluster.catalog.databases().iter().find(|info| !info.is_invalid);
            let name = valid.map(|info| info.name.clone());
            name.and_then(|name| cluster.catalog.database(&mut cluster.backend, &name).ok())
        }
    };
    // The catalog of relations is in every database's own map; what all share is in global.
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
    let name = |oid| {
        let database = database.as_ref()?;
        Some(database.qualified_name(database.relation(oid)?))
    };
    let line = |&(oid, file): &(Oid, u32)| Line { oid: oid.0, name: name(oid), file };
    let report = Report {
        file: relative(&path, dir.path()),
        relations: map.pairs().iter().map(line).collect(),
    };
    if global.json {
        output::print_json(&report)?;
        return Ok(Exit::Good);
    }
    let mut table = Table::new(&[">oid", ">file", "relation"]);
    for line in &report.relations {
        let name = line.name.clone().unwrap_or_default();
        table.row(vec![line.oid.to_string(), line.file.to_string(), name]);
    }
    output::print(&format!("{}\n\n{}", report.file, table.render()))?;
    Ok(Exit::Good)
}
