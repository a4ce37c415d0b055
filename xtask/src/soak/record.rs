//! **Soak record**: the table in `docs/soak.md`, one line for each run.

use std::fs;
use std::time::Duration;

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::tree::Checkout;

/// The file with the table.
const FILE: &str = "docs/soak.md";

/// What we know about a run when it begins.
#[derive(Debug)]
pub(super) struct Record {
    name: String,
    date: String,
    commit: String,
    machine: String,
}

impl Record {
    /// Notes the date, the commit and the machine. We do this first, because the checkout may
    /// change while the test runs.
    pub(super) fn begin(checkout: &Checkout, name: &str) -> Result<Self, Failure> {
        let git = |args: &str| output(checkout, "git", &format!("-c safe.directory=* {args}"));
        let mut commit = git("rev-parse --short HEAD")?;
        if !git("status --porcelain --untracked-files=no")?.is_empty() {
            commit.push_str(" with changes");
        }
        let date = output(checkout, "date", "-u +%Y-%m-%d")?;
        Ok(Self { name: name.to_owned(), date, commit, machine: machine(checkout)? })
    }

    /// Adds the line.
    pub(super) fn end(
        &self,
        checkout: &Checkout,
        took: Duration,
        result: &str,
    ) -> Result<(), Failure> {
        let path = checkout.root.join(FILE);
        let fail = |error| Failure::io(path.display(), error);
        let mut text = fs::read_to_string(&path).map_err(fail)?;
        text.push_str(&self.line(took, result));
        fs::write(&path, text).map_err(fail)
    }

    fn line(&self, took: Duration, result: &str) -> String {
        let Self { name, date, commit, machine } = self;
        // The result is one cell of a table: one line, without the table's own separator.
        let result = result.lines().next().unwrap_or("").replace('|', "/");
        let minutes = took.as_secs().div_ceil(60);
        format!("| {date} | {name} | {commit} | {machine} | {minutes} min | {result} |\n")
    }
}

/// The machine as far as it matters for a test: CPUs, memory and kernel.
fn machine(checkout: &Checkout) -> Result<String, Failure> {
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = memory.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kb: u64 = total.and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or(0);
    let kernel = output(checkout, "uname", "-sr")?;
    Ok(format!("{cpus} CPUs, {} GiB, {kernel}", (kb + (1 << 19)) >> 20))
}

/// What a program prints, trimmed. Fails if the program does.
pub(super) fn output(checkout: &Checkout, program: &str, args: &str) -> Result<String, Failure> {
    let call = Invocation::new(&checkout.root, program, args);
    let outcome = call.capture()?;
    if outcome.success() {
        return Ok(outcome.text.trim().to_owned());
    }
    Err(Failure::new(format!("{call}: {}", outcome.text.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_row_of_the_table() {
        let record = Record {
            name: "faults".to_owned(),
            date: "2026-01-31".to_owned(),
            commit: "abc1234".to_owned(),
            machine: "2 CPUs, 24 GiB, Linux 6.1".to_owned(),
        };
        let line = record.line(Duration::from_secs(61), "FAILED: a | b\nmore");
        let wanted = "| 2026-01-31 | faults | abc1234 | 2 CPUs, 24 GiB, Linux 6.1 | 2 min \
            | FAILED: a / b |\n";
        assert_eq!(line, wanted);
    }
}
