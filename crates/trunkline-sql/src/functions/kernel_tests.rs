//! Calls kernels with arguments for which real servers gave the results.
//!
//! A table such as `testdata/datetime.txt` has a line `@ function type zone` for each function: its `prosrc`, its
//! result type and the zone of the session. Then follow calls, separated by ` ;; `: the arguments, ` => `,
//! the result of PostgreSQL 18, and another ` => ` with that of 15 if it differs, or with `-` if 15 has
//! no such function or value.

use std::collections::BTreeMap;

use arrow_array::ArrayRef;
use trunkline_engine::time_zone::zone;
use trunkline_format::Oid;
use trunkline_format::text_output::{Base, Type, write_text};

use super::call::{Argument, Call, CallSettings};
use super::registry::kernel;
use super::tests::settings;
use crate::error::SqlError;
use crate::values::{Carrier, PayloadReader};

/// How tables show null.
const NULL: &str = "\\N";

/// An argument: a letter for its carrier, and its stored value as numbers or text.
fn argument(text: &str) -> Argument {
    let (kind, value) = text.split_at(1);
    let number = |text: &str| text.parse::<i64>().unwrap();
    let numbers: Vec<i64> = match kind {
        "z" | "v" if value != NULL => value.split(',').map(number).collect(),
        _ => Vec::new(),
    };
    let small = |at: usize| i32::try_from(numbers[at]).unwrap().to_le_bytes();
    if value == NULL {
        let carrier = match kind {
            "i" => Carrier::Int64,
            "z" => Carrier::Fixed(12),
            _ => panic!("argument {text}"),
        };
        return Argument::column(carrier.constant(None).unwrap());
    }
    let (carrier, payload) = match kind {
        "d" | "n" => (Carrier::Int32, value.parse::<i32>().unwrap().to_le_bytes().to_vec()),
        "i" => (Carrier::Int64, number(value).to_le_bytes().to_vec()),
        "f" => (Carrier::Float64, value.parse::<f64>().unwrap().to_le_bytes().to_vec()),
        "e" => (Carrier::Float32, value.parse::<f32>().unwrap().to_le_bytes().to_vec()),
        "b" => (Carrier::Bool, vec![u8::from(value == "t")]),
        "x" => (Carrier::Text, value.as_bytes().to_vec()),
        "z" => (Carrier::Fixed(12), [&numbers[0].to_le_bytes()[..], &small(1)].concat()),
        "v" => {
            let bytes = [&numbers[0].to_le_bytes()[..], &small(1), &small(2)].concat();
            (Carrier::Fixed(16), bytes)
        }
        "N" => {
            let byte = |at: usize| u8::from_str_radix(&value[at..at + 2], 16).unwrap();
            (Carrier::Bytes, (0..value.len()).step_by(2).map(byte).collect())
        }
        _ => panic!("argument {text}"),
    };
    Argument::column(carrier.constant(Some(&payload)).unwrap())
}

fn base(type_name: &str) -> Base {
    match type_name {
        "date" => Base::Date,
        "time" => Base::Time,
        "timetz" => Base::Timetz,
        "timestamp" => Base::Timestamp,
        "timestamptz" => Base::Timestamptz,
        "interval" => Base::Interval,
        "numeric" => Base::Numeric,
        "float8" => Base::Float8,
        "int4" => Base::Int4,
        "bool" => Base::Bool,
        "text" => Base::from_oid(Oid(25)).unwrap(),
        _ => panic!("type {type_name}"),
    }
}

/// A result as the server's function `t` shows it: text, `\N`, or `!`, the code and the message.
fn shown(result: Result<ArrayRef, SqlError>, base: Base, settings: &CallSettings) -> String {
    let array = match result {
        Ok(array) => array,
        Err(error) => {
            let field = |name, text: Option<&str>| {
                text.map(|text| format!(" {name} {text}")).unwrap_or_default()
            };
            let (code, message) = (error.code().as_str(), error.message());
            let detail = field("DETAIL", error.detail());
            return format!("!{code} {message}{detail}{}", field("HINT", error.hint()));
        }
    };
    let ty = Type::Base(base);
    let mut values = PayloadReader::new(Carrier::of(&ty), &array).unwrap();
    let Some(payload) = values.get(0) else { return NULL.to_owned() };
    let mut text = Vec::new();
    match base {
        Base::Bool => text.extend_from_slice(if payload == [1] { b"true" } else { b"false" }),
        _ => {
            if let Err(error) = write_text(&ty, payload, &settings.text_options(), &mut text) {
                return format!("{error}");
            }
        }
    }
    let text = String::from_utf8(text).unwrap().replace('\n', "\\n");
    // Blanks at the ends of texts are seen between brackets.
    if matches!(base, Base::Text(_)) { format!("[{text}]") } else { text }
}

/// One call in both versions: differences are added to `wrong`.
struct Group<'a> {
    function: &'a str,
    result: Base,
    zone: &'a str,
}

fn check(table: &str) {
    let mut wrong = BTreeMap::<&str, Vec<String>>::new();
    let (mut group, mut now, mut count) = (None, [0, 0], 0);
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        if let Some(head) = line.strip_prefix("@ ") {
            let fields: Vec<&str> = head.split(' ').collect();
            match fields[..] {
                ["now", new, old] => now = [new, old].map(|now| now.parse().unwrap()),
                [function, result, zone] => {
                    group = Some(Group { function, result: base(result), zone });
                }
                _ => panic!("{line}"),
            }
            continue;
        }
        for case in line.split(" ;; ") {
            let fields: Vec<&str> = case.split(" => ").collect();
            let [arguments, ref results @ ..] = fields[..] else { panic!("{case}") };
            let group: &Group<'_> = group.as_ref().expect("a function comes first");
            count += 1;
            let old = results.get(1).copied().unwrap_or(results[0]);
            for (major, now, expected) in [(18, now[0], results[0]), (15, now[1], old)] {
                let shown = call(group, arguments, major, now);
                if expected != "-" && shown != expected {
                    let what = format!("{arguments} ({}, {major})", group.zone);
                    let what = format!("{what}\n      {shown}\n  not {expected}");
                    wrong.entry(group.function).or_default().push(what);
                }
            }
        }
    }
    for (function, wrong) in &wrong {
        println!("{function}: {} wrong", wrong.len());
        wrong.iter().take(4).for_each(|wrong| println!("  {wrong}"));
    }
    assert!(wrong.is_empty(), "{} functions of {count} calls are wrong", wrong.len());
}

fn call(group: &Group<'_>, arguments: &str, major: u32, now: i64) -> String {
    let mut settings = settings();
    settings.major = major;
    settings.zone = zone(group.zone).expect("the zone exists");
    settings.transaction_start = now;
    let arguments: Vec<Argument> = arguments.split(" | ").map(argument).collect();
    let kernel = kernel(group.function).unwrap_or_else(|| panic!("no kernel {}", group.function));
    let result = kernel(&Call {
        arguments: &arguments,
        rows: 1,
        argument_types: &[],
        result_type: Oid(0),
        collation: Oid(0),
        row: None,
        settings: &settings,
    });
    shown(result, group.result, &settings)
}

#[test]
fn to_char_returns_what_servers_returned() {
    check(include_str!("../../testdata/formatting.txt"));
}

#[test]
fn functions_on_dates_and_times_return_what_servers_returned() {
    check(include_str!("../../testdata/datetime.txt"));
}
