//! How far a long command is: bytes, rate and time left, on a terminal only.
//!
//! The bar is drawn on standard error. Where that is no terminal, or `--no-progress` was given, or
//! output is JSON, it is silent; callers do not have to ask.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The bar of one job. Dropping it takes it off the terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar over `bytes` in all, drawn a few times a second if `shown` and if there is a terminal.
    pub(crate) fn new(bytes: u64, shown: bool) -> Progress {
        let target =
            if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(bytes), target);
        let template =
            "{wide_bar} {percent:>3}%  {bytes} of {total_bytes}  {bytes_per_sec}  {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress { bar }
    }

    /// So many bytes more are done.
    pub(crate) fn advance(&self, bytes: u64) {
        self.bar.inc(bytes);
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
    fn hidden_bar_counts() {
        let progress = Progress::new(100, false);
        progress.advance(40);
        assert_eq!(progress.bar.position(), 40);
    }
}
