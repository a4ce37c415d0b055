//! **Backup manifests**: which files a base backup consists of, and which log it needs.
//!
//! ```text
//!   { "PostgreSQL-Backup-Manifest-Version": 1,
//!   "Files": [
//!   { "Path": "base/5/1259", "Size": 122880, "Last-Modified": "2026-11-29 18:00:00 GMT",
//!     "Checksum-Algorithm": "CRC32C", "Checksum": "4bd3a1f2" }, ...
//!   ],
//!   "WAL-Ranges": [ { "Timeline": 1, "Start-LSN": "0/2000028", "End-LSN": "0/2000100" } ],
//!   "Manifest-Checksum": "SHA-256 of everything before this line"}
//! ```
//! A manifest may come from anywhere, so nothing in it is believed. A path that leads out of the
//! directory is refused, since its file would be read. The checksum is checked first. Then a
//! manifest that has it, but contradicts itself, was not damaged but written like that.
//!
//! Version 1 is that of PostgreSQL 13 to 16. Version 2, of 17 and later, adds the system identifier.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;
use trunkline_format::Lsn;

use super::checksum::{Algorithm, checksum, from_hex, to_hex};

/// A manifest whose checksum is right and which is consistent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) version: u64,
    /// Since version 2.
    pub(super) system_identifier: Option<u64>,
    /// By path, relative to the data directory.
    pub(super) files: BTreeMap<PathBuf, ManifestFile>,
    /// The log that the backup needs; the newest timeline comes first.
    pub(super) ranges: Vec<LogRange>,
}

/// A file in a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ManifestFile {
    /// In bytes.
    pub(super) size: u64,
    /// `None` if the backup was made without checksums.
    pub(super) checksum: Option<(Algorithm, Vec<u8>)>,
}

/// A part of the log on one timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogRange {
    pub(super) timeline: u32,
    pub(super) start: Lsn,
    pub(super) end: Lsn,
}

/// Why a manifest can't be used.
#[derive(Debug, PartialEq, Eq, Error)]
pub(super) enum ManifestError {
    #[error("it ends without a line \"Manifest-Checksum\", so it was cut off")]
    Cut,
    #[error("its checksum is {found}, computed {computed}")]
    Checksum { found: String, computed: String },
    #[error("invalid JSON: {0}")]
    Json(String),
    #[error("version {0}, expected 1 or 2")]
    Version(u64),
    #[error("version 2 without \"System-Identifier\"")]
    NoSystemIdentifier,
    #[error("file {number} has {found}, expected either \"Path\" or \"Encoded-Path\"")]
    PathMissing { number: usize, found: &'static str },
    #[error("file {number}: invalid \"Encoded-Path\" {path:?}")]
    EncodedPath { number: usize, path: String },
    #[error("path {0:?} is not a path inside the data directory")]
    Path(PathBuf),
    #[error("path {0:?} is listed twice")]
    Duplicate(PathBuf),
    #[error("{path:?} has the checksum algorithm {found:?}, which is unknown")]
    Algorithm { path: PathBuf, found: String },
    #[error("{path:?} has an invalid checksum: {found:?}")]
    FileChecksum { path: PathBuf, found: String },
    #[error("invalid position {0:?} in \"WAL-Ranges\"")]
    Position(String),
    #[error("a WAL range ends at {end}, before its start at {start}")]
    Order { start: Lsn, end: Lsn },
    #[error("\"WAL-Ranges\" is empty")]
    NoRanges,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Json {
    #[serde(rename = "PostgreSQL-Backup-Manifest-Version")]
    version: u64,
    #[serde(rename = "System-Identifier")]
    system_identifier: Option<u64>,
    #[serde(rename = "Files")]
    files: Vec<JsonFile>,
    #[serde(rename = "WAL-Ranges")]
    ranges: Vec<JsonRange>,
    #[serde(rename = "Manifest-Checksum")]
    _checksum: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonFile {
    #[serde(rename = "Path")]
    path: Option<String>,
    #[serde(rename = "Encoded-Path")]
    encoded_path: Option<String>,
    #[serde(rename = "Size")]
    size: u64,
    #[serde(rename = "Last-Modified")]
    _modified: Option<String>,
    #[serde(rename = "Checksum-Algorithm")]
    algorithm: Option<String>,
    #[serde(rename = "Checksum")]
    checksum: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonRange {
    #[serde(rename = "Timeline")]
    timeline: u32,
    #[serde(rename = "Start-LSN")]
    start: String,
    #[serde(rename = "End-LSN")]
    end: String,
}

impl Manifest {
    /// Parses a manifest.
    ///
    /// # Errors
    /// [`ManifestError`].
    pub(super) fn parse(bytes: &[u8]) -> Result<Manifest, ManifestError> {
        check_own_checksum(bytes)?;
        let json: Json = serde_json::from_slice(bytes)
            .map_err(|error| ManifestError::Json(error.to_string()))?;
        if !(1..=2).contains(&json.version) {
            return Err(ManifestError::Version(json.version));
        }
        if json.version == 2 && json.system_identifier.is_none() {
            return Err(ManifestError::NoSystemIdentifier);
        }
        let mut files = BTreeMap::new();
        for (index, file) in json.files.into_iter().enumerate() {
            let path = path_of(index + 1, file.path, file.encoded_path)?;
            let checksum = checksum_of(&path, file.algorithm, file.checksum)?;
            let found = ManifestFile { size: file.size, checksum };
            if files.insert(path.clone(), found).is_some() {
                return Err(ManifestError::Duplicate(path));
            }
        }
        let ranges: Result<Vec<_>, _> = json.ranges.iter().map(range_of).collect();
        let ranges = ranges?;
        if ranges.is_empty() {
            return Err(ManifestError::NoRanges);
        }
        let Json { version, system_identifier, .. } = json;
        Ok(Manifest { version, system_identifier, files, ranges })
    }
}

/// The last line contains the SHA-256 of all lines before it.
fn check_own_checksum(bytes: &[u8]) -> Result<(), ManifestError> {
    let whole = bytes.strip_suffix(b"\n").ok_or(ManifestError::Cut)?;
    let start = whole.iter().rposition(|&byte| byte == b'\n').ok_or(ManifestError::Cut)? + 1;
    let (before, line) = whole.split_at_checked(start).ok_or(ManifestError::Cut)?;
    let line = std::str::from_utf8(line).map_err(|_| ManifestError::Cut)?;
    let value = line.strip_prefix("\"Manifest-Checksum\":").map(str::trim_start);
    let value = value.and_then(|value| value.strip_prefix('"')?.strip_suffix("\"}"));
    let found = value.ok_or(ManifestError::Cut)?;
    let computed = checksum(Algorithm::Sha256, before);
    if from_hex(found).as_ref() != Some(&computed) {
        let (found, computed) = (found.to_owned(), to_hex(&computed));
        return Err(ManifestError::Checksum { found, computed });
    }
    Ok(())
}

fn path_of(
    number: usize,
    path: Option<String>,
    encoded: Option<String>,
) -> Result<PathBuf, ManifestError> {
    let path = match (path, encoded) {
        (Some(path), None) => PathBuf::from(path),
        // A name that isn't valid UTF-8.
        (None, Some(path)) => match from_hex(&path) {
            Some(bytes) => OsString::from_vec(bytes).into(),
            None => return Err(ManifestError::EncodedPath { number, path }),
        },
        (None, None) => return Err(ManifestError::PathMissing { number, found: "neither" }),
        (Some(_), Some(_)) => return Err(ManifestError::PathMissing { number, found: "both" }),
    };
    if is_inside(&path) { Ok(path) } else { Err(ManifestError::Path(path)) }
}

/// Whether a path consists of names only, written in the usual way.
fn is_inside(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    let names = path.components().all(|part| matches!(part, Component::Normal(_)));
    // `components` leaves out `.` and empty names, which would be a second spelling of a path.
    let is_usual = bytes.split(|&byte| byte == b'/').all(|name| !matches!(name, b"" | b"."));
    names && is_usual && !bytes.contains(&0)
}

fn checksum_of(
    path: &Path,
    algorithm: Option<String>,
    checksum: Option<String>,
) -> Result<Option<(Algorithm, Vec<u8>)>, ManifestError> {
    let path = || path.to_owned();
    let (name, text) = match (algorithm, checksum) {
        (None, None) => return Ok(None),
        (Some(name), None) if name.eq_ignore_ascii_case("none") => return Ok(None),
        (Some(name), text) => (name, text.unwrap_or_default()),
        (None, Some(found)) => return Err(ManifestError::FileChecksum { path: path(), found }),
    };
    let Some(algorithm) = Algorithm::of_name(&name) else {
        return Err(ManifestError::Algorithm { path: path(), found: name });
    };
    match from_hex(&text).filter(|bytes| bytes.len() == algorithm.length()) {
        Some(bytes) => Ok(Some((algorithm, bytes))),
        None => Err(ManifestError::FileChecksum { path: path(), found: text }),
    }
}

fn range_of(range: &JsonRange) -> Result<LogRange, ManifestError> {
    let position = |text: &String| {
        Lsn::parse(text).ok_or_else(|| ManifestError::Position(text.chars().take(40).collect()))
    };
    let (start, end) = (position(&range.start)?, position(&range.end)?);
    if end < start {
        return Err(ManifestError::Order { start, end });
    }
    Ok(LogRange { timeline: range.timeline, start, end })
}

#[cfg(test)]
mod tests;
