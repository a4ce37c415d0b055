//! The report of `calibrate` on a terminal: a table of what was found, then the lines.

use std::fmt::Write as _;

use trunkline_measure::Calibrated;

use crate::output::{Table, human_bytes};

/// The report as text. Everything but the lines of settings is a comment, so that all of it can go
/// into a configuration file, except that it has the lines of three servers.
pub(super) fn text(report: &Calibrated) -> String {
    let mut text = format!(
        "Directory: {}, scratch file of {}, I/O method {}\nMachine: {}\n\n",
        report.directory,
        human_bytes(report.found.file_bytes),
        report.io_method,
        report.machine.summary(),
    );
    let mut table = Table::new(&["found", ">value", "note"]);
    for (name, value, note) in report.found.summary(report.complete) {
        table.row(vec![name, value, note]);
    }
    text += &table.render();
    let mut text: String =
        text.lines().map(|line| format!("# {line}").trim_end().to_owned() + "\n").collect();
    for lines in &report.settings {
        let _ = write!(text, "\n# {}\n{}", lines.target.name(), lines.text());
    }
    text
}
