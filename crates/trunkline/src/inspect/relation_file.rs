//! The file that `inspect page` decodes: as given, or the file of a relation given by name.
//!
//! ```text
//!   -d shop public.orders      by the catalog
//!   shop.public.orders         the same
//!   5/16384                    file numbers, below the data directory
//!   base/5/16384_vm            a file, below the current directory or else the data directory
//! ```
//! A file needs no catalog, so that its pages can be decoded even if nothing else can be read. A
//! name that could also be a file's, such as `orders`, means the relation wherever relations can be
//! looked up, that is, with a data directory; `./orders` means the file. Names of relation files,
//! such as `16384_vm`, mean the file if there is one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use trunkline_engine::datadir::DataDir;
use trunkline_engine::prewarm::{Choice, View, select};
use trunkline_format::{Fork, RelationFile};

use super::open_database::OpenDatabase;
use crate::data_dir;
use crate::exit::Failure;
use crate::named_files::{database_of_name, require_fork};
use crate::options::{Context, DatabaseArgs};

/// A file that was found, and the data directory if it had to be opened for that.
pub(super) struct NamedFile {
    pub(super) path: PathBuf,
    pub(super) dir: Option<DataDir>,
}

/// The first segment of the relation's fork, or the file that was given. For a history, the file of a
/// relation may be missing, since the log may have removed it.
pub(super) fn find(
    context: &Context<'_>,
    database: &DatabaseArgs,
    relation: &OsString,
    fork: Option<Fork>,
    for_history: bool,
) -> Result<NamedFile, Failure> {
    let open = if for_history { data_dir::open_for_log } else { data_dir::open };
    let alone = |path: PathBuf| NamedFile { path, dir: None };
    let given = Path::new(relation);
    let is_name = database_of_name(relation).is_some();
    let is_relation_file = relation.to_str().and_then(RelationFile::parse).is_some();
    let is_looked_up = is_name && !is_relation_file && context.global.pgdata().is_some();
    if database.dbname.is_none() && !is_looked_up && is_file(given) {
        return of_fork(given, fork).map(alone);
    }
    if database.dbname.is_some() || is_name {
        let open = OpenDatabase::open_with(context, database, relation, open)?;
        let named = open.relation(relation)?;
        open.database.require_files(&named)?;
        require_fork(&open.dir, &open.database, &named, fork)?;
        let files = open.database.files(&named);
        let files = files.ok_or_else(|| Failure::cannot_run("the relation has no files"))?;
        return Ok(NamedFile { path: of_fork(&files.path(0), fork)?, dir: Some(open.dir) });
    }
    // Opening the file or directory gives the error.
    if given.is_absolute() || given.exists() {
        return of_fork(given, fork.filter(|_| for_history)).map(alone);
    }
    let Some(root) = context.global.pgdata() else {
        let text = format!("file \"{}\" does not exist", given.display());
        let hint = "use -D DIR to look below a data directory, and -d DATABASE to look up a name";
        return Err(Failure::cannot_run(text).with_hint(hint));
    };
    let below = root.join(given);
    if is_file(&below) || for_history && is_in_folder_of_files(root, &below) {
        return of_fork(&below, fork).map(alone);
    }
    let dir = open(context)?;
    // A page of a relation that the log removes is refused later, with the reason.
    let view = View::OnDisk;
    let choice = Choice { view, names: vec![given.to_owned()], fork, ..Choice::default() };
    let targets = select(&dir, &choice)?.targets;
    let file = targets.first().and_then(|target| target.files.first());
    let path = file.map_or_else(|| given.to_owned(), |file| file.path.clone());
    Ok(NamedFile { path, dir: Some(dir) })
}

/// Whether a path could be that of a relation file: it is in `base` and the like.
fn is_in_folder_of_files(root: &Path, path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let folder = path.parent().filter(|folder| folder.is_dir() && *folder != root);
    let is_numbered = folder.is_some_and(|folder| {
        folder.starts_with(root.join("base")) || folder.starts_with(root.join("pg_tblspc"))
    });
    is_numbered && RelationFile::parse(name).is_some()
}

fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file())
}

/// The file of a fork of the same relation.
fn of_fork(file: &Path, fork: Option<Fork>) -> Result<PathBuf, Failure> {
    let Some(fork) = fork else { return Ok(file.to_owned()) };
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match RelationFile::parse(name) {
        Some(found) if found.fork == fork => Ok(file.to_owned()),
        Some(found) if found.fork == Fork::Main && found.segment == 0 => {
            Ok(file.with_file_name(format!("{name}_{fork}")))
        }
        _ => {
            let file = file.display();
            let text = format!("\"{file}\" is not the first file of a relation's main fork");
            Err(Failure::usage(text).with_hint("name the file of the fork itself, without --fork"))
        }
    }
}
