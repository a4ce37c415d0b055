//! `trunkline inspect control`: what `global/pg_control` says, line by line as `pg_controldata`
//! prints it.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use trunkline_engine::datadir::read_control_file;

use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output;

/// Where `pg_controldata` starts its values.
const VALUE_COLUMN: usize = 38;

pub(super) fn run(global: &Global, file: Option<&Path>) -> Result<Exit, Failure> {
    let path = match file {
        Some(file) => file.to_owned(),
        None => global.require_pgdata()?.join("global/pg_control"),
    };
    let fields = read_control_file(&follow(&path))?.fields();
    if global.json {
        output::print_json(&Report {
            file: path.to_string_lossy().into(),
            fields: Fields(fields),
        })?;
    } else {
        let line = |(name, value): &(&str, String)| {
            format!("{:VALUE_COLUMN$}{value}\n", format!("{name}:"))
        };
        output::print(&fields.iter().map(line).collect::<String>())?;
    }
    Ok(Exit::Good)
}

/// Who names a link on the command line means the file behind it.
fn follow(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[derive(Serialize)]
struct Report {
    file: String,
    fields: Fields,
}

/// Names and values in the file's order, which a map type of our own would lose.
struct Fields(Vec<(&'static str, String)>);

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
