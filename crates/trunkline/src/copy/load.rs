//! Writes `load.sql` into a directory of copies: the script that loads them into a server.
//!
//! The script is written after the last table, so it never mentions a table whose copy was
//! interrupted. It also covers files that an earlier run has written.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use trunkline_engine::catalog::{Database, RelationInfo, is_system_schema};
use trunkline_engine::copy::{
    CopyOptions, CopyReport, Format, LoadScript, LoadTable, Outputs as _,
};
use trunkline_engine::pool::Backend;
use trunkline_format::Oid;
use trunkline_format::catalog::SequenceRow;
use trunkline_format::sequence::Sequence;

use super::outputs::{Files, MANIFEST};
use super::partial_file::incomplete;
use crate::config_file::at;
use crate::data_dir::resolve_link;
use crate::encoding::encoding_name;
use crate::exit::{Failure, message};
use crate::interrupt::Interrupt;

/// The name of the script.
pub(super) const SCRIPT: &str = "load.sql";

/// The copy of a table, from this run or an earlier one.
pub(super) struct CopiedTable {
    pub(super) table: Oid,
    pub(super) columns: Vec<Vec<u8>>,
    pub(super) path: PathBuf,
    /// The number of the task that writes it. `None` if the file is from an earlier run.
    pub(super) task: Option<usize>,
}

/// What a script loads, and what it mentions as left out.
#[derive(Default)]
pub(super) struct Loads {
    pub(super) tables: Vec<CopiedTable>,
    sequences: Vec<(Oid, SequenceRow, Sequence)>,
    /// What should have been copied, and wasn't.
    left_out: Vec<String>,
    /// What has nothing to copy, or can't be known to be missing.
    remarks: Vec<String>,
}

impl Loads {
    /// Makes the script fail at its end, because something was not copied.
    pub(super) fn leave_out(&mut self, why: String) {
        self.left_out.push(why);
    }

    /// Adds a remark on something that has nothing to copy, or that can't be known to be missing.
    pub(super) fn remark(&mut self, why: String) {
        self.remarks.push(why);
    }

    /// Reads sequences. Reports those that can't be read, and returns their number.
    pub(super) fn read_sequences(
        &mut self,
        database: &Database,
        backend: &mut Backend,
        sequences: &[&RelationInfo],
    ) -> usize {
        if sequences.is_empty() {
            return 0;
        }
        let rows = match database.sequences(backend) {
            Ok((rows, faults)) => {
                faults.iter().for_each(|fault| message("warning", fault));
                rows
            }
            Err(error) => {
                let why = format!("no sequence is restored: {error}");
                message("error", &why);
                self.leave_out(why);
                return sequences.len();
            }
        };
        let mut rows: BTreeMap<Oid, SequenceRow> =
            rows.into_iter().map(|row| (row.sequence, row)).collect();
        for sequence in sequences {
            let row = rows.remove(&sequence.oid);
            let row = row.ok_or_else(|| "it has no row in pg_sequence".to_owned());
            let read = row.and_then(|row| {
                let value = database.sequence_value(backend, sequence);
                let value = value.map_err(|error| error.to_string())?;
                // The script creates everything or nothing, so nothing in it may be refused.
                match is_valid(&row, &value) {
                    true => Ok((row, value)),
                    false => Err("its value or options are out of range".to_owned()),
                }
            });
            match read {
                Ok((row, value)) => self.sequences.push((sequence.oid, row, value)),
                Err(why) => {
                    let name = database.qualified_name(sequence);
                    let why = format!("sequence {name} is not restored: {why}");
                    message("error", &why);
                    self.leave_out(why);
                }
            }
        }
        sequences.len() - self.sequences.len()
    }

    /// Writes the script into `directory`.
    pub(super) fn write(
        &self,
        directory: &Path,
        database: &Database,
        options: &CopyOptions,
        report: &CopyReport,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        let failed = |error: io::Error| {
            if interrupt.requested() {
                return interrupt.failure();
            }
            Failure::cannot_run(format_args!("could not write {SCRIPT}: {error}"))
        };
        let encoding = encoding_name(database.info().encoding);
        let mut script = LoadScript::new(database, encoding, options, MANIFEST);
        for why in &self.left_out {
            script.leave_out(why);
        }
        for why in &self.remarks {
            script.remark(why);
        }
        for (oid, row, value) in &self.sequences {
            if let Some(relation) = database.relation(*oid) {
                script.sequence(relation, row, value);
            }
        }
        for copied in &self.tables {
            let Some(table) = database.relation(copied.table) else { continue };
            // A server has its own catalogs, and doesn't let us create others in their schemas.
            if is_system_schema(&database.schema_name(table)) {
                let name = database.qualified_name(table);
                script.remark(&format!("{name} is a system catalog"));
                continue;
            }
            let whole = copied.path.exists();
            let path = if whole { copied.path.clone() } else { incomplete(&copied.path) };
            let written = copied.task.and_then(|task| *report.rows_of_tasks.get(task)?);
            let rows = match written {
                Some(rows) => rows,
                None => count_rows(&path, options.format.format(), options.header, interrupt)
                    .map_err(|error| failed(at(&path, &error)))?,
            };
            let file = path.file_name().map(|name| name.as_bytes().to_vec()).unwrap_or_default();
            let columns = copied.columns.clone();
            script.table(&LoadTable { table, columns, file, rows, whole });
        }
        let mut output =
            Files(vec![resolve_link(&directory.join(SCRIPT))]).open(0).map_err(failed)?;
        output.write(&script.finish()).map_err(failed)?;
        output.sync().and_then(|()| output.finish(true)).map_err(failed)
    }
}

/// Whether a server accepts a sequence. Only a damaged one can be refused.
fn is_valid(row: &SequenceRow, value: &Sequence) -> bool {
    let range = row.min..=row.max;
    let limits = match row.type_oid {
        Oid(21) => i64::from(i16::MIN)..=i64::from(i16::MAX),
        Oid(23) => i64::from(i32::MIN)..=i64::from(i32::MAX),
        _ => i64::MIN..=i64::MAX,
    };
    let is_ordered = row.min < row.max && limits.contains(&row.min) && limits.contains(&row.max);
    let is_inside = range.contains(&row.start) && range.contains(&value.last_value);
    is_ordered && is_inside && row.increment != 0 && row.cache > 0
}

/// Counts the rows of a file that an earlier run has written. A row is a line, except that a quoted
/// CSV value may contain line feeds.
fn count_rows(path: &Path, format: Format, header: bool, interrupt: &Interrupt) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let (mut lines, mut quoted) = (0_u64, false);
    let mut chunk = vec![0; 128 << 10];
    loop {
        if interrupt.requested() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let length = file.read(&mut chunk)?;
        if length == 0 {
            return Ok(lines.saturating_sub(u64::from(header)));
        }
        for byte in chunk.iter().take(length) {
            match byte {
                b'"' if format == Format::Csv => quoted = !quoted,
                b'\n' if !quoted => lines += 1,
                _ => {}
            }
        }
    }
}
