//! **Settings**: which lines follow from what was found.
//!
//! | Setting | Rule |
//! |---|---|
//! | `io_method` | `io_uring` if cold buffered reads are faster with it than with as many workers as help, by at least 5 % and outside of the interval, and reads in order aren't slower; otherwise `worker` |
//! | `io_workers`, `io_min_workers`, `io_max_workers` | as many as reads in flight, at most 32, if that is measured to be faster than the default |
//! | `effective_io_concurrency`, `maintenance_io_concurrency` | the knee of random reads, if it is above 16 and faster |
//! | `io_max_concurrency` | as above, if that is more than the 64 that servers choose by themselves |
//! | `io_combine_limit` | the smallest size that reaches 95 % of the bandwidth, if it is above 128 kB and faster |
//! | `random_page_cost` | a tenth of the ratio of a random read to a page in order, between 1 and 4 |
//! | `wal_sync_method` | the fastest, if its interval excludes `fdatasync` |
//! | flush settings | the shortest 99th percentile of commits beside page writes, if its interval excludes the default |

use super::comparison::Case;
use super::confidence::Confidence;
use super::findings::{CONCURRENCY_MAX, DeviceFindings};
use super::line::{Line, Lines, Target};
use super::load::PAGE;
use super::search::{DEFAULT_DEPTH, WORKERS_MAX, most_workers};
use super::step::Step;
use super::sweep::KNEE;
use crate::estimate::Estimate;
use crate::rounding::rounded;

/// A change is recommended only if it is at least this much faster.
const GAIN_MIN: f64 = 1.05;
/// A change may cost this much elsewhere, as the interval of the ratio says.
const LOSS_MAX: f64 = 0.95;
/// PostgreSQL's default of `random_page_cost`. Its manual explains it as random reads that are 40
/// times as slow as reads in order, of which 90 % are expected in the cache.
const PAGE_COST: f64 = 4.0;
/// The part of random reads that PostgreSQL's manual expects to miss the cache.
const MISSES: f64 = 0.1;
/// The default of `io_combine_limit`, in bytes.
const COMBINE: u32 = 128 << 10;
/// `io_max_concurrency = -1` gives a session at most this many.
const OWN_CONCURRENCY: u32 = 64;

/// The recommendation of an I/O method, on which other settings depend.
struct Method {
    /// Whether it is `io_uring`.
    is_uring: bool,
    /// Workers that are worth having.
    workers: u32,
}

/// The lines for all targets.
pub(crate) fn settings(found: &DeviceFindings, has_own_log: bool, is_complete: bool) -> Vec<Lines> {
    let of = |target| Lines { target, lines: lines(found, target, has_own_log, is_complete) };
    Target::ALL.map(of).into()
}

fn lines(
    found: &DeviceFindings,
    target: Target,
    has_own_log: bool,
    is_complete: bool,
) -> Vec<Line> {
    let (method, mut lines) = io_method(found, target, is_complete);
    lines.extend(concurrency(found, &method, target, is_complete));
    lines.extend(combine(found, is_complete));
    if target != Target::Trunkline {
        lines.extend(random_page_cost(found, is_complete));
        if !has_own_log {
            lines.extend(wal_sync_method(found, is_complete));
        }
    }
    lines.extend(flush(found, "checkpoint_flush_after", "256kB", is_complete));
    lines.extend(flush(found, "bgwriter_flush_after", "512kB", is_complete));
    lines
}

/// The lines of the I/O method and its workers.
fn io_method(found: &DeviceFindings, target: Target, is_complete: bool) -> (Method, Vec<Line>) {
    let case = |name: &str| case(&found.methods, name);
    let most = found.concurrency.map_or(DEFAULT_DEPTH, |found| found.recommended);
    let most = most.clamp(DEFAULT_DEPTH, WORKERS_MAX);
    let default_workers = if target == Target::Postgres18 { 3 } else { 8 };
    let names = [most_workers(default_workers), most_workers(most)];
    let (Some(default), Some(many)) = (case(&names[0]), case(&names[1])) else {
        return (Method { is_uring: false, workers: default_workers }, Vec::new());
    };
    let [seq_default, seq_many] =
        ["sequential, worker, 3 workers".to_owned(), format!("sequential, {}", names[1])]
            .map(|name| case(&name));
    let helps = is_faster(many, default) && !is_slower(seq_many, seq_default);
    let (workers, best) = if helps { (most, many) } else { (default_workers, default) };
    let uring = case("io_uring");
    let is_uring = uring.is_some_and(|uring| {
        is_faster(uring, many)
            && is_faster(uring, default)
            && !is_slower(case("sequential, io_uring"), seq_many)
    });
    let mut lines = Vec::new();
    let shown: Vec<String> =
        [Some(default), Some(many), uring].into_iter().flatten().map(shown).collect();
    let what = format!(
        "Cold random reads through the page cache, {} in flight: {}.",
        many.depth,
        shown.join(", ")
    );
    match uring {
        Some(uring) if is_uring => {
            let loss = loss(uring, default, "of these reads");
            let line =
                Line::change("io_method", "io_uring", what, confidence(uring, is_complete), loss);
            lines.push(line.with_restart());
        }
        _ => {
            let why = found.skipped.iter().find(|text| text.contains(": io_uring: "));
            let why = why.and_then(|text| text.split_once(": io_uring: "));
            let why = why.map_or(String::new(), |(_, reason)| format!(" {reason}."));
            lines.push(Line::default(
                "io_method",
                "worker",
                format!("{what}{why}"),
                confidence(best, is_complete),
            ));
        }
    }
    lines.extend(worker_lines(target, (is_uring, helps), (default, many), is_complete));
    (Method { is_uring, workers }, lines)
}

fn worker_lines(
    target: Target,
    (is_uring, helps): (bool, bool),
    (default, many): (&Case, &Case),
    is_complete: bool,
) -> Vec<Line> {
    let names: &[(&str, &str)] = match target {
        Target::Postgres18 => &[("io_workers", "3")],
        _ => &[("io_min_workers", "2"), ("io_max_workers", "8")],
    };
    let most = many.depth.min(WORKERS_MAX);
    let line = |&(name, value): &(&str, &str)| {
        let what = format!("Cold random reads: {}, {}.", shown(default), shown(many));
        let confidence = confidence(many, is_complete);
        if is_uring {
            return Line::unused(name, value, "Has no effect with io_method = io_uring.");
        }
        if helps {
            let loss = loss(many, default, "of these reads");
            return Line::change(name, most, what, confidence, loss);
        }
        Line::default(name, value, what, confidence)
    };
    names.iter().map(line).collect()
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
    let Some(best) = best_at(&found.depths, concurrency.recommended) else { return Vec::new() };
    let rate = |step: &Step| per_second(step.ios_per_second.median);
    // Requests that no worker takes are executed by the session itself, one after the other.
    let most = match target {
        Target::Trunkline => CONCURRENCY_MAX,
        _ if method.is_uring => CONCURRENCY_MAX,
        _ => method.workers.max(DEFAULT_DEPTH),
    };
    let value = concurrency.recommended.min(most);
    let bound = match value < concurrency.recommended {
        true => format!(
            " {} would keep the device busy, but io_method = worker can't use more than {value}.",
            concurrency.recommended
        ),
        false => String::new(),
    };
    let what = format!(
        "Random reads of 8 kB: {} with 16 in flight, {} with {}; latency x throughput is {}.{bound}",
        rate(default),
        rate(best),
        best.depth,
        concurrency.product,
    );
    let sure = Confidence::of(&best.ios_per_second, best.steady, is_complete);
    let lost = lost(&default.ios_per_second, &best.ios_per_second);
    let lines = |name: &str| match lost {
        Some(percent) if value > DEFAULT_DEPTH => {
            let loss = format!(
                "The default loses {percent} % of the reads of bitmap scans at full speed."
            );
            Line::change(name, value, what.clone(), sure, (Some(percent), loss))
        }
        _ => Line::default(name, "16", what.clone(), sure),
    };
    let mut all = vec![lines("effective_io_concurrency"), lines("maintenance_io_concurrency")];
    if all.iter().any(|line| line.changed) && value > OWN_CONCURRENCY {
        let what = format!(
            "A session needs as many as effective_io_concurrency, and gets at most {OWN_CONCURRENCY} \
             by default. With io_uring, this takes locked memory: trunkline doctor -c \
             io_method=io_uring -c io_max_concurrency={value} predicts whether a server starts."
        );
        let default = found.at_depth(OWN_CONCURRENCY);
        let percent = default.and_then(|it| self::lost(&it.ios_per_second, &best.ios_per_second));
        let loss = match percent {
            Some(percent) => format!("The default loses {percent} % of random reads."),
            None => "The default limits a session to 64 reads in flight.".to_owned(),
        };
        let line = Line::change("io_max_concurrency", value, what, sure, (percent, loss));
        all.push(line.with_restart());
    }
    all
}

fn combine(found: &DeviceFindings, is_complete: bool) -> Vec<Line> {
    let rate = |step: &Step| step.bytes_per_second.median;
    let best = found.sizes.iter().map(rate).fold(0.0, f64::max);
    let (Some(default), Some(enough)) =
        (found.at_size(COMBINE), found.sizes.iter().find(|step| rate(step) >= KNEE * best))
    else {
        return Vec::new();
    };
    let shown = |step: &Step| format!("{:.0} MB/s with {} kB", rate(step) / 1e6, step.size / 1024);
    let what = format!("Reads in order, 16 in flight: {}, {}.", shown(default), shown(enough));
    let sure = Confidence::of(&enough.bytes_per_second, enough.steady, is_complete);
    let lost = lost(&default.bytes_per_second, &enough.bytes_per_second);
    let line = |name: &str| match lost {
        Some(percent) if enough.size > COMBINE => {
            let loss = format!("The default loses {percent} % of the speed of sequential scans.");
            let value = format!("{}kB", enough.size / 1024);
            Line::change(name, value, what.clone(), sure, (Some(percent), loss))
        }
        _ => Line::default(name, "128kB", what.clone(), sure),
    };
    // The maximum first: a server doesn't take more than it.
    vec![line("io_max_combine_limit").with_restart(), line("io_combine_limit")]
}

/// The ratio of the times of a random page and of a page in order, as PostgreSQL's planner counts it.
/// An index scan in 18 and 19 waits for each page, so its time is the latency.
pub(crate) fn page_cost(latency_seconds: f64, bytes_per_second: f64) -> f64 {
    let ratio = latency_seconds / (f64::from(PAGE) / bytes_per_second);
    rounded((ratio * MISSES).clamp(1.0, PAGE_COST), 1)
}

fn random_page_cost(found: &DeviceFindings, is_complete: bool) -> Option<Line> {
    let (latency, bandwidth) = (found.latency_seconds()?, found.bandwidth.as_ref()?);
    let rate = bandwidth.sustained.median;
    let cost = page_cost(latency, rate);
    let page = f64::from(PAGE) / rate;
    let what = format!(
        "A random read takes {:.0} µs, a page in order {:.1} µs, {:.0} times less; as in the default of 4, \
         90 % of random reads are taken to be cached, which isn't measured.",
        latency * 1e6,
        page * 1e6,
        latency / page,
    );
    // The part of cached reads is an assumption.
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
    let name = "wal_sync_method";
    let default = case(&found.durable, "fdatasync")?;
    let others = found.durable.iter().filter(|case| case.depth == 1);
    let best = others.clone().max_by(|a, b| a.value.median.total_cmp(&b.value.median))?;
    let all: Vec<String> = others.map(shown).collect();
    let what = format!("Durable writes of 8 kB by one session: {}.", all.join(", "));
    if best.name == default.name || !is_faster(best, default) {
        return Some(Line::default(name, "fdatasync", what, confidence(default, is_complete)));
    }
    let loss = loss(best, default, "of the commits of one session");
    Some(Line::change(name, &best.name, what, confidence(best, is_complete), loss))
}

fn flush(found: &DeviceFindings, name: &str, default: &str, is_complete: bool) -> Option<Line> {
    let usual = case(&found.flush, default)?;
    let measured = || found.flush.iter();
    let best = measured().min_by(|a, b| a.value.median.total_cmp(&b.value.median))?;
    let millis = |case: &Case| format!("{} {:.1} ms", case.name, case.value.median / 1e3);
    let all: Vec<String> = measured().map(millis).collect();
    let what = format!("99th percentile of commits beside page writes: {}.", all.join(", "));
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
