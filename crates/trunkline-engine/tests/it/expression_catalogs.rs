//! The catalogs of functions, operators and casts, compared with what servers computed from theirs.

use trunkline_aio::facade::Arc;
use trunkline_aio::{Builder, MethodKind};
use trunkline_engine::catalog::{Database, ExpressionCatalogs, OnDamage};
use trunkline_format::Oid;

use crate::fixtures::fixtures;
use crate::jobs::engine;

const EXPECTED: &str = include_str!("../../testdata/expression_catalogs.txt");

/// The rows that every database of a version has, because initdb creates them.
const FIRST_USER_OID: u32 = 16384;

/// Types get OIDs below this one by hand, so they don't depend on how the server was built.
const FIRST_GENERATED_OID: u32 = 10_000;

/// The number of rows, and the sums of some of their columns.
fn sums<'r, R: 'r, const N: usize>(
    rows: impl Iterator<Item = &'r R>,
    columns: impl Fn(&R) -> [u32; N],
) -> Vec<u64> {
    let mut found = vec![0; N + 1];
    for row in rows {
        found[0] += 1;
        for (sum, value) in found[1..].iter_mut().zip(columns(row)) {
            *sum += u64::from(value);
        }
    }
    found
}

fn length(bytes: &[u8]) -> u32 {
    bytes.len() as u32
}

fn sum(oids: &[Oid]) -> u32 {
    oids.iter().map(|oid| oid.0).sum()
}

/// The sums of the query in the header of the file of expected values.
fn found(database: &Database, catalogs: &ExpressionCatalogs) -> Vec<(&'static str, Vec<u64>)> {
    let initial = |oid: Oid| oid.0 < FIRST_USER_OID;
    let procedures = catalogs.procedures().iter().filter(|row| initial(row.oid));
    let procedures = sums(procedures, |row| {
        let names = row.parameters().iter().map(|parameter| length(&parameter.name)).sum();
        let (parameters, defaults) = (row.parameters().len() as u32, row.defaults());
        [
            row.oid.0,
            row.argument_count.into(),
            row.default_count.into(),
            length(row.source()),
            parameters,
            names,
            defaults.is_some().into(),
            sum(&row.arguments),
            defaults.map_or(0, length),
        ]
    });
    let operators = catalogs.operators().iter().filter(|row| initial(row.oid));
    let operators = sums(operators, |row| {
        let operands = [row.oid, row.left, row.right, row.result];
        let [oid, left, right, result] = operands.map(|oid| oid.0);
        [oid, left, right, result, row.function.0, row.commutator.0, row.negator.0]
    });
    let casts = catalogs.casts().iter().filter(|row| initial(row.oid));
    let casts = sums(casts, |row| {
        let (context, method) = (row.context.into(), row.method.into());
        [row.source.0, row.target.0, row.function.0, context, method]
    });
    let aggregates = catalogs.aggregates().iter().filter(|row| initial(row.function));
    let aggregates = sums(aggregates, |row| {
        let functions = [row.function, row.transition, row.finish, row.sort_operator];
        let [function, transition, finish, sort] = functions.map(|oid| oid.0);
        let (direct, kind) = (row.direct_arguments.into(), row.kind.into());
        [function, transition, finish, sort, row.state_type.0, direct, kind]
    });
    // Their OIDs are not kept, so these are all of them.
    let family_operators = sums(catalogs.family_operators().iter(), |row| {
        let (strategy, purpose) = (row.strategy as u32, row.purpose.into());
        [row.family.0, row.left.0, row.right.0, strategy, row.operator.0, purpose]
    });
    let family_functions = sums(catalogs.family_functions().iter(), |row| {
        [row.family.0, row.left.0, row.right.0, row.number as u32, row.function.0]
    });
    let types = sums(database.types().filter(|row| row.oid.0 < FIRST_GENERATED_OID), |row| {
        let functions = [row.input, row.send, row.modifier_in];
        let [input, send, modifier_in] = functions.map(|oid| oid.0);
        let (category, preferred) = (row.category.into(), row.preferred.into());
        let (collation, subscript) = (row.collation.0, row.subscript.0);
        [
            row.oid.0,
            category,
            preferred,
            input,
            send,
            modifier_in,
            collation,
            subscript,
            row.array.0,
        ]
    });
    vec![
        ("procedures", procedures),
        ("operators", operators),
        ("casts", casts),
        ("aggregates", aggregates),
        ("family_operators", family_operators),
        ("family_functions", family_functions),
        ("types", types),
    ]
}

/// The sums that servers of this major version have computed; a minor release may have added rows. They
/// end with zeros for columns that the catalog doesn't have.
fn expected(major: u32, name: &str) -> Vec<Vec<u64>> {
    let prefix = format!("{major} {name} ");
    let lines = EXPECTED.lines().filter_map(|line| line.strip_prefix(&prefix));
    let numbers =
        |line: &str| line.split(' ').map(|number| number.parse().expect("a number")).collect();
    lines.map(numbers).collect()
}

#[test]
fn rows_add_up_to_the_sums_of_the_server() {
    for (major, data) in fixtures() {
        let aio = Builder::new().method(MethodKind::Sync).start().expect("started");
        let engine = engine(&aio, 256, false);
        let cluster = engine.cluster(&data).expect("a data directory");
        let mut backend = engine.session().expect("a backend");
        let catalog = cluster.read_catalog(&mut backend, OnDamage::Fail).expect("a catalog");
        let database = catalog.database(&mut backend, b"template0").expect("a database");
        let catalogs = database.expression_catalogs(&mut backend).expect("loaded");
        let again = database.expression_catalogs(&mut backend).expect("loaded");
        assert!(Arc::ptr_eq(&catalogs, &again), "loaded twice");
        assert_eq!(backend.pins(), 0);
        for (name, mut found) in found(&database, &catalogs) {
            assert!(found[0] > 0, "{major} {name}");
            let expected = expected(major, name);
            if let Some(first) = expected.first() {
                found.resize(first.len(), 0);
                assert!(expected.contains(&found), "{major} {name}: {found:?} of {expected:?}");
            }
        }
    }
}
