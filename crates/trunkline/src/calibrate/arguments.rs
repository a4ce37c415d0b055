//! Options of `calibrate`, with the bounds of the scratch file and of the time.

use std::path::{Path, PathBuf};

use clap::ValueHint;
use clap::builder::PossibleValuesParser;
use trunkline_measure::{CALIBRATION_BYTES_MIN, Target};

use crate::number::number;

/// Largest scratch file: more wouldn't tell anything else.
const SIZE_MAX: u64 = 1 << 40;

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct CalibrateArgs {
    /// Put the scratch file into DIR, which must not be in a cluster, and measure its file system
    /// [default: the nearest directory on the file system of the data directory that is outside of
    /// the cluster].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) scratch: Option<PathBuf>,

    /// Largest size of the scratch file, in MB or GB, at least 16MB. At most half of the free space
    /// is used [default: 1GB].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(super) size: Option<u64>,

    /// How long the calibration takes, about, in seconds. Two fifths each go into sequential and
    /// random reads, most of that into one long run, because a burst credit may last a minute.
    #[arg(long, value_name = "SECONDS", default_value = "180", value_parser = number(30..=86_400_u32))]
    pub(super) time: u32,

    /// Print only the lines for PostgreSQL 18, PostgreSQL 19 or trunkline, ready for
    /// postgresql.conf.
    #[arg(long = "for", value_name = "SERVER")]
    #[arg(value_parser = PossibleValuesParser::new(Target::ALL.map(Target::word)))]
    server: Option<String>,

    /// Write the lines of --for to a file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "server")]
    pub(super) conf: Option<PathBuf>,

    /// Write the report to a file as JSON.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) save: Option<PathBuf>,

    /// Write the numbers to a file as CSV.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) csv: Option<PathBuf>,

    /// Write the report with plots to a file as HTML.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) html: Option<PathBuf>,
}

/// Formats of a report.
#[derive(Debug, Clone, Copy)]
pub(super) enum Format {
    Conf,
    Json,
    Csv,
    Html,
}

impl CalibrateArgs {
    /// The files to be written.
    pub(super) fn reports(&self) -> impl Iterator<Item = (Format, &Path)> {
        let files = [
            (Format::Conf, &self.conf),
            (Format::Json, &self.save),
            (Format::Csv, &self.csv),
            (Format::Html, &self.html),
        ];
        files.into_iter().filter_map(|(format, path)| Some((format, path.as_deref()?)))
    }

    /// Whose lines to print.
    pub(super) fn target(&self) -> Option<Target> {
        let word = self.server.as_deref()?;
        Target::ALL.into_iter().find(|target| target.word() == word)
    }
}

/// A size with one of PostgreSQL's units.
fn size(text: &str) -> Result<u64, String> {
    let units = [("MB", 1 << 20), ("GB", 1 << 30), ("TB", 1_u64 << 40)];
    let bytes = units.into_iter().find_map(|(unit, factor)| {
        let number = text.strip_suffix(unit)?.trim_end();
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| number.parse::<u64>().ok()?.checked_mul(factor))
    });
    let bytes = bytes.ok_or("expected a size such as 512MB or 2GB")?;
    bytes
        .filter(|bytes| (CALIBRATION_BYTES_MIN..=SIZE_MAX).contains(bytes))
        .ok_or_else(|| format!("must be in range {}MB..1TB", CALIBRATION_BYTES_MIN >> 20))
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_units_and_a_range() {
        assert_eq!(size("16MB"), Ok(16 << 20));
        assert_eq!(size("2 GB"), Ok(2 << 30));
        for text in ["15MB", "0GB", "2TB", "99999999999999999999GB", "99999999999999TB"] {
            assert_eq!(size(text), Err("must be in range 16MB..1TB".to_owned()), "{text}");
        }
        for text in ["", "GB", "1", "1gb", "-1GB", "1.5GB", "1GBx"] {
            let expected = Err("expected a size such as 512MB or 2GB".to_owned());
            assert_eq!(size(text), expected, "{text}");
        }
    }
}
