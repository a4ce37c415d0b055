//! Compares our binary format of values with that of real servers, whose results are in the tables
//! of the input functions.

use super::*;
use crate::ids::Oid;
use crate::test_catalog::{Catalog, from_hex, unescape};
use crate::test_data::XorShift;
use crate::text_input::tests::{Table, split};
use crate::text_input::{InputOptions, read_text};
use crate::text_output::{TextOptions, Type, write_text};

#[test]
fn values_are_sent_as_real_servers_send_them() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for table in Table::all() {
        for case in table.cases.iter().filter(|case| case.code == "=") {
            let ty = Type::resolve(case.oid, &table.catalog).unwrap();
            let mut value = Vec::new();
            let read = table.with_options(case, |input, _| {
                read_text(&ty, &case.input, case.typmod, input, &mut value)
            });
            if read.is_err() {
                continue;
            }
            let mut sent = Vec::new();
            let result = write_binary(&ty, &value, &table.catalog, &mut sent);
            count += 1;
            if result.is_err() || sent != from_hex(&case.more) {
                let input = String::from_utf8_lossy(&case.input);
                let expected = &case.more;
                let major = table.major;
                wrong.push(format!(
                    "{major} {} {input} {result:?}\n  {sent:02x?}\n  {expected}",
                    case.name
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{} values", wrong.join("\n"), wrong.len());
    assert!(count > 2000, "{count}");
}

/// Each line of `testdata/sent.txt` has the OID of a type whose text we don't read, the bytes that a
/// server stored, and what the type's send function returned for them.
#[test]
fn stored_values_are_sent_as_real_servers_send_them() {
    let catalog = Catalog::parse(include_str!("../../testdata/catalog-19.txt"));
    let lines = include_str!("../../testdata/sent.txt").lines();
    for line in lines {
        let fields: Vec<&str> = line.split('|').collect();
        let ty = Type::resolve(Oid(fields[0].parse().unwrap()), &catalog).unwrap();
        let mut sent = Vec::new();
        write_binary(&ty, &from_hex(fields[1]), &catalog, &mut sent).unwrap();
        assert_eq!(sent, from_hex(fields[2]), "{line}");
    }
}

#[test]
fn what_a_server_sent_is_received_as_the_same_value() {
    let mut wrong = Vec::new();
    for table in Table::all() {
        for case in table.cases.iter().filter(|case| case.code == "=") {
            let ty = Type::resolve(case.oid, &table.catalog).unwrap();
            let (mut value, mut received) = (Vec::new(), Vec::new());
            let results = table.with_options(case, |input, _| {
                let read = read_text(&ty, &case.input, case.typmod, input, &mut value);
                let sent = from_hex(&case.more);
                (read, read_binary(&ty, &sent, case.typmod, input, &mut received))
            });
            // No server receives an empty vector, although it sends it.
            if case.name.ends_with("vector") && case.text.is_empty() {
                assert_eq!(results.1.unwrap_err().code(), "22P03");
                continue;
            }
            if results.0.is_ok() && (results.1.is_err() || value != received) {
                let input = String::from_utf8_lossy(&case.input);
                let name = &case.name;
                wrong.push(format!(
                    "{name} {input} {:?}\n  {value:02x?}\n  {received:02x?}",
                    results.1
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{} values", wrong.join("\n"), wrong.len());
}

/// Each line of `testdata/received-*.txt` has a type's OID, a modifier, a message, and what `COPY` of a
/// server made of it: `=` and the text, or the SQLSTATE, message and detail. Most messages are damaged.
#[test]
fn messages_are_received_as_real_servers_receive_them() {
    let old = (15, include_str!("../../testdata/received-15.txt"));
    let new = (18, include_str!("../../testdata/received-18.txt"));
    let mut wrong = Vec::new();
    for (major, lines) in [old, new] {
        let catalog = Catalog::parse(include_str!("../../testdata/catalog-19.txt"));
        let input = InputOptions::new(major, &catalog, 0);
        let output = TextOptions::new(major, &catalog);
        for line in lines.lines() {
            let fields = split(line).map(|field| String::from_utf8(unescape(field)).unwrap());
            let fields: Vec<String> = fields.collect();
            let ty = Type::resolve(Oid(fields[0].parse().unwrap()), &catalog).unwrap();
            let typmod = fields[1].parse().unwrap();
            let (mut value, mut text) = (Vec::new(), Vec::new());
            let found = match read_binary(&ty, &from_hex(&fields[2]), typmod, &input, &mut value) {
                Ok(()) => {
                    let _ = write_text(&ty, &value, &output, &mut text);
                    ["=".to_owned(), String::from_utf8_lossy(&text).into_owned(), String::new()]
                }
                Err(error) => {
                    let detail = error.detail().unwrap_or_default().to_owned();
                    [error.code().to_owned(), error.message().to_owned(), detail]
                }
            };
            if found != fields[3..6] {
                wrong.push(format!("{major} {line}\n  {found:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{} messages", wrong.join("\n"), wrong.len());
}

/// A text doesn't show them, but comparisons of bit strings would.
#[test]
fn bits_beyond_the_end_of_a_bit_string_are_cleared() {
    let catalog = Catalog::parse(include_str!("../../testdata/catalog-19.txt"));
    let ty = Type::resolve(Oid(1562), &catalog).unwrap();
    let (mut value, mut sent) = (Vec::new(), Vec::new());
    let options = InputOptions::new(18, &catalog, 0);
    read_binary(&ty, &from_hex("00000004af"), -1, &options, &mut value).unwrap();
    write_binary(&ty, &value, &catalog, &mut sent).unwrap();
    assert_eq!(sent, from_hex("00000004a0"));
}

#[test]
fn any_message_of_any_type_ends_in_a_value_or_in_an_error() {
    let mut random = XorShift(4711);
    for table in Table::all() {
        for case in table.cases.iter().filter(|case| case.code == "=") {
            let ty = Type::resolve(case.oid, &table.catalog).unwrap();
            for _ in 0..10 {
                let mut bytes = from_hex(&case.more);
                for _ in 0..=random.below(2) {
                    let at = random.below(bytes.len() + 1);
                    match random.below(3) {
                        0 => bytes.truncate(at),
                        1 => bytes.insert(at, random.below(4) as u8),
                        _ => bytes[..at].last_mut().map_or((), |byte| *byte = random.next() as u8),
                    }
                }
                let mut value = Vec::new();
                table.with_options(case, |input, output| {
                    match read_binary(&ty, &bytes, case.typmod, input, &mut value) {
                        Err(error) => assert!(value.is_empty() && !error.message().is_empty()),
                        // Whatever is received can be sent, and most of it can be printed.
                        Ok(()) => {
                            let mut out = Vec::new();
                            write_binary(&ty, &value, &table.catalog, &mut out).unwrap();
                            drop(write_text(&ty, &value, output, &mut out));
                        }
                    }
                });
            }
        }
    }
}

#[test]
fn any_bytes_of_any_type_end_in_bytes_or_in_an_error() {
    let mut random = XorShift(77);
    let catalog = Catalog::parse(include_str!("../../testdata/catalog-19.txt"));
    for oid in catalog.types.keys() {
        let Ok(ty) = Type::resolve(Oid(*oid), &catalog) else { continue };
        for _ in 0..300 {
            let mut bytes = vec![0; random.below(80)];
            random.fill(&mut bytes);
            for byte in &mut bytes {
                // Most counts and lengths are small numbers.
                *byte = if random.below(3) == 0 { *byte } else { *byte & 3 };
            }
            let mut out = Vec::new();
            if let Err(error) = write_binary(&ty, &bytes, &catalog, &mut out) {
                assert!(!error.to_string().is_empty());
            }
        }
    }
}

#[test]
fn types_without_a_send_function_are_refused_by_name() {
    let catalog = Catalog::parse(include_str!("../../testdata/catalog-19.txt"));
    let ty = Type::resolve(Oid(1033), &catalog).unwrap();
    let error = write_binary(&ty, &[0; 16], &catalog, &mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "no binary output function available for type aclitem");
}
