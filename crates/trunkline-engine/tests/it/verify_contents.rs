//! Verifies the contents of undamaged clusters made by real servers. There must be no findings.

use std::path::Path;

use trunkline_aio::facade::Arc;
use trunkline_aio::{Aio, Builder};
use trunkline_engine::job::{End, Unobserved};
use trunkline_engine::settings::Settings;
use trunkline_engine::verify::{ContentOptions, ContentReport, verify_contents};

use crate::fixtures::fixtures;
use crate::jobs::{METHODS, engine};

fn options() -> ContentOptions {
    ContentOptions::of(&Settings::default(), true, true)
}

fn verified(
    aio: &Aio,
    data: &Path,
    direct: bool,
    buffers: u32,
    options: &ContentOptions,
) -> ContentReport {
    let engine = engine(aio, buffers, direct);
    let cluster = engine.cluster(data).expect("opened");
    let (pool, storage) = (engine.pool(), cluster.storage());
    verify_contents(pool, cluster.dir(), storage, options, Arc::new(Unobserved)).expect("verified")
}

fn lines(report: &ContentReport) -> Vec<String> {
    let line = |finding: &trunkline_engine::verify::Finding| {
        format!("{}: {finding}", finding.relation.as_deref().unwrap_or_default())
    };
    report.findings.iter().map(line).collect()
}

#[test]
fn clusters_of_real_servers_have_no_findings() {
    for (major, data) in fixtures() {
        for (method, direct, buffers, workers) in
            [(METHODS[0], false, 16384, 1), (METHODS[1], true, 2048, 3), (METHODS[2], false, 64, 2)]
        {
            let aio =
                Builder::new().method(method).region_bytes(192 << 20).start().expect("started");
            let options = ContentOptions { workers, ..options() };
            let report = verified(&aio, &data, direct, buffers, &options);
            assert_eq!(lines(&report), [""; 0], "pg{major}");
            assert_eq!((report.end, report.findings_total), (End::Complete, 0));
            assert_eq!(report.orphans, [], "pg{major}");
            println!(
                "pg{major} {method}: {} tables, {} rows, {} indexes, {} entries, {} pages, {:?}",
                report.tables,
                report.rows,
                report.indexes,
                report.entries,
                report.pages,
                report.elapsed
            );
            assert!(report.tables > 400 && report.indexes > 500, "{report:?}");
            for skipped in report.skipped.iter().take(10) {
                println!("  {}: {}", skipped.relation, skipped.reason);
            }
        }
    }
}
