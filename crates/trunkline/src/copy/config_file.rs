//! Reads a cluster's configuration files: `postgresql.conf`, the files it includes, and
//! `postgresql.auto.conf`. The latter is written by `ALTER SYSTEM` and takes precedence.
//!
//! ```text
//!   timezone = 'Europe/Berlin'   # a comment
//!   include_dir 'conf.d'
//! ```
//! We only use settings that affect how values are printed. Unlike the server's parser
//! (`guc-file.l`), ours skips lines it can't parse, because a mistake in an unrelated setting
//! should not prevent a copy. A missing file is not an error either, because some distributions
//! keep the configuration outside the data directory.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::outputs::at;

/// Maximum nesting depth of included files, as in the server.
const DEPTH_MAX: u32 = 10;
/// Maximum size of a file in bytes.
const FILE_MAX: u64 = 16 << 20;

/// The settings in the configuration files, by name in lower case.
#[derive(Debug, Default)]
pub(super) struct ConfigFiles {
    settings: BTreeMap<String, String>,
    /// Whether there is a `postgresql.conf`.
    pub(super) found: bool,
}

impl ConfigFiles {
    /// Reads the files of the cluster in `pgdata`.
    ///
    /// # Errors
    /// A file exists but cannot be read.
    pub(super) fn read(pgdata: &Path) -> io::Result<ConfigFiles> {
        let mut config = ConfigFiles::default();
        config.found = config.file(&pgdata.join("postgresql.conf"), 0)?;
        config.file(&pgdata.join("postgresql.auto.conf"), 0)?;
        Ok(config)
    }

    /// The value of a setting, if a file assigns one.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    /// Reads the settings of a file. Returns whether the file exists.
    fn file(&mut self, path: &Path, depth: u32) -> io::Result<bool> {
        let text = match fs::metadata(path).and_then(|found| read(path, found.len())) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(at(path, &error)),
        };
        for (name, value) in text.lines().filter_map(assignment) {
            let named = || path.parent().unwrap_or(Path::new("")).join(&value);
            match name.as_str() {
                "include" | "include_if_exists" if depth < DEPTH_MAX => {
                    self.file(&named(), depth + 1)?;
                }
                "include_dir" if depth < DEPTH_MAX => {
                    for file in configuration_files(&named())? {
                        self.file(&file, depth + 1)?;
                    }
                }
                _ => drop(self.settings.insert(name, value)),
            }
        }
        Ok(true)
    }
}

fn read(path: &Path, length: u64) -> io::Result<String> {
    if length > FILE_MAX {
        return Err(io::Error::other("file is too large for a configuration file"));
    }
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}

/// Returns the directory's `.conf` files, sorted by name. As in the server, hidden files are
/// ignored.
fn configuration_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(at(directory, &error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let shown = name.to_string_lossy();
        if shown.ends_with(".conf") && !shown.starts_with('.') {
            files.push(directory.join(&name));
        }
    }
    files.sort();
    Ok(files)
}

/// Parses a line of the form `name = value` or `name value`.
fn assignment(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$');
    let end = line.find(|c: char| !is_name(c)).unwrap_or(line.len());
    let (name, rest) = line.split_at_checked(end)?;
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    if name.is_empty() {
        return None;
    }
    let value = match rest.strip_prefix('\'') {
        Some(quoted) => unquote(quoted)?,
        None => rest.split(['#', ' ', '\t']).next()?.to_owned(),
    };
    Some((name.to_ascii_lowercase(), value))
}

/// Returns the text up to the closing quote. A doubled quote represents a single one, and a
/// backslash escapes the next character.
fn unquote(text: &str) -> Option<String> {
    let mut value = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\'' if characters.peek() != Some(&'\'') => return Some(value),
            '\'' | '\\' => value.push(characters.next()?),
            _ => value.push(character),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_assigns_a_value_to_a_name() {
        let check = |line: &str, expected: Option<(&str, &str)>| {
            let found = assignment(line);
            let found = found.as_ref().map(|(name, value)| (name.as_str(), value.as_str()));
            assert_eq!(found, expected, "{line}");
        };
        check("TimeZone = 'Europe/Berlin' # here", Some(("timezone", "Europe/Berlin")));
        check("  extra_float_digits 0", Some(("extra_float_digits", "0")));
        check("extra_float_digits=3#so", Some(("extra_float_digits", "3")));
        check("datestyle = 'iso, ''dmy\\''", Some(("datestyle", "iso, 'dmy'")));
        check("custom.name = x", Some(("custom.name", "x")));
        check("#timezone = 'GMT'", None);
        check("", None);
        check("timezone = 'open", None);
    }

    #[test]
    fn files_include_others_and_the_last_assignment_wins() {
        let home = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| fs::write(home.path().join(name), text);
        fs::create_dir(home.path().join("conf.d")).expect("made");
        write("postgresql.conf", "timezone = 'A'\ninclude 'more.conf'\ninclude_dir 'conf.d'\n")
            .expect("written");
        write("more.conf", "timezone = 'B'\nbytea_output = escape\ninclude 'more.conf'\n")
            .expect("written");
        write("conf.d/2.conf", "timezone = 'D'\n").expect("written");
        write("conf.d/1.conf", "timezone = 'C'\n").expect("written");
        write("conf.d/.3.conf", "timezone = 'E'\n").expect("written");
        let config = ConfigFiles::read(home.path()).expect("read");
        assert_eq!(config.get("timezone"), Some("D"));
        assert_eq!(config.get("bytea_output"), Some("escape"));
        assert!(config.found);
        write("postgresql.auto.conf", "timezone = 'F'\n").expect("written");
        assert_eq!(ConfigFiles::read(home.path()).expect("read").get("timezone"), Some("F"));
        let empty = ConfigFiles::read(&home.path().join("conf.d")).expect("nothing there");
        assert!(!empty.found);
        assert_eq!(empty.get("timezone"), None);
    }
}
