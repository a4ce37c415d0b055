//! The catalogs of definitions, in clusters of all versions.

use crate::cluster::{fixtures, open};

#[test]
fn definitions_of_every_version_are_loaded() {
    for data in fixtures() {
        let context = open(&data, "postgres");
        let catalogs = context.environment.catalog.definitions().catalogs();
        let catalogs = catalogs.unwrap_or_else(|error| panic!("{}: {error}", data.display()));
        let views = catalogs.rules.iter().filter(|rule| &*rule.name == b"_RETURN");
        for view in views {
            let action = view.action.as_deref().expect("a query");
            let tree = trunkline_format::node_tree::NodeValue::parse(action).expect("a tree");
            let query = tree.elements()[0].node().expect("a node");
            assert_eq!(query.kind(), "QUERY");
        }
        assert!(catalogs.rules.len() > 100, "the views of the system");
        assert!(catalogs.descriptions.len() > 1000, "the comments on functions");
        assert!(catalogs.roles.iter().any(|role| role.superuser), "the operator");
    }
}
