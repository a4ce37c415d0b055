//! Processor time of this process, to compare the cost of runs.

use std::time::Duration;

/// Processor time of all threads of this process, including the kernel threads that work for it.
#[expect(clippy::disallowed_methods, reason = "only measured and shown, never acted upon")]
pub(super) fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
