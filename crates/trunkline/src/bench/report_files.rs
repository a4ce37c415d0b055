//! The files that `bench` writes its report to. An existing file is kept if there is nothing to
//! replace it with, for example after an early Ctrl-C.

use trunkline_measure::{Report, to_csv, to_html};

use super::arguments::BenchArgs;
use crate::exit::Failure;
use crate::report_files;

/// Formats of a report.
#[derive(Debug, Clone, Copy)]
enum Format {
    Json,
    Csv,
    Html,
}

/// The files of one run.
pub(super) struct ReportFiles(report_files::ReportFiles<Format>);

impl ReportFiles {
    /// Creates the files.
    pub(super) fn create(args: &BenchArgs) -> Result<ReportFiles, Failure> {
        let files =
            [(Format::Json, &args.save), (Format::Csv, &args.csv), (Format::Html, &args.html)];
        let files = files.into_iter().filter_map(|(format, path)| Some((format, path.clone()?)));
        report_files::ReportFiles::create(files).map(ReportFiles)
    }

    /// Writes the report to all files, and returns the first error. A report without measurements
    /// doesn't replace anything.
    pub(super) fn write(self, report: &Report) -> Result<(), Failure> {
        if report.measurements.is_empty() {
            return Ok(());
        }
        self.0.write(|format| match format {
            Format::Json => report.to_json().map_err(Failure::cannot_run),
            Format::Csv => Ok(to_csv(report)?),
            Format::Html => Ok(to_html(report)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::fs;

    fn report(measurements: &[Value]) -> Report {
        let machine = json!({
            "cpu": "", "cpus": 1, "memory_bytes": 0, "kernel": "", "file_system": "",
            "mount_options": "", "device": "", "device_model": "", "rotational": null,
            "scheduler": "",
        });
        let report = json!({
            "schema": 2, "command": "bench", "command_line": "", "program": "", "started": 0,
            "machine": machine, "table": {"name": "t", "blocks": 1, "rows_per_page": 1},
            "shared_buffers": 16, "io_min_workers": 1, "io_max_workers": 1, "seed": 1,
            "slow_disk": null, "server": null, "best": [],
            "rule": {"repetitions_max": 1, "spread_max": 0.1, "seconds_max": 1.0},
            "complete": false, "against": null, "measurements": measurements, "skipped": [],
        });
        serde_json::from_value(report).expect("a report")
    }

    fn measurement() -> Value {
        json!({
            "system": "trunkline", "io_workers": null, "workload": "verify", "scan": "", "selectivity_percent": null, "io_method": "sync",
            "io_direct": false, "cache": "cold", "concurrency": 1, "combine_blocks": 1,
            "sessions": 1, "repetitions": 1, "steady": false, "ended": "interrupted",
            "seconds": {"median": 1.5, "low": null, "high": null}, "cpu_seconds": 0.0, "blocks": 1,
            "hits": 0, "ios": 1, "ios_per_second": 1.0, "bytes_per_second": 1.0, "in_flight": 1.0,
            "device_seconds": 0.0, "wait_seconds": 0.0, "device_micros": null, "wait_micros": null,
            "cached_percent": null, "cache_held": null, "samples": [1.5], "against": null,
            "versus": null,
        })
    }

    #[test]
    fn only_a_report_with_measurements_replaces_a_file() {
        let home = tempfile::tempdir().expect("a directory");
        let at = |name: &str| home.path().join(name);
        let open = || {
            let files = vec![(Format::Json, at("run.json")), (Format::Csv, at("run.csv"))];
            ReportFiles(report_files::ReportFiles::create(files).expect("created"))
        };
        fs::write(at("run.json"), "of yesterday").expect("written");
        open().write(&report(&[])).expect("nothing to write");
        drop(open());
        assert_eq!(fs::read(at("run.json")).expect("kept"), b"of yesterday");
        assert_eq!(fs::read_dir(home.path()).expect("a directory").count(), 1);
        open().write(&report(&[measurement()])).expect("written");
        let read = Report::load(&at("run.json")).expect("a report");
        assert_eq!(read.measurements.len(), 1);
        let csv = fs::read_to_string(at("run.csv")).expect("read");
        // Too few repetitions for an interval.
        assert!(csv.contains(",interrupted,1.5,,,0,"), "{csv}");
        assert_eq!(fs::read_dir(home.path()).expect("a directory").count(), 2);
    }
}
