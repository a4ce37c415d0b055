//! Reads a cluster's configuration files: `postgresql.conf`, the files it includes, and
//! `postgresql.auto.conf`. The latter is written by `ALTER SYSTEM` and takes precedence.
//!
//! ```text
//!   timezone = 'Europe/Berlin'   # a comment
//!   include_dir 'conf.d'
//! ```
//! `copy` uses the settings that affect how values are printed, and `doctor` those that decide whether
//! a server starts. The server's parser (`guc-file.l`) refuses files with syntax errors, and
//! `include` of a file that doesn't exist or of an empty name. Ours reports and skips such lines,
//! because a mistake in an unrelated setting should not prevent a copy. A missing `postgresql.conf`
//! is not an error, because some distributions keep the configuration outside the data directory.
//!
//! We can't be sure that the configuration files of an unknown data directory are harmless. We
//! therefore read only regular files (or symbolic links to regular files), and treat `/dev/null` as
//! an empty file. We also limit how deeply files can be nested, as the server does, and how many
//! files and bytes we read. Without these limits, ten files that each include the next one ten times
//! would keep us busy for days.

mod line;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, makedev};

use self::line::{SyntaxError, assignment};
use crate::exit::Failure;
use crate::interrupt::Interrupt;

/// Maximum nesting depth of included files, as in the server (`CONF_FILE_MAX_DEPTH`).
const DEPTH_MAX: u32 = 10;
/// Maximum number of files to read. A file that is included twice counts twice.
const FILES_MAX: u32 = 1000;
/// The number of invalid lines to report.
const FAULTS_KEPT: usize = 10;
/// Maximum size of all files together in bytes.
const BYTES_MAX: u64 = 16 << 20;

/// The settings in the configuration files, by name in lower case.
#[derive(Debug, Default)]
pub(crate) struct ConfigFiles {
    settings: BTreeMap<String, String>,
    /// Whether there is a `postgresql.conf`.
    pub(crate) found: bool,
    /// Lines with which a server would not start. We only keep the first few.
    pub(crate) faults: Vec<String>,
    /// The number of these lines.
    pub(crate) faults_total: u64,
}

impl ConfigFiles {
    /// Reads the files of the cluster in `pgdata`. Before each file, we call `cancelled`, and stop
    /// if it returns true.
    ///
    /// # Errors
    /// A file exists but cannot be read, or the files exceed one of the limits. The error is
    /// [`io::ErrorKind::Interrupted`] if `cancelled` returned true.
    pub(crate) fn read(pgdata: &Path, cancelled: &dyn Fn() -> bool) -> io::Result<ConfigFiles> {
        let config = ConfigFiles::default();
        let mut reading =
            Reading { config, files_left: FILES_MAX, bytes_left: BYTES_MAX, cancelled };
        reading.config.found = reading.file(&pgdata.join("postgresql.conf"), None, 0)?;
        reading.file(&pgdata.join("postgresql.auto.conf"), None, 0)?;
        Ok(reading.config)
    }

    /// All settings, by name in lower case.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.settings.iter().map(|(name, value)| (&**name, &**value))
    }

    /// The value of a setting, if a file assigns one.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }
}

/// Reads the cluster's configuration files. We do this in a separate thread, because they may be on a
/// file system that hangs.
///
/// # Errors
/// A file exists but cannot be read, or a signal arrived.
pub(crate) fn read_config_files(
    pgdata: PathBuf,
    interrupt: &Interrupt,
) -> Result<ConfigFiles, Failure> {
    let asked = interrupt.clone();
    let read = move || ConfigFiles::read(&pgdata, &|| asked.requested());
    interrupt.wait_for("configuration", read)?.map_err(|error| {
        if interrupt.requested() {
            return interrupt.failure();
        }
        let text = "could not read the configuration files of the cluster";
        Failure::cannot_run(format_args!("{text}: {error}"))
    })
}

/// Reads the assignments in a single file, by name in lower case, in their order. `include` is one of
/// these names and not carried out.
///
/// # Errors
/// The file doesn't exist or can't be read, or a line has a syntax error.
pub(crate) fn read_assignments(path: &Path) -> io::Result<Vec<(String, String)>> {
    let config = ConfigFiles::default();
    let mut reading =
        Reading { config, files_left: 1, bytes_left: BYTES_MAX, cancelled: &|| false };
    let text = reading.text(path).map_err(|error| at(path, &error))?;
    let mut found = Vec::new();
    for (number, line) in (1_u64..).zip(text.lines()) {
        found.extend(assignment(line).map_err(|SyntaxError| {
            at(path, &io::Error::other(format!("syntax error in line {number}: {line}")))
        })?);
    }
    Ok(found)
}

/// Adds the file's name to an error.
pub(crate) fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("\"{}\": {error}", path.display()))
}

/// The settings read so far, and how many more files and bytes we may read.
struct Reading<'c> {
    config: ConfigFiles,
    files_left: u32,
    bytes_left: u64,
    cancelled: &'c dyn Fn() -> bool,
}

impl Reading<'_> {
    /// Reads the settings of a file and of all files that it includes. Returns whether the file
    /// exists. If another file includes it, that file is `includer`.
    fn file(&mut self, path: &Path, includer: Option<&Path>, depth: u32) -> io::Result<bool> {
        if depth > DEPTH_MAX {
            return Err(at(path, &io::Error::other("maximum nesting depth exceeded")));
        }
        // Like the server, we only compare the names. Longer cycles end at the maximum depth.
        if includer == Some(path) {
            return Err(at(path, &io::Error::other("configuration file recursion")));
        }
        let text = match self.text(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(at(path, &error)),
        };
        for (number, line) in (1_u64..).zip(text.lines()) {
            let Some(why) = self.line(line, path, depth)? else { continue };
            self.config.faults_total += 1;
            if self.config.faults.len() < FAULTS_KEPT {
                let fault = format!("{why} in file \"{}\" line {number}", path.display());
                self.config.faults.push(fault);
            }
        }
        Ok(true)
    }

    /// Carries out a line of the file `path`. Returns why a server would refuse it, if it would.
    fn line(&mut self, line: &str, path: &Path, depth: u32) -> io::Result<Option<String>> {
        let (name, value) = match assignment(line) {
            Ok(Some(assignment)) => assignment,
            Ok(None) => return Ok(None),
            Err(SyntaxError) => return Ok(Some("syntax error".to_owned())),
        };
        let named = path.parent().unwrap_or(Path::new("")).join(&value);
        let is_blank = value.trim_matches([' ', '\t', '\r', '\n']).is_empty();
        let exists = match &*name {
            "include" | "include_if_exists" if is_blank => {
                return Ok(Some("empty configuration file name".to_owned()));
            }
            "include_dir" if is_blank => {
                return Ok(Some("empty configuration directory name".to_owned()));
            }
            "include" => self.file(&named, Some(path), depth + 1)?,
            "include_if_exists" => {
                self.file(&named, Some(path), depth + 1)?;
                true
            }
            "include_dir" => {
                let files = self.configuration_files(&named)?;
                for file in files.iter().flatten() {
                    self.file(file, Some(path), depth + 1)?;
                }
                files.is_some()
            }
            _ => {
                self.config.settings.insert(name, value);
                return Ok(None);
            }
        };
        Ok((!exists).then(|| format!("\"{}\" does not exist, included", named.display())))
    }

    /// Returns the contents of a regular file, unless it exceeds one of the limits.
    fn text(&mut self, path: &Path) -> io::Result<String> {
        if (self.cancelled)() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let file = open_regular(path)?;
        self.files_left = self.files_left.checked_sub(1).ok_or_else(too_many)?;
        let Some(file) = file else { return Ok(String::new()) };
        let mut bytes = Vec::new();
        // We try to read one byte more than we may, so that we notice if the file is too long.
        let count = file.take(self.bytes_left + 1).read_to_end(&mut bytes)? as u64;
        self.bytes_left = self.bytes_left.checked_sub(count).ok_or_else(|| {
            io::Error::other(format!("configuration files have more than {BYTES_MAX} bytes"))
        })?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the directory's `.conf` files, sorted by name. As in the server, hidden files are
    /// ignored. Returns `None` if the directory does not exist.
    fn configuration_files(&self, directory: &Path) -> io::Result<Option<Vec<PathBuf>>> {
        let named = |error: io::Error| at(directory, &error);
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(named(error)),
        };
        let mut files = Vec::new();
        for entry in entries {
            let name = entry.map_err(named)?.file_name();
            let shown = name.to_string_lossy();
            let path = directory.join(&name);
            // Like the server, skip directories. If any other file isn't a regular file, reading it
            // will fail.
            if !shown.ends_with(".conf") || shown.starts_with('.') || path.is_dir() {
                continue;
            }
            if files.len() >= self.files_left as usize {
                return Err(named(too_many()));
            }
            files.push(path);
        }
        files.sort();
        Ok(Some(files))
    }
}

fn too_many() -> io::Error {
    io::Error::other(format!("more than {FILES_MAX} configuration files"))
}

/// Opens a regular file. Returns `None` for `/dev/null`: before version 17, a common way to disable
/// `ALTER SYSTEM` was to replace `postgresql.auto.conf` with a link to it.
///
/// We check the file's type before opening it, because opening a device can have side effects. We
/// check it again afterwards, because the file may have been replaced in the meantime. Thanks to
/// `O_NONBLOCK`, opening a pipe doesn't wait for a writer.
fn open_regular(path: &Path) -> io::Result<Option<File>> {
    let not_regular = || io::Error::other("not a regular file");
    let found = fs::metadata(path)?;
    if found.file_type().is_char_device() && found.rdev() == makedev(1, 3) {
        return Ok(None);
    }
    if !found.is_file() {
        return Err(not_regular());
    }
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::options().read(true).custom_flags(flags.bits() as i32).open(path)?;
    if file.metadata()?.is_file() { Ok(Some(file)) } else { Err(not_regular()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a directory with these configuration files, given as names and contents.
    fn files(files: &[(&str, &str)]) -> tempfile::TempDir {
        let home = tempfile::tempdir().expect("a directory");
        for (name, text) in files {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, text).expect("written");
        }
        home
    }

    fn read(home: &Path) -> io::Result<ConfigFiles> {
        ConfigFiles::read(home, &|| false)
    }

    #[test]
    fn files_include_others_and_the_last_assignment_wins() {
        let home = files(&[
            ("postgresql.conf", "timezone = 'A'\ninclude 'more.conf'\ninclude_dir 'conf.d'\n"),
            ("more.conf", "timezone = 'B'\nbytea_output = escape\ninclude_if_exists 'none.conf'\n"),
            ("conf.d/2.conf", "timezone = 'D'\n"),
            ("conf.d/1.conf", "timezone = 'C'\n"),
            ("conf.d/.3.conf", "timezone = 'E'\n"),
            ("conf.d/4.conf/x", "a directory\n"),
        ]);
        let config = read(home.path()).expect("read");
        assert_eq!(config.get("timezone"), Some("D"));
        assert_eq!(config.get("bytea_output"), Some("escape"));
        assert!(config.found && config.faults.is_empty());
        fs::write(home.path().join("postgresql.auto.conf"), "timezone = 'F'\n").expect("written");
        assert_eq!(read(home.path()).expect("read").get("timezone"), Some("F"));
        let empty = read(&home.path().join("conf.d")).expect("nothing there");
        assert!(!empty.found);
        assert_eq!(empty.get("timezone"), None);
    }

    #[test]
    fn lines_that_a_server_refuses_are_skipped_and_counted() {
        let home = files(&[
            ("postgresql.conf", "timezone = 'A'\ntimezone = 'B\ninclude 'more.conf'\n"),
            (
                "more.conf",
                "include ''\ninclude_dir ' '\ninclude 'none.conf'\ninclude_dir 'no.d'\n\
                 bytea_output = escape\n",
            ),
        ]);
        let config = read(home.path()).expect("read");
        assert_eq!(
            (config.get("timezone"), config.get("bytea_output")),
            (Some("A"), Some("escape"))
        );
        let shown = |name: &str| home.path().join(name).display().to_string();
        let [own, more] = ["postgresql.conf", "more.conf"].map(shown);
        let expected = [
            format!("syntax error in file \"{own}\" line 2"),
            format!("empty configuration file name in file \"{more}\" line 1"),
            format!("empty configuration directory name in file \"{more}\" line 2"),
            format!(
                "\"{}\" does not exist, included in file \"{more}\" line 3",
                shown("none.conf")
            ),
            format!("\"{}\" does not exist, included in file \"{more}\" line 4", shown("no.d")),
        ];
        assert_eq!((config.faults.as_slice(), config.faults_total), (&expected[..], 5));
        let many = files(&[("postgresql.conf", &"=\n".repeat(1000))]);
        let config = read(many.path()).expect("read");
        assert_eq!((config.faults.len(), config.faults_total), (FAULTS_KEPT, 1000));
    }

    /// With ten files that each include the next one ten times, we would have to read 10^10 files.
    #[test]
    fn included_files_are_limited_in_depth_number_and_size() {
        let check = |home: &Path, expected: &str| {
            let error = read(home).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        };
        let ten = |name: &str| format!("include '{name}'\n").repeat(10);
        let own = files(&[("postgresql.conf", &ten("postgresql.conf"))]);
        check(own.path(), "postgresql.conf\": configuration file recursion");
        let circle = files(&[("postgresql.conf", &ten("a")), ("a", &ten("postgresql.conf"))]);
        check(circle.path(), "a\": maximum nesting depth exceeded");
        let many: Vec<String> = (0..=FILES_MAX).map(|number| format!("d/{number}.conf")).collect();
        let mut many: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "")).collect();
        many.push(("postgresql.conf", "include_dir 'd'\n"));
        check(files(&many).path(), "d\": more than 1000 configuration files");
        let names: Vec<String> = (0..=11).map(|level| level.to_string()).collect();
        let mut levels: Vec<(&str, String)> = vec![("postgresql.conf", ten("1"))];
        levels.extend(names.windows(2).skip(1).map(|pair| (pair[0].as_str(), ten(&pair[1]))));
        // The deepest file that may be included has level 10.
        levels.truncate(10);
        levels.push(("10", String::new()));
        let levels: Vec<(&str, &str)> =
            levels.iter().map(|(name, text)| (*name, text.as_str())).collect();
        check(files(&levels).path(), "10\": more than 1000 configuration files");
        let half = "#".repeat(BYTES_MAX as usize / 2);
        let large = files(&[("postgresql.conf", &ten("half")), ("half", &half)]);
        check(large.path(), "half\": configuration files have more than 16777216 bytes");
    }

    #[test]
    fn only_regular_files_are_read() {
        use std::os::unix::fs::symlink;
        let home = files(&[("postgresql.conf", "include 'other'\n")]);
        let other = home.path().join("other");
        let check = || {
            let error = read(home.path()).expect_err("not regular").to_string();
            assert!(error.contains("other\": not a regular file"), "{error}");
            fs::remove_file(&other).expect("removed");
        };
        let made = std::process::Command::new("mkfifo").arg(&other).status().expect("runs");
        assert!(made.success());
        check();
        symlink("/dev/zero", &other).expect("linked");
        check();
        symlink("/dev/null", &other).expect("linked");
        symlink("/dev/null", home.path().join("postgresql.auto.conf")).expect("linked");
        assert_eq!(read(home.path()).expect("read").get("timezone"), None);
        fs::remove_file(&other).expect("removed");
        symlink(home.path(), &other).expect("linked");
        check();
        fs::write(home.path().join("target"), "timezone = 'A'\n").expect("written");
        symlink("target", &other).expect("linked");
        assert_eq!(read(home.path()).expect("read").get("timezone"), Some("A"));
    }

    #[test]
    fn a_single_file_is_read_without_those_that_it_includes() {
        let home = files(&[
            ("lines.conf", "# a comment\nA = 1\n#b = 2\n\nb 'x' # y\ninclude 'none'\na = 3\n"),
            ("wrong.conf", "a = 1\nb == 2\n"),
        ]);
        let found = read_assignments(&home.path().join("lines.conf")).expect("read");
        let expected = [("a", "1"), ("b", "x"), ("include", "none"), ("a", "3")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        for (name, expected) in [("wrong.conf", "line 2: b == 2"), ("no.conf", "No such file")] {
            let error = read_assignments(&home.path().join(name)).expect_err(expected).to_string();
            assert!(error.contains(name) && error.contains(expected), "{error}");
        }
    }

    #[test]
    fn reading_ends_when_it_is_cancelled() {
        let home = files(&[("postgresql.conf", "include 'a'\n"), ("a", "include 'b'\n")]);
        let asked = std::cell::Cell::new(0);
        let cancelled = || asked.replace(asked.get() + 1) == 1;
        let error = ConfigFiles::read(home.path(), &cancelled).expect_err("cancelled");
        assert_eq!((error.kind(), asked.get()), (io::ErrorKind::Interrupted, 2));
    }
}
