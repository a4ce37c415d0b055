//! **Stress**: the step `test` of CI, ten times in a row on a busy machine. A test that depends on
//! speed or on the order in which threads happen to run passes on a developer's idle machine and
//! fails here. The other tests run under the scheduler: a seed decides which thread runs, so load
//! changes nothing.
//!
//! The load is in this process, so that it ends with it: a spinning thread for each CPU, and one
//! thread that keeps writing and syncing a file on the file system of the target directory.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::ci;
use crate::failure::Failure;
use crate::tree::Checkout;

/// How often the tests run.
const ROUNDS: u32 = 10;
/// Size in bytes of the file that is written over and over.
const FILE_BYTES: usize = 64 << 20;

/// Runs the tests [`ROUNDS`] times under load.
pub(super) fn run(checkout: &Checkout) -> Result<String, Failure> {
    let file = checkout.target.join("soak/stress");
    // Build first, because compilers under this load would take most of the time.
    ci::build_tests(checkout)?;
    under_load(&file, || {
        let mut tests = 0;
        for round in 1..=ROUNDS {
            println!("== stress: round {round} of {ROUNDS}");
            tests = ci::tests_alone(checkout)
                .map_err(|why| Failure::new(format!("round {round} of {ROUNDS}: {why}")))?;
        }
        Ok(format!("{tests} tests passed {ROUNDS} times in a row"))
    })
}

/// Runs `body` while other threads keep the machine busy.
fn under_load<T>(file: &Path, body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let over = AtomicBool::new(false);
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..cpus {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let writer = scope.spawn(|| write_repeatedly(file, &over));
        let done = body();
        over.store(true, Ordering::Relaxed);
        // A load that failed on its way proves nothing about the tests.
        let load = writer.join().unwrap_or_else(|_| Err(Failure::new("the load panicked")));
        done.and_then(|value| load.map(|()| value))
    })
}

/// Writes and syncs a file until the tests are over, and removes it.
fn write_repeatedly(path: &Path, over: &AtomicBool) -> Result<(), Failure> {
    let fail = |error| Failure::io(path.display(), error);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(fail)?;
    }
    let bytes = vec![0x5a; 1 << 20];
    let mut file = File::create(path).map_err(fail)?;
    while !over.load(Ordering::Relaxed) {
        file.rewind().map_err(fail)?;
        for _ in 0..FILE_BYTES / bytes.len() {
            file.write_all(&bytes).map_err(fail)?;
        }
        file.sync_all().map_err(fail)?;
    }
    fs::remove_file(path).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_ends_with_the_tests() {
        let file = std::env::temp_dir().join(format!("xtask-stress-{}", std::process::id()));
        assert_eq!(under_load(&file, || Ok(7)).unwrap(), 7);
        assert!(!file.exists());
        let failed = under_load(&file, || -> Result<(), Failure> { Err(Failure::new("x")) });
        assert_eq!(failed.unwrap_err().to_string(), "x");
    }

    #[test]
    fn a_load_that_cannot_write_fails_the_run() {
        let nowhere = Path::new("/proc/nowhere/file");
        assert!(under_load(nowhere, || Ok(())).is_err());
    }
}
