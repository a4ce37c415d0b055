//! Scans of whole tables. The server has printed every table with `ctid`, so all rows and all
//! values of all types are compared.

use std::fs;

use crate::cluster::{fixtures, lines, open};
use crate::tree::Tree;

/// Every table of every version, with one task and with several.
#[test]
fn scans_return_what_the_server_printed() {
    for data in fixtures() {
        for name in ["fixture", "bench"] {
            let mut context = open(&data, name);
            let directory = data.parent().expect("a parent").join("expected").join(name);
            let mut tables = 0;
            for entry in fs::read_dir(directory).expect("a directory") {
                let path = entry.expect("an entry").path();
                let file = path.file_name().expect("a name").to_string_lossy().into_owned();
                let Some((schema, table)) =
                    file.strip_suffix(".copy").and_then(|name| name.split_once('.'))
                else {
                    continue;
                };
                let text = fs::read_to_string(&path).expect("UTF-8");
                let mut expected: Vec<&str> = text.lines().collect();
                let quoted = format!("\"{schema}\".\"{}\"", table.replace('"', "\"\""));
                for workers in [0, 2] {
                    context.options.workers = workers;
                    let mut tree = Tree::default();
                    let (scan, columns) = tree.only(&context.database, &quoted);
                    let mut found = lines(&context, &tree.statement(scan, &columns));
                    if workers > 0 {
                        found.sort_unstable();
                        expected.sort_unstable();
                    }
                    let same = found.iter().zip(&expected).take_while(|(a, b)| a == b).count();
                    assert!(
                        found == expected,
                        "{}: {quoted}: {} rows, expected {}; row {same}: {:?}, expected {:?}",
                        data.display(),
                        found.len(),
                        expected.len(),
                        found.get(same),
                        expected.get(same),
                    );
                }
                tables += 1;
            }
            assert!(tables >= 4, "{name}: {tables} tables");
        }
    }
}
