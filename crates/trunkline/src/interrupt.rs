//! Ctrl-C: the first asks the command to end, the second ends it at once.
//!
//! Jobs ask [`Interrupt::requested`] between pieces of work, stop submitting, let what is in flight
//! finish, and report what they did. Should that hang (a dead mount), a second Ctrl-C leaves
//! without further ado. SIGTERM counts like Ctrl-C.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// What a shell reports for a program that Ctrl-C ended.
const EXIT_AT_ONCE: i32 = 128 + SIGINT;

/// Whether somebody asked to stop. Clones share the answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt {
    requested: Arc<AtomicBool>,
}

impl Interrupt {
    /// Takes over the signals of this process.
    ///
    /// # Errors
    /// The system's, if it refuses.
    pub(crate) fn install() -> io::Result<Interrupt> {
        let interrupt = Interrupt::default();
        for signal in [SIGINT, SIGTERM] {
            // In this order: the shutdown looks at the flag before the same signal sets it.
            let requested = Arc::clone(&interrupt.requested);
            flag::register_conditional_shutdown(signal, EXIT_AT_ONCE, requested)?;
            flag::register(signal, Arc::clone(&interrupt.requested))?;
        }
        Ok(interrupt)
    }

    /// Whether to end soon.
    pub(crate) fn requested(&self) -> bool {
        // Alone, orders nothing else.
        self.requested.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_signal_is_a_request() {
        let interrupt = Interrupt::install().expect("signals");
        assert!(!interrupt.requested());
        signal_hook::low_level::raise(SIGTERM).expect("raised");
        assert!(interrupt.clone().requested());
    }
}
