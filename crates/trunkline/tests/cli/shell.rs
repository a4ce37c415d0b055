//! What shells, pagers and scripts use: completions, manual pages, and messages as JSON.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::{Cluster, json, run};

#[test]
fn completions_are_scripts_of_the_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let (code, script, err) = run(["completions", shell]);
        assert_eq!((code, err.as_str()), (0, ""));
        for word in ["inspect", "prewarm", "io-method", "io_uring", "sql_standard", "fsm"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        assert!(!script.contains("our scans") && !script.contains("__sum"), "a hidden command");
        let Ok(mut child) = Command::new(shell).arg("-n").stdin(Stdio::piped()).spawn() else {
            println!("skipped: {shell} is not installed, so its completions are not parsed");
            continue;
        };
        let mut input = child.stdin.take().expect("piped");
        input.write_all(script.as_bytes()).expect("written");
        drop(input);
        assert!(child.wait().expect("ended").success(), "{shell}");
    }
    assert_eq!(run(["completions", "tcsh"]).0, 2);
}

#[test]
fn manual_pages_cover_every_command() {
    let (code, page, err) = run(["man"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(page.contains(".TH TRUNKLINE 1 "), "{page}");
    let home = tempfile::tempdir().expect("a directory");
    let directory = home.path().to_str().expect("text");
    let (code, out, err) = run(["man", directory]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "", ""));
    for name in ["trunkline", "trunkline-copy", "trunkline-inspect-page"] {
        let page = fs::read_to_string(home.path().join(format!("{name}.1"))).expect("a page");
        assert!(page.contains(&format!(".TH {} 1 ", name.to_uppercase())), "{page}");
        let at = |heading| page.find(heading).unwrap_or_else(|| panic!("{heading}: {page}"));
        let places = [
            ".SH NAME\n",
            ".SH SYNOPSIS\n",
            ".SH DESCRIPTION\n",
            ".SH OPTIONS\n",
            "COMMON OPTIONS",
            ".SH ENVIRONMENT\n",
            "Data directory, unless",
            ".SH \"EXIT STATUS\"\n",
            ".SH EXAMPLES\n",
        ];
        let places = places.map(at);
        assert!(places.is_sorted(), "{places:?}: {page}");
        assert!(!page.contains("EXTRA") && !page.contains("help(1)"), "{page}");
    }
    let copy = fs::read_to_string(home.path().join("trunkline-copy.1")).expect("a page");
    assert!(copy.contains("\ntrunkline\\-copy \\- print a table as COPY"), "{copy}");
    assert!(
        copy.contains("\n.nf\ntrunkline copy \\-D DIR \\-d bench public.accounts\n.fi\n"),
        "{copy}"
    );
    assert!(!home.path().join("trunkline-sum.1").exists(), "a hidden command");
    let (code, _, err) = run(["man", "/nowhere"]);
    assert_eq!(code, 3);
    assert_eq!(
        err,
        "trunkline: error: could not write manual pages to \"/nowhere\": No such file or \
         directory\n"
    );
}

#[test]
fn messages_are_json_too() {
    let message = |args: &[&str]| {
        let (code, out, err) = run(args);
        let message = json(&err);
        assert_eq!((out.as_str(), &message["kind"]), ("", &"error".into()), "{args:?}");
        assert_eq!(message["exit_status"], code, "{args:?}");
        message
    };
    let control = message(&["--json", "inspect", "control"]);
    assert_eq!(control["text"], "no data directory given");
    assert_eq!(control["hint"], "use -D DIR, or set PGDATA");
    let unknown = message(&["inspect", "--json", "frobnicate"]);
    assert!(unknown["text"].as_str().is_some_and(|text| text.starts_with("unrecognized")));
    let missing = message(&["inspect", "control", "/nowhere", "--json"]);
    assert_eq!(missing["text"], "could not open file \"/nowhere\": No such file or directory");

    let cluster = Cluster::new(0);
    let data = cluster.path.clone().into_os_string();
    let (code, out, err) = run(["verify".into(), "--json".into(), "-D".into(), data]);
    assert_eq!(code, 1, "a segment is missing: {out}");
    assert_eq!(json(&out)["command"], "verify");
    assert_eq!(json(&err)["kind"], "warning");
    assert_eq!(run(["inspect", "control", "--", "--json"]).2.lines().count(), 1);
}
