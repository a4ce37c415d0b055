//! **Section**: the results of one workload in the report, replaced after each round.

use trunkline_aio::facade::{Arc, Mutex};

use super::series::{Series, over_defaults_if_held, timed};
use crate::repetition::RepetitionRule;
use crate::report::{Key, Measurement, Report, Skipped};
use crate::versus::{best, versus};
use crate::workload::Case;

/// The report of a measurement that may still be running. Clones share it.
#[derive(Debug, Clone)]
pub struct Results(pub(super) Arc<Mutex<Report>>);

impl Results {
    /// The report as far as it is known.
    pub fn report(&self) -> Report {
        self.0.lock().clone()
    }
}

/// Where the results of a workload are in the report: after those of the workloads before it.
pub(super) struct Section {
    pub(super) measurements: usize,
    pub(super) best: usize,
    pub(super) skipped: usize,
    rule: RepetitionRule,
    /// The server's name.
    pub(super) server: String,
}

impl Section {
    pub(super) fn after(report: &Report, rule: RepetitionRule) -> Self {
        Self {
            measurements: report.measurements.len(),
            best: report.best.len(),
            skipped: report.skipped.len(),
            rule,
            server: report.server.as_ref().map(|server| server.name.clone()).unwrap_or_default(),
        }
    }

    /// Puts the results of the workload into the report, in the order of its cases. They replace
    /// those of the round before.
    pub(super) fn publish(&self, all: &[Series], results: &Results) {
        let measurements: Vec<Measurement> =
            all.iter().filter_map(|series| self.measurement(series, all)).collect();
        let skip = |series: &Series| {
            let key = Key::of(&series.case, &self.server);
            Some(Skipped { key, reason: series.problem.clone()? })
        };
        let mut compared: Vec<&Case> = Vec::new();
        let fastest = all.iter().filter_map(|series| {
            let is_new = !compared.iter().any(|case| case.is_comparable(&series.case));
            compared.extend(is_new.then_some(&series.case));
            let of = |is_server| timed(all, &series.case, is_server);
            is_new.then(|| best(&of(false), &of(true), &self.rule)).flatten()
        });
        let mut report = results.0.lock();
        report.measurements.truncate(self.measurements);
        report.measurements.extend(measurements);
        report.best.truncate(self.best);
        report.best.extend(fastest);
        report.skipped.truncate(self.skipped);
        report.skipped.extend(all.iter().filter_map(skip));
    }

    pub(super) fn measurement(&self, series: &Series, all: &[Series]) -> Option<Measurement> {
        let key = Key::of(&series.case, &self.server);
        let mut measurement = Measurement::of(key, &series.repetitions, &self.rule, series.ended)?;
        if series.case.server.is_none() {
            let servers = timed(all, &series.case, true);
            measurement.versus = versus(series.timed(), &servers, &self.rule);
        } else {
            measurement.over_defaults = over_defaults_if_held(series, all, &self.rule);
        }
        Some(measurement)
    }
}
