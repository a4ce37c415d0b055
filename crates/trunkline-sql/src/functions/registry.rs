//! Which kernel computes which function.
//!
//! Every area of functions has a table of names and kernels. A look-up happens once for each call in a
//! statement, so a linear search is good enough.

use super::aggregate::AggregateDefinition;
use super::aggregates;
use super::call::Kernel;
use super::json_path;
use super::nulls;
use super::numeric_series;
use super::series;
use super::server;
use super::set_rows::SetFunction;
use super::{array, bits, catalog, json, network, random, record, regex, session};
use super::{comparisons, float_math, floats, integers, money, numerics};
use super::{datetime, domain, enums, formatting};
use super::{statistics, text};

/// The tables of all areas. A name occurs only once.
const AREAS: &[&[(&str, Kernel)]] = &[
    array::COMPARING,
    array::FINDING,
    array::JOINING,
    array::MEASURING,
    array::SORTING,
    array::TEXTS,
    catalog::ACCESS_LISTS,
    catalog::COMMENTS,
    catalog::DEFINITIONS,
    catalog::DESCRIPTIONS,
    catalog::INFORMATION,
    catalog::NAMING,
    catalog::PARTITIONS,
    catalog::PRIVILEGES,
    catalog::ROUTINES,
    catalog::ROUTINE_DEFINITIONS,
    catalog::SIZES,
    catalog::SIZE_TEXTS,
    catalog::UPDATABLE,
    catalog::VISIBILITY,
    json::ACCESS,
    json::CASTS,
    json::CHANGING,
    json::COMPARING,
    json::CONVERTING,
    json::PATHS,
    json_path::PATH_QUERIES,
    json::PRETTY,
    json::RECORDS,
    json::TEXT,
    datetime::ARITHMETIC,
    datetime::COMPARISONS,
    datetime::CONSTRUCTORS,
    datetime::CONVERSIONS,
    datetime::EXTRACT,
    datetime::NOW,
    datetime::OVERLAPS,
    datetime::SQL_FUNCTIONS,
    datetime::TRUNCATE,
    datetime::WINDOW,
    formatting::DATES_TO_CHAR,
    formatting::NUMBERS_TO_CHAR,
    formatting::TO_NUMBER,
    formatting::TO_TIMESTAMP,
    network::ARITHMETIC,
    network::CONTAINMENT,
    network::HARDWARE,
    network::MASKS,
    network::PARTS,
    nulls::KERNELS,
    random::KERNELS,
    record::COMPARING,
    record::MULTIRANGES,
    record::RANGES,
    regex::REPLACING,
    regex::SEARCHING,
    regex::SIMILAR,
    server::VALUES,
    session::SESSION,
    statistics::NEVER,
    statistics::NOT_COUNTED,
    comparisons::EQUALITIES,
    comparisons::FLOATS,
    comparisons::INTEGERS,
    comparisons::OTHERS,
    float_math::MATH,
    float_math::TRIGONOMETRY,
    floats::ARITHMETIC,
    floats::CASTS,
    bits::KERNELS,
    integers::ARITHMETIC,
    integers::BITS,
    integers::CASTS,
    integers::DIVISORS,
    integers::WINDOW,
    money::CASTS,
    money::OPERATORS,
    numerics::CASTS,
    numerics::FUNCTIONS,
    numerics::OPERATORS,
    text::BYTEA,
    text::CASTS,
    text::COMPARISONS,
    text::CONCATENATION,
    text::CONVERSION,
    text::ENCODING,
    text::FORMAT,
    text::LETTERS,
    text::LIKE,
    text::PADDING,
    text::PARTS,
    text::QUOTING,
    text::SQL_FUNCTIONS,
    text::UNICODE,
    domain::KERNELS,
    enums::ENUMS,
    numerics::SQL_FUNCTIONS,
];

/// The kernel of the function whose `pg_proc.prosrc` is `source`, if we have one.
///
/// ```
/// assert!(trunkline_sql::functions::kernel("lo_unlink").is_none());
/// ```
pub fn kernel(source: &str) -> Option<Kernel> {
    let found = AREAS.iter().flat_map(|area| area.iter()).find(|(name, _)| *name == source);
    found.map(|(_, kernel)| *kernel)
}

/// The set-returning functions of all areas. A name occurs only once.
const SETS: &[&[(&str, SetFunction)]] = &[
    array::SETS,
    catalog::SETS,
    catalog::ACCESS_SETS,
    catalog::EXTENSIONS,
    catalog::OPTIONS,
    catalog::TEXT_SEARCH,
    datetime::SETS,
    json_path::PATH_SETS,
    json::RECORD_SETS,
    json::SETS,
    numeric_series::SETS,
    record::MULTIRANGE_SETS,
    series::SETS,
    server::SETS,
];

/// The set-returning function whose `pg_proc.prosrc` is `source`, if we have it.
pub fn set_function(source: &str) -> Option<SetFunction> {
    let found = SETS.iter().flat_map(|area| area.iter()).find(|(name, _)| *name == source);
    found.map(|(_, function)| *function)
}

/// Set-returning functions whose rows are values of one column. `FROM` divides them into columns.
const ROW_VALUED: &[&str] = &[
    "array_unnest",
    "json_populate_record",
    "json_populate_recordset",
    "json_to_record",
    "json_to_recordset",
    "jsonb_populate_record",
    "jsonb_populate_recordset",
    "jsonb_to_record",
    "jsonb_to_recordset",
];

/// Whether the rows of the set-returning function whose `pg_proc.prosrc` is `source` are values of one
/// column, as the elements of an array of rows are.
pub fn gives_row_values(source: &str) -> bool {
    ROW_VALUED.contains(&source)
}

/// The tables of aggregates. A pair of functions occurs only once.
const AGGREGATES: &[&[AggregateDefinition]] = &[
    datetime::AGGREGATES,
    aggregates::AVERAGES,
    aggregates::BIT_STRINGS,
    aggregates::EXTREMES,
    aggregates::KEYED_EXTREMES,
    aggregates::LOGIC,
    aggregates::MOMENTS,
    aggregates::ORDERED_SETS,
    aggregates::REGRESSION,
    aggregates::SUMS,
    aggregates::TEXT_EXTREMES,
    array::AGGREGATES,
    array::ARRAY_AGGREGATES,
    json::AGGREGATES,
    record::RANGE_AGGREGATES,
];

/// The aggregate whose transition and final functions have these `prosrc`, if we have it. If there is
/// no final function, `last` is empty.
///
/// ```
/// assert!(trunkline_sql::functions::aggregate("int4_sum", "").is_some());
/// ```
pub fn aggregate(transition: &str, last: &str) -> Option<&'static AggregateDefinition> {
    let all = AGGREGATES.iter().flat_map(|area| area.iter());
    all.into_iter().find(|found| found.transition == transition && found.last == last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_function_has_two_kernels() {
        let mut seen = BTreeSet::new();
        for (name, _) in AREAS.iter().flat_map(|area| area.iter()) {
            assert!(seen.insert(name), "{name} has two kernels");
        }
        // A function that returns a row has a kernel for its value and can be called in FROM.
        let mut seen = BTreeSet::new();
        for (name, _) in SETS.iter().flat_map(|area| area.iter()) {
            assert!(seen.insert(name), "{name} has two kernels");
        }
    }
}
