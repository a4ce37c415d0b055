//! Costs of pages that are found out: where the pages of large tables are, and how long reads of their
//! storage take. `EXPLAIN (ALTERNATIVES)` says so, and settings turn it off.

use std::path::Path;
use std::process::Command;

use trunkline_query::Session;

use crate::cluster::runtime;
use crate::server::{Server, servers};
use crate::sessions::{open_on, run};

/// `large` has at least 1024 blocks, and `huge` at least 16,384, with a row in each.
const TABLES: &str = "
    create table large (a int, pad text);
    insert into large select i % 5000, repeat('p', 800) from generate_series(1, 10000) i;
    create index large_a on large (a);
    create table small (a int);
    insert into small select generate_series(1, 5000);
    create index small_a on small (a);
    create unlogged table huge (a int, pad text) with (fillfactor = 10);
    alter table huge alter pad set storage plain;
    insert into huge select i, repeat('p', 800) from generate_series(1, 16500) i;
    create index huge_a on huge (a);
    vacuum analyze;
    checkpoint;
";

const LARGE: &str = "select * from large where a between 10 and 20";

async fn alternatives(session: &mut Session, sql: &str) -> String {
    run(session, &format!("explain (alternatives) {sql}")).await
}

/// The percentages of the line about pages.
fn percentages(plan: &str) -> Option<(u32, u32)> {
    let (_, line) = plan.split_once("Pages: ")?;
    let (pool, line) = line.split_once(" % in shared buffers, ")?;
    let (cache, _) = line.split_once(" % in the page cache")?;
    Some((pool.parse().ok()?, cache.parse().ok()?))
}

async fn check(session: &mut Session) {
    let plan = alternatives(session, LARGE).await;
    for part in ["Path: cost=", "Rejected Path: Seq Scan  (cost=0.00.."] {
        assert!(plan.contains(part), "{plan}");
    }
    let ways = ["Index Scan using large_a", "Bitmap Heap Scan using large_a"];
    assert!(
        ways.iter().any(|way| plan.contains(&format!("Rejected Path: {way}  (cost="))),
        "{plan}"
    );
    let (pool, _) = percentages(&plan).expect("pages");
    assert_eq!(pool, 0, "{plan}");
    // Whatever is read, is in the pool of 2 MB.
    run(session, LARGE).await;
    run(session, "select count(pad) from large").await;
    let plan = alternatives(session, LARGE).await;
    assert!(percentages(&plan).is_some_and(|(pool, _)| pool > 0), "{plan}");
    let json = run(session, &format!("explain (alternatives, format json) {LARGE}")).await;
    assert!(json.contains(r#""Rejected Paths": ["#) && json.contains(r#""Pages": ""#), "{json}");
    let plain = run(session, &format!("explain {LARGE}")).await;
    assert!(!plain.contains("Path: ") && percentages(&plain).is_none(), "{plain}");
    // What a user says, and small tables, cost what the settings say.
    for setting in ["random_page_cost = 2", "seq_page_cost = 2", "measured_page_costs = off"] {
        run(session, &format!("set {setting}")).await;
        let plan = alternatives(session, LARGE).await;
        assert!(percentages(&plan).is_none() && plan.contains("Rejected Path: "), "{plan}");
        run(session, "reset all").await;
    }
    let plan = alternatives(session, "select * from small where a = 5").await;
    assert!(percentages(&plan).is_none() && plan.contains("Rejected Path: "), "{plan}");
    // Sorted by the order of an index instead, or the other way round.
    let plan = alternatives(session, "select a from small order by a limit 3").await;
    assert!(plan.contains("Rejected Path: Seq Scan"), "{plan}");
    run(session, "set enable_seqscan = off").await;
    let plan = alternatives(session, LARGE).await;
    assert!(plan.contains(", disabled)"), "{plan}");
    run(session, "reset all").await;
    // The storage is measured if hardly anything is cached.
    let plan = alternatives(session, "select * from huge where a < 100").await;
    let (pool, cache) = percentages(&plan).expect("pages");
    assert_eq!(plan.contains("; a read takes "), pool + cache <= 10, "{plan}");
}

/// Drops a file from the page cache, if its file system can do that.
fn drop_cache(file: &Path) {
    let input = format!("if={}", file.display());
    let arguments = ["iflag=nocache", "count=0", "status=none"];
    let status = Command::new("dd").arg(input).args(arguments).status();
    assert!(status.is_ok_and(|status| status.success()), "dd failed");
}

#[test]
fn pages_cost_what_is_found_out() {
    for bin in servers() {
        let server = Server::start(&bin, &[]);
        server.script("postgres", TABLES, false);
        let path = server.script("postgres", "select pg_relation_filepath('huge')", false);
        let path = String::from_utf8(path).expect("UTF-8");
        let stopped = server.stop();
        drop_cache(&stopped.data().join(path.trim()));
        runtime().block_on(async {
            let session = open_on(stopped.data(), "postgres", &[], &[]).await;
            check(&mut session.expect("a session")).await;
        });
    }
}
