//! Views: the queries that the directories have, of the server's own views and of users'.

use trunkline_format::catalog::RelationKind;
use trunkline_sql::SqlState;

use crate::cluster::{fixtures, open};
use crate::queries::bound;

#[test]
fn every_view_is_bound_or_refused_by_name() {
    for data in fixtures() {
        let context = open(&data, "fixture");
        let (mut bound_count, mut wrong) = (0, Vec::new());
        let views = context.database.relations().iter();
        for view in views.filter(|relation| relation.kind == RelationKind::View) {
            let schema = context.database.schema(view.schema).expect("a schema");
            let (schema, name) =
                (String::from_utf8_lossy(&schema.name), String::from_utf8_lossy(&view.name));
            match bound(&context, &format!("select * from \"{schema}\".\"{name}\"")) {
                Ok(statement) => {
                    bound_count += 1;
                    // The columns are those of the view, as a client sees them.
                    for (output, number) in statement.query.output.iter().zip(1..) {
                        let origin = statement.columns.get(output.id).origin.expect("an origin");
                        assert_eq!((origin.table, origin.number), (view.oid, number), "{name}");
                    }
                }
                Err(error) if error.code() == SqlState::FEATURE_NOT_SUPPORTED => {}
                Err(error) => wrong.push(format!("{schema}.{name}: {error:?}")),
            }
        }
        assert!(wrong.is_empty(), "{}: {}", data.display(), wrong.join("\n"));
        assert!(bound_count > 10, "{}: {bound_count} views", data.display());
    }
}
