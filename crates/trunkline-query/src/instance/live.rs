//! Settings of the engine that change while it runs: the I/O method and the number of workers.
//!
//! PostgreSQL changes `io_method` only with a restart. Here, I/O that was submitted stays with its
//! method, and what is submitted later uses the new one.

use trunkline_engine::Engine;
use trunkline_engine::settings::Settings;

use crate::settings::{BOTH_BOUNDS, LIVE};

use super::configuration::Values;

/// What the settings become with the values of the file of ALTER SYSTEM. Those in `fixed` were given
/// on the command line and remain. Values that are wrong are left out.
pub(super) fn reloaded(settings: &Settings, values: &Values, fixed: &[String]) -> Settings {
    let (mut reloaded, defaults) = (settings.clone(), Settings::default());
    let is_fixed = |name: &str| fixed.iter().any(|one| one == name);
    let mut set = |name: &str, value: &str| {
        // ALTER SYSTEM has checked it, so only an editor can have made it wrong.
        let _is_valid = reloaded.set(name, value);
    };
    for name in LIVE.into_iter().filter(|name| !is_fixed(name)) {
        if let Ok(default) = defaults.show(name) {
            set(name, &default);
        }
    }
    // The name of both bounds comes first, and that of one bound wins.
    for name in [BOTH_BOUNDS].into_iter().chain(LIVE) {
        let is_fixed = match name {
            BOTH_BOUNDS => is_fixed("io_min_workers") || is_fixed("io_max_workers"),
            name => is_fixed(name),
        };
        if let Some(value) = values.get(name).filter(|_| !is_fixed) {
            set(name, value);
        }
    }
    reloaded
}

/// Lets the engine work with the new settings.
pub(super) fn apply(engine: &Engine, before: &Settings, after: &Settings) {
    let aio = engine.aio();
    if before.worker_settings() != after.worker_settings() {
        aio.set_workers(after.worker_settings());
    }
    if before.io_method() != after.io_method() {
        // If the method isn't available, the engine falls back, and `trunkline_io_method` says why.
        let _status = aio.set_method(after.io_method().into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(settings: &Settings) -> Vec<String> {
        LIVE.into_iter().take(3).map(|name| settings.show(name).expect("a setting")).collect()
    }

    #[test]
    fn the_command_line_is_above_the_file_and_the_file_above_the_default() {
        let values = |pairs: &[(&str, &str)]| -> Values {
            pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
        };
        let mut settings = Settings::default();
        settings.set("io_method", "io_uring").expect("a setting");
        settings.set("io_max_workers", "20").expect("a setting");
        let file = values(&[("io_method", "sync"), ("io_workers", "5"), ("io_max_workers", "9")]);
        assert_eq!(shown(&reloaded(&settings, &file, &[])), ["sync", "5", "9"]);
        let fixed = ["io_method".to_owned()];
        assert_eq!(shown(&reloaded(&settings, &file, &fixed)), ["io_uring", "5", "9"]);
        let fixed = ["io_max_workers".to_owned()];
        assert_eq!(shown(&reloaded(&settings, &file, &fixed)), ["sync", "2", "20"]);
        assert_eq!(shown(&reloaded(&settings, &values(&[]), &[])), ["worker", "2", "8"]);
        let wrong = values(&[("io_method", "aio"), ("io_max_workers", "0")]);
        assert_eq!(shown(&reloaded(&settings, &wrong, &[])), ["worker", "2", "8"]);
    }
}
