//! Every view of the server's own schemas gives rows, or is refused by name. The number of those that
//! give rows may only rise.

use std::collections::BTreeMap;

use crate::answers::versions;
use crate::cluster::runtime;
use crate::sessions::{open_on, run};

/// How many views give rows in the oldest and in the newest version.
const FLOORS: [(u32, usize); 2] = [(15, 121), (18, 126)];

const VIEWS: &str = "select n.nspname, c.relname from pg_class c \
     join pg_namespace n on n.oid = c.relnamespace where c.relkind = 'v' \
     and n.nspname in ('pg_catalog', 'information_schema') order by 1, 2";

#[test]
fn views_of_the_server_give_rows_or_are_refused_by_name() {
    // The oldest and the newest version: some views join a dozen catalogs, so all versions would take
    // minutes.
    let all = versions();
    for (major, directory) in all.iter().step_by(all.len().max(2) - 1) {
        runtime().block_on(async {
            let data = directory.join("../../data");
            let Some(mut session) = open_on(data, "shop", &[], &[]).await else { return };
            let views = run(&mut session, VIEWS).await;
            let (mut work, mut refused) = (0, BTreeMap::new());
            let mut wrong = Vec::new();
            for view in views.split('|') {
                let (schema, name) = view.split_once('\t').expect("two columns");
                let sql = format!("select * from {schema}.{name} limit 1");
                let found = run(&mut session, &sql).await;
                match found.strip_prefix("0A000 ") {
                    Some(why) if why.contains("supported by trunkline") => {
                        refused.entry(why.to_owned()).or_insert_with(Vec::new).push(name);
                    }
                    None if !is_error(&found) => work += 1,
                    _ => wrong.push(format!("{schema}.{name}: {found}")),
                }
            }
            let total = views.split('|').count();
            println!("shop{major}: {work} of {total} views give rows");
            for (why, names) in &refused {
                println!("    {why}: {}", names.join(", "));
            }
            assert!(wrong.is_empty(), "{major}: {}", wrong.join("\n"));
            let floor = FLOORS.iter().find(|(of, _)| of == major).map_or(0, |(_, floor)| *floor);
            assert!(work >= floor, "shop{major}: {work} views give rows, fewer than before");
        });
    }
}

/// Whether a result begins with an SQLSTATE.
fn is_error(found: &str) -> bool {
    let code = found.split(' ').next().unwrap_or_default();
    let is_letter = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
    code.len() == 5 && found.len() > 6 && code.bytes().all(is_letter)
}
