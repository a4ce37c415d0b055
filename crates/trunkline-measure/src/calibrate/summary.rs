//! **Summary**: the findings as a short table of names, values and notes.

use super::confidence::Confidence;
use super::durable_sweep::DurableSweep;
use super::findings::DeviceFindings;
use super::limit::Limit;
use super::step::Step;
use crate::estimate::Estimate;
use crate::latency::Percentiles;

/// A name, a value, and a note.
type Row = (String, String, String);

impl DeviceFindings {
    /// What was found, in a few lines.
    pub fn summary(&self, is_complete: bool) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut add = |name: &str, value: String, note: String| {
            rows.push((name.to_owned(), value, note));
        };
        if let Some((step, times)) = self.latency.as_ref().and_then(|it| Some((it, it.micros?))) {
            let note = format!("{}{}", p99(times), self.sure(step, is_complete));
            add("latency, idle", format!("{:.0} µs", times.p50), note);
        }
        if let Some(limit) = &self.iops {
            let (value, note) = self.limited(limit, "/s", 1.0, is_complete);
            add("random reads of 8 kB", value, note);
            burst(limit, "/s", 1.0, "I/Os").into_iter().for_each(|(value, note)| {
                add("  while credit lasts", value, note);
            });
        }
        if let Some(limit) = &self.bandwidth {
            let (value, note) = self.limited(limit, " MB/s", 1e6, is_complete);
            add("reads in order", value, note);
            burst(limit, " MB/s", 1e6, "MB").into_iter().for_each(|(value, note)| {
                add("  while credit lasts", value, note);
            });
        }
        if let Some(found) = self.concurrency {
            let note =
                format!("latency x throughput {}, measured knee {}", found.product, found.knee);
            let (at_least, why) = match found.is_cut {
                true => ("at least ", "; the credit ended while the rate still grew"),
                false => ("", ""),
            };
            add("reads in flight", format!("{at_least}{}", found.recommended), note + why);
        }
        if let Some((step, times)) = self.mixed.as_ref().and_then(|it| Some((it, it.micros?))) {
            let value = format!("{:.0}/s", step.ios_per_second.median);
            let reads = format!("reads p50 {:.0} µs, {}", times.p50, p99(times));
            let note = self.note_of_writes(step, &reads, self.iops.as_ref(), is_complete);
            add("mixed, 70 % reads", value, note);
        }
        self.writes(is_complete).into_iter().for_each(|(name, value, note)| {
            add(&name, value, note);
        });
        for case in &self.durable {
            let Estimate { median, low, high } = case.value;
            let p99 = case.micros.map(p99).unwrap_or_default();
            let note = format!("{p99}{low:.0}..{high:.0}");
            add(&format!("durable, {}", case.name), format!("{median:.0}/s"), note);
        }
        for sweep in DurableSweep::ALL {
            let steps = sweep.steps(self);
            let Some((first, last)) = steps.first().zip(steps.last()) else { continue };
            let (from, to) = (sweep.place(first), sweep.place(last));
            let name = format!("  {}, {from} to {to} {}", first.method, sweep.unit());
            let note = format!("{} over {} each", steadiness(steps), seconds(steps));
            add(&name, rates(steps, sweep), note);
        }
        rows
    }

    /// Writes without syncs: the fastest step of each sweep that was steady, if any was.
    fn writes(&self, is_complete: bool) -> Vec<Row> {
        let fastest = |steps: &'_ [Step]| {
            let rank = |step: &Step| (step.steady, step.bytes_per_second.median);
            let best = steps.iter().map(rank).reduce(|a, b| if b > a { b } else { a });
            steps.iter().find(|step| Some(rank(step)) == best).cloned()
        };
        let mut rows = Vec::new();
        if let Some(step) = fastest(&self.random_writes) {
            let value = format!("{:.0}/s", step.ios_per_second.median);
            let times = step.micros.map(p99).unwrap_or_default();
            let note = self.note_of_writes(&step, &times, self.iops.as_ref(), is_complete);
            rows.push(("random writes of 8 kB".to_owned(), value, note));
        }
        if let Some(step) = fastest(&self.sequential_writes) {
            let value = format!("{:.0} MB/s", step.bytes_per_second.median / 1e6);
            let times = step.micros.map(p99).unwrap_or_default();
            let note = self.note_of_writes(&step, &times, self.bandwidth.as_ref(), is_complete);
            let note = format!("of {} kB, {note}", step.size / 1024);
            rows.push(("writes in order".to_owned(), value, note));
        }
        rows
    }

    /// How a rate that has writes was measured. `limit` is that of reads alone, and `times` are
    /// latencies.
    fn note_of_writes(
        &self,
        step: &Step,
        times: &str,
        limit: Option<&Limit>,
        is_complete: bool,
    ) -> String {
        let synced = match (step.mode == "direct", &self.not_direct) {
            (true, None) => "",
            (true, Some(_)) => "synced, ",
            (false, _) => "buffered and synced, ",
        };
        let has_burst = limit.is_some_and(|limit| limit.burst.is_some());
        let credit = if has_burst { "after the credit had ended, " } else { "" };
        let steps = std::slice::from_ref(step);
        let (depth, steady, time) = (step.depth, steadiness(steps), seconds(steps));
        let confidence = Confidence::of(&step.ios_per_second, step.steady, is_complete);
        let confidence = self.of_writes(confidence);
        format!(
            "{synced}{depth} in flight, {times}{credit}{steady} over {time}, a write cache isn't excluded, \
             confidence {confidence}"
        )
    }

    fn sure(&self, step: &Step, is_complete: bool) -> String {
        let confidence =
            self.capped(Confidence::of(&step.ios_per_second, step.steady, is_complete));
        format!("confidence {confidence}")
    }

    fn limited(
        &self,
        limit: &Limit,
        unit: &str,
        scale: f64,
        is_complete: bool,
    ) -> (String, String) {
        let Estimate { median, low, high } = limit.sustained;
        let at_least = if limit.reached { "" } else { "at least " };
        let value = format!("{at_least}{:.0}{unit}", median / scale);
        let steady = match limit.steady {
            true => format!("steady after {} s at full speed", limit.measured_seconds),
            false => format!("not steady after {} s", limit.measured_seconds),
        };
        let confidence = self.capped(Confidence::of(&limit.sustained, limit.steady, is_complete));
        let (low, high) = (low / scale, high / scale);
        (value, format!("{low:.0}..{high:.0}, {steady}, confidence {confidence}"))
    }
}

/// The rates of the steps of a sweep, in order: bytes if their size rises.
fn rates(steps: &[Step], sweep: DurableSweep) -> String {
    let rate = |step: &Step| match sweep {
        DurableSweep::Size => format!("{:.1}", step.bytes_per_second.median / 1e6),
        DurableSweep::Sessions => format!("{:.0}", step.ios_per_second.median),
    };
    let unit = match sweep {
        DurableSweep::Size => " MB/s",
        DurableSweep::Sessions => "/s",
    };
    steps.iter().map(rate).collect::<Vec<_>>().join(" ") + unit
}

/// Whether all steps were steady.
fn steadiness(steps: &[Step]) -> String {
    match (steps.iter().filter(|step| !step.steady).count(), steps.len()) {
        (0, _) => "steady".to_owned(),
        (_, 1) => "not steady".to_owned(),
        (count, all) => format!("{count} of {all} not steady"),
    }
}

/// How long the steps were measured.
fn seconds(steps: &[Step]) -> String {
    let shortest = steps.iter().map(|step| step.seconds).fold(f64::INFINITY, f64::min);
    let longest = steps.iter().map(|step| step.seconds).fold(0.0, f64::max);
    let [first, last] = [shortest, longest].map(|seconds| format!("{seconds:.1}"));
    if first == last { format!("{first} s") } else { format!("{first}..{last} s") }
}

/// The 99th percentile, if there are enough I/Os for it.
fn p99(times: Percentiles) -> String {
    times.p99.map(|micros| format!("p99 {micros:.0} µs, ")).unwrap_or_default()
}

fn burst(limit: &Limit, unit: &str, scale: f64, units: &str) -> Option<(String, String)> {
    let burst = limit.burst.as_ref()?;
    let (credit, lasts) = (burst.credit / scale, burst.lasts_seconds);
    let note = format!("credit {credit:.0} {units}, lasts {lasts:.0} s at full speed");
    Some((format!("{:.0}{unit}", burst.rate / scale), note))
}
