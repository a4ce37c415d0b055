//! **The page** of a calibration: one HTML file without any other file, in the style of `bench`'s.

use std::fmt::Write as _;

use super::outcome::{COLUMNS, Calibrated, rows};
use super::plots::plots;
use crate::error::MeasureError;
use crate::page::{STYLE, escape, figure, started};

/// Additions to the style of all pages.
const MORE_STYLE: &str = "pre{overflow-x:auto;font-size:.8rem;line-height:1.4;padding:.5rem;\
                          border:1px solid #8884;border-radius:.3rem}";

impl Calibrated {
    /// The report as a page.
    ///
    /// # Errors
    /// [`MeasureError::Text`]: a plot can't be drawn.
    pub fn to_html(&self) -> Result<String, MeasureError> {
        let mut page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
             <title>trunkline calibrate</title><style>{STYLE}{MORE_STYLE}</style></head><body>\n\
             <h1>trunkline calibrate</h1>\n"
        );
        facts(self, &mut page);
        summary(self, &mut page);
        page += "<h2>Settings</h2>\n";
        for lines in &self.settings {
            let (name, text) = (lines.target.name(), escape(&lines.text()));
            let _ = writeln!(page, "<h3>{name}</h3>\n<pre>{text}</pre>");
        }
        page += "<h2>Plots</h2>\n<div class=\"plots\">\n";
        for plot in &plots(&self.found) {
            figure(plot, &mut page)?;
        }
        page += "</div>\n";
        table(self, &mut page);
        page += "</body></html>\n";
        Ok(page)
    }
}

fn facts(report: &Calibrated, page: &mut String) {
    let machine = &report.machine;
    let cache = match &report.buffered_because {
        None => "bypassed; emptied before each round of buffered reads".to_owned(),
        Some(why) => format!("in use, since direct I/O isn't possible: {why}"),
    };
    let memory = machine.memory_bytes as f64 / f64::from(1 << 30);
    let facts = [
        ("Command", report.command_line.clone()),
        ("Program", report.program.clone()),
        ("Started", started(report.started)),
        ("Directory", report.directory.clone()),
        ("Scratch file", format!("{} MB", report.found.file_bytes / 1_000_000)),
        (
            "Device",
            format!(
                "{} ({}), scheduler {}",
                machine.device, machine.device_model, machine.scheduler
            ),
        ),
        ("File system", format!("{}, {}", machine.file_system, machine.mount_options)),
        ("Kernel", format!("Linux {}", machine.kernel)),
        (
            "Processor and memory",
            format!("{} CPUs, {}, {memory:.1} GiB", machine.cpus, machine.cpu),
        ),
        ("Page cache", cache),
        ("I/O method", report.io_method.clone()),
    ];
    *page += "<dl>\n";
    for (name, text) in facts {
        let _ = writeln!(page, "<dt>{name}</dt><dd>{}</dd>", escape(&text));
    }
    *page += "</dl>\n";
    if !report.complete {
        *page += "<p><strong>The calibration was interrupted; settings without a measurement are \
                  missing, and the others have less confidence.</strong></p>\n";
    }
}

fn summary(report: &Calibrated, page: &mut String) {
    *page += "<h2>Found</h2>\n<div class=\"scroll\"><table><tbody>\n";
    for (name, value, note) in report.found.summary(report.complete) {
        let cells = [name, value, note].map(|text| format!("<td>{}</td>", escape(&text)));
        let _ = writeln!(page, "<tr>{}</tr>", cells.concat());
    }
    *page += "</tbody></table></div>\n";
    if !report.found.skipped.is_empty() {
        *page += "<h3>Not measured</h3>\n<ul>\n";
        for text in &report.found.skipped {
            let _ = writeln!(page, "<li>{}</li>", escape(text));
        }
        *page += "</ul>\n";
    }
}

fn table(report: &Calibrated, page: &mut String) {
    *page += "<h2>Numbers</h2>\n<div class=\"scroll\"><table><thead><tr>";
    for name in COLUMNS {
        let _ = write!(page, "<th>{name}</th>");
    }
    *page += "</tr></thead><tbody>\n";
    for row in rows(&report.found) {
        *page += "<tr>";
        for cell in row {
            let _ = write!(page, "<td>{}</td>", escape(&cell));
        }
        *page += "</tr>\n";
    }
    *page += "</tbody></table></div>\n";
}
