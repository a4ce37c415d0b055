//! Where `calibrate` puts its scratch files: on the file system of the data directory, and outside
//! of every cluster.
//!
//! ```text
//!   /srv/pg/18/data      -D, a cluster: never
//!   /srv/pg/18           the nearest directory on the same mount that we may write to
//! ```
//! The files have no names, so they end with the process ([`scratch_file`]).

use std::io;
use std::path::{Path, PathBuf};

use trunkline_engine::scratch_file;
use trunkline_measure::{
    CALIBRATION_BYTES_BESIDE, CALIBRATION_BYTES_MIN, ScratchFiles, cluster_around,
};
use trunkline_sample::room;

use crate::exit::Failure;
use crate::mount::Mount;
use crate::output::human_bytes;
use crate::place::{Place, places};

/// Size of the scratch file, unless the user gives one.
const SIZE_DEFAULT: u64 = 1 << 30;

/// Scratch files, and where they are.
#[derive(Debug)]
pub(super) struct ScratchPlace {
    pub(super) directory: PathBuf,
    pub(super) files: ScratchFiles,
    /// Size of the scratch file, at most.
    pub(super) bytes: u64,
    /// Whether the cluster's write-ahead log is on another file system.
    pub(super) has_own_log: bool,
    /// What the user should know.
    pub(super) notes: Vec<String>,
}

impl ScratchPlace {
    /// Finds a directory and creates the files. `chosen` is the user's directory for them, and `size`
    /// the user's size.
    pub(super) fn find(
        subject: &Path,
        chosen: Option<&Path>,
        size: Option<u64>,
    ) -> Result<ScratchPlace, Failure> {
        let unusable = |path: &Path, error: &io::Error| {
            Failure::usage(format_args!("\"{}\": {error}", path.display()))
        };
        let all = places(subject).map_err(|error| unusable(subject, &error))?;
        let (Some(place), mut notes) = (all.first(), Vec::new()) else {
            return Err(Failure::usage("no directory to measure"));
        };
        let (measured, directories) = match chosen {
            None => (place.mount.clone(), place.scratch_directories()),
            Some(chosen) => {
                let own = places(chosen).map_err(|error| unusable(chosen, &error))?;
                let own = own.into_iter().next().unwrap_or_else(|| place.clone());
                check_chosen(&own, place, &mut notes)?;
                (own.mount, vec![own.path])
            }
        };
        // A link may lead anywhere.
        let log = place.path.join("pg_wal").canonicalize();
        let has_own_log = log.and_then(|log| Mount::of(&log)).is_ok_and(|log| log != measured);
        if has_own_log {
            let text = "pg_wal is on another file system, so there is no line for wal_sync_method; \
                        use -D with that directory";
            notes.push(text.to_owned());
        }
        let (directory, files) = create(place, directories)?;
        let bytes = fitting(&directory, size, &mut notes)?;
        Ok(ScratchPlace { directory, files, bytes, has_own_log, notes })
    }
}

/// Refuses a directory in a cluster, and warns about one on another file system.
fn check_chosen(chosen: &Place, subject: &Place, notes: &mut Vec<String>) -> Result<(), Failure> {
    let path = chosen.path.display();
    if cluster_around(&chosen.path).is_some() {
        let text = format!("\"{path}\" belongs to a cluster, and nothing is written there");
        return Err(Failure::usage(text).with_hint("use a directory beside it"));
    }
    if chosen.mount != subject.mount {
        let text = format!(
            "\"{path}\" is on another file system than \"{}\", and only the former is measured",
            subject.path.display()
        );
        notes.push(text);
    }
    Ok(())
}

/// Creates the files in the first directory that permits it.
fn create(place: &Place, directories: Vec<PathBuf>) -> Result<(PathBuf, ScratchFiles), Failure> {
    let mut problem = None;
    for directory in directories {
        let new = || scratch_file::create(&directory, false);
        match new().and_then(|data| Ok(ScratchFiles { data, log: new()? })) {
            Ok(files) => return Ok((directory, files)),
            Err(error) => {
                problem.get_or_insert(format!("\"{}\": {error}", directory.display()));
            }
        }
    }
    let why = problem.map_or(String::new(), |problem| format!(" ({problem})"));
    let text = format!(
        "no directory on the file system of \"{}\" and outside of a cluster can be written to{why}",
        place.path.display()
    );
    let hint = "use --scratch DIR with a directory on the same device, such as one beside the data \
                directory";
    Err(Failure::cannot_run(text).with_hint(hint))
}

/// The size of the scratch file that the free space permits.
fn fitting(directory: &Path, size: Option<u64>, notes: &mut Vec<String>) -> Result<u64, Failure> {
    let room = room(directory).unwrap_or(u64::MAX);
    let most = room.saturating_sub(CALIBRATION_BYTES_BESIDE);
    let wanted = size.unwrap_or(SIZE_DEFAULT);
    if wanted <= most {
        return Ok(wanted);
    }
    if size.is_some() || most < CALIBRATION_BYTES_MIN {
        let needed = size.unwrap_or(CALIBRATION_BYTES_MIN) + CALIBRATION_BYTES_BESIDE;
        let text = format!(
            "not enough disk space in \"{}\": {} needed, and at most half of the free space, {}, is used",
            directory.display(),
            human_bytes(needed),
            human_bytes(room)
        );
        return Err(Failure::cannot_run(text).with_hint("use a smaller --size, or --scratch DIR"));
    }
    // Whole megabytes.
    let fitting = most >> 20 << 20;
    notes.push(format!(
        "the scratch file has only {}, half of the free space",
        human_bytes(fitting)
    ));
    Ok(fitting)
}
