//! Ctrl-C ends `copy` even if the cluster's configuration is on a file system that hangs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use trunkline_aio::facade::env;

use crate::child::Running;
use crate::fuse::{Event, Fault, Mount, Tree};
use crate::need;
use crate::verify::binary;

#[test]
fn ctrl_c_while_the_configuration_hangs() {
    if !need::fuse() {
        return;
    }
    let Some(fixtures) = env::var("TRUNKLINE_FIXTURE_DIR") else {
        need::skip("no fixture");
        return;
    };
    let home = tempfile::tempdir().expect("temporary directory");
    let original = Path::new(&fixtures).join("pg18/data");
    let copied = Command::new("cp").arg("-a").args([&original, home.path()]).status();
    assert!(copied.expect("runs").success());
    let data = home.path().join("data");
    let conf = data.join("postgresql.conf");
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let tree = Tree::new().file("conf", b"timezone = 'UTC'\n".to_vec(), Fault::HangRead);
        let mut hung = Mount::new(home.path().join(format!("hung{code}")), tree);
        fs::remove_file(&conf).expect("removed");
        symlink(hung.path().join("conf"), &conf).expect("linked");
        let mut command = Command::new(binary());
        let mut running = Running::start(command.args(["copy", "fixture.s1.ty", "-D"]).arg(&data));
        hung.wait_for(Event::Hung, 1);
        running.signal(signal);
        running.wait_for_message("trunkline: error: interrupted");
        let ended = running.wait_for_end();
        assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(code), ""), "{ended:?}");
    }
}
