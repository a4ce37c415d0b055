//! The roster's decisions, at times of the test's choice and without threads.

use super::*;
use crate::clock;

#[test]
fn a_worker_that_left_before_its_launch_was_recorded_stays_gone() {
    let mut roster = Roster::new(WorkerSettings::default(), 8, 8);
    assert!(roster.claim_place(0));
    let thread = thread::spawn_internal("worker", || ()).expect("a thread");
    // The new worker finds the pool too large and leaves before the supervisor gets back here.
    roster.leave(0);
    roster.launched(0, Some(thread), clock::now());
    assert_eq!(roster.live(), 0, "no thread stands behind a live worker");
    assert!(roster.claim_place(0), "the place can be used again");
    assert_eq!(roster.take_threads().len(), 0, "the next worker has not started yet");
}

/// A roster whose first lane has earned its share, with this many workers.
fn roster(max: usize) -> Roster {
    let launch_interval = Duration::from_secs(3600);
    let settings = WorkerSettings { min: 1, max, launch_interval, ..Default::default() };
    let mut roster = Roster::new(settings, 1024, 1024);
    prove(&mut roster, 0, max);
    for id in 0..max {
        assert!(roster.claim_place(id));
    }
    roster.last_launch = Some(clock::now());
    roster
}

/// The handle whose I/O the worker executes next, or what it does instead.
fn next(roster: &mut Roster, id: usize, now: Time) -> Result<u32, &'static str> {
    match roster.next_job(id, now, &DeferredDrops::new(1), false) {
        Job::Execute { index, .. } => Ok(index),
        Job::Call { .. } => Err("call"),
        Job::Close(_) => Err("close"),
        Job::Sleep { .. } => Err("sleep"),
        Job::Leave(_) => Err("leave"),
    }
}

fn push(roster: &mut Roster, lane: usize, class: Class, handles: std::ops::Range<u32>) {
    for index in handles {
        roster.lanes.push(Queued { lane, index, class });
    }
}

/// Pretends that the lane has completed this many I/Os.
fn prove(roster: &mut Roster, lane: usize, count: usize) {
    for _ in 0..count {
        roster.lanes.occupy(lane, Class::LookAhead);
        roster.lanes.finished(lane, Class::LookAhead);
    }
}

#[test]
fn a_mount_that_hangs_with_all_256_workers_does_not_stop_the_others() {
    let (mut roster, begin) = (roster(256), clock::now());
    roster.settings.launch_interval = Duration::ZERO;
    push(&mut roster, 0, Class::LookAhead, 0..300);
    for id in 0..256 {
        assert_eq!(next(&mut roster, id, begin), Ok(id as u32));
    }
    let later = begin.after(Duration::from_secs(2));
    assert_eq!(roster.decide(later, || false), Decision::Wait(None), "it has its share");
    // The other mounts hang as well, each with as many workers as it gets.
    let mut id = 256;
    for lane in 1..LANES_MAX as u32 {
        prove(&mut roster, lane as usize, 300);
        push(&mut roster, lane as usize, Class::LookAhead, 260 + lane * 45..305 + lane * 45);
        let before = id;
        while let Decision::Launch(launched) = roster.decide(later, || false) {
            assert_eq!(launched, id);
            assert_eq!(
                next(&mut roster, id, later),
                Ok((260 + lane as usize * 45 + id - before) as u32)
            );
            id += 1;
        }
        assert!(id > before, "mount {lane} has no worker");
    }
}

#[test]
fn calls_go_after_the_log_and_before_other_io() {
    let (mut roster, now) = (roster(8), clock::now());
    push(&mut roster, 0, Class::Foreground, 0..1);
    let [first, second] = [7, 7].map(|number| roster.push_call(number, Box::new(|| ())));
    roster.push_call(8, Box::new(|| ()));
    push(&mut roster, 0, Class::Log, 1..2);
    assert_eq!(next(&mut roster, 0, now), Ok(1));
    assert_eq!(next(&mut roster, 1, now), Err("call"), "the first one");
    assert!(roster.remove_call(first).is_none(), "it has begun");
    // A lane that has completed nothing may use one worker.
    assert_eq!(next(&mut roster, 2, now), Err("call"), "the one in the other lane");
    assert_eq!(next(&mut roster, 3, now), Ok(0));
    assert_eq!(next(&mut roster, 4, now), Err("sleep"));
    roster.job_done(1);
    assert_eq!(roster.wake_for_queued(now), Wake::Worker(4));
    assert_eq!(next(&mut roster, 4, now), Err("call"));
    assert!(roster.remove_call(second).is_none());
}

#[test]
fn the_log_gets_a_worker_of_its_own_at_once() {
    let (mut roster, now) = (roster(2), clock::now());
    push(&mut roster, 0, Class::LookAhead, 0..10);
    assert_eq!(
        [next(&mut roster, 0, now), next(&mut roster, 1, now)],
        [Ok(0), Ok(1)],
        "all workers are busy"
    );
    roster.growth_wanted = true;
    push(&mut roster, 0, Class::Log, 20..21);
    assert_eq!(roster.wake_for_queued(now), Wake::Supervisor, "although it has been asked");
    assert_eq!(roster.decide(now, || false), Decision::Launch(2), "before the interval is over");
    assert_eq!(next(&mut roster, 2, now), Ok(20));
    roster.job_done(2);
    assert_eq!(next(&mut roster, 2, now), Err("sleep"), "look-ahead doesn't get that worker");
    assert_ne!(roster.wake_for_queued(now), Wake::Worker(2));
    push(&mut roster, 0, Class::Log, 21..22);
    assert_eq!(roster.wake_for_queued(now), Wake::Worker(2));
    assert_eq!(next(&mut roster, 2, now), Ok(21));
    roster.job_done(2);
    assert_eq!(next(&mut roster, 2, now), Err("sleep"));
    roster.job_done(1);
    assert_eq!(next(&mut roster, 1, now), Ok(2), "the other workers go on");
    assert!(roster.leave_if_surplus(2).is_some(), "after the idle timeout");
    assert_eq!(roster.live(), 2);
}

/// The supervisor decides again before the worker that it has started or woken gets the CPU.
#[test]
fn one_io_of_the_log_starts_only_one_worker() {
    let (mut roster, now) = (roster(2), clock::now());
    roster.change_settings(WorkerSettings { max: 8, ..roster.settings });
    push(&mut roster, 0, Class::LookAhead, 0..2);
    (0..2).for_each(|id| _ = next(&mut roster, id, now));
    for (index, expected) in [(2, "started"), (3, "woken")] {
        push(&mut roster, 0, Class::Log, index..index + 1);
        match expected {
            "started" => assert_eq!(roster.decide(now, || false), Decision::Launch(2)),
            _ => assert_eq!(roster.wake_for_queued(now), Wake::Worker(2)),
        }
        let again = roster.decide(now, || false);
        assert!(matches!(again, Decision::Wait(Some(_))), "{expected}, {again:?}");
        assert_eq!(next(&mut roster, 2, now), Ok(index));
        roster.job_done(2);
        assert_eq!(next(&mut roster, 2, now), Err("sleep"));
    }
}

/// While one of the log's I/Os is in progress, the other I/O gets as many workers as without it.
#[test]
fn the_log_takes_no_worker_from_the_others() {
    let (mut roster, now) = (roster(1), clock::now());
    roster.settings.launch_interval = Duration::ZERO;
    push(&mut roster, 0, Class::Log, 0..1);
    assert_eq!(next(&mut roster, 0, now), Ok(0));
    push(&mut roster, 0, Class::LookAhead, 1..3);
    assert_eq!(roster.wake_for_queued(now), Wake::Supervisor);
    assert_eq!(roster.decide(now, || false), Decision::Launch(1));
    assert_eq!(next(&mut roster, 1, now), Ok(1));
    assert!(matches!(roster.decide(now, || false), Decision::Wait(_)), "no third worker");
    roster.job_done(0);
    assert_eq!(next(&mut roster, 0, now), Err("sleep"), "only one for look-ahead");
}

#[test]
fn a_surplus_worker_does_not_leave_before_the_logs_io_has_begun() {
    let (mut roster, now) = (roster(2), clock::now());
    push(&mut roster, 0, Class::LookAhead, 0..1);
    assert_eq!(next(&mut roster, 0, now), Ok(0));
    assert_eq!(next(&mut roster, 1, now), Err("sleep"));
    roster.change_settings(WorkerSettings { max: 1, ..roster.settings });
    push(&mut roster, 0, Class::Log, 1..2);
    assert_eq!(roster.wake_for_queued(now), Wake::Worker(1));
    assert_eq!(next(&mut roster, 1, now), Ok(1));
    roster.job_done(1);
    assert_eq!(next(&mut roster, 1, now), Err("leave"));
}

/// The worker for the log leaves too if the limit is lowered.
#[test]
fn the_logs_worker_leaves_when_there_are_too_many() {
    let (mut roster, now) = (roster(3), clock::now());
    push(&mut roster, 0, Class::LookAhead, 0..3);
    (0..3).for_each(|id| _ = next(&mut roster, id, now));
    push(&mut roster, 0, Class::Log, 3..4);
    assert_eq!(roster.decide(now, || false), Decision::Launch(3));
    assert_eq!(next(&mut roster, 3, now), Ok(3));
    roster.change_settings(WorkerSettings { max: 1, ..roster.settings });
    (0..4).for_each(|id| roster.job_done(id));
    assert_eq!(next(&mut roster, 3, now), Err("leave"));
    assert_eq!(next(&mut roster, 2, now), Err("leave"));
    assert_eq!(next(&mut roster, 1, now), Err("sleep"), "one for the log, until it is idle");
}
