//! Checks that order keys compare as B-tree indexes do, whose order servers made. For example, the keys
//! of `1 mon` and `30 days` must be equal.

use std::cmp::Ordering;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use trunkline_format::Oid;
use trunkline_format::btree::Order;
use trunkline_format::text_input::{InputOptions, read_text};
use trunkline_format::text_output::{Base, Type};

use crate::values::{Carrier, ColumnBuilder, OrderKey, PayloadReader};

const CASES: &[(u32, Order, &[&str])] = &[
    (
        1700,
        Order::Numeric,
        &[
            "NaN",
            "Infinity",
            "-Infinity",
            "0",
            "0.00",
            "1",
            "1.00",
            "-1",
            "-1.0",
            "1.5",
            "1.50001",
            "-1.5",
            "-1.50001",
            "10000",
            "10001",
            "100000000",
            "100000001",
            "-10000",
            "-10001",
            "-100000000",
            "-100000001",
            "0.0001",
            "0.00010001",
            "-0.0001",
            "-0.00010001",
            "9999",
            "99999999.9999",
            "-99999999.9999",
            "1e100",
            "-1e100",
            "1e-100",
            "-1e-100",
            "100010000",
            "-100010000",
            "10000.0001",
            "-10000.0001",
        ],
    ),
    (
        1186,
        Order::Interval,
        &[
            "1 mon",
            "30 days",
            "720:00:00",
            "29 days 24:00:01",
            "-1 mon",
            "-30 days",
            "0",
            "1 year",
            "178000000 years",
            "-178000000 years",
            "00:00:00.000001",
            "-00:00:00.000001",
        ],
    ),
    (
        1266,
        Order::TimeTz,
        &["12:00+00", "13:00+01", "11:00-01", "00:00+15", "24:00-15", "12:00:00.000001+00"],
    ),
    (
        869,
        Order::Network,
        &[
            "10.0.0.0/8",
            "10.0.0.0/9",
            "10.0.0.0",
            "10.0.0.1/8",
            "10.128.0.0/9",
            "0.0.0.0/0",
            "255.255.255.255",
            "::1",
            "::/0",
            "fe80::/10",
            "fe80::1/10",
            "fe80::1",
            "9.255.255.255/8",
            "10.1.2.3/31",
            "10.1.2.2/31",
            "10.1.2.2/32",
        ],
    ),
    (
        1562,
        Order::Bits,
        &[
            "",
            "0",
            "00",
            "1",
            "10",
            "00000000",
            "000000000",
            "0000000000000000",
            "11111111",
            "111111110",
            "0000000010000000",
            "01",
        ],
    ),
];

fn keys(oid: u32, texts: &[&str]) -> (ArrayRef, ArrayRef) {
    let settings = super::tests::settings();
    let options = InputOptions::new(18, &*settings.catalog, 0);
    let ty = Type::Base(Base::from_oid(Oid(oid)).unwrap());
    let mut column = ColumnBuilder::new(Carrier::of(&ty), texts.len());
    for text in texts {
        let mut payload = Vec::new();
        read_text(&ty, text.as_bytes(), -1, &options, &mut payload).unwrap();
        column.append(&payload).unwrap();
    }
    let array = column.finish();
    let keys = OrderKey::of(&ty).unwrap().keys(&array).unwrap();
    (array, keys)
}

#[test]
fn keys_compare_as_an_index_does() {
    for (oid, order, texts) in CASES {
        let (array, keys) = keys(*oid, texts);
        let ty = Type::Base(Base::from_oid(Oid(*oid)).unwrap());
        let mut reader = PayloadReader::new(Carrier::of(&ty), &array).unwrap();
        let payloads: Vec<Vec<u8>> =
            (0..texts.len()).map(|row| reader.get(row).unwrap().to_vec()).collect();
        let keys = keys.as_binary_view();
        for (a, one) in payloads.iter().enumerate() {
            for (b, other) in payloads.iter().enumerate() {
                let found = keys.value(a).cmp(keys.value(b));
                let expected = order.compare(one, other).unwrap();
                assert_eq!(found, expected, "{} and {}", texts[a], texts[b]);
            }
        }
    }
}

#[test]
fn floats_have_one_zero_and_one_nan() {
    let (_, keys) = keys(701, &["-0", "0", "NaN", "1"]);
    let keys = keys.as_primitive::<Float64Type>();
    assert_eq!(keys.value(0).total_cmp(&keys.value(1)), Ordering::Equal);
    assert_eq!(keys.value(2).to_bits(), f64::NAN.to_bits());
}

#[test]
fn blanks_at_the_end_of_bpchar_are_not_in_its_key() {
    let (_, keys) = keys(1042, &["a ", "a", " a"]);
    let keys: Vec<_> = keys.as_string_view().iter().flatten().collect();
    assert_eq!(keys, ["a", "a", " a"]);
}
