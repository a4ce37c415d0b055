//! Random numbers: from the seed of the scheduler in a scheduled run, from the kernel otherwise.
//!
//! The I/O path doesn't use random numbers. Block lists, samples and simulated faults do, each from
//! a seed that can be printed and reused.

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

/// xorshift64* (Vigna 2016): small, fast, good enough for block lists and test data.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// Creates a generator; equal seeds give equal sequences.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `bound`; 0 if `bound` is 0. The bias is below 2^-32 for bounds below 2^32.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}
