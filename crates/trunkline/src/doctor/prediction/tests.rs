//! Predictions from given results of a trial.

use super::*;
use std::collections::BTreeMap;

const NOMEM: i32 = 12;

fn settings(given: &[(&str, &str)]) -> ServerSettings {
    let values: BTreeMap<String, String> =
        given.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    ServerSettings::new(18, &values, true)
}

fn trial(name: &str, errno: Option<i32>) -> Trial {
    Trial { name: name.to_owned(), errno }
}

/// An answer after this many rings were opened.
fn answer(opened: u32, rings_errno: Option<i32>) -> Answer {
    Answer {
        uid: 26,
        groups: [26].into(),
        setup: trial("io_uring_setup", None),
        read: Some(trial("IORING_OP_READ", None)),
        features: Vec::new(),
        flags: Vec::new(),
        opcodes: vec![trial("REGISTER_PROBE", Some(1))],
        registrations: Vec::new(),
        opened,
        rings_errno,
        memlock: Some(8 << 20),
        nofile: Some(1 << 20),
        seccomp: false,
        locks_memory: false,
    }
}

fn all(
    settings: &ServerSettings,
    outcome: &Outcome,
    running_rings: u32,
    faults: &[Fault],
) -> [Prediction; 3] {
    let host = Host { kernel: (6, 18), processors: 4, ..Host::read() };
    let nofile = Some(1 << 20);
    predict(settings, &Circumstances { host: &host, outcome, nofile, running_rings, faults })
}

/// The prediction of io_uring with default settings.
fn uring(answer: Answer, running_rings: u32) -> Prediction {
    let [found, _, _] =
        all(&settings(&[]), &Outcome::Answered(Box::new(answer)), running_rings, &[]);
    found
}

#[test]
fn a_running_server_gives_its_rings_back() {
    // 100 of 142 rings could be opened.
    let found = uring(answer(100, Some(NOMEM)), 42);
    assert_eq!(found.works, Some(true), "{found:?}");
    assert!(found.reason.contains("after the running server has ended"), "{found:?}");
    // The others belong to other processes of the user.
    let found = uring(answer(100, Some(NOMEM)), 41);
    assert_eq!(found.starts, Some(false), "{found:?}");
    assert!(found.reason.contains("other processes of user 26"), "{found:?}");
    assert!(
        found.fix.as_deref().is_some_and(|fix| fix.starts_with("ulimit -l 10240,")),
        "{found:?}"
    );
}

#[test]
fn more_rings_than_are_tried_are_compared_with_the_limit() {
    let many = settings(&[("max_connections", "30000")]);
    let found = |memlock| {
        let answer = Answer { memlock, ..answer(RINGS_MAX, None) };
        let [found, _, _] = all(&many, &Outcome::Answered(Box::new(answer)), 0, &[]);
        found
    };
    // 30042 rings of 1 entry need 235 MB.
    let least = found(None).ring_bytes;
    let fits = found(Some(least));
    assert_eq!(fits.starts, Some(true), "{fits:?}");
    assert!(fits.reason.contains("20000 of them were opened"), "{fits:?}");
    let exceeds = found(Some(least - 1));
    assert_eq!(exceeds.starts, Some(false), "{exceeds:?}");
    assert!(exceeds.reason.contains("RLIMIT_MEMLOCK is "), "{exceeds:?}");
    assert!(found(None).reason.contains("20000 of them"));
}

/// A server opens its rings and then crashes. It doesn't ask for opcodes, as our engine does.
#[test]
fn rings_that_do_not_read_let_a_server_start() {
    let read = Some(trial("IORING_OP_READ", Some(1)));
    let found = uring(Answer { read, ..answer(142, None) }, 0);
    assert_eq!((found.starts, found.works), (Some(true), Some(false)), "{found:?}");
    assert!(found.reason.starts_with("would start, but fail at its first read"), "{found:?}");
    let found = uring(answer(142, None), 0);
    assert_eq!((found.starts, found.works), (Some(true), Some(true)), "{found:?}");
}

#[test]
fn what_was_not_tried_is_not_known() {
    let outcome = Outcome::Failed("could not become user 26".to_owned());
    let [found, worker, _] = all(&settings(&[]), &outcome, 0, &[]);
    assert_eq!((found.starts, found.works), (None, None), "{found:?}");
    assert_eq!(found.check().status, super::super::check::Status::Missing);
    assert_eq!(worker.starts, Some(true), "{worker:?}");
}

#[test]
fn faults_concern_every_method() {
    let why = |reason: &str| Why { reason: reason.to_owned(), fix: "fix it".to_owned() };
    let later = Fault { effect: Effect::Fails("its first log record"), why: why("later") };
    let first = Fault { effect: Effect::Refuses, why: why("at once") };
    let outcome = Outcome::Answered(Box::new(answer(142, None)));
    for found in all(&settings(&[]), &outcome, 0, std::slice::from_ref(&later)) {
        assert_eq!((found.starts, found.works), (Some(true), Some(false)), "{found:?}");
        assert!(found.reason.contains("fail at its first log record: later"), "{found:?}");
    }
    let unknown = Fault { effect: Effect::Undecided, why: why("perhaps") };
    for found in all(&settings(&[]), &outcome, 0, &[unknown]) {
        assert_eq!(found.works, Some(true), "{found:?}");
        assert!(found.reason.ends_with("; not decided: perhaps"), "{found:?}");
        assert_eq!(found.fix.as_deref(), Some("fix it"));
    }
    for found in all(&settings(&[]), &outcome, 0, &[later, first]) {
        assert_eq!(found.reason, "would not start: at once", "{found:?}");
    }
}

#[test]
fn descriptors_include_those_of_the_setting() {
    let found = settings(&[("max_files_per_process", "3000")]);
    let answer = Answer { nofile: Some(204), ..answer(142, None) };
    let [found, _, _] = all(&found, &Outcome::Answered(Box::new(answer)), 0, &[]);
    assert_eq!(found.starts, Some(false), "{found:?}");
    // 142 rings, 3000 files, and 5 that are open before.
    assert!(
        found.fix.as_deref().is_some_and(|fix| fix.starts_with("ulimit -n 3147,")),
        "{found:?}"
    );
}
