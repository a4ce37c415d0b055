//! Prints warnings about blocks that couldn't be loaded. If there are many, we print only some of
//! them and a count of the rest.

use trunkline_engine::datadir::DataDir;
use trunkline_engine::prewarm::{Failures, Unchecked};

use crate::data_dir::relative;
use crate::exit::{Exit, first_warnings, warnings};

/// Prints a warning for each block or file that couldn't be read. Returns `Exit::Findings`, or
/// `otherwise` if everything could be read.
pub(super) fn report_failures(failures: &Failures, dir: &DataDir, otherwise: Exit) -> Exit {
    let omitted = failures.total - failures.listed.len() as u64;
    let listed = failures.listed.iter();
    let listed = listed.map(|(path, text)| format!("{}: {text}", relative(path, dir.path())));
    warnings(listed, omitted);
    if failures.total == 0 { otherwise } else { Exit::Findings }
}

/// Prints a warning for each relation with pages for whose records we have no redo rule. They were not loaded,
/// but they aren't damaged as far as we know.
pub(super) fn report_unchecked(unchecked: &Unchecked, dir: &DataDir) {
    let listed = unchecked.listed.iter();
    first_warnings(listed.map(|(path, text)| format!("{}: {text}", relative(path, dir.path()))));
}
