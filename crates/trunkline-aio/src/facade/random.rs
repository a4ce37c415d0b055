//! Random numbers: derived from the scheduler's seed in a scheduled run, otherwise from the kernel.
//!
//! The I/O path doesn't use random numbers. Block lists, samples and simulated faults do, but each
//! is generated from a seed that can be printed and reused.

pub use super::rng::Rng;

/// Returns a seed for a generator. Print it if the run should be reproducible.
#[expect(clippy::disallowed_methods, reason = "the façade's own source of randomness")]
pub fn seed() -> u64 {
    #[cfg(feature = "sched")]
    if let Some(value) = super::sched::random() {
        return value;
    }
    let mut bytes = [0_u8; 8];
    match rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty()) {
        Ok(_) => u64::from_le_bytes(bytes),
        // Without the kernel's generator, the clock still makes runs differ.
        Err(_) => crate::clock::now().nanos(),
    }
}
