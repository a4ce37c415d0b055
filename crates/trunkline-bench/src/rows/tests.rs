//! Tests over all rows: each runs on a small file, and reads only settings that exist.

use super::ROWS;
use super::options::RunOptions;
use trunkline_engine::settings::specs;

#[test]
fn every_row_runs_on_a_small_file() {
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
    let bench = RunOptions::small(dir.path());
    // We skip three rows here. `pool-memory` would start this test binary instead of the benchmark.
    // The other two take several minutes, and we test them separately.
    let others = ["pool-memory", "checkpoint-spread", "bgwriter-paced"];
    for row in ROWS.iter().filter(|row| !others.contains(&row.name)) {
        let (name, report) = (row.name, row.run(&bench).expect("runs"));
        assert!(report.lines.len() + report.costs.len() > 0, "{name} has lines");
        let json = serde_json::to_value(&report).expect("JSON");
        for line in json["lines"].as_array().expect("lines") {
            let ratio = line["rate_ratio"]["median"].as_f64();
            assert!(ratio.is_some_and(|ratio| ratio > 0.0), "{name}: {line}");
        }
    }
}

#[test]
fn settings_of_rows_are_settings() {
    for row in &ROWS {
        for name in row.settings {
            assert!(specs().iter().any(|spec| spec.name == *name), "{}: {name}", row.name);
        }
    }
}
