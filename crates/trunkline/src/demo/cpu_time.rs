//! Processor time of this process, to compare the cost of runs.

use std::time::Duration;

/// Runs `work`. Returns its result, and the processor time that it took in seconds.
pub(super) fn with_cpu_seconds<R>(work: impl FnOnce() -> R) -> (R, f64) {
    let before = cpu_time();
    let result = work();
    (result, cpu_time().saturating_sub(before).as_secs_f64())
}

/// Processor time of all threads of this process, including the kernel threads that work for it.
#[expect(clippy::disallowed_methods, reason = "only measured and shown, never acted upon")]
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
