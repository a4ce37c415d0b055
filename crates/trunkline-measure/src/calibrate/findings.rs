//! **Findings**: everything that a calibration has found about a device.

use serde::{Deserialize, Serialize};

use super::comparison::Case;
use super::confidence::Confidence;
use super::limit::Limit;
use super::load::{DEFAULT_DEPTH, PAGE};
use super::step::Step;
use super::sweep::KNEE;
use crate::rounding::rounded;

/// Largest value of `effective_io_concurrency`.
pub(crate) const CONCURRENCY_MAX: u32 = 1000;
/// Something else limits a rate if it is within this part of that other limit.
const NEAR: f64 = 0.9;

/// What is known about a device.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct DeviceFindings {
    /// Size of the scratch file.
    pub file_bytes: u64,
    /// Writing the scratch file in order.
    pub fill: Option<Step>,
    /// Reads of a page with long pauses, so that no limit is reached.
    pub latency: Option<Step>,
    /// Random reads of a page at rising depth.
    pub depths: Vec<Step>,
    /// Reads in order at rising size, 16 in flight.
    pub sizes: Vec<Step>,
    /// The limit on I/Os per second.
    pub iops: Option<Limit>,
    /// The limit on bytes per second.
    pub bandwidth: Option<Limit>,
    /// How many reads in flight keep the device busy.
    pub concurrency: Option<Concurrency>,
    /// Random reads with the default number in flight and with those that may be recommended, in turn.
    #[serde(default)]
    pub in_flight: Vec<Case>,
    /// Buffered reads in order of the default's size and of the one that may be recommended, in turn.
    #[serde(default)]
    pub combined: Vec<Case>,
    /// Random reads and writes, 70 to 30, with the recommended number in flight. The times are those of
    /// reads.
    pub mixed: Option<Step>,
    /// The same at rising depth, up to the recommended number and at least to 16.
    #[serde(default)]
    pub mixed_depths: Vec<Step>,
    /// Random writes of a page at rising depth.
    #[serde(default)]
    pub random_writes: Vec<Step>,
    /// Writes in order at rising size, 16 in flight.
    #[serde(default)]
    pub sequential_writes: Vec<Step>,
    /// Durable writes of a page by a rising number of sessions, with the faster one of fdatasync and
    /// open_datasync.
    #[serde(default)]
    pub durable_sessions: Vec<Step>,
    /// Durable writes of one session at rising size, with the same method.
    #[serde(default)]
    pub durable_sizes: Vec<Step>,
    /// Cold reads through the page cache with each I/O method.
    pub methods: Vec<Case>,
    /// Durable writes of a page with each method of `wal_sync_method`.
    pub durable: Vec<Case>,
    /// Durable writes beside writes of pages, with several flush settings. Microseconds.
    pub flush: Vec<Case>,
    /// The rates of the long runs over time.
    pub series: Vec<Series>,
    /// What wasn't measured, and why.
    pub skipped: Vec<String>,
    /// Why io_uring wasn't measured, if it wasn't.
    #[serde(default)]
    pub no_uring: Option<String>,
    /// Why reads that should bypass the page cache may not have, which makes everything uncertain.
    #[serde(default)]
    pub not_direct: Option<String>,
}

/// The rate of a long run over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// What ran.
    pub name: String,
    /// The unit of the rates.
    pub unit: String,
    /// Seconds since the beginning of the run, and the rate.
    pub points: Vec<(f64, f64)>,
}

/// How many reads of a page it takes to keep the device busy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Concurrency {
    /// The latency times the highest rate, which is Little's law.
    pub product: f64,
    /// Where the measured rates reach 95 % of the highest one. A device whose I/Os get slower under
    /// load needs more than the product.
    pub knee: f64,
    /// The number to use.
    pub recommended: u32,
    /// Whether a credit ended before the rate stopped to grow, so that all of these are at least as
    /// high.
    #[serde(default)]
    pub is_cut: bool,
}

impl Concurrency {
    /// Combines latency (seconds) and rate with the knee of the sweep. `cut_after` is the last depth
    /// before a credit ended while the rate still grew, if one did.
    pub(crate) fn of(latency: f64, rate: f64, knee: f64, cut_after: Option<u32>) -> Self {
        let (product, knee) = (rounded(latency * rate, 2), rounded(knee, 2));
        // Rounded first: 16.0000001 is 16. A knee below the last depth is only that of the rates so far.
        let recommended = (knee.ceil() as u32).max(cut_after.unwrap_or(1));
        let recommended = recommended.clamp(1, CONCURRENCY_MAX);
        Self { product, knee, recommended, is_cut: cut_after.is_some() }
    }
}

impl DeviceFindings {
    /// The latency in seconds: the median of an idle device.
    pub fn latency_seconds(&self) -> Option<f64> {
        Some(self.latency.as_ref()?.micros?.p50 / 1e6)
    }

    /// Whether small reads are limited by bandwidth rather than by their number, and large reads the
    /// other way round. What limits both is the only limit that was reached.
    pub(crate) fn tell_limits_apart(&mut self, read_size: u32, depth_max: u32) {
        let (Some(iops), Some(bandwidth)) = (&mut self.iops, &mut self.bandwidth) else { return };
        let small = iops.sustained.median * f64::from(PAGE);
        let large = bandwidth.sustained.median / f64::from(read_size);
        let is_latency_bound = self.concurrency.is_some_and(|found| {
            // Even the deepest step was faster than the one before it.
            found.knee > f64::from(depth_max) * NEAR
        });
        iops.reached = small < NEAR * bandwidth.sustained.median && !is_latency_bound;
        bandwidth.reached = large < NEAR * iops.sustained.median;
        // With reads that saturate either limit, both comparisons can't hold, except through noise.
        if !iops.reached && !bandwidth.reached {
            bandwidth.reached = !is_latency_bound;
        }
    }

    /// Whether the number of I/Os has a burst.
    pub(crate) fn has_io_burst(&self) -> bool {
        self.iops.as_ref().is_some_and(|limit| limit.burst.is_some())
    }

    /// The confidence of a rate of writes, which is never high: a write cache may hold all of them.
    pub(crate) fn of_writes(&self, confidence: Confidence) -> Confidence {
        self.capped(confidence).min(Confidence::Medium)
    }

    /// A confidence, which is low if reads may have been served from the page cache.
    pub(crate) fn capped(&self, confidence: Confidence) -> Confidence {
        if self.not_direct.is_some() { Confidence::Low } else { confidence }
    }

    /// The number of reads in flight that keeps the device busy; the default's if it isn't known.
    pub(crate) fn concurrency_or_default(&self) -> u32 {
        self.concurrency.map_or(DEFAULT_DEPTH, |found| found.recommended)
    }

    /// The step of the sweep with this depth.
    pub(crate) fn at_depth(&self, depth: u32) -> Option<&Step> {
        self.depths.iter().find(|step| step.depth == depth)
    }

    /// The smallest size of reads in order that is nearly as fast as the best one.
    pub(crate) fn size_that_is_enough(&self) -> Option<u32> {
        let rate = |step: &Step| step.bytes_per_second.median;
        let best = self.sizes.iter().map(rate).fold(0.0, f64::max);
        self.sizes.iter().find(|step| rate(step) >= KNEE * best).map(|step| step.size)
    }
}
