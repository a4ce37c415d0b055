//! **Calibration of slow disks**: `trunkline calibrate` on twenty mounts, each with another latency,
//! bandwidth, number of I/Os and credit, which it has to find within 10 %.
//!
//! CI does the same with two of them, and with all kinds of disks on a simulated clock. What only a
//! mount can show is whether a real program on a real machine measures them. A busy machine adds its
//! own latency, so this needs an idle one. FUSE adds a tenth of a millisecond to each request and
//! takes a CPU for some ten thousand requests per second, so there is no latency below 2 ms here, and
//! no more than 5,000 I/Os per second.

use crate::failure::Failure;
use crate::tally::Tally;
use crate::tree::Checkout;

/// Profiles of `trunkline slow-disk`, whose limits are the same all the time.
const STEADY: [&str; 14] = [
    "latency=2ms,rate=20MB/s,iops=300",
    "latency=2ms,rate=100MB/s,iops=1000",
    "latency=2ms,rate=200MB/s,iops=3000",
    "latency=2ms,rate=400MB/s,iops=5000",
    "latency=5ms,rate=20MB/s,iops=500",
    "latency=5ms,rate=60MB/s,iops=300",
    "latency=5ms,rate=125MB/s,iops=3000",
    "latency=5ms,rate=300MB/s,iops=5000",
    "latency=10ms,rate=50MB/s,iops=1000",
    "latency=10ms,rate=200MB/s,iops=2000",
    "latency=10ms,rate=125MB/s,iops=3000,io_size=256KiB",
    "latency=20ms,rate=20MB/s,iops=300",
    "latency=20ms,rate=100MB/s,iops=1000",
    "latency=20ms,rate=300MB/s,iops=5000",
];

/// Profiles with credits, which last less than a minute at full speed.
const BURSTS: [&str; 6] = [
    "latency=2ms,rate=125MB/s,iops=300,burst_iops=3000,credit=54000io",
    "latency=5ms,rate=100MB/s,iops=500,burst_iops=3500,credit=60000io",
    "latency=10ms,rate=60MB/s,iops=400,burst_iops=1200,credit=20000io",
    "latency=20ms,rate=100MB/s,iops=1000,burst_iops=2000,credit=40000io",
    "latency=2ms,rate=50MB/s,burst_rate=200MB/s,credit=6GB,iops=2000",
    "latency=10ms,rate=100MB/s,burst_rate=170MB/s,credit=3GB,iops=1500",
];

/// Attempts to calibrate disks, counted from the output of the test.
#[derive(Debug, Default, PartialEq, Eq)]
struct Attempts {
    /// Disks of which all numbers were right.
    right: usize,
    /// Of these, disks whose credit ended before the rate stopped to grow, so that the number of reads
    /// in flight was "at least" a number that is too low.
    excused: usize,
    wrong: usize,
}

impl Attempts {
    /// Counts a line for an attempt, such as `calibrated latency=2ms,iops=300: ok`, and no other.
    fn line(&mut self, line: &str) {
        let Some(attempt) = line.trim().strip_prefix("calibrated ") else { return };
        let is_excused = attempt.ends_with(": ok (at least)");
        match is_excused || attempt.ends_with(": ok") {
            true => self.right += 1,
            false => self.wrong += 1,
        }
        self.excused += usize::from(is_excused);
    }

    fn summary(&self, disks: usize, seconds: &str) -> String {
        let Attempts { right, excused, wrong } = self;
        format!(
            "{right} of {disks} disks within 10 % in {seconds} s each, {excused} of them with \
             \"at least\" too few reads in flight, {wrong} attempts repeated"
        )
    }
}

/// Calibrates all of them, or one of the two lists.
pub(super) fn run(checkout: &Checkout, part: Option<&str>) -> Result<String, Failure> {
    // Only a credit needs the minute that each long run has by default. From 78 s on, each step that
    // writes runs.
    let runs = [("steady", &STEADY[..], "80"), ("bursts", &BURSTS[..], "180")];
    let wanted = runs.into_iter().filter(|(name, ..)| part.is_none_or(|part| part == *name));
    let summaries: Result<Vec<_>, _> =
        wanted.map(|(_, disks, seconds)| calibrate(checkout, disks, seconds)).collect();
    summaries.map(|all| all.join("; "))
}

/// Calibrates these, each for a number of seconds.
fn calibrate(checkout: &Checkout, disks: &[&str], seconds: &str) -> Result<String, Failure> {
    let command =
        "test --release -p trunkline --test environment limits_of_mounted -- --show-output";
    let test = checkout
        .cargo(command)
        .env("TRUNKLINE_CALIBRATED_DISKS", disks.join(";"))
        .env("TRUNKLINE_CALIBRATION_SECONDS", seconds);
    let (mut tally, mut attempts) = (Tally::default(), Attempts::default());
    let code = test.tee(|line| {
        attempts.line(line);
        tally.line(line)
    })?;
    let summary = attempts.summary(disks.len(), seconds);
    match code {
        Some(0) if attempts.right == disks.len() && tally.skipped.is_empty() => Ok(summary),
        _ => Err(Failure::new(format!("{test} failed: {summary}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excused_disk_is_right_and_counted() {
        let mut attempts = Attempts::default();
        for line in [
            "calibrated latency=2ms,iops=300: iops is 200, expected 300\n",
            "  calibrated latency=2ms,iops=300: ok\n",
            "calibrated latency=2ms,iops=300: ok (at least)\n",
            "test calibrate::limits ... ok\n",
        ] {
            attempts.line(line);
        }
        assert_eq!(attempts, Attempts { right: 2, excused: 1, wrong: 1 });
        assert!(
            attempts.summary(2, "80").starts_with("2 of 2 disks within 10 % in 80 s each, 1 of")
        );
    }
}
