//! Crashed directories whose files are not what the log needs: a lost commit log, pages without images, and a log that still
//! grows.

use std::fs;

use trunkline_engine::datadir::{DataDir, DataDirError, OpenOptions};
use trunkline_engine::replay::ReplayOptions;

use crate::binary::run;
use crate::killed_writers::control_file;
use crate::replay::copy;
use crate::server::{Server, servers};
use crate::wal::segments;

/// No catalog needs the commit log, and `rows` has rows from before and after a checkpoint, without hint bits.
const ROWS: &str = "
create table rows (i int);
vacuum (freeze);
insert into rows select generate_series(1, 10);
checkpoint;
insert into rows select generate_series(11, 20);
";

#[test]
fn a_crashed_directory_that_lacks_something_says_so() {
    for bin in servers() {
        let mut server = Server::start(&bin, &[("full_page_writes", "off")]);
        server.script("postgres", ROWS, false);
        server.halt("immediate");
        let data = server.home().join("crashed");
        copy(&server.data(), &data);
        let rows = |data| run(data, &["copy", "-d", "postgres", "rows"]);
        let (code, out, err) = rows(&data);
        assert_eq!((code, out.lines().count()), (0, 20), "{err}");
        let has_checksums = control_file(&data).checksums();
        assert_eq!(err.contains("full_page_writes was off"), !has_checksums, "{err}");

        // The server goes on, but its control file and its process can't be seen.
        let scratch = tempfile::tempdir().expect("a folder");
        let options = ReplayOptions::new(scratch.path().to_owned());
        let opened = DataDir::open_replayed(&data, OpenOptions::default(), &options);
        let opened = opened.expect("opened");
        opened.recheck().expect("nothing has changed");
        server.run();
        server.sql("postgres", "insert into rows values (21)");
        server.halt("immediate");
        for segment in segments(&server.data()) {
            let name = segment.file_name().expect("a name");
            fs::copy(&segment, data.join("pg_wal").join(name)).expect("copied");
        }
        let changed = opened.recheck();
        assert!(matches!(changed, Err(DataDirError::Changed { .. })), "{changed:?}");

        // The page of the commit log has transactions that the log does not have.
        let lost = server.home().join("lost");
        copy(&server.data(), &lost);
        fs::remove_file(lost.join("pg_xact/0000")).expect("removed");
        let (code, out, err) = rows(&lost);
        assert!(code == 3 && err.contains("pg_xact/0000"), "{code}: {out}{err}");
    }
}
