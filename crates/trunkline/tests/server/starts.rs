//! Checks the server fixture itself: start, queries, restart, stop.

use crate::server::{Server, servers};

#[test]
fn a_server_starts_answers_and_stops() {
    for bin in servers() {
        let mut server = Server::start(&bin, &[("work_mem", "1MB")]);
        assert_eq!(server.sql("postgres", "show work_mem"), b"1MB\n");
        let script = "create table t (a int, b text);\ninsert into t values (1, 'x\\y');\n";
        server.script("postgres", script, false);
        server.script("postgres", "select 1/0;\ninsert into t values (2);\n", true);
        server.restart();
        let copied = server.sql("postgres", "copy t to stdout");
        assert_eq!(copied, b"1\tx\\\\y\n2\t\\N\n");
        let major = server.major();
        assert!((15..=19).contains(&major), "{major}");
        let stopped = server.stop();
        assert!(stopped.data().join("global/pg_control").is_file());
        assert!(!stopped.data().join("postmaster.pid").exists());
    }
}
