//! **Settings**: which lines follow from what was found.
//!
//! | Setting | Rule |
//! |---|---|
//! | `io_method` | `io_uring` if cold buffered reads are faster with it than with as many workers as help, by at least 5 % and outside of the interval, and reads in order aren't slower; for PostgreSQL commented out, because a server without it doesn't start |
//! | `io_workers`, `io_max_workers` | as many as reads in flight, at most 32, if that is measured to be faster than the default |
//! | `io_min_workers` | the maximum, if that is measured to be faster than three workers |
//! | `effective_io_concurrency`, `maintenance_io_concurrency` | the knee of random reads, if it is above 16 and faster when both are measured in turn; with workers no more than their number |
//! | `io_combine_limit` | the smallest size that reaches 95 % of the bandwidth, if it is above 128 kB, faster when both are measured in turn, and a session may pin four of them |
//! | `random_page_cost` | the ratio of a random read to a page in order, if it is below 4 |
//! | `wal_sync_method` | `open_datasync` if its interval excludes `fdatasync` with one session, and it isn't slower with eight |
//! | `checkpoint_flush_after` | the shortest mean time of commits beside page writes, if its interval excludes the default |
//!
//! Everything else that depends on the device keeps its default.

use super::comparison::Case;
use super::confidence::Confidence;
use super::findings::{CONCURRENCY_MAX, DeviceFindings};
use super::line::{Line, Lines, Target};
use super::load::{DEFAULT_DEPTH, PAGE};
use super::search::{COMBINE, DURABLE_SESSIONS, LARGE, WORKERS_MAX, most_workers};
use super::step::Step;
use crate::estimate::Estimate;
use crate::rounding::rounded;

/// A change is recommended only if it is at least this much faster.
const GAIN_MIN: f64 = 1.05;
/// A change may cost this much elsewhere, as the interval of the ratio says.
const LOSS_MAX: f64 = 0.95;
/// PostgreSQL's default of `random_page_cost`.
const PAGE_COST: f64 = 4.0;
/// Workers of PostgreSQL 18 by default. Later versions begin with two (`io_min_workers`), which weren't
/// measured and aren't faster.
const FEW_WORKERS: u32 = 3;
/// Workers that PostgreSQL 19 and trunkline have at most by default.
const WORKERS_DEFAULT: u32 = 8;
/// `io_max_concurrency = -1` gives a session at most this many.
const OWN_CONCURRENCY: u32 = 64;
/// Processes of a server with default settings that have I/O handles of their own.
const STOCK_OWNERS: u64 = 174;
/// Shared memory of a handle, and of each page that it may read, in bytes.
const HANDLE_BYTES: (u64, u64) = (144, 24);
/// Combined reads that a session must be able to pin at a time.
const COMBINED_IN_FLIGHT: u32 = 4;

/// What is known of the cluster that the settings are for.
#[derive(Debug, Clone, Copy)]
pub struct ClusterFacts {
    /// Whether the write-ahead log of the cluster is on another device, so that nothing that was
    /// measured here applies to it.
    pub has_own_log: bool,
    /// How many pages a session may pin, from `shared_buffers` and the number of processes.
    pub pinned_pages: u32,
}

impl ClusterFacts {
    /// The largest `io_combine_limit` with which a session has enough reads in flight: a power of two
    /// in bytes.
    pub(crate) fn combine_max(&self) -> u32 {
        let pages = (self.pinned_pages / COMBINED_IN_FLIGHT).clamp(1, LARGE / PAGE);
        (1 << pages.ilog2()) * PAGE
    }
}

/// The recommendation of an I/O method, on which other settings depend.
struct Method {
    /// Whether it is `io_uring`.
    is_uring: bool,
    /// Workers that are worth having.
    workers: u32,
}

/// The lines for all targets.
pub(crate) fn settings(
    found: &DeviceFindings,
    cluster: &ClusterFacts,
    is_complete: bool,
) -> Vec<Lines> {
    let of = |target| {
        let mut lines = lines(found, target, cluster, is_complete);
        lines.iter_mut().for_each(|line| line.confidence = found.capped(line.confidence));
        Lines { target, lines }
    };
    Target::ALL.map(of).into()
}

fn lines(
    found: &DeviceFindings,
    target: Target,
    cluster: &ClusterFacts,
    is_complete: bool,
) -> Vec<Line> {
    let (method, mut lines) = io_method(found, target, is_complete);
    lines.extend(concurrency(found, &method, target, is_complete));
    lines.extend(combine(found, cluster, is_complete));
    if target != Target::Trunkline {
        lines.extend(random_page_cost(found, is_complete));
        if !cluster.has_own_log {
            lines.extend(wal_sync_method(found, is_complete));
        }
    }
    if !cluster.has_own_log {
        lines.extend(flush(found, "checkpoint_flush_after", "256kB", is_complete));
    }
    lines
}

/// The lines of the I/O method and its workers.
fn io_method(found: &DeviceFindings, target: Target, is_complete: bool) -> (Method, Vec<Line>) {
    let case = |name: &str| case(&found.methods, name);
    let most = found.concurrency.map_or(DEFAULT_DEPTH, |found| found.recommended);
    let most = most.clamp(DEFAULT_DEPTH, WORKERS_MAX);
    let default_workers = match target {
        Target::Postgres18 => FEW_WORKERS,
        _ => WORKERS_DEFAULT,
    };
    let names = [most_workers(default_workers), most_workers(most)];
    let (Some(few), Some(many)) = (case(&names[0]), case(&names[1])) else {
        return (Method { is_uring: false, workers: default_workers }, Vec::new());
    };
    let workers = match gain_of_workers(found, default_workers, most, is_complete) {
        Some(_) => most,
        None => default_workers,
    };
    let uring = case("io_uring");
    let is_faster_uring = uring.is_some_and(|uring| {
        is_faster(uring, many)
            && is_faster(uring, few)
            && !is_slower(case("sequential, io_uring"), case(&sequential(most)))
    });
    let shown: Vec<String> =
        [Some(few), Some(many), uring].into_iter().flatten().map(shown).collect();
    let what = format!(
        "Cold random reads through the page cache with trunkline's engine, {} in flight{}: {}.",
        many.depth,
        if found.has_io_burst() { ", after the burst credit was used up" } else { "" },
        shown.join(", ")
    );
    // A server does more than read: it checksums and copies, and it has methods of its own.
    let sure = |case: &Case| match target {
        Target::Trunkline => confidence(case, is_complete),
        _ => confidence(case, is_complete).lower(),
    };
    let line = match uring {
        Some(uring) if is_faster_uring => {
            let loss = loss(uring, few, "of these reads");
            let line = Line::change("io_method", "io_uring", what, sure(uring), loss);
            match target {
                // It uses another method where io_uring is missing.
                Target::Trunkline => line.with_restart(),
                _ => line.held_back(
                    "Commented out, because a server that was built without io_uring, or may not use \
                     it, doesn't start: first run trunkline doctor -D DIR -c io_method=io_uring, and \
                     try it on a cluster that may fail.",
                ),
            }
        }
        _ => {
            let why = found.no_uring.as_ref().map_or(String::new(), |why| format!(" {why}."));
            let stays = match uring {
                Some(uring) if is_faster(uring, few) => {
                    "io_uring isn't faster than enough workers in random reads, or slower in order, so \
                     the default stays."
                }
                _ => "io_uring wasn't measured to be faster, so the default stays.",
            };
            Line::default("io_method", "worker", format!("{what}{why}"), sure(few)).because(stays)
        }
    };
    let is_uring = line.changed;
    let mut lines = vec![line];
    let mut add = |name, value, numbers, note| {
        lines.extend(worker_line(found, (name, value), numbers, is_uring, note, is_complete));
    };
    match target {
        Target::Postgres18 => add("io_workers", "3", (default_workers, most), ""),
        _ => {
            add("io_min_workers", "2", (FEW_WORKERS, workers), POOL_GROWS);
            add("io_max_workers", "8", (default_workers, most), "");
        }
    }
    (Method { is_uring, workers }, lines)
}

/// What was measured, how sure it is, and what the default loses.
type Gain = (String, Confidence, (Option<f64>, String));

/// Why the workers that a pool begins with matter.
const POOL_GROWS: &str = " A server begins with io_min_workers and adds one every 100 ms \
                          (io_worker_launch_interval), which is too late for a shorter query.";

/// The case of reads in order with this many workers.
fn sequential(workers: u32) -> String {
    format!("sequential, {}", most_workers(workers))
}

/// What more workers gain, if they don't make reads in order slower.
fn gain_of_workers(found: &DeviceFindings, few: u32, many: u32, is_complete: bool) -> Option<Gain> {
    let case = |name: &str| case(&found.methods, name);
    if is_slower(case(&sequential(many)), case(&sequential(few))) {
        return None;
    }
    let (default, best) = case(&most_workers(few)).zip(case(&most_workers(many)))?;
    let measured = is_faster(best, default).then(|| {
        (
            format!("Cold random reads: {}, {}.", shown(default), shown(best)),
            confidence(best, is_complete),
            loss(best, default, "of these reads"),
        )
    });
    measured.or_else(|| burst_of_workers(found, few, many, is_complete))
}

/// What more workers gain while a burst credit lasts, from the sweep of depths. The methods are compared
/// after the credit has ended, when fewer workers are enough.
fn burst_of_workers(
    found: &DeviceFindings,
    default: u32,
    most: u32,
    is_complete: bool,
) -> Option<Gain> {
    if !found.has_io_burst() {
        return None;
    }
    // As many reads as workers. If that wasn't measured, no more than in proportion to fewer.
    let below = found.depths.iter().rfind(|step| step.depth <= default)?;
    let factor = f64::from(default) / f64::from(below.depth);
    let Estimate { median, low, high } = below.ios_per_second;
    let few = Estimate { median: median * factor, low: low * factor, high: high * factor };
    let best = best_at(&found.depths, most)?;
    let percent = lost(&few, &best.ios_per_second)?;
    let what = format!(
        "Direct random reads while credit lasts: at most {} with {default} in flight, {} with {}.",
        per_second(few.median),
        per_second(best.ios_per_second.median),
        best.depth
    );
    let sure = Confidence::of(&best.ios_per_second, best.steady, is_complete).lower();
    let text = format!("The default loses {percent} % of these reads while credit lasts.");
    Some((what, sure, (Some(percent), text)))
}

/// A line of the pool of workers: `many` of them, if that is measured to be faster than `few`.
fn worker_line(
    found: &DeviceFindings,
    (name, value): (&str, &str),
    (few, many): (u32, u32),
    is_uring: bool,
    note: &str,
    is_complete: bool,
) -> Option<Line> {
    let case = |workers| case(&found.methods, &most_workers(workers));
    let (default, best) = case(few).zip(case(many))?;
    let sure = confidence(best, is_complete);
    if is_uring {
        let why = "Has no effect with io_method = io_uring.";
        return Some(Line::unused(name, value, why, sure));
    }
    Some(match gain_of_workers(found, few, many, is_complete) {
        Some((what, sure, loss)) => Line::change(name, many, format!("{what}{note}"), sure, loss),
        None => {
            let what = format!("Cold random reads: {}, {}.", shown(default), shown(best));
            Line::default(name, value, what, sure)
        }
    })
}

fn concurrency(
    found: &DeviceFindings,
    method: &Method,
    target: Target,
    is_complete: bool,
) -> Vec<Line> {
    let (Some(concurrency), Some(default)) = (found.concurrency, found.at_depth(DEFAULT_DEPTH))
    else {
        return Vec::new();
    };
    let rate = |step: &Step| per_second(step.ios_per_second.median);
    // Requests that no worker takes are executed by the session itself, one after the other.
    let most = match method.is_uring {
        true => CONCURRENCY_MAX,
        false => method.workers.max(DEFAULT_DEPTH),
    };
    let value = concurrency.recommended.min(most);
    let mut note = match value < concurrency.recommended {
        true => format!(
            " {} would keep the device busy, but io_method = worker can't use more than {value}.",
            concurrency.recommended
        ),
        false => String::new(),
    };
    if concurrency.is_cut {
        note += " The burst credit ended before the rate stopped to grow, so more may be better.";
    }
    let product = format!("latency x throughput is {}.{note}", concurrency.product);
    // Both were measured in turn, so nothing but the number differs.
    let few = case(&found.in_flight, &format!("{DEFAULT_DEPTH} in flight"));
    let many = case(&found.in_flight, &format!("{value} in flight"));
    let line = |name: &str| match few.zip(many) {
        Some((few, many)) if value > DEFAULT_DEPTH && is_faster(many, few) => {
            let what = format!("Random reads of 8 kB: {}, {}; {product}", shown(few), shown(many));
            let loss = loss(many, few, "of the reads of bitmap scans at full speed");
            Line::change(name, value, what, confidence(many, is_complete), loss)
        }
        Some((few, many)) if value > DEFAULT_DEPTH => {
            let what = format!("Random reads of 8 kB: {}, {}; {product}", shown(few), shown(many));
            Line::default(name, "16", what, confidence(few, is_complete))
        }
        _ => {
            let best = best_at(&found.depths, value).unwrap_or(default);
            let what = format!(
                "Random reads of 8 kB: {} with 16 in flight, {} with {}; {product}",
                rate(default),
                rate(best),
                best.depth
            );
            let sure = Confidence::of(&default.ios_per_second, default.steady, is_complete);
            Line::default(name, "16", what, sure)
        }
    };
    let mut all = vec![line("effective_io_concurrency"), line("maintenance_io_concurrency")];
    // trunkline gives a session what its read streams need.
    if target != Target::Trunkline && concurrency.recommended > OWN_CONCURRENCY {
        all.push(max_concurrency(concurrency.recommended));
    }
    all
}

/// `io_max_concurrency` matters only together with `io_uring` and a larger
/// `effective_io_concurrency`, which are up to the user.
fn max_concurrency(wanted: u32) -> Line {
    let bytes = max_concurrency_bytes(wanted, COMBINE);
    let why = format!(
        "With io_method = io_uring, {wanted} reads in flight need as much here and in \
         effective_io_concurrency, and about {} MB of shared memory in a server with default settings \
         (eight times that with io_max_combine_limit = 1MB). By itself, a server chooses what \
         shared_buffers permit, at most {OWN_CONCURRENCY}. Nothing was measured.",
        bytes >> 20,
    );
    Line::unused("io_max_concurrency", "-1", &why, Confidence::Low)
}

/// Shared memory of the I/O handles of a server with default settings, in bytes.
pub(crate) fn max_concurrency_bytes(handles: u32, combine: u32) -> u64 {
    let (handle, page) = HANDLE_BYTES;
    STOCK_OWNERS * u64::from(handles) * (handle + u64::from(combine / PAGE) * page)
}

fn combine(found: &DeviceFindings, cluster: &ClusterFacts, is_complete: bool) -> Vec<Line> {
    let step = |size: u32| found.sizes.iter().find(|step| step.size == size);
    let Some(enough) = found.size_that_is_enough() else { return Vec::new() };
    let value = enough.min(cluster.combine_max());
    let (Some(default), Some(best)) = (step(COMBINE), step(enough)) else { return Vec::new() };
    let shown = |step: &Step| {
        let rate = step.bytes_per_second.median / 1e6;
        format!("{rate:.0} MB/s with {} kB", step.size / 1024)
    };
    let note = match value < enough {
        true => format!(
            " A session may pin {} pages, too few for {COMBINED_IN_FLIGHT} reads of {} kB in flight, \
             which takes larger shared_buffers.",
            cluster.pinned_pages,
            enough / 1024
        ),
        false => String::new(),
    };
    let what = format!("Reads in order, 16 in flight: {}, {}.{note}", shown(default), shown(best));
    let of_size = |size: u32| case(&found.combined, &format!("{} kB", size / 1024));
    let line = |name: &str| match of_size(COMBINE).zip(of_size(value)) {
        Some((few, many)) if value > COMBINE && is_larger_faster(many, few, value) => {
            let speed = |case: &Case, size: u32| case.value.median * f64::from(size) / 1e6;
            let (few_speed, many_speed) = (speed(few, COMBINE), speed(many, value));
            let percent = rounded((1.0 - few_speed / many_speed) * 100.0, 0);
            let what = format!(
                "{what} In turn, through the page cache: {few_speed:.0} and {many_speed:.0} MB/s with \
                 {} and {} kB.",
                COMBINE / 1024,
                value / 1024
            );
            let loss = format!("The default loses {percent} % of the speed of sequential scans.");
            let sure = confidence(many, is_complete);
            let value = format!("{}kB", value / 1024);
            Line::change(name, value, what, sure, (Some(percent), loss))
        }
        _ => {
            let sure = Confidence::of(&default.bytes_per_second, default.steady, is_complete);
            Line::default(name, "128kB", what.clone(), sure)
        }
    };
    // A server never takes more than the maximum.
    vec![line("io_max_combine_limit").with_restart(), line("io_combine_limit")]
}

/// [`is_faster`] for reads of different sizes, by their bytes.
fn is_larger_faster(large: &Case, default: &Case, size: u32) -> bool {
    let factor = f64::from(size / COMBINE);
    large
        .ratio(default)
        .is_some_and(|ratio| ratio.low * factor > 1.0 && ratio.median * factor >= GAIN_MIN)
}

/// The ratio of the times of a random page and of a page in order, as PostgreSQL's planner counts it.
/// An index scan in 18 and 19 waits for each page, so its time is the latency.
pub(crate) fn page_cost(latency_seconds: f64, bytes_per_second: f64) -> f64 {
    let ratio = latency_seconds / (f64::from(PAGE) / bytes_per_second);
    rounded(ratio.clamp(1.0, PAGE_COST), 1)
}

/// How long a random read takes, in seconds: what a server waits for it, idle or at once after the
/// last one, or the time in which the device does one of many, whichever is longer.
pub(crate) fn random_seconds(found: &DeviceFindings) -> Option<f64> {
    let latency = found.latency_seconds()?;
    // A device that saves power may be slow after a pause.
    let busy = found.at_depth(1).and_then(|step| step.micros).map(|times| times.p50 / 1e6);
    let per_read = found.iops.as_ref().map_or(0.0, |limit| 1.0 / limit.sustained.median.max(1e-9));
    Some(latency.min(busy.unwrap_or(latency)).max(per_read))
}

fn random_page_cost(found: &DeviceFindings, is_complete: bool) -> Option<Line> {
    let (random, bandwidth) = (random_seconds(found)?, found.bandwidth.as_ref()?);
    // As a server with default settings reads in order, if that was measured.
    let in_order = found.methods.iter().filter(|case| case.name.starts_with("sequential, worker"));
    let in_order = in_order.map(|case| case.value.median * f64::from(COMBINE)).reduce(f64::max);
    let rate = in_order.unwrap_or(bandwidth.sustained.median);
    let cost = page_cost(random, rate);
    let page = f64::from(PAGE) / rate;
    let what = format!(
        "A random read takes {:.0} µs, a page in order {:.1} µs, {:.1} times less, if neither is cached. \
         How many are cached isn't measured. With a lower value, the planner prefers index scans, which \
         wait for each read, to bitmap scans, which don't.",
        random * 1e6,
        page * 1e6,
        random / page,
    );
    // How much of it is cached, a server knows only while it runs.
    let sure = Confidence::of(&bandwidth.sustained, bandwidth.steady, is_complete).lower();
    let name = "random_page_cost";
    if cost * GAIN_MIN >= PAGE_COST {
        return Some(Line::default(name, "4.0", what, sure));
    }
    let loss = format!(
        "With the default, the planner takes random reads for {:.1} times as expensive.",
        PAGE_COST / cost
    );
    Some(Line::change(name, format!("{cost:.1}"), what, sure, (None, loss)))
}

fn wal_sync_method(found: &DeviceFindings, is_complete: bool) -> Option<Line> {
    let (name, best_name) = ("wal_sync_method", "open_datasync");
    let default = case(&found.durable, "fdatasync")?;
    let all: Vec<String> = found.durable.iter().map(shown).collect();
    let what = format!("Durable writes of 8 kB: {}.", all.join(", "));
    let many = |name: &str| case(&found.durable, &format!("{name}, {DURABLE_SESSIONS} sessions"));
    let (few, many) = (case(&found.durable, best_name), [many(best_name), many("fdatasync")]);
    match (few, many) {
        (Some(best), [Some(many), Some(many_default)])
            if is_faster(best, default) && !is_slower(Some(many), Some(many_default)) =>
        {
            let loss = loss(best, default, "of the commits of one session");
            Some(Line::change(name, best_name, what, confidence(best, is_complete), loss))
        }
        _ => Some(Line::default(name, "fdatasync", what, confidence(default, is_complete))),
    }
}

fn flush(found: &DeviceFindings, name: &str, default: &str, is_complete: bool) -> Option<Line> {
    let usual = case(&found.flush, default)?;
    let measured = || found.flush.iter();
    let best = measured().min_by(|a, b| a.value.median.total_cmp(&b.value.median))?;
    let millis = |case: &Case| format!("{} {:.1} ms", case.name, case.value.median / 1e3);
    let all: Vec<String> = measured().map(millis).collect();
    let what = format!("Mean time of commits beside page writes: {}.", all.join(", "));
    // Here, less is better.
    let is_better = is_faster(usual, best);
    if best.name == default || !is_better {
        return Some(Line::default(name, default, what, confidence(usual, is_complete)));
    }
    let percent = rounded((1.0 - best.value.median / usual.value.median) * 100.0, 0);
    let loss = format!("With the default, that is {percent} % longer than it needs to be.");
    let loss = (Some(percent), loss);
    Some(Line::change(name, &best.name, what, confidence(best, is_complete), loss))
}

/// The case with this name.
fn case<'c>(cases: &'c [Case], name: &str) -> Option<&'c Case> {
    cases.iter().find(|case| case.name == name)
}

/// The measured step that a recommended depth is nearest to, from above.
fn best_at(steps: &[Step], depth: u32) -> Option<&Step> {
    steps.iter().find(|step| step.depth >= depth).or(steps.last())
}

/// Whether the interval of the ratio excludes that the case isn't faster, and it is worth a change.
fn is_faster(case: &Case, other: &Case) -> bool {
    case.ratio(other).is_some_and(|ratio| ratio.low > 1.0 && ratio.median >= GAIN_MIN)
}

/// Whether the interval of the ratio doesn't exclude that the case is slower. A case that wasn't
/// measured isn't.
fn is_slower(case: Option<&Case>, other: Option<&Case>) -> bool {
    let ratio = case.zip(other).and_then(|(case, other)| case.ratio(other));
    ratio.is_some_and(|ratio| ratio.low < LOSS_MAX)
}

/// What the default loses in percent, if both intervals exclude that it loses nothing.
fn lost(default: &Estimate, best: &Estimate) -> Option<f64> {
    let gain = best.median / default.median;
    let is_gain = best.low > default.high && gain >= GAIN_MIN;
    is_gain.then(|| rounded((1.0 - 1.0 / gain) * 100.0, 0))
}

fn loss(best: &Case, default: &Case, of: &str) -> (Option<f64>, String) {
    let percent = rounded((1.0 - default.value.median / best.value.median) * 100.0, 0);
    (Some(percent), format!("The default loses {percent} % {of}."))
}

/// The confidence of a case of a comparison.
fn confidence(case: &Case, is_complete: bool) -> Confidence {
    match case.samples.len() >= Estimate::samples_min(0.975) {
        true => Confidence::of(&case.value, true, is_complete),
        false => Confidence::Low,
    }
}

fn shown(case: &Case) -> String {
    let Estimate { low, high, .. } = case.value;
    format!("{} {} ({low:.0}..{high:.0})", case.name, per_second(case.value.median))
}

fn per_second(rate: f64) -> String {
    format!("{rate:.0}/s")
}
