//! From settings to a running I/O instance, and what to say when it is not the one asked for: each
//! step down is a warning with its reason, and a hint with its fix.

use std::mem::ManuallyDrop;

use trunkline_aio::{Aio, Fallback};
use trunkline_engine::file_scan::ReadOptions;
use trunkline_engine::settings::Settings;

use crate::exit::{Failure, message};

/// Mounts whose windows fit the page region at full depth; with more, each gets a smaller share.
const MOUNTS_PLANNED: usize = 2;

/// Least memory for pages: what makes the region worth a huge page.
const REGION_BYTES_MIN: usize = 2 << 20;

/// Starts what the settings ask for, and says on standard error where it cannot be had.
///
/// The instance is never dropped: to end it is to wait for its I/O, and a read that hangs must not
/// keep a command from ending. The process takes it along.
///
/// # Errors
/// There is no memory for its pages.
pub(crate) fn start(settings: &Settings) -> Result<ManuallyDrop<Aio>, Failure> {
    let region = ReadOptions::of(settings).region_bytes(MOUNTS_PLANNED);
    start_with(settings, region)
}

/// The same, with so many bytes for pages.
pub(crate) fn start_with(
    settings: &Settings,
    region_bytes: usize,
) -> Result<ManuallyDrop<Aio>, Failure> {
    let aio = settings
        .io_builder()
        .region_bytes(region_bytes.max(REGION_BYTES_MIN))
        .start()
        .map_err(|error| Failure::cannot_run(format_args!("could not start I/O: {error}")))?;
    report_fallbacks(&aio.method_status().fallbacks);
    Ok(ManuallyDrop::new(aio))
}

/// Says what was given up, and how to get it.
pub(crate) fn report_fallbacks(fallbacks: &[Fallback]) {
    for fallback in fallbacks {
        message("warning", fallback);
        message("hint", fallback.fix());
    }
}
