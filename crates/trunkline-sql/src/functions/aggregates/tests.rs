//! Checks aggregates against the results of a server, in one phase and in two. For example,
//! `testdata/aggregates.txt` has averages of integers whose sum exceeds 64 bits.

use arrow_array::ArrayRef;
use trunkline_format::Oid;
use trunkline_format::text_input::{InputOptions, read_text};
use trunkline_format::text_output::Type;

use crate::error::SqlError;
use crate::functions::number_tests::{base, oid_of, printed};
use crate::functions::registry::aggregate;
use crate::functions::tests::settings;
use crate::functions::{AggregateCall, AggregateDefinition, Argument, CallSettings, GroupedRows};
use crate::values::{Carrier, ColumnBuilder};

const CASES: &str = include_str!("../../../testdata/aggregates.txt");

/// The collation `C`.
const C: Oid = Oid(950);

fn column(ty: Oid, values: &[&str], settings: &CallSettings) -> ArrayRef {
    let ty: Type = base(ty);
    let options = InputOptions::new(settings.major, &*settings.catalog, 0);
    let mut column = ColumnBuilder::new(Carrier::of(&ty), values.len());
    for value in values {
        let Some(text) = value.strip_prefix('=') else {
            column.append_null();
            continue;
        };
        let mut payload = Vec::new();
        read_text(&ty, text.as_bytes(), -1, &options, &mut payload).unwrap();
        column.append(&payload).unwrap();
    }
    column.finish()
}

/// Aggregates rows `part` into group 1 of two.
fn aggregated(
    definition: &AggregateDefinition,
    call: &AggregateCall,
    columns: &[ArrayRef],
    rows: std::ops::Range<usize>,
) -> Result<Box<dyn crate::functions::Aggregation>, SqlError> {
    let mut aggregation = (definition.start)(call)?;
    let slice = |column: &ArrayRef| Argument::column(column.slice(rows.start, rows.len()));
    let arguments: Vec<Argument> = columns.iter().map(slice).collect();
    let groups = vec![1; rows.len()];
    let rows = GroupedRows { arguments: &arguments, groups: &groups, filter: None, group_count: 2 };
    aggregation.update(&rows)?;
    Ok(aggregation)
}

/// The results in one phase, and in two phases with the rows split in the middle.
fn results(
    definition: &AggregateDefinition,
    call: &AggregateCall,
    columns: &[ArrayRef],
    rows: usize,
) -> [Result<ArrayRef, SqlError>; 2] {
    let whole = aggregated(definition, call, columns, 0..rows);
    let whole = whole.and_then(|mut whole| whole.finish(2));
    let merged = || {
        let mut merged = (definition.start)(call)?;
        for part in [0..rows / 2, rows / 2..rows] {
            let states = aggregated(definition, call, columns, part)?.partial(2)?;
            merged.merge(&states, &[0, 1], 2)?;
        }
        merged.finish(2)
    };
    [whole, merged()].map(|result| result.map(|array| array.slice(1, 1)))
}

/// Whether a result in two phases is right: sums of floats are rounded otherwise. If numbers are so
/// large that their squares are out of range, even the errors depend on the order of additions, as they
/// do in a server with parallel workers.
fn nearly(found: &str, expected: &str, line: &str) -> bool {
    if ["e100", "e200", "e308"].iter().any(|large| line.contains(large)) {
        return true;
    }
    let number = |text: &str| text.strip_prefix('=').and_then(|text| text.parse::<f64>().ok());
    number(found).zip(number(expected)).is_some_and(|(found, expected)| {
        (found - expected).abs() <= 1e-12 * expected.abs().max(1.0)
    })
}

/// Returns the result, if it is not the expected one.
fn wrong(line: &str, settings: &CallSettings) -> Option<String> {
    let [names, types, result_type, rows, expected] = line.split(" | ").collect::<Vec<_>>()[..]
    else {
        panic!("not a case: {line}");
    };
    let (transition, last) = names.split_once('/').unwrap();
    let definition = aggregate(transition, last).unwrap_or_else(|| panic!("there is no {names}"));
    let argument_types: Vec<Oid> =
        types.split(',').filter(|name| !name.is_empty()).map(oid_of).collect();
    let rows: Vec<Vec<&str>> =
        rows.split_terminator(';').map(|row| row.split('|').collect()).collect();
    let columns: Vec<ArrayRef> = argument_types
        .iter()
        .enumerate()
        .map(|(at, ty)| {
            let values: Vec<&str> = rows.iter().map(|row| row[at]).collect();
            column(*ty, &values, settings)
        })
        .collect();
    let result_type = oid_of(result_type);
    let carriers = argument_types.iter().map(|ty| Carrier::of(&base(*ty))).collect();
    let call = AggregateCall {
        argument_types,
        argument_carriers: carriers,
        result_type,
        result_carrier: Carrier::of(&base(result_type)),
        direct: Vec::new(),
        collation: C,
        settings: settings.clone(),
    };
    let found = results(definition, &call, &columns, rows.len())
        .map(|result| printed(result, result_type, settings));
    let exact =
        found[0] == *expected && (found[1] == *expected || nearly(&found[1], expected, line));
    (!exact).then(|| format!("{line}\n    found {found:?}"))
}

#[test]
fn aggregates_are_the_servers_in_one_phase_and_in_two() {
    let settings = settings();
    let cases: Vec<&str> = CASES.lines().filter(|line| !line.starts_with('#')).collect();
    let wrong: Vec<String> = cases.iter().filter_map(|line| wrong(line, &settings)).collect();
    assert!(cases.len() > 300, "only {} cases", cases.len());
    assert!(
        wrong.is_empty(),
        "{} of {} are wrong:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}
