//! Incremental backups are refused by every command that reads tables, and `backup verify` takes its
//! directory as an argument or by `-D`.

use crate::{Cluster, run, trunkline};

const LABEL: &str = "START WAL LOCATION: 0/2000028 (file 000000010000000000000002)\n\
                     CHECKPOINT LOCATION: 0/2000060\n\
                     BACKUP METHOD: streamed\n\
                     BACKUP FROM: primary\n\
                     START TIMELINE: 1\n\
                     INCREMENTAL FROM LSN: 0/1000028\n\
                     INCREMENTAL FROM TLI: 1\n";

#[test]
fn an_incremental_backup_is_refused() {
    let cluster = Cluster::new(1);
    cluster.write("backup_label", LABEL.as_bytes());
    for args in [
        &["tables"][..],
        &["tables", "--no-replay"],
        &["copy", "-d", "shop", "orders"],
        &["copy", "-d", "shop", "orders", "--no-replay"],
        &["copy", "-d", "shop", "orders", "--force-unclean"],
        &["verify", "--no-replay"],
        &["backup", "verify"],
    ] {
        let output = trunkline().args(args).arg("-D").arg(&cluster.path).output().expect("runs");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0), "{args:?}: {err}");
        assert!(err.contains("is an incremental backup from 0/01000028\n"), "{args:?}: {err}");
        assert!(err.contains("hint: combine it with the backup"), "{args:?}: {err}");
    }
    // A label of a full backup, or one that is damaged, is another matter.
    for label in [&LABEL[..LABEL.find("INCREMENTAL").expect("there")], "INCREMENTAL"] {
        cluster.write("backup_label", label.as_bytes());
        let args = ["verify", "--files-only", "--no-replay", "-D"];
        let output = trunkline().args(args).arg(&cluster.path).output().expect("runs");
        let out = String::from_utf8_lossy(&output.stdout);
        assert!(out.contains("Verification completed"), "{label}: {output:?}");
    }
}

#[test]
fn a_backup_is_named_by_an_argument_or_an_option() {
    let cluster = Cluster::new(1);
    let run = |args: &[&std::ffi::OsStr]| {
        let mut command = trunkline();
        command.args(["backup", "verify"]).args(args).env("PGDATA", &cluster.path);
        let output = command.output().expect("runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let path = cluster.path.as_os_str();
    let by_argument = run(&[path]);
    assert_eq!(by_argument.0, Some(3));
    assert!(by_argument.1.contains("is not a base backup"), "{}", by_argument.1);
    assert_eq!(run(&["-D".as_ref(), path]), by_argument);
    // Both, or only the directory of a server.
    let (code, err) = run(&[path, "-D".as_ref(), path]);
    assert!(code == Some(2) && err.contains("takes its directory as an argument"), "{err}");
    let (code, err) = run(&[]);
    assert!(code == Some(2) && err.contains("no backup given: use backup verify DIR"), "{err}");
}

#[test]
fn the_option_may_come_first() {
    let (code, _, err) = run(["-D", "/nowhere", "backup", "verify"]);
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("could not read \"/nowhere\""), "{err}");
}
