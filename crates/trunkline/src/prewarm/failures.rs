//! Warnings about blocks that couldn't be loaded. Only a limited number are listed; the rest are
//! counted.

use std::path::Path;

use trunkline_engine::prewarm::Failures;

use crate::data_dir::relative;
use crate::exit::message;

/// Prints a warning for each block or file that could not be read.
pub(super) fn report(failures: &Failures, root: &Path) {
    for (path, text) in &failures.listed {
        message("warning", format_args!("{}: {text}", relative(path, root)));
    }
    let omitted = failures.total - failures.listed.len() as u64;
    if omitted > 0 {
        message("warning", format_args!("… and {omitted} more"));
    }
}
