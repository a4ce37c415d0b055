//! Whole tables, in all ways in which rows are sent, compared with what the server has printed.

use std::fs;

use crate::client::{Client, bind, execute, message, parse, sync, text, values};
use crate::serving::{Serving, fixtures};

/// The escapes of `COPY`.
fn line(values: &[Option<Vec<u8>>]) -> Vec<u8> {
    let mut line = Vec::new();
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            line.push(b'\t');
        }
        let Some(value) = value else {
            line.extend(br"\N");
            continue;
        };
        for &byte in value {
            let letter = match byte {
                b'\\' => b'\\',
                b'\t' => b't',
                b'\n' => b'n',
                b'\r' => b'r',
                0x08 => b'b',
                0x0B => b'v',
                0x0C => b'f',
                _ => {
                    line.push(byte);
                    continue;
                }
            };
            line.extend([b'\\', letter]);
        }
    }
    line
}

/// The bodies of rows until the server is ready.
fn rows(client: &mut Client, context: &str) -> Vec<Vec<u8>> {
    let mut rows = Vec::new();
    loop {
        match client.read().expect("a message") {
            (b'D' | b'd', body) => rows.push(body),
            (b'Z', _) => return rows,
            (b'E', body) => panic!("{context}: {}", String::from_utf8_lossy(&body)),
            _ => {}
        }
    }
}

#[test]
fn tables_are_what_the_server_printed() {
    for data in fixtures() {
        let serving = Serving::of(&data, |_| {});
        let mut client = Client::connect(&serving);
        let directory = data.parent().expect("a parent").join("expected/fixture");
        let mut tables = 0;
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            let file = path.file_name().expect("a name").to_string_lossy().into_owned();
            let Some((schema, table)) =
                file.strip_suffix(".copy").and_then(|name| name.split_once('.'))
            else {
                continue;
            };
            let expected = fs::read(&path).expect("a file");
            let expected: Vec<&[u8]> = expected.split_inclusive(|&byte| byte == b'\n').collect();
            let table = format!("\"{schema}\".\"{}\"", table.replace('"', "\"\""));
            let sql = format!("select ctid, * from only {table} order by ctid");
            let context = format!("{}: {table}", data.display());
            let check = |found: &[Vec<u8>], how: &str| {
                assert_eq!(found.len(), expected.len(), "{context}: rows, {how}");
                for (found, expected) in found.iter().zip(&expected) {
                    let found = [line(&values(found)), vec![b'\n']].concat();
                    let shown = String::from_utf8_lossy(expected);
                    assert!(found == *expected, "{context}: {how}: {shown}");
                }
            };
            client.send(&message(b'Q', &text(&sql)));
            check(&rows(&mut client, &context), "simple");
            let series = |format| {
                [parse("", &sql, &[]), bind("", "", &[], &[], &[format]), execute("", 0), sync()]
            };
            client.send(&series(0).concat());
            check(&rows(&mut client, &context), "extended");
            client.send(&series(1).concat());
            let binary = rows(&mut client, &context);
            assert_eq!(binary.len(), expected.len(), "{context}: rows, binary");
            // A tuple of COPY in binary is a row's body.
            client.send(&message(b'Q', &text(&format!("copy ({sql}) to stdout (format binary)"))));
            let copied = rows(&mut client, &context);
            assert!(copied.get(1..copied.len() - 1) == Some(&*binary), "{context}: COPY in binary");
            tables += 1;
        }
        assert!(tables >= 4, "{tables} tables");
    }
}
