//! Progress bar of a long command: bytes done, rate, and time left; for `bench`, repetitions.
//!
//! The bar is drawn on standard error, and only if standard error is a terminal, so it never ends
//! up in redirected output. It's hidden if the user gives `--no-progress` or `--json`. Callers
//! don't have to check any of these conditions.

use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often the spinner of a long repetition moves.
const TICK: Duration = Duration::from_millis(250);

/// The bar of one job. Dropping it removes it from the terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Creates a bar for a total of `bytes`, which is redrawn a few times a second. It's drawn only
    /// if `shown` is set and standard error is a terminal.
    pub(crate) fn new(bytes: u64, shown: bool) -> Progress {
        let template =
            "{wide_bar} {percent:>3}%  {bytes} of {total_bytes}  {bytes_per_sec}  {eta} left";
        Progress::with_template(template, bytes, shown)
    }

    /// Creates a bar for repetitions of several cases. A repetition may take minutes, so a spinner
    /// shows that the command isn't stuck.
    pub(crate) fn of_repetitions(shown: bool) -> Progress {
        let template = "{spinner} {msg}  {wide_bar} {percent:>3}%  {prefix}";
        let progress = Progress::with_template(template, 1, shown);
        if shown {
            progress.bar.enable_steady_tick(TICK);
        }
        progress
    }

    fn with_template(template: &str, total: u64, shown: bool) -> Progress {
        let target =
            if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress { bar }
    }

    /// Shows the case whose repetition begins.
    pub(crate) fn set_case(&self, case: String) {
        self.bar.set_message(case);
    }

    /// Shows how many repetitions are done. `total` may have changed.
    pub(crate) fn set_repetitions(&self, done: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
    }

    /// Shows how long the remaining repetitions may take.
    pub(crate) fn set_remaining(&self, remaining: Duration) {
        self.bar.set_prefix(format!("at most {} left", HumanDuration(remaining)));
    }

    /// Shows that `bytes` bytes are done in total.
    pub(crate) fn set(&self, bytes: u64) {
        self.bar.set_position(bytes);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_bar_still_counts() {
        let progress = Progress::new(100, false);
        progress.set(40);
        assert_eq!(progress.bar.position(), 40);
    }
}
