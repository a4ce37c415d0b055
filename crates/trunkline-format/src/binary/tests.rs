//! Compares our binary format of values with that of real servers, whose results are in the tables
//! of the input functions.

use super::*;
use crate::ids::Oid;
use crate::test_catalog::{Catalog, from_hex};
use crate::test_data::XorShift;
use crate::text_input::read_text;
use crate::text_input::tests::Table;
use crate::text_output::Type;

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
