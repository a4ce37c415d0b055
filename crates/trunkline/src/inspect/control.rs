//! `trunkline inspect control`: prints `global/pg_control`, line by line as `pg_controldata` does.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use trunkline_engine::datadir::read_control_file;

use crate::exit::{Exit, Failure};
use crate::options::Global;
use crate::output;

/// The column in which `pg_controldata` prints values.
const VALUE_COLUMN: usize = 38;

pub(super) fn run(global: &Global, file: Option<&Path>) -> Result<Exit, Failure> {
    let path = match file {
        Some(file) => file.to_owned(),
        None => global.require_pgdata()?.join("global/pg_control"),
    };
    let fields = Fields(read_control_file(&resolve_link(&path))?.fields());
    let report = Report { file: path.to_string_lossy().into(), fields };
    output::print_report(global, &report, |report| output::fields(VALUE_COLUMN, &report.fields.0))?;
    Ok(Exit::Good)
}

/// The engine refuses symbolic links inside a data directory. But if the user gives us a link on
/// the command line, we should follow it.
fn resolve_link(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[derive(Serialize)]
struct Report {
    file: String,
    fields: Fields,
}

/// Names and values in the order of the file. A map would lose the order.
struct Fields(Vec<(&'static str, String)>);

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
