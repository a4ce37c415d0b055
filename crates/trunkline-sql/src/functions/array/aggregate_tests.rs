//! Tests of aggregates, set-returning functions and comparisons with elements.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, Int32Array, StringViewArray};
use trunkline_format::Oid;

use super::{ArrayBuilder, attribute_of, compare_with_elements};
use crate::functions::tests::settings;
use crate::functions::{
    AggregateCall, Aggregation, Argument, Call, GroupedRows, aggregate, kernel, set_function,
};
use crate::values::Carrier;

const INT4: Oid = Oid(23);
const TEXT: Oid = Oid(25);

/// An array of integers as it is stored.
fn stored(numbers: &[Option<i32>]) -> Vec<u8> {
    let attribute = attribute_of(INT4, &*settings().catalog).unwrap();
    let mut array = ArrayBuilder::new(INT4, attribute);
    for number in numbers {
        array.push(number.map(i32::to_le_bytes).as_ref().map(<[u8; 4]>::as_slice)).unwrap();
    }
    array.finish_list().unwrap()
}

fn start(transition: &str, last: &str, types: [Oid; 2], carrier: Carrier) -> Box<dyn Aggregation> {
    let call = AggregateCall {
        argument_types: types.to_vec(),
        argument_carriers: vec![carrier; 2],
        result_type: Oid(0),
        result_carrier: if carrier == Carrier::Text { carrier } else { Carrier::Bytes },
        direct: Vec::new(),
        collation: Oid(950),
        settings: settings(),
    };
    (aggregate(transition, last).unwrap().start)(&call).unwrap()
}

/// Adds the rows to two states, one after the other, and puts the states together.
fn in_two_parts(
    start: impl Fn() -> Box<dyn Aggregation>,
    arguments: &[Argument],
    groups: &[usize],
    group_count: usize,
) -> ArrayRef {
    let mut whole = start();
    let middle = groups.len() / 2;
    for part in [0..middle, middle..groups.len()] {
        let mut state = start();
        let filter: Vec<bool> = (0..groups.len()).map(|row| part.contains(&row)).collect();
        let rows = GroupedRows { arguments, groups, filter: Some(&filter), group_count };
        state.update(&rows).unwrap();
        assert!(state.size() > 0);
        let states = state.partial(group_count).unwrap();
        let all: Vec<usize> = (0..group_count).collect();
        whole.merge(&states, &all, group_count).unwrap();
    }
    whole.finish(group_count).unwrap()
}

#[test]
fn array_agg_keeps_nulls_and_order_and_is_null_without_rows() {
    let numbers = Int32Array::from(vec![Some(3), Some(1), None, Some(2)]);
    let arguments = [Argument::column(Arc::new(numbers))];
    let start = || start("array_agg_transfn", "array_agg_finalfn", [INT4, INT4], Carrier::Int32);
    let result = in_two_parts(start, &arguments, &[0, 1, 0, 0], 3);
    let result = result.as_binary_view();
    assert_eq!(result.value(0), stored(&[Some(3), None, Some(2)]));
    assert_eq!(result.value(1), stored(&[Some(1)]));
    assert!(result.is_null(2));
}

#[test]
fn string_agg_drops_nulls_and_the_first_separator() {
    let texts = StringViewArray::from(vec![Some("a"), None, Some(""), Some("c"), None]);
    let separators = StringViewArray::from(vec!["1", "2", "3", "45", "6"]);
    let arguments = [Argument::column(Arc::new(texts)), Argument::column(Arc::new(separators))];
    let start = || start("string_agg_transfn", "string_agg_finalfn", [TEXT, TEXT], Carrier::Text);
    let result = in_two_parts(start, &arguments, &[0, 0, 0, 0, 1], 2);
    let result: Vec<_> = result.as_string_view().iter().collect();
    assert_eq!(result, [Some("a345c"), None]);
}

/// A value, the elements, and two results.
type ElementCase = (Option<i32>, Option<&'static [Option<i32>]>, Option<bool>, Option<bool>);

#[test]
fn comparisons_with_elements_have_three_values() {
    let settings = settings();
    // The value, the elements, and the results of = ANY and <> ALL, as a server gives them.
    let cases: [ElementCase; 7] = [
        (Some(1), Some(&[Some(1), None]), Some(true), Some(false)),
        (Some(1), Some(&[Some(2), None]), None, None),
        (Some(1), Some(&[Some(2), Some(3)]), Some(false), Some(true)),
        (Some(1), Some(&[]), Some(false), Some(true)),
        (None, Some(&[]), Some(false), Some(true)),
        (None, Some(&[Some(1)]), None, None),
        (Some(1), None, None, None),
    ];
    let left: Int32Array = cases.iter().map(|case| case.0).collect();
    let arrays: Vec<Option<Vec<u8>>> = cases.iter().map(|case| case.1.map(stored)).collect();
    let arrays: arrow_array::BinaryViewArray = arrays.into_iter().collect();
    let arguments = [Argument::column(Arc::new(left)), Argument::column(Arc::new(arrays))];
    let call = Call {
        arguments: &arguments,
        rows: cases.len(),
        argument_types: &[INT4, INT4],
        result_type: Oid(16),
        collation: Oid(0),
        row: None,
        settings: &settings,
    };
    let compare = |name, all| {
        let result = compare_with_elements(kernel(name).unwrap(), &call, all).unwrap();
        result.as_boolean().iter().collect::<Vec<_>>()
    };
    assert_eq!(compare("int4eq", false), cases.map(|case| case.2));
    assert_eq!(compare("int4ne", true), cases.map(|case| case.3));
}

#[test]
fn unnest_gives_the_elements_in_batches() {
    let settings = settings();
    let array =
        arrow_array::BinaryViewArray::from(vec![stored(&[Some(5), None, Some(7)]).as_slice()]);
    let arguments = [Argument::column(Arc::new(array))];
    let call = Call {
        arguments: &arguments,
        rows: 1,
        argument_types: &[Oid(1007)],
        result_type: INT4,
        collation: Oid(0),
        row: None,
        settings: &settings,
    };
    let mut rows = set_function("array_unnest").unwrap()(&call, 0).unwrap();
    let mut found = Vec::new();
    while let Some(columns) = rows.next_rows(2).unwrap() {
        assert!(columns[0].len() <= 2);
        found.extend(columns[0].as_primitive::<Int32Type>().iter());
    }
    assert_eq!(found, [Some(5), None, Some(7)]);
}
