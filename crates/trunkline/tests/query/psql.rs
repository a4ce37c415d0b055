//! Rows and messages are those of psql, byte for byte.

use crate::run;

/// What psql prints.
const RECORDED: &str = include_str!("psql.txt");

#[test]
fn rows_and_messages_are_those_of_psql() {
    let recorded = RECORDED.replace("$\n", "\n").replace('␉', "\t").replace('␍', "\r");
    let blocks = recorded.split("%%").skip(1);
    assert!(blocks.clone().count() > 100);
    for block in blocks {
        let (options, block) = block.split_once('\n').expect("options");
        let (sql, block) = block.split_once("\n%> ").expect("statements");
        let (code, block) = block.split_once('\n').expect("an exit status");
        let (stdout, stderr) = block.split_once("%!\n").expect("outputs");
        let mut args = vec![sql];
        for option in options.split_whitespace() {
            match option {
                "-A" => args.push("--format=unaligned"),
                option => args.push(option),
            }
        }
        let Some(found) = run(&args) else { return };
        let expected = (code.parse().expect("a number"), stdout.to_owned(), stderr.to_owned());
        assert_eq!(found, expected, "{args:?}");
    }
}

#[test]
fn long_results_are_printed_in_blocks() {
    let Some((code, stdout, _)) = run(&["select x from generate_series(9999, 20001) x"]) else {
        return;
    };
    assert_eq!(code, 0);
    let lines: Vec<&str> = stdout.lines().collect();
    // The first block has 10,000 rows and the widths of its values.
    assert_eq!(lines[..3], ["   x   ", "-------", "  9999"]);
    assert_eq!(lines[10_001..], [" 19998", " 19999", " 20000", " 20001", "(10003 rows)", ""]);
}
