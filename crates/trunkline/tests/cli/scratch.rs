//! Where `--scratch` may be: in a directory that exists, outside of the cluster and its tablespaces.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::recover::crashed;
use crate::run;

/// Runs a command that replays the log, with this scratch directory.
fn verify(data: &Path, scratch: &Path, options: &[&str]) -> (i32, String) {
    let (data, scratch) = (data.display().to_string(), scratch.display().to_string());
    let args = ["verify", "--files-only", "-D", &data, "--scratch", &scratch];
    let (code, _, err) = run(args.iter().chain(options));
    (code, err)
}

#[test]
fn a_scratch_directory_is_never_inside_a_cluster() {
    let home = tempfile::tempdir().expect("a folder");
    let at = |name: &str| home.path().join(name);
    let data = at("data");
    crashed(&data);
    for folder in ["space/PG_18_202506291", "moved/PG_18_202506291", "outside"] {
        fs::create_dir_all(at(folder)).expect("made");
    }
    symlink(at("space"), data.join("pg_tblspc/16400")).expect("linked");
    symlink(at("space/PG_18_202506291"), at("link")).expect("linked");
    symlink(data.join("base"), at("link-to-base")).expect("linked");
    let refused = |name: &str, options: &[&str], expected: &str| {
        let (code, err) = verify(&data, &at(name), options);
        assert_eq!(code, 2, "{name}: {err}");
        let text = format!("is inside {expected}");
        assert!(err.contains(&text) && err.contains("hint: choose another"), "{name}: {err}");
    };
    refused("data/base", &[], "the data directory");
    refused("link-to-base", &[], "the data directory");
    let of_link = format!("the tablespace \"{}\"", data.join("pg_tblspc/16400").display());
    for name in ["space", "space/PG_18_202506291", "link"] {
        refused(name, &[], &of_link);
    }
    let mapping = format!("-T{}={}", at("space").display(), at("moved").display());
    let of_mapping = format!("the tablespace \"{}\"", at("moved").display());
    refused("moved/PG_18_202506291", &[&mapping], &of_mapping);
    // Without the option, that directory has nothing to do with the cluster.
    for (name, options) in [("outside", &[&*mapping][..]), ("moved", &[])] {
        let (code, err) = verify(&data, &at(name), options);
        assert_eq!(code, 0, "{name}: {err}");
    }
}

#[test]
fn a_scratch_directory_must_be_one() {
    let home = tempfile::tempdir().expect("a folder");
    let data = home.path().join("data");
    crashed(&data);
    fs::write(home.path().join("file"), "").expect("written");
    for (name, reason) in [("absent", "No such file or directory"), ("file", "Not a directory")] {
        let (code, err) = verify(&data, &home.path().join(name), &[]);
        assert_eq!(code, 2, "{err}");
        let text = format!("/{name}\" for --scratch: {reason}\n");
        assert!(err.contains(&text) && !err.contains("replayed"), "{err}");
    }
}
