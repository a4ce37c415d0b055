//! Compares the results of functions of `jsonb` with those of a server.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, BinaryViewArray};
use trunkline_format::Oid;
use trunkline_format::text_input::{InputOptions, read_text};
use trunkline_format::text_output::{Base, Type};

use crate::functions::cases::check;
use crate::functions::tests::settings;
use crate::functions::{Argument, Call, set_function};

#[test]
fn functions_of_jsonb_are_those_of_the_server() {
    assert!(check(include_str!("../../../testdata/jsonb.txt")) > 3000);
}

#[test]
fn json_of_other_values_is_that_of_the_server() {
    assert!(check(include_str!("../../../testdata/to_json.txt")) > 400);
}

/// Calls a set-returning function, and returns all rows in columns of texts.
fn rows_of(function: &str, json: &str) -> Result<Vec<Vec<Option<String>>>, String> {
    let settings = settings();
    let options = InputOptions::new(18, &*settings.catalog, 0);
    let mut stored = Vec::new();
    read_text(&Type::Base(Base::Jsonb), json.as_bytes(), -1, &options, &mut stored).unwrap();
    let array = BinaryViewArray::from(vec![stored.as_slice()]);
    let arguments = [Argument::column(Arc::new(array))];
    let call = Call {
        arguments: &arguments,
        rows: 1,
        argument_types: &[Oid(3802)],
        result_type: Oid(0),
        collation: Oid(0),
        row: None,
        settings: &settings,
    };
    let text = |error: crate::error::SqlError| error.to_string();
    let mut rows = set_function(function).unwrap()(&call, 0).map_err(text)?;
    let mut found = Vec::new();
    while let Some(columns) = rows.next_rows(2).map_err(text)? {
        for row in 0..columns[0].len() {
            let value = |column: &arrow_array::ArrayRef| {
                let value = column.as_string_view_opt();
                value
                    .filter(|column| !column.is_null(row))
                    .map(|column| column.value(row).to_owned())
            };
            found.push(columns.iter().map(value).collect());
        }
    }
    Ok(found)
}

#[test]
fn sets_of_jsonb_have_a_row_for_each_entry() {
    let some = |text: &str| Some(text.to_owned());
    let object = r#"{"bb": null, "a": [1, "x"], "c": "y"}"#;
    let pairs = vec![
        vec![some("a"), some("[1, \"x\"]")],
        vec![some("c"), some("y")],
        vec![some("bb"), None],
    ];
    assert_eq!(rows_of("jsonb_each_text", object), Ok(pairs));
    let keys = vec![vec![some("a")], vec![some("c")], vec![some("bb")]];
    assert_eq!(rows_of("jsonb_object_keys", object), Ok(keys));
    let elements = vec![vec![some("1.50")], vec![None], vec![some("{\"a\": true}")]];
    let array = r#"[1.50, null, {"a": true}]"#;
    assert_eq!(rows_of("jsonb_array_elements_text", array), Ok(elements));
    for (function, json, error) in [
        ("jsonb_array_elements", "{}", "cannot extract elements from an object"),
        ("jsonb_array_elements", "1", "cannot extract elements from a scalar"),
        ("jsonb_object_keys", "[]", "cannot call jsonb_object_keys on an array"),
        ("jsonb_object_keys", "1", "cannot call jsonb_object_keys on a scalar"),
        ("jsonb_each", "[]", "cannot call jsonb_each on a non-object"),
        ("jsonb_each_text", "1", "cannot call jsonb_each_text on a non-object"),
    ] {
        assert_eq!(rows_of(function, json), Err(error.to_owned()));
    }
}
