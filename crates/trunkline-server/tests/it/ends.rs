//! How statements and connections end: by a cancel request, because the client goes, because the
//! server stops.

use std::io::Read as _;

use trunkline_query::{ActivityState, SessionWait};

use crate::client::{Client, bind, execute, message, packet, parse, sync, text};
use crate::serving::{Serving, wait_until};

/// A statement that doesn't end by itself.
pub(crate) const ENDLESS: &str =
    "select count(*) from pg_class a, pg_class b, pg_class c, pg_class d, pg_class e, pg_class f";

/// A statement with more rows than a socket takes.
const MANY: &str = "select repeat('x', 1000) from generate_series(1, 100000000)";

impl Serving {
    pub(crate) fn wait_until_active(&self) {
        wait_until("a statement", || {
            self.instance.activity().iter().any(|it| it.state == ActivityState::Active)
        });
    }

    /// Sends a cancel request, and waits until it has been served.
    fn cancel(&self, pid: i32, key: &[u8]) {
        let mut client = Client::silent(self);
        let code = 80_877_102_u32.to_be_bytes();
        client.send(&packet(&[&code, &pid.to_be_bytes()[..], key].concat()));
        let mut rest = Vec::new();
        client.stream.read_to_end(&mut rest).expect("the end");
        assert_eq!(rest, b"");
    }
}

#[test]
fn a_statement_is_cancelled_by_its_key() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::connect(&serving);
    let (pid, key) = (client.pid, client.key.clone());
    client.send(&message(b'Q', &text(ENDLESS)));
    serving.wait_until_active();
    let wrong: Vec<u8> = key.iter().map(|byte| !byte).collect();
    serving.cancel(pid, &wrong);
    serving.cancel(pid + 1, &key);
    serving.cancel(pid, &[key.clone(), vec![0]].concat());
    assert!(serving.instance.activity().iter().any(|it| it.state == ActivityState::Active));
    serving.cancel(pid, &key);
    let found = client.until_ready();
    let error = "E ERROR 57014 canceling statement due to user request";
    assert_eq!(found.get(found.len() - 2..), Some(&[error.to_owned(), "Z I".to_owned()][..]));
    // Without a statement, a request has no effect.
    serving.cancel(pid, &key);
    assert_eq!(client.query("select 1").len(), 4);
}

/// These statements never give their thread back for long, because no row leaves their innermost loop.
/// The test's server has one thread for statements.
const BUSY: [&str; 3] = [
    "select count(*) from generate_series(1, 1000000) a, generate_series(1, 1000000) b where a + b = -1",
    "select count(*) from generate_series(1, 1000000000000) a where a < 0",
    "with recursive r(n) as (select 1::int8 union all select n + 1 from r) \
     select count(*) from r where n < 0",
];

#[test]
fn statements_that_keep_their_thread_busy_end_too() {
    let Some(serving) = Serving::start() else { return };
    for statement in BUSY {
        let mut client = Client::connect(&serving);
        client.send(&message(b'Q', &text(statement)));
        serving.wait_until_active();
        serving.cancel(client.pid, &client.key.clone());
        let found = client.until_ready();
        let error = "E ERROR 57014 canceling statement due to user request";
        assert!(found.contains(&error.to_owned()), "{statement}: {found:?}");
        client.query("set statement_timeout = 1");
        let found = client.query(statement);
        let error = "E ERROR 57014 canceling statement due to statement timeout";
        assert!(found.contains(&error.to_owned()), "{statement}: {found:?}");
        client.query("set statement_timeout = 0");
        client.send(&message(b'Q', &text(statement)));
        serving.wait_until_active();
        drop(client);
        serving.wait_for_sessions(0);
    }
}

#[test]
fn busy_sessions_hold_up_no_others() {
    let Some(serving) = Serving::start() else { return };
    let mut busy = Vec::new();
    for statement in BUSY {
        let mut client = Client::connect(&serving);
        client.send(&message(b'Q', &text(statement)));
        busy.push(client);
    }
    wait_until("all statements", || {
        let all = serving.instance.activity();
        all.iter().filter(|it| it.state == ActivityState::Active).count() == BUSY.len()
    });
    let mut other = Client::connect(&serving);
    assert_eq!(other.query("select 1").len(), 4);
    drop(busy);
    serving.wait_for_sessions(1);
    assert_eq!(other.query("select 1").len(), 4);
}

#[test]
fn a_statement_ends_with_its_client() {
    let Some(serving) = Serving::start() else { return };
    let mut simple = Client::connect(&serving);
    simple.send(&message(b'Q', &text(ENDLESS)));
    let mut extended = Client::connect(&serving);
    let series = [parse("", ENDLESS, &[]), bind("", "", &[], &[], &[]), execute("", 0), sync()];
    extended.send(&series.concat());
    wait_until("both statements", || {
        let all = serving.instance.activity();
        all.iter().filter(|it| it.state == ActivityState::Active).count() == 2
    });
    drop((simple, extended));
    serving.wait_for_sessions(0);
}

#[test]
fn a_client_that_reads_nothing_is_waited_for_until_it_goes() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::connect(&serving);
    client.send(&message(b'Q', &text(MANY)));
    // The first row has come, and the socket fills up.
    assert_eq!(client.read().map(|(kind, _)| kind), Some(b'T'));
    assert_eq!(client.read().map(|(kind, _)| kind), Some(b'D'));
    let mut other = Client::connect(&serving);
    assert_eq!(other.query("select 1").len(), 4);
    assert_eq!(serving.instance.activity().len(), 2);
    drop(client);
    serving.wait_for_sessions(1);
    drop(other);
    serving.wait_for_sessions(0);
}

#[test]
fn a_cancel_request_reaches_a_portal_that_goes_on() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::connect(&serving);
    client.query("begin");
    client.series(&[parse("", MANY, &[]), bind("p", "", &[], &[], &[]), execute("p", 1)]);
    client.send(&[execute("p", 0), sync()].concat());
    serving.wait_until_active();
    serving.cancel(client.pid, &client.key.clone());
    let found = client.until_ready();
    let error = "E ERROR 57014 canceling statement due to user request";
    assert_eq!(found.get(found.len() - 2..), Some(&[error.to_owned(), "Z E".to_owned()][..]));
}

#[test]
fn a_stop_ends_all_sessions() {
    let Some(mut serving) = Serving::start() else { return };
    let mut idle = Client::connect(&serving);
    let mut active = Client::connect(&serving);
    active.send(&message(b'Q', &text(ENDLESS)));
    serving.wait_until_active();
    serving.stopper.stop();
    let error = "E FATAL 57P01 terminating connection due to administrator command";
    assert_eq!(idle.until_ready(), [error, "end"]);
    let found = active.until_ready();
    assert_eq!(found.get(found.len() - 2..), Some(&[error.to_owned(), "end".to_owned()][..]));
    assert_eq!(serving.wait_for_end(), 0);
    assert_eq!(serving.instance.activity().len(), 0);
}

#[test]
fn a_stop_reaches_those_that_start_and_those_that_take_nothing() {
    let Some(mut serving) = Serving::start() else { return };
    // One that doesn't go on after its first message.
    let mut starting = Client::silent(&serving);
    starting.send(&packet(&80_877_103_u32.to_be_bytes()));
    let mut answer = [0];
    starting.stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"N");
    let mut blocked = Client::connect(&serving);
    blocked.send(&message(b'Q', &text(MANY)));
    assert_eq!(blocked.read().map(|(kind, _)| kind), Some(b'T'));
    serving.stopper.stop();
    assert_eq!(serving.wait_for_end(), 0);
    assert_eq!(serving.instance.activity().len(), 0);
}

#[test]
fn a_silent_client_is_ended_if_there_is_a_limit() {
    let Some(serving) = Serving::start() else { return };
    let mut client = Client::connect(&serving);
    assert_eq!(client.query("set idle_session_timeout = 1"), ["C SET", "Z I"]);
    let error = "E FATAL 57P05 terminating connection due to idle-session timeout";
    assert_eq!(client.until_ready(), [error, "end"]);
    for failing in ["", "; select no"] {
        let mut client = Client::connect(&serving);
        client.query("set idle_in_transaction_session_timeout = 1");
        client.query(&format!("begin{failing}"));
        let error = "E FATAL 25P03 terminating connection due to idle-in-transaction timeout";
        assert_eq!(client.until_ready(), [error, "end"]);
    }
    serving.wait_for_sessions(0);
}

/// Half of many clients go while their statement runs, and nothing of them is left.
#[test]
fn nothing_is_left_of_clients_that_went() {
    let Some(serving) = Serving::start() else { return };
    let mut staying = Vec::new();
    let mut going = Vec::new();
    for number in 0..200 {
        let mut client = Client::connect(&serving);
        let endless = number % 2 == 0;
        client.send(&message(
            b'Q',
            &text(if endless { MANY } else { "select count(*) from pg_class" }),
        ));
        if endless { going.push(client) } else { staying.push(client) }
    }
    for client in &mut staying {
        assert_eq!(client.until_ready().last().map(String::as_str), Some("Z I"));
    }
    drop(going);
    serving.wait_for_sessions(staying.len());
    drop(staying);
    serving.wait_for_sessions(0);
    let mut client = Client::connect(&serving);
    let zero = |client: &mut Client, sql: &str| {
        let found = client.query(sql);
        assert_eq!(found.get(1).map(String::as_str), Some("D 0"), "{sql}: {found:?}");
    };
    zero(&mut client, "select count(*) from pg_buffercache where pinning_backends > 0");
    zero(&mut client, "select count(*) from pg_aios");
}

#[test]
fn another_session_terminates_idle_busy_and_blocked_ones() {
    let Some(serving) = Serving::start() else { return };
    let mut idle = Client::connect(&serving);
    let mut active = Client::connect(&serving);
    active.send(&message(b'Q', &text(ENDLESS)));
    let mut blocked = Client::connect(&serving);
    blocked.send(&message(b'Q', &text(MANY)));
    assert_eq!(blocked.read().map(|(kind, _)| kind), Some(b'T'));
    // Each answer is written when it is complete.
    let mut full = Client::connect(&serving);
    let answer = message(b'Q', &text("select repeat('x', 60000)"));
    full.send(&answer.repeat(1000));
    let waits = |pid: i32| {
        let all = serving.instance.activity();
        all.into_iter().find(|it| it.pid == pid).and_then(|it| it.wait)
    };
    wait_until("a client that takes nothing", || {
        waits(blocked.pid) == Some(SessionWait::ClientWrite)
    });
    assert_eq!(waits(idle.pid), Some(SessionWait::ClientRead));
    let mut other = Client::connect(&serving);
    wait_until("a client that takes no answers", || {
        waits(full.pid) == Some(SessionWait::ClientWrite)
    });
    for pid in [idle.pid, active.pid, blocked.pid, full.pid] {
        let found = other.query(&format!("select pg_terminate_backend({pid})"));
        assert_eq!(found.get(1).map(String::as_str), Some("D t"), "{found:?}");
    }
    let error = "E FATAL 57P01 terminating connection due to administrator command";
    assert_eq!(idle.until_ready(), [error, "end"]);
    let found = active.until_ready();
    assert_eq!(found.get(found.len() - 2..), Some(&[error.to_owned(), "end".to_owned()][..]));
    serving.wait_for_sessions(1);
    // It reads no reason, because it has taken nothing.
    let mut rest = Vec::new();
    let _ended = blocked.stream.read_to_end(&mut rest);
    let _ended = full.stream.read_to_end(&mut rest);
    let found = other.query("select pg_terminate_backend(pg_backend_pid())");
    assert_eq!(found.get(found.len() - 2..), Some(&[error.to_owned(), "end".to_owned()][..]));
    serving.wait_for_sessions(0);
}
