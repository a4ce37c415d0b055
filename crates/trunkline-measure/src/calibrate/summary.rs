//! **Summary**: the findings as a short table of names, values and notes.

use super::confidence::Confidence;
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
            let note = format!(
                "{} in flight, reads p50 {:.0} µs, {}{}",
                step.depth,
                times.p50,
                p99(times),
                self.sure(step, is_complete)
            );
            add("mixed, 70 % reads", value, note);
        }
        for case in &self.durable {
            let Estimate { median, low, high } = case.value;
            let p99 = case.micros.map(p99).unwrap_or_default();
            let note = format!("{p99}{low:.0}..{high:.0}");
            add(&format!("durable, {}", case.name), format!("{median:.0}/s"), note);
        }
        rows
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
