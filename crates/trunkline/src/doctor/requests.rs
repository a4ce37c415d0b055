//! What the user asked for, by the configuration of the cluster or on the command line, and whether
//! it works.
//!
//! Only this decides the exit status. A machine without huge pages is fine as long as `huge_pages`
//! isn't `on`.

use std::path::Path;

use super::check::{Check, Status};
use super::prediction::Prediction;
use super::server_settings::ServerSettings;

/// The area of these checks.
pub(crate) const AREA: &str = "requested";

/// The findings that requests are compared with.
pub(crate) struct Evidence<'e> {
    /// Why the server would refuse its configuration.
    pub(crate) configuration: Option<&'e String>,
    /// Predictions for each version and method.
    pub(crate) predictions: &'e [Prediction],
    /// Places, and whether direct I/O works there.
    pub(crate) direct: &'e [(&'e Path, bool)],
    /// The check of huge pages.
    pub(crate) huge_pages: &'e Check,
}

/// A check for each request of a server with these settings. `asks` says whether a setting was given
/// at all, rather than being a default.
pub(crate) fn checks(
    settings: &ServerSettings,
    asks: impl Fn(&str) -> bool,
    evidence: &Evidence<'_>,
) -> Vec<Check> {
    let mut checks = Vec::new();
    let server = format!("PostgreSQL {}", settings.version);
    if let Some(fault) = evidence.configuration {
        let (name, reason) =
            (format!("{server}: configuration"), format!("would not start: {fault}"));
        checks.push(Check::missing(AREA, name, reason, "correct the configuration"));
    }
    if asks("io_method") {
        checks.push(io_method(settings, &server, evidence.predictions));
    }
    if !settings.io_direct.is_empty() {
        let name = format!("{server}: debug_io_direct={}", settings.io_direct.join(","));
        let refused = evidence.direct.iter().find(|(_, works)| !works);
        checks.push(match refused {
            None => Check::good(AREA, name, "direct I/O works on all file systems"),
            Some((path, _)) => Check::missing(
                AREA,
                name,
                format!("direct I/O doesn't work in {}", path.display()),
                "see the check of direct I/O, or leave debug_io_direct empty",
            ),
        });
    }
    if settings.requires_huge_pages() {
        let name = format!("{server}: huge_pages=on");
        let found = evidence.huge_pages;
        checks.push(match found.status {
            Status::Good => Check::good(AREA, name, &found.reason),
            Status::Limited => {
                Check::limited(AREA, name, &found.reason, found.fix.clone().unwrap_or_default())
            }
            Status::Missing => {
                let reason = format!("would not start: {}", found.reason);
                Check::missing(AREA, name, reason, found.fix.clone().unwrap_or_default())
            }
        });
    }
    checks
}

fn io_method(settings: &ServerSettings, server: &str, predictions: &[Prediction]) -> Check {
    let name = format!("{server}: io_method={}", settings.io_method);
    let found = predictions
        .iter()
        .find(|it| it.version == settings.version && it.io_method == settings.io_method);
    match found {
        Some(found) if found.works == Some(true) => Check::good(AREA, name, &found.reason),
        Some(found) => {
            let fix = found.fix.clone().unwrap_or_default();
            // Another method helps only if it is the method that fails.
            let others_work = predictions
                .iter()
                .any(|it| it.version == settings.version && it.works == Some(true));
            let fix = if others_work { format!("{fix}; or io_method = worker") } else { fix };
            Check::missing(AREA, name, &found.reason, fix)
        }
        // Every method that the settings allow is predicted.
        None => Check::missing(AREA, name, "not predicted", "use another io_method"),
    }
}
