//! Checks the kernels of numbers against the results of a server. For example,
//! `testdata/integers.txt` has the cases of `int4pl`, with sums and with the error of an overflow.

use arrow_array::ArrayRef;
use trunkline_format::Oid;
use trunkline_format::text_input::{InputOptions, read_text};
use trunkline_format::text_output::{Base, Type, write_text};

use super::tests::settings;
use super::{Argument, Call, CallSettings, kernel};
use crate::error::SqlError;
use crate::values::{Carrier, PayloadReader};

const COMPARISONS: &str = include_str!("../../testdata/number_comparisons.txt");
const INTEGERS: &str = include_str!("../../testdata/integers.txt");
const FLOATS: &str = include_str!("../../testdata/floats.txt");
const NUMERICS: &str = include_str!("../../testdata/numerics.txt");

/// PostgreSQL's names of types, as the cases have them.
const TYPES: &[(&str, u32)] = &[
    ("boolean", 16),
    ("bytea", 17),
    ("bigint", 20),
    ("smallint", 21),
    ("integer", 23),
    ("oid", 26),
    ("tid", 27),
    ("xid", 28),
    ("cid", 29),
    ("oidvector", 30),
    ("real", 700),
    ("double precision", 701),
    ("macaddr8", 774),
    ("money", 790),
    ("macaddr", 829),
    ("bit", 1560),
    ("bit varying", 1562),
    ("numeric", 1700),
    ("pg_lsn", 3220),
    ("xid8", 5069),
    ("text", 25),
    ("character", 1042),
    ("inet", 869),
    ("date", 1082),
    ("time without time zone", 1083),
    ("timestamp without time zone", 1114),
    ("interval", 1186),
    ("time with time zone", 1266),
];

pub(super) fn oid_of(name: &str) -> Oid {
    let found = TYPES.iter().find(|(known, _)| *known == name);
    Oid(found.unwrap_or_else(|| panic!("no such type: {name}")).1)
}

/// A built-in type.
pub(super) fn base(oid: Oid) -> Type {
    Type::Base(Base::from_oid(oid).unwrap())
}

/// An array of one value.
fn array(ty: Oid, text: &str, settings: &CallSettings) -> ArrayRef {
    let ty = base(ty);
    let mut payload = Vec::new();
    match ty {
        // There is no input function for these yet.
        Type::Base(Base::Macaddr | Base::Macaddr8) => {
            let parts = text.split(':').map(|part| u8::from_str_radix(part, 16).unwrap());
            payload.extend(parts);
        }
        _ => {
            let options = InputOptions::new(settings.major, &*settings.catalog, 0);
            read_text(&ty, text.as_bytes(), -1, &options, &mut payload).unwrap();
        }
    }
    Carrier::of(&ty).constant(Some(&payload)).unwrap()
}

/// A result as the cases have it.
pub(super) fn printed(
    result: Result<ArrayRef, SqlError>,
    ty: Oid,
    settings: &CallSettings,
) -> String {
    let array = match result {
        Ok(array) => array,
        Err(error) => {
            let detail = error.detail().map_or_else(String::new, |detail| format!("~{detail}"));
            return format!("!{:?} {}{detail}", error.code(), error.message());
        }
    };
    let ty = base(ty);
    let mut reader = PayloadReader::new(Carrier::of(&ty), &array).unwrap();
    let Some(payload) = reader.get(0) else { return "N".to_owned() };
    let mut text = b"=".to_vec();
    write_text(&ty, payload, &settings.text_options(), &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// Whether two results differ only in the last digits, which depend on the version of the C library.
fn nearly_equal(found: &str, expected: &str) -> bool {
    let number = |text: &str| text.strip_prefix('=').and_then(|text| text.parse::<f64>().ok());
    match number(found).zip(number(expected)) {
        Some((found, expected)) => (found - expected).abs() <= 4e-16 * expected.abs(),
        None => false,
    }
}

/// The functions whose results come from the C library, apart from roots.
const FROM_LIBRARY: &[&str] = &[
    "dacos", "dacosd", "dacosh", "dasin", "dasind", "dasinh", "datan", "datan2", "datan2d",
    "datand", "datanh", "dcbrt", "dcos", "dcosd", "dcosh", "dcot", "dcotd", "dexp", "dlog1",
    "dlog10", "dpow", "dsin", "dsind", "dsinh", "dtan", "dtand", "dtanh",
];

/// The cases of one function.
struct Function<'a> {
    source: &'a str,
    types: Vec<Oid>,
    result_type: Oid,
}

impl<'a> Function<'a> {
    fn parse(line: &'a str) -> Self {
        let [source, types, result] = line.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("not a function: {line}");
        };
        let types = types.split(',').map(oid_of).collect();
        Self { source, types, result_type: oid_of(result) }
    }

    /// Returns the result, if it is not the expected one.
    fn wrong(&self, case: &str, settings: &CallSettings) -> Option<String> {
        let values: Vec<&str> = case.split('|').collect();
        let (expected, values) = values.split_last().unwrap();
        let arguments = self.types.iter().zip(values);
        let arguments: Vec<Argument> =
            arguments.map(|(ty, value)| Argument::column(array(*ty, value, settings))).collect();
        let call = Call {
            arguments: &arguments,
            rows: 1,
            argument_types: &self.types,
            result_type: self.result_type,
            collation: Oid(0),
            row: None,
            settings,
        };
        let kernel = kernel(self.source).unwrap_or_else(|| panic!("there is no {}", self.source));
        let found = printed(kernel(&call), self.result_type, settings);
        let near = FROM_LIBRARY.contains(&self.source) && nearly_equal(&found, expected);
        let right = found == *expected || near;
        (!right).then(|| format!("{} {case}\n    found {found}", self.source))
    }
}

/// Checks all cases of a file.
fn check(file: &str, least: usize) {
    let settings = settings();
    let (mut count, mut wrong, mut function) = (0, Vec::new(), None);
    for line in file.lines().filter(|line| !line.starts_with('#')) {
        if let Some(line) = line.strip_prefix("> ") {
            function = Some(Function::parse(line));
            continue;
        }
        let function = function.as_ref().unwrap();
        let cases: Vec<&str> = line.split_terminator(';').collect();
        count += cases.len();
        wrong.extend(cases.iter().filter_map(|case| function.wrong(case, &settings)));
    }
    assert!(count >= least, "only {count} cases");
    let first: Vec<_> = wrong.iter().take(60).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} of {count} are wrong:\n{}", wrong.len(), first.join("\n"));
}

#[test]
fn comparisons_are_the_servers() {
    check(COMPARISONS, 1_500);
}

#[test]
fn results_and_errors_of_integers_are_the_servers() {
    check(INTEGERS, 1_000);
}

#[test]
fn results_and_errors_of_floats_are_the_servers() {
    check(FLOATS, 1_000);
}

#[test]
fn results_and_errors_of_numerics_are_the_servers() {
    check(NUMERICS, 2_000);
}
