//! `verify` as a user without permission to read some files of a cluster. Since we know nothing about
//! these files, the command must not report that the cluster is valid or that it is damaged.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use trunkline_aio::facade::env;

use crate::child::{Ended, Running};
use crate::limits::UNPRIVILEGED;
use crate::need;
use crate::verify::binary;

/// A copy of a cluster that all users can read, and the binary.
struct Copy {
    home: TempDir,
    data: PathBuf,
}

impl Copy {
    fn new() -> Option<Copy> {
        let fixtures = env::var("TRUNKLINE_FIXTURE_DIR").map(PathBuf::from);
        let Some(fixture) = fixtures.map(|dir| dir.join("pg18/data")).filter(|dir| dir.is_dir())
        else {
            need::skip("no fixture");
            return None;
        };
        let home = tempfile::tempdir().expect("temporary directory");
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).expect("opened");
        let data = home.path().join("data");
        let run = |command: &mut Command| assert!(command.status().expect("runs").success());
        run(Command::new("cp").arg("-R").arg(fixture).arg(&data));
        run(Command::new("chmod").args(["-R", "a+rX"]).arg(&data));
        fs::copy(binary(), home.path().join("trunkline")).expect("copied");
        Some(Copy { home, data })
    }

    /// Runs the binary as another user.
    fn run(&self, args: &[&str]) -> Ended {
        let mut command = Command::new(UNPRIVILEGED[0]);
        command.args(&UNPRIVILEGED[1..]).arg(self.home.path().join("trunkline")).args(args);
        command.env_remove("PGDATA").current_dir("/").arg("-D").arg(&self.data);
        Running::start(&mut command).wait_for_end()
    }

    /// A relation of the database `fixture` or `bench`.
    fn relation(&self, database: &str, name: &str) -> serde_json::Value {
        let listed = self.run(&["tables", "-d", database, "--all", "--json"]).stdout;
        let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
        let mut tables = listed["relations"].as_array().expect("relations").iter();
        tables.find(|table| table["name"] == name).expect("a relation").clone()
    }

    /// The file of a relation of the database `fixture` or `bench`.
    fn file(&self, database: &str, name: &str) -> String {
        self.relation(database, name)["file"].as_str().expect("a file").to_owned()
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("changed");
}

#[test]
fn a_file_without_permission_to_read_is_an_error() {
    if !need::root() {
        return;
    }
    let Some(copy) = Copy::new() else { return };
    let valid = copy.run(&["verify", "--deep"]);
    assert_eq!(valid.status.code(), Some(0), "{valid:?}");
    let table = copy.file("fixture", "toast");
    let toast = format!("pg_toast_{}", copy.relation("fixture", "toast")["oid"]);
    let values = copy.file("fixture", &toast);
    let index = copy.file("fixture", &format!("{toast}_index"));
    let class = copy.file("bench", "pg_class");
    let directory = Path::new(&class).parent().expect("a directory").display().to_string();
    for (path, text) in [
        (&table, "could not be opened: Permission denied"),
        (&values, "could not be opened: Permission denied"),
        (&index, "could not be opened: Permission denied"),
        (&class, "could not be opened: Permission denied"),
        (&directory, "could not be read: Permission denied"),
    ] {
        let mode = fs::metadata(copy.data.join(path)).expect("there").permissions().mode();
        set_mode(&copy.data.join(path), 0o700);
        for args in [&["verify"][..], &["verify", "--files-only"], &["verify", "--deep"]] {
            let ended = copy.run(args);
            assert_eq!(ended.status.code(), Some(3), "{path}: {args:?}: {ended:?}");
            assert!(ended.stdout.contains(&format!("{path}: {text}\n")), "{args:?}: {ended:?}");
            assert!(!ended.stdout.contains("(os error "), "{ended:?}");
            // Nothing else is wrong.
            let error =
                "trunkline: error: 1 file or directory could not be read: permission denied\n";
            assert!(ended.stderr.contains(error), "{args:?}: {ended:?}");
            let hint = "trunkline: hint: run as the user that owns the data directory\n";
            assert!(ended.stderr.ends_with(hint), "{args:?}: {ended:?}");
            // The rows that we could not read may refer to these values.
            assert!(!ended.stderr.contains("TOAST values are not referenced"), "{ended:?}");
        }
        if path == &directory {
            let ended = copy.run(&["tables"]);
            let line = ended.stdout.lines().find(|line| line.starts_with("bench "));
            assert!(line.is_some_and(|line| line.contains("  unknown")), "{ended:?}");
            assert_eq!(ended.status.code(), Some(3), "{ended:?}");
            assert!(ended.stderr.contains(&format!("{path}: {text}\n")), "{ended:?}");
        }
        set_mode(&copy.data.join(path), mode);
    }
}
