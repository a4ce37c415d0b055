//! What a scan costs, and which other ways to its rows were considered (`ALTERNATIVES`).
//!
//! ```text
//!   Index Scan using t_a on t
//!     Index Cond: (a = 1)
//!     Path: cost=0.43..120.10
//!     Rejected Path: Seq Scan  (cost=0.00..5230.00)
//!     Rejected Path: Bitmap Heap Scan using t_a  (cost=4.20..131.80)
//!     Pages: 2 % in shared buffers, 0 % in the page cache; a read takes 5.100 ms, ...
//! ```

use std::time::Duration;

use super::node::{Detail, Value};
use crate::access_path::{AccessPath, Cost};
use crate::scan::ScanExec;

/// What a scan is estimated to cost, and what the other ways to its rows would have cost.
pub(super) fn alternatives(path: &AccessPath) -> Vec<Detail> {
    let text = |cost: &Cost| {
        let disabled = if cost.disabled > 0 { ", disabled" } else { "" };
        format!("cost={:.2}..{:.2}{disabled}", cost.startup, cost.total)
    };
    let mut details = vec![Detail::text("Path", text(&path.cost))];
    let others: Vec<String> = path
        .rejected
        .iter()
        .map(|other| format!("{}  ({})", other.name, text(&other.cost)))
        .collect();
    details.extend(
        others.iter().map(|line| Detail {
            line: Some(format!("Rejected Path: {line}")),
            members: Vec::new(),
        }),
    );
    if !others.is_empty() {
        details.push(Detail::members(vec![("Rejected Paths", Value::List(others))]));
    }
    details
}

/// Where the pages of a large table are, and how long reads of its storage take, if estimates use that.
pub(super) fn found_pages(scan: &ScanExec) -> Option<Detail> {
    let costs = scan.access().pages().costs;
    let found = costs.found()?;
    let percent = |part: f64| (part * 100.0).round();
    let (pool, cache) = (percent(found.residency.pool), percent(found.residency.cache));
    let mut text = format!("{pool} % in shared buffers, {cache} % in the page cache");
    if let Some(times) = found.times {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        text.push_str(&format!(
            "; a read takes {:.3} ms, {:.3} ms with {} in flight, {:.4} ms in order",
            ms(times.latency),
            ms(times.random),
            times.in_flight,
            ms(times.sequential),
        ));
    }
    Some(Detail::text("Pages", text))
}
