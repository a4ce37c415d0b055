//! Configuration files: `copy` reads those that the server reads, and refuses those that it refuses.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::server::{Server, servers};

/// Files, by name, with their contents.
type Files = Vec<(String, String)>;

/// `postgresql.conf` includes a file that includes the next one, and so on. The last of `length`
/// files sets the time zone.
fn chain(length: u32) -> Files {
    let include = |number| format!("include 'chain{number}.conf'\n");
    let mut files = vec![("postgresql.conf".to_owned(), include(1))];
    for number in 1..=length {
        let text = match number == length {
            true => "timezone = 'Asia/Tokyo'\n".to_owned(),
            false => include(number + 1),
        };
        files.push((format!("chain{number}.conf"), text));
    }
    files
}

fn write(data: &Path, files: &Files) {
    for (name, text) in files {
        let path = data.join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    }
}

#[test]
fn copy_refuses_the_files_that_a_server_refuses() {
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let own = vec![file("postgresql.conf", "include 'postgresql.conf'\n")];
    let directory = vec![
        file("postgresql.conf", "timezone = 'UTC'\ninclude_dir 'conf.d'\n"),
        file("conf.d/a.conf", "timezone = 'Asia/Tokyo'\n"),
        // A directory, whose name ends in .conf.
        file("conf.d/b.conf/c.conf", "timezone = 'America/Lima'\n"),
    ];
    let cases = [
        (chain(10), None),
        (chain(11), Some("nesting depth exceeded")),
        (own, Some("configuration file recursion")),
        (directory, None),
    ];
    for bin in servers() {
        let server = Server::start(&bin, &[]);
        server.sql("postgres", "create table t as select timestamptz '2020-01-01 00:00:00+00' t");
        let configuration = server.data().join("postgresql.conf");
        let before = fs::read(&configuration).expect("read");
        // The view reads the files anew, and the server need not accept them.
        let errors = cases.each_ref().map(|(files, _)| {
            write(&server.data(), files);
            let sql = "select error from pg_file_settings where error is not null \
                       and error not like '%cannot be changed without restarting%'";
            String::from_utf8(server.sql("postgres", sql)).expect("text")
        });
        fs::write(configuration, before).expect("written");
        let stopped = server.stop();
        for ((files, refused), error) in cases.iter().zip(errors) {
            write(&stopped.data(), files);
            let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
            command.args(["copy", "postgres.public.t", "-D"]).arg(stopped.data());
            let output = command.env_remove("PGDATA").output().expect("runs");
            let text = String::from_utf8_lossy(&output.stderr);
            match refused {
                Some(expected) => {
                    assert!(error.contains(expected), "the server: {error:?}");
                    assert_eq!(output.status.code(), Some(3), "{text}");
                    assert!(text.contains(expected), "{text}");
                }
                None => {
                    assert_eq!(error, "", "the server: {error:?}");
                    assert_eq!((output.status.code(), &*text), (Some(0), ""), "{files:?}");
                    assert_eq!(output.stdout, b"2020-01-01 09:00:00+09\n", "{files:?}");
                }
            }
        }
    }
}

/// The second line of `postgresql.conf`, and whether a server refuses it.
const LINES: [(&str, bool); 35] = [
    ("timezone = 'Europe/Berlin", true),
    ("garbage here foo", true),
    ("include 'nofile'", true),
    ("include_if_exists 'nofile'", false),
    ("include_dir 'nodirectory'", true),
    ("include ''", true),
    ("include_if_exists ''", true),
    ("include_dir ''", true),
    ("timezone", true),
    ("work_mem =", true),
    ("work_mem = # 4MB", true),
    ("work_mem == 4MB", true),
    ("work_mem = '4MB' MB", true),
    ("= 4MB", true),
    ("my-name.x = y", true),
    ("a.b.c = d", true),
    ("1a = b", true),
    ("work_mem $x", true),
    ("include site.conf", true),
    ("cluster_name = a.b", true),
    ("cluster_name = a.b.c", false),
    ("a.b = c # comment", false),
    ("ümläut.ß = ä", false),
    ("work_mem'4MB'#", false),
    ("\twork_mem\t=4MB\r", false),
    ("cpu_tuple_cost = +1.5e-2", false),
    ("cpu_tuple_cost = 1.", false),
    ("cpu_tuple_cost = 1e3", true),
    ("work_mem = 1.5GB", true),
    ("work_mem = 3-4", true),
    ("listen_addresses = 192.168.0.1", true),
    ("timezone Europe/Berlin", false),
    ("log_line_prefix = 'it''s \\' %m'", false),
    ("work_mem = 0x1000kB", false),
    ("# '", false),
];

#[test]
fn lines_that_a_server_refuses_are_named() {
    for bin in servers() {
        let server = Server::start(&bin, &[]);
        server.sql("postgres", "create table t as select timestamptz '2020-01-01 00:00:00+00' t");
        let configuration = server.data().join("postgresql.conf");
        let before = fs::read(&configuration).expect("read");
        let contents = |line: &str| format!("timezone = 'Asia/Tokyo'\n{line}\n");
        for (line, refused) in LINES {
            fs::write(&configuration, contents(line)).expect("written");
            let sql = "select count(*) > 0 from pg_file_settings where sourceline = 2 and (error \
                       ~ '^(syntax error|could not open|empty configuration)')";
            let found = server.sql("postgres", sql);
            assert_eq!(found, if refused { b"t\n" } else { b"f\n" }, "{line}");
        }
        fs::write(&configuration, before).expect("written");
        let stopped = server.stop();
        let configuration = stopped.data().join("postgresql.conf");
        for (line, refused) in LINES {
            fs::write(&configuration, contents(line)).expect("written");
            let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
            command.args(["copy", "postgres.public.t", "-D"]).arg(stopped.data());
            let output = command.env_remove("PGDATA").output().expect("runs");
            let text = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{line}: {text}");
            assert_eq!(text.contains("postgresql.conf\" line 2\n"), refused, "{line}: {text}");
            let doubt = "the configuration files contain errors; timestamptz is printed in Asia";
            assert_eq!(text.contains(doubt), refused, "{line}: {text}");
            assert_eq!(text.is_empty(), !refused, "{line}: {text}");
        }
    }
}
