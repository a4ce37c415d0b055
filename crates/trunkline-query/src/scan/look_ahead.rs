//! How far ahead of its consumer a scan may look without knowing how much is wanted.
//!
//! After `n` items have been used, `n / 64` of the next ones are asked for together, and `n / 2` if the
//! consumer had to wait for I/O (decision 0031, batches of leaves). So a consumer that stops early has
//! read at most 1/64 in vain if everything is cached, and half as much again as it needed otherwise.

/// Items that are asked for together if nothing had to be waited for: one for this many before.
const CACHED_SHARE: u64 = 64;

/// The same if the consumer had to wait.
const WAITED_SHARE: u64 = 2;

/// Decides how many items are asked for together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LookAhead {
    used: u64,
    most: usize,
    waited: bool,
}

impl LookAhead {
    /// At most `most` items are asked for together.
    pub(crate) fn new(most: usize) -> Self {
        Self { used: 0, most: most.max(1), waited: false }
    }

    /// How many items to ask for.
    pub(crate) fn wanted(&self) -> usize {
        let share = if self.waited { WAITED_SHARE } else { CACHED_SHARE };
        usize::try_from(self.used / share).unwrap_or(usize::MAX).clamp(1, self.most)
    }

    /// The consumer has used these items, and had to wait for them or not.
    pub(crate) fn used(&mut self, items: usize, waited: bool) {
        self.used = self.used.saturating_add(items as u64);
        self.waited = waited;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of items of the first requests.
    fn wanted(waited: bool, most: usize) -> Vec<usize> {
        let mut ahead = LookAhead::new(most);
        let mut found = Vec::new();
        for _ in 0..12 {
            found.push(ahead.wanted());
            ahead.used(ahead.wanted(), waited);
        }
        found
    }

    #[test]
    fn requests_grow_only_with_waits() {
        assert_eq!(wanted(false, 100), [1; 12]);
        assert_eq!(wanted(true, 100), [1, 1, 1, 1, 2, 3, 4, 6, 9, 14, 21, 31]);
        assert_eq!(wanted(true, 4), [1, 1, 1, 1, 2, 3, 4, 4, 4, 4, 4, 4]);
    }

    /// Whatever is used last, at most one item of 64 was asked for in vain, or half as many as were used.
    #[test]
    fn a_consumer_that_stops_has_asked_for_little_in_vain() {
        for (waited, share) in [(false, CACHED_SHARE), (true, WAITED_SHARE)] {
            let mut ahead = LookAhead::new(1 << 20);
            let mut used = 0;
            for _ in 0..2000 {
                let wanted = ahead.wanted() as u64;
                // The consumer stops after the first item of the request.
                assert!(wanted - 1 <= used / share, "{wanted} after {used}");
                ahead.used(wanted as usize, waited);
                used += wanted;
            }
            assert!(used > 1 << 12, "{used}");
        }
    }
}
