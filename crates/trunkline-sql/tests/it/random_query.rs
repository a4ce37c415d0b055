//! **Random queries**, valid ones for the most part, over tables that the caller describes.
//!
//! A seed and the tables determine the text. Each query sorts its result by all columns and, where
//! values can be equal and still differ in print, by their texts. Two systems must therefore print
//! the same rows in the same order:
//!
//! ```text
//! let tables = tables(&fixture.join("expected/shop"));
//! let query = Generator::new(&tables, 7).query();
//! ```
//!
//! What no order of evaluation is promised for is left out: sums of floats, and the representative
//! of a group whose members are only equal, such as 1.0 and 1.00. A query may fail with an error of
//! class 22, such as an overflow. Whether it does can depend on which condition is tested first, so
//! a comparison should treat these queries as undecided.

mod expressions;
mod generator;
mod kinds;
mod predicates;
mod selects;
mod tables;

use std::collections::BTreeSet;
use std::path::PathBuf;

use generator::Generator;
use kinds::Kind;
use tables::{Table, tables};

const TABLES: &str = "\
public\tt\tr\tid\tinteger
public\tt\tr\tflag\tboolean
public\tt\tr\tname\tcharacter varying(20)
public\tt\tr\tprice\tnumeric(8,2)
public\tt\tr\tday\tdate
public\tOdd Name\tr\tselect\tinteger
public\tOdd Name\tr\tshape\tpolygon
";

const ROWS: &str = "\
(0,1)\t1\tt\tit's\t1.50\t2024-01-01
(0,2)\t2\t\\N\tx\\ty\t\\N\t\\N
";

fn described() -> Vec<Table> {
    tables::parse(TABLES, |table| (table == "public.t").then(|| ROWS.to_owned()))
}

#[test]
fn a_seed_determines_the_queries() {
    let tables = described();
    let queries = |seed| {
        let mut generator = Generator::new(&tables, seed);
        std::array::from_fn::<_, 20, _>(|_| generator.query())
    };
    assert_eq!(queries(1), queries(1));
    assert_ne!(queries(1), queries(2));
}

#[test]
fn tables_are_read_from_a_fixture() {
    let tables = described();
    let named: Vec<_> =
        tables.iter().map(|table| (table.name.as_str(), table.columns.len())).collect();
    // A column of a type that queries can't compare isn't used.
    assert_eq!(named, [("public.t", 5), ("public.\"Odd Name\"", 1)]);
    let samples: Vec<_> = tables[0].columns.iter().map(|column| &column.samples[..]).collect();
    assert_eq!(samples, [&["1", "2"][..], &["t"], &["it''s"], &["1.50"], &["2024-01-01"]]);
    assert_eq!(tables.iter().map(|table| table.rows).collect::<Vec<_>>(), [2, 1000]);
}

/// Without fixtures there is nothing to read; the other tests don't need them.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test has no main that could pass this down")]
fn the_shop_has_tables_with_values() {
    let Some(fixtures) = std::env::var_os("TRUNKLINE_FIXTURE_DIR").map(PathBuf::from) else {
        println!("skipped: no fixture");
        return;
    };
    let tables = tables(&fixtures.join("shop15/expected/shop"));
    let orders = tables.iter().find(|table| table.name == "public.orders").expect("orders");
    assert_eq!((tables.len(), orders.rows), (36, 1000));
    let kinds_without_samples: Vec<Kind> = Kind::ALL
        .into_iter()
        .filter(|kind| {
            let mut columns = tables.iter().flat_map(|table| &table.columns);
            !columns.any(|column| column.kind == *kind && !column.samples.is_empty())
        })
        .collect();
    // The text of a bytea has a backslash.
    assert_eq!(kinds_without_samples, [Kind::Bytea]);
}

/// Otherwise a change could make the generator quietly stop to produce something.
#[test]
fn all_constructs_appear() {
    let tables = described();
    let mut generator = Generator::new(&tables, 3);
    let mut missing = BTreeSet::from([
        " where ",
        " group by ",
        " having ",
        " join ",
        " left join ",
        " right join ",
        " full join ",
        " cross join ",
        " union ",
        " union all ",
        " intersect ",
        " except ",
        " exists (",
        " in (select",
        " in (",
        " between ",
        " like ",
        " is null",
        " is distinct from ",
        "case when ",
        "coalesce(",
        "nullif(",
        "::",
        "count(*)",
        "sum(",
        "min(",
        "string_agg(",
        "filter (where ",
        "select distinct ",
        " over (",
        " limit ",
        " offset ",
        " desc",
        " nulls first",
        "= any (array[",
        "(select max(",
        " order by ",
        "not (",
        "greatest(",
        "with ",
        "values (",
        "generate_series(",
        "lateral (",
        "date_trunc(",
        "extract(",
        " || ",
        "substr(",
    ]);
    for _ in 0..3000 {
        let query = generator.query();
        missing.retain(|construct| !query.contains(construct));
    }
    assert!(missing.is_empty(), "{missing:?}");
}
