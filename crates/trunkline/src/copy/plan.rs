//! Decides which tables and columns to copy, and where to write them.
//!
//! Copying a single table is one task with one output file, even if the table has many partitions.
//! For several tables, there is one task per table, and the tasks run in parallel. In that case,
//! each partition counts as a table.
//!
//! Planning only reads. [`CopyPlan::open_directory`] then locks the directory of the outputs, after
//! everything on the command line has been checked: a mistake must not leave a directory behind
//! that refuses the corrected command.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use trunkline_aio::facade::Arc;
use trunkline_engine::catalog::{CatalogError, Database, RelationInfo, quoted};
use trunkline_engine::copy::{CopyTask, Outputs, Plan, PlanError};
use trunkline_engine::datadir::DataDir;
use trunkline_engine::pool::Backend;
use trunkline_format::catalog::RelationKind;

use super::args::{CopyArgs, FormatArg};
use super::columns::{
    columns, has_column, parse_column_name, printable_columns, split_names, stored_name,
};
use super::failures::plan_failure;
use super::load::{CopiedTable, Loads, SCRIPT};
use super::outputs::{self, CopyDirectory, CopyDirectoryError, FileName, Files, Stdout, TableName};
use super::report::LeftOut;
use super::selection::selected;
use super::text_settings::TextSettingSources;
use crate::data_dir::resolve_link;
use crate::encoding::{resolve, with_encoding_hint};
use crate::exit::{Failure, message};

/// The hint if a partition cannot be read.
const SKIP_PARTITION: &str =
    "use --keep-going to skip it and copy the others, or copy each of them by name";

/// The tasks of a copy.
pub(super) struct CopyPlan {
    tasks: Vec<CopyTask>,
    /// The files to write, one per task; `None` for standard output.
    paths: Option<Vec<PathBuf>>,
    /// What the script in the directory loads. Empty if one table is copied.
    loads: Loads,
    pub(super) left_out: LeftOut,
    /// Whether several tables have the same name. Each was reported.
    pub(super) same_names: bool,
}

impl CopyPlan {
    /// Makes the plan that the options request.
    pub(super) fn new(
        args: &CopyArgs,
        database: &Database,
        backend: &mut Backend,
    ) -> Result<CopyPlan, Failure> {
        match args.output().filter(|_| args.copies_many()) {
            Some(directory) => plan_many(args, directory, database, backend),
            None => plan_one(args, database, backend),
        }
    }

    /// All tables to copy.
    pub(super) fn plans(&self) -> Vec<&Plan> {
        self.tasks.iter().flat_map(|task| &task.plans).collect()
    }

    /// The files to write, one per task. Empty for standard output.
    pub(super) fn paths(&self) -> &[PathBuf] {
        self.paths.as_deref().unwrap_or_default()
    }

    /// Makes the script fail at its end, because something was not copied.
    pub(super) fn leave_out(&mut self, why: String) {
        self.loads.leave_out(why);
    }

    /// Mentions something in the script, which doesn't fail because of it.
    pub(super) fn remark(&mut self, what: String) {
        self.loads.remark(what);
    }

    /// Opens and locks the directory of several tables, and removes the tasks whose files are
    /// already in it. Returns the number of these files. `contents` describes the copy, which
    /// includes a load script if `script` is set.
    pub(super) fn open_directory(
        &mut self,
        directory: &Path,
        contents: &str,
        script: bool,
    ) -> Result<(CopyDirectory, usize), Failure> {
        let failed = |path: &Path, error: io::Error| {
            Failure::cannot_run(format_args!("\"{}\": {error}", path.display()))
        };
        // Lock the directory before we look for existing files. Otherwise a concurrent copy could
        // create more of them.
        let planned = self.paths.take().unwrap_or_default();
        let mut files = planned.clone();
        files.extend(script.then(|| directory.join(SCRIPT)));
        let lock = CopyDirectory::open(directory, contents, &files).map_err(|error| {
            let shown = directory.display();
            match error {
                CopyDirectoryError::Io(error) => failed(directory, error),
                CopyDirectoryError::Busy => {
                    Failure::cannot_run(format_args!("another copy is writing to \"{shown}\""))
                        .with_hint("wait for it to end, or use another directory")
                }
                CopyDirectoryError::Other(what) => {
                    let text = format!("\"{shown}\" contains copies {what}");
                    Failure::usage(text).with_hint("use another directory")
                }
                CopyDirectoryError::Unknown(file) => {
                    let text = format!("\"{}\" may be a copy of something else", file.display());
                    let hint = format!("\"{shown}\" has no manifest; use another directory");
                    Failure::usage(text).with_hint(hint)
                }
            }
        })?;
        let (mut tasks, mut paths, mut present) = (Vec::new(), Vec::new(), 0);
        let planned = self.tasks.drain(..).zip(planned);
        for ((task, path), copied) in planned.zip(&mut self.loads.tables) {
            // The user may have moved a finished copy to another file system and replaced it with a
            // link, so we follow links here.
            match path.metadata() {
                Ok(found) if found.is_file() => {
                    present += 1;
                    continue;
                }
                Ok(_) => return Err(failed(&path, io::Error::other("not a regular file"))),
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed(&path, error));
                }
                Err(_) if path.is_symlink() => {
                    let error = io::Error::other("a link to a file that does not exist");
                    return Err(failed(&path, error));
                }
                Err(_) => {}
            }
            copied.task = Some(tasks.len());
            tasks.push(task);
            paths.push(path);
        }
        (self.tasks, self.paths) = (tasks, Some(paths));
        Ok((lock, present))
    }

    /// The tasks, their outputs, and what to load afterwards.
    pub(super) fn into_tasks(self) -> (Vec<CopyTask>, Arc<dyn Outputs>, Loads) {
        let outputs: Arc<dyn Outputs> = match self.paths {
            Some(paths) => Arc::new(Files(paths)),
            None => Arc::new(Stdout),
        };
        (self.tasks, outputs, self.loads)
    }
}

/// Plans the copy of one table, or of its partitions. The columns to copy are the named table's
/// columns. A partition may store them in a different order, so each gets its own [`Plan`].
fn plan_one(
    args: &CopyArgs,
    database: &Database,
    backend: &mut Backend,
) -> Result<CopyPlan, Failure> {
    let name = args.tables.first().map(OsString::as_os_str).unwrap_or_default();
    let relation = resolve(database, name)?;
    let mut wanted = Vec::new();
    for text in &args.columns {
        for name in split_names(text.as_bytes()) {
            wanted.push(stored_name(database, relation, parse_column_name(name)?));
        }
    }
    let names = columns(args, database, relation, &wanted).map_err(|error| {
        let unknown = wanted.iter().find(|name| !has_column(database, relation, name));
        with_encoding_hint(plan_failure(error), unknown.map_or(&[], |name| name), database)
    })?;
    let (mut plans, mut left_out) = (Vec::new(), LeftOut::default());
    for table in database.leaves(relation) {
        match Plan::new(database, backend, table, &names.shown) {
            Ok(plan) => plans.push(plan),
            Err(PlanError::Catalog(error @ CatalogError::NotReadable { .. }))
                if table.oid != relation.oid =>
            {
                if !args.keep_going {
                    return Err(Failure::from(error).with_hint(SKIP_PARTITION));
                }
                message("warning", format_args!("{error}; skipped"));
                left_out.tables += 1;
            }
            Err(error) => return Err(plan_failure(error)),
        }
    }
    let paths = args.output().map(|path| vec![resolve_link(path)]);
    let task = CopyTask { plans, whole: left_out.is_empty() };
    let loads = Loads::default();
    Ok(CopyPlan { tasks: vec![task], paths, loads, left_out, same_names: false })
}

/// Plans the copy of several tables, each into its own file.
fn plan_many(
    args: &CopyArgs,
    directory: &Path,
    database: &Database,
    backend: &mut Backend,
) -> Result<CopyPlan, Failure> {
    let (mut tasks, mut paths, mut same_names) = (Vec::new(), Vec::new(), false);
    let (mut loads, mut left_out) = (Loads::default(), LeftOut::default());
    let mut sequences = Vec::new();
    for (table, name) in relations_with_files(args, database, &mut loads)? {
        if table.kind == RelationKind::Sequence {
            sequences.push(table);
            continue;
        }
        let shown = || format!("{} (OID {})", database.qualified_name(table), table.oid);
        let name = match name {
            FileName::Unique(name) => name,
            FileName::WithOid(name) => {
                let place = Path::new(&name).display();
                let text = "is one of several relations of this name in pg_class; its file is";
                message("warning", format_args!("{} {text} \"{place}\"", shown()));
                same_names = true;
                name
            }
            FileName::Ambiguous => {
                let why = format!("{} is in pg_class more than once", shown());
                message("error", &why);
                loads.leave_out(why);
                left_out.tables += 1;
                continue;
            }
        };
        let planned = columns(args, database, table, &[])
            .and_then(|names| Plan::new(database, backend, table, &names.shown));
        match planned {
            Ok(plan) => {
                let path = directory.join(name);
                let columns = plan.columns().map(<[u8]>::to_vec).collect();
                let (table, task) = (table.oid, None);
                loads.tables.push(CopiedTable { table, columns, path: path.clone(), task });
                tasks.push(CopyTask { plans: vec![plan], whole: true });
                paths.push(path);
            }
            // We can skip a materialized view that was never populated, because it doesn't contain
            // any rows.
            Err(error @ PlanError::NotPopulated { .. }) => {
                message("note", &error);
                loads.remark(error.to_string());
            }
            // Report this table and copy the others.
            Err(error) => {
                let hint = other_columns_hint(&error, database, table);
                loads.leave_out(error.to_string());
                plan_failure(error).with_hint_if_any(hint).report_part();
                left_out.tables += 1;
            }
        }
    }
    left_out.sequences = loads.read_sequences(database, backend, &sequences);
    Ok(CopyPlan { tasks, paths: Some(paths), loads, left_out, same_names })
}

/// Returns the selected relations, each with the name of its file. Foreign tables are left out, with
/// a note.
fn relations_with_files<'d>(
    args: &CopyArgs,
    database: &'d Database,
    loads: &mut Loads,
) -> Result<Vec<(&'d RelationInfo, FileName)>, Failure> {
    let extension = match args.format {
        FormatArg::Text => "copy",
        FormatArg::Csv => "csv",
    };
    let mut tables = selected(args, database)?;
    tables.retain(|table| {
        let is_foreign = table.kind == RelationKind::ForeignTable;
        if is_foreign && let Err(error) = database.table_files(table) {
            message("note", format_args!("{error}; skipped"));
            loads.remark(error.to_string());
        }
        !is_foreign
    });
    let name = |table: &&'d RelationInfo| TableName {
        schema: database.schema_name(table),
        name: &table.name,
        oid: table.oid,
    };
    let names: Vec<TableName<'_>> = tables.iter().map(name).collect();
    let files = outputs::file_names(&names, extension);
    Ok(tables.into_iter().zip(files).collect())
}

/// If one column has an unsupported type, returns a hint that shows how to copy the table's other
/// columns.
fn other_columns_hint(
    error: &PlanError,
    database: &Database,
    table: &RelationInfo,
) -> Option<String> {
    let (PlanError::Type { table: name, .. } | PlanError::Output { table: name, .. }) = error
    else {
        return None;
    };
    let names = printable_columns(database, table).into_iter();
    let names: Vec<String> = names.map(|name| quoted(&name)).collect();
    let names = names.join(",").replace('\'', "'\\''");
    let name = name.replace('\'', "'\\''");
    (!names.is_empty())
        .then(|| format!("to copy the other columns: copy '{name}' --columns '{names}'"))
}

/// Describes the source of the files in a directory. The description includes the redo location of
/// the last checkpoint. If it differs from the one an earlier copy recorded, the cluster has been
/// started since then and its data may have changed, so we must not resume that copy. The same is true of
/// the place to which the log was replayed: it depends on `--until` and on how much log there is.
pub(super) fn manifest(
    args: &CopyArgs,
    dir: &DataDir,
    database: &Database,
    sources: &TextSettingSources<'_>,
) -> String {
    let control = dir.control();
    let database = database.info().name.escape_ascii();
    let CopyArgs { ctid, header, format, delimiter, null, rows, no_state, .. } = args;
    let CopyArgs { tables, patterns, schemas, exclude_schemas, exclude_tables, .. } = args;
    let selection = [tables, patterns, schemas, exclude_schemas, exclude_tables];
    let unclean = if dir.is_clean() { "" } else { ", not shut down cleanly" };
    let replayed = dir.replay().map(|replay| {
        let report = replay.report();
        let timeline = report.other_timeline.map(|timeline| format!(" of timeline {timeline}"));
        format!(", replayed to {}{}", report.end, timeline.unwrap_or_default())
    });
    let replayed = replayed.unwrap_or_default();
    let text = format!(
        "system identifier {}\ncheckpoint {}{unclean}{replayed}\ndatabase {database}\nctid {ctid}, header {header}, \
         format {format:?}, delimiter {delimiter:?}, null {null:?}, rows {rows:?}, \
         no state {no_state}, selection {selection:?}\n{}",
        control.system_identifier,
        control.checkpoint.redo,
        sources.shown(),
    );
    // The loading script reads the file, whatever the encoding of the database.
    let ascii = |c: char| match c.is_ascii() {
        true => c.to_string(),
        false => c.escape_unicode().to_string(),
    };
    text.chars().map(ascii).collect()
}
