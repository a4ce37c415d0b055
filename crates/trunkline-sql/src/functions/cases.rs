//! Checks kernels against results of a server.
//!
//! In a file of cases, a line such as `@ textlike C tt` states a function by its `prosrc`, the
//! collation (`C`, or `U` for `pg_c_utf8`) and a letter for the type of each argument. The lines after
//! it have cases, which end with `;`. Their fields are separated by `|`: the arguments and the result.
//! A value is `N` for null, or begins with `=`. An error begins with `!`. Besides the escapes of `COPY`,
//! `\p` stands for `|` and `\s` for `;`.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{
    ArrayRef, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, Int16Array, Int32Array,
    Int64Array, StringViewArray, UInt8Array,
};
use arrow_schema::DataType;
use trunkline_format::deform::Attribute;
use trunkline_format::text_input::{InputOptions, read_text};
use trunkline_format::text_output::{Type, write_text};
use trunkline_format::{Align, Oid};

use super::tests::settings;
use super::{Argument, ArrayBuilder, Call, CallSettings, Collation, Dimension, kernel};
use crate::error::SqlError;

/// Checks all cases of a file, and returns their number.
///
/// # Panics
/// If a result differs.
pub(crate) fn check(file: &str) -> usize {
    let mut settings = settings();
    // The default collation of the server that made the cases was C.
    let default = (Oid(100), Collation::C);
    settings.collations = Arc::new(
        settings.collations.iter().map(|(oid, found)| (*oid, *found)).chain([default]).collect(),
    );
    let (mut count, mut wrong) = (0, Vec::new());
    let mut head = "";
    for line in file.lines().filter(|line| !line.starts_with('#')) {
        if line.starts_with('@') {
            head = line;
            continue;
        }
        for case in line.split_terminator(';') {
            if let Err(found) = check_case(head, case, &settings) {
                wrong.push(format!("{head}  {case}\n    found {found}"));
            }
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{} of {count} are wrong:\n{}", wrong.len(), first(&wrong));
    count
}

/// Checks one case, and returns what was found if that is something else.
fn check_case(head: &str, case: &str, settings: &CallSettings) -> Result<(), String> {
    let head: Vec<&str> = head.split(' ').collect();
    let [_, source, collation, types] = head.as_slice() else { panic!("not a function: {head:?}") };
    let (arguments, result) = types.split_once('>').unwrap_or((*types, ""));
    let fields: Vec<&str> = case.split('|').collect();
    let Some((expected, values)) = fields.split_last() else { panic!("not a case: {case}") };
    let arguments: Vec<(Oid, Argument)> =
        arguments.chars().zip(values).map(|(ty, value)| argument(ty, value)).collect();
    let (types, arguments): (Vec<_>, Vec<_>) = arguments.into_iter().unzip();
    let call = Call {
        arguments: &arguments,
        rows: 1,
        argument_types: &types,
        result_type: result.chars().next().map_or(Oid(0), type_of),
        collation: Oid(if *collation == "U" { 811 } else { 950 }),
        row: None,
        settings,
    };
    let kernel = kernel(source).unwrap_or_else(|| panic!("there is no {source}"));
    let found = printed(kernel(&call), &call);
    if found == *expected { Ok(()) } else { Err(found) }
}

fn first(wrong: &[String]) -> String {
    wrong.iter().take(60).cloned().collect::<Vec<_>>().join("\n")
}

/// Replaces the escapes of COPY.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        out.push(match letter {
            '\\' => match letters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some('b') => '\x08',
                Some('f') => '\x0C',
                Some('v') => '\x0B',
                Some('p') => '|',
                Some('s') => ';',
                Some(other) => other,
                None => panic!("a backslash at the end of {text:?}"),
            },
            _ => letter,
        });
    }
    out
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        hex.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// A value as it is stored, from its text.
fn stored(oid: Oid, text: &str) -> Vec<u8> {
    let settings = settings();
    let options = InputOptions::new(settings.major, &*settings.catalog, 0);
    let ty = Type::resolve(oid, &*settings.catalog).unwrap();
    let mut stored = Vec::new();
    read_text(&ty, text.as_bytes(), -1, &options, &mut stored).unwrap();
    stored
}

/// The type of a result with this letter.
fn type_of(letter: char) -> Oid {
    Oid(match letter {
        'T' => 1009,
        'I' => 1007,
        'j' => 3802,
        'm' => 1700,
        'D' => 1114,
        'Z' => 1184,
        _ => panic!("no result has the letter {letter}"),
    })
}

/// An array of texts or of integers, from its text.
fn array(ty: char, text: &str) -> Vec<u8> {
    let (element, align) = if ty == 'T' { (Oid(25), -1) } else { (Oid(23), 4) };
    let mut builder = ArrayBuilder::new(element, Attribute { len: align, align: Align::Int });
    let (bounds, body) = text.split_once('=').unwrap_or(("", text));
    let rank = body.find(|letter| letter != '{').unwrap();
    let mut value = String::new();
    let mut letters = body.chars().peekable();
    let (mut is_quoted, mut was_quoted) = (false, false);
    while let Some(letter) = letters.next() {
        match letter {
            '"' => (is_quoted, was_quoted) = (!is_quoted, true),
            '\\' => value.extend(letters.next()),
            ',' | '}' if !is_quoted && (was_quoted || !value.is_empty()) => {
                let is_null = !was_quoted && value == "NULL";
                let stored = match ty {
                    _ if is_null => None,
                    'T' => Some(value.into_bytes()),
                    _ => Some(value.parse::<i32>().unwrap().to_le_bytes().to_vec()),
                };
                builder.push(stored.as_deref()).unwrap();
                (value, was_quoted) = (String::new(), false);
            }
            ',' | '{' | '}' if !is_quoted => {}
            _ => value.push(letter),
        }
    }
    let count = builder.len();
    builder.finish(&dimensions(bounds, body, rank, count)).unwrap()
}

/// The dimensions of an array that has one or two.
fn dimensions(bounds: &str, body: &str, rank: usize, count: usize) -> Vec<Dimension> {
    let outer = body.matches('{').count() - 1;
    let sizes = if rank == 2 { vec![outer, count / outer] } else { vec![count] };
    let mut lowers = bounds.split('[').skip(1).map(|bound| bound.split(':').next().unwrap());
    let lower = |text: &str| text.parse().unwrap();
    sizes.iter().map(|&size| Dimension { size, lower: lowers.next().map_or(1, lower) }).collect()
}

/// An argument of one row.
fn argument(ty: char, value: &str) -> (Oid, Argument) {
    let value = value.strip_prefix('=').map(unescaped);
    let value = value.as_deref();
    let (oid, array): (u32, ArrayRef) = match ty {
        't' => (25, Arc::new(StringViewArray::from(vec![value]))),
        'n' => (19, Arc::new(StringViewArray::from(vec![value]))),
        'p' => (1042, Arc::new(StringViewArray::from(vec![value]))),
        'v' => (1043, Arc::new(StringViewArray::from(vec![value]))),
        'J' => (114, Arc::new(StringViewArray::from(vec![value]))),
        's' => (21, Arc::new(Int16Array::from(vec![value.map(|value| value.parse().unwrap())]))),
        'i' => (23, Arc::new(Int32Array::from(vec![value.map(|value| value.parse().unwrap())]))),
        'l' => (20, Arc::new(Int64Array::from(vec![value.map(|value| value.parse().unwrap())]))),
        'B' => (16, Arc::new(BooleanArray::from(vec![value.map(|value| value == "t")]))),
        'c' => (18, Arc::new(UInt8Array::from(vec![value.map(|value| bytes(value)[0])]))),
        'b' => {
            let value = value.map(bytes);
            (17, Arc::new(BinaryViewArray::from(vec![value.as_deref()])))
        }
        'u' => {
            let value = bytes(value.unwrap());
            let array = FixedSizeBinaryArray::try_from_iter([value].into_iter());
            (2950, Arc::new(array.unwrap()))
        }
        'T' | 'I' => {
            let value = value.map(|value| array(ty, value));
            (type_of(ty).0, Arc::new(BinaryViewArray::from(vec![value.as_deref()])))
        }
        'D' | 'Z' => {
            let stored = value.map(|value| stored(type_of(ty), value));
            let numbers = stored.map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap()));
            (type_of(ty).0, Arc::new(Int64Array::from(vec![numbers])))
        }
        'm' => {
            let value = value.map(|value| stored(type_of(ty), value));
            (1700, Arc::new(BinaryViewArray::from(vec![value.as_deref()])))
        }
        'j' => {
            let value = value.map(|value| stored(type_of(ty), value));
            (3802, Arc::new(BinaryViewArray::from(vec![value.as_deref()])))
        }
        _ => panic!("no type has the letter {ty}"),
    };
    (Oid(oid), Argument::column(array))
}

/// A result as the file has it.
fn printed(result: Result<ArrayRef, SqlError>, call: &Call<'_>) -> String {
    let array = match result {
        Ok(array) => array,
        Err(error) => {
            let hint = error.hint().map_or_else(String::new, |hint| format!("|{hint}"));
            return escaped(&format!("!{:?} {}{hint}", error.code(), error.message()));
        }
    };
    if array.is_null(0) {
        return "N".to_owned();
    }
    let text = match array.data_type() {
        DataType::Utf8View => array.as_string_view().value(0).to_owned(),
        DataType::Boolean => array.as_boolean().value(0).to_string(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(0).to_string(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(0).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(0).to_string(),
        DataType::Float32 => array.as_primitive::<Float32Type>().value(0).to_string(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(0).to_string(),
        DataType::UInt8 => match array.as_primitive::<arrow_array::types::UInt8Type>().value(0) {
            0 => String::new(),
            byte @ 1..128 => char::from(byte).to_string(),
            byte => format!("\\{byte:03o}"),
        },
        DataType::BinaryView if call.result_type != Oid(0) => {
            let ty = Type::resolve(call.result_type, &*call.settings.catalog).unwrap();
            let mut out = Vec::new();
            let value = array.as_binary_view().value(0);
            write_text(&ty, value, &call.settings.text_options(), &mut out).unwrap();
            String::from_utf8(out).unwrap()
        }
        DataType::BinaryView => {
            let bytes = array.as_binary_view().value(0);
            bytes.iter().fold("\\x".to_owned(), |text, byte| format!("{text}{byte:02x}"))
        }
        other => panic!("a result of type {other}"),
    };
    escaped(&format!("={text}"))
}

/// Escapes a text as in a file of cases.
fn escaped(text: &str) -> String {
    let escapes =
        [("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"), ("|", "\\p"), (";", "\\s")];
    escapes.iter().fold(text.to_owned(), |text, (letter, escape)| text.replace(letter, escape))
}
