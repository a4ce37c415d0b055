//! Random numbers: derived from the scheduler's seed in a scheduled run, otherwise from the kernel.
//!
//! There are no random numbers in the I/O path. We only use them to generate block lists, samples
//! and simulated faults. Each of these is generated from a seed, which can be printed and used
//! again to repeat the run.

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
        // If the kernel can't give us a random number, we use the clock, so that runs still differ.
        Err(_) => crate::clock::now().nanos(),
    }
}
