//! Prepared transactions of a server that has crashed: those that it has after its recovery, wherever their states are.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use crate::binary::run;
use crate::replay::copy;
use crate::server::{Server, servers, succeed};

/// A checkpoint moves the states of these transactions from the log into files.
const BEFORE: &str = "
create table rows (i int);
begin; insert into rows values (1); prepare transaction 'in a file';
begin; insert into rows values (2); prepare transaction 'committed';
begin; insert into rows values (3); prepare transaction 'rolled back';
checkpoint;
";

const ENDS: &str = "
commit prepared 'committed';
rollback prepared 'rolled back';
commit prepared 'ended in the log';
";

#[test]
fn prepared_transactions_are_those_that_the_server_has_after_recovery() {
    for bin in servers() {
        let mut server = Server::start(&bin, &[("checkpoint_timeout", "1h")]);
        let (files, kept) = (server.data().join("pg_twophase"), server.home().join("kept"));
        server.script("postgres", BEFORE, false);
        copy(&files, &kept);
        for gid in ["in the log", "ended in the log"] {
            let prepare =
                format!("begin; insert into rows values (4); prepare transaction '{gid}'");
            server.script("postgres", &prepare, false);
        }
        let prepared = |server: &Server| {
            let sql = "select transaction from pg_prepared_xacts order by transaction::text::int";
            let text = String::from_utf8(server.sql("postgres", sql)).expect("text");
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let all = prepared(&server);
        server.script("postgres", ENDS, false);
        server.halt("immediate");
        // A snapshot or a power failure can bring back files that were removed.
        succeed(Command::new("cp").arg("-a").arg(kept.join(".")).arg(&files));
        assert_eq!((all.len(), fs::read_dir(&files).expect("read").count()), (5, 3));
        let crashed = server.home().join("crashed");
        copy(&server.data(), &crashed);
        server.run();
        let open = prepared(&server);
        assert_eq!(open.len(), 2, "{}: {open:?}", bin.display());
        let expected: BTreeMap<String, String> = (all.iter().cloned())
            .map(|xid| {
                let sql = format!("select pg_xact_status('{xid}'::xid8)");
                let status = String::from_utf8(server.sql("postgres", &sql)).expect("text");
                assert_eq!(status == "in progress\n", open.contains(&xid), "{xid}: {status}");
                (xid, status.trim().replace("in progress", "prepared"))
            })
            .collect();
        let arguments: Vec<&str> =
            ["inspect", "clog"].into_iter().chain(all.iter().map(String::as_str)).collect();
        let (code, out, err) = run(&crashed, &arguments);
        assert_eq!(code, 0, "{err}");
        let found: BTreeMap<String, String> = (out.lines())
            .filter_map(|line| {
                let mut words = line.split_whitespace().map(str::to_owned);
                let (xid, status) = (words.next()?, words.next()?);
                all.contains(&xid).then_some((xid, status))
            })
            .collect();
        assert_eq!(found, expected, "{}: {out}", bin.display());
        assert!(err.contains("2 prepared transactions have not ended; their changes"), "{err}");
    }
}
