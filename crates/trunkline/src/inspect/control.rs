//! `trunkline inspect control`: prints `global/pg_control`, line by line as `pg_controldata` does.
//!
//! Like `pg_controldata`, we print the values even if the CRC is wrong, because a damaged file is
//! when one needs them. They come with a warning, and the exit code is [`Exit::Findings`].

use std::fmt::Display;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use trunkline_engine::datadir::{DataDirError, read_control_file, read_control_file_despite_crc};
use trunkline_format::{ControlError, ControlFile};

use crate::data_dir::resolve_link;
use crate::exit::{Exit, Failure, message};
use crate::options::Context;
use crate::output::{fields, object, print_report};

/// The column in which `pg_controldata` prints values.
const VALUE_COLUMN: usize = 38;

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct ControlArgs {
    /// Control file [default: global/pg_control in the data directory].
    file: Option<PathBuf>,
}

pub(super) fn run(context: &Context<'_>, args: &ControlArgs) -> Result<Exit, Failure> {
    let path = match &args.file {
        Some(file) => file.clone(),
        None => context.global.require_pgdata()?.join("global/pg_control"),
    };
    // The engine doesn't follow symbolic links inside a data directory, but the user may name one.
    let (control, exit) = read(&resolve_link(&path))?;
    let values = control.fields();
    let lines: Vec<(&str, &dyn Display)> =
        values.iter().map(|(name, value)| (*name, value as _)).collect();
    let json = object! { file: path.to_string_lossy(), fields: Fields(&values) };
    print_report(context.global, &json, || fields(VALUE_COLUMN, &lines))?;
    Ok(exit)
}

/// Reads the file, with a warning if its CRC is wrong.
fn read(path: &Path) -> Result<(ControlFile, Exit), Failure> {
    match read_control_file(path) {
        Ok(control) => Ok((control, Exit::Good)),
        Err(error @ DataDirError::Control { source: ControlError::Crc { .. }, .. }) => {
            let control = read_control_file_despite_crc(path)?;
            message("warning", format_args!("{error}; do not trust the values below"));
            Ok((control, Exit::Findings))
        }
        Err(error) => Err(error.into()),
    }
}

/// Names and values, in the order used in the file. We can't use a map here, because it wouldn't
/// keep the order.
struct Fields<'f>(&'f [(&'static str, String)]);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
