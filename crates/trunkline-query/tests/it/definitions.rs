//! The catalogs of definitions, in clusters of all versions.

use trunkline_format::node_tree::NodeValue;

use crate::cluster::{fixtures, open};

#[test]
fn definitions_of_every_version_are_loaded() {
    for data in fixtures() {
        let context = open(&data, "postgres");
        let catalogs = context.environment.catalog.definitions().catalogs();
        let catalogs = catalogs.unwrap_or_else(|error| panic!("{}: {error}", data.display()));
        // The domains of the information schema have CHECK constraints.
        let checks = catalogs.constraints.iter().filter_map(|row| row.expression.as_deref());
        let parsed = checks.map(|check| NodeValue::parse(check).expect("a tree"));
        assert!(parsed.filter(|tree| tree.node().is_some()).count() >= 2, "CHECK constraints");
        assert!(catalogs.descriptions.len() > 1000, "the comments on functions");
        assert!(catalogs.roles.iter().any(|role| role.superuser), "the operator");
    }
}
