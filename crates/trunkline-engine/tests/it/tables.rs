//! The fixtures' tables, and the servers' output for those tables.

use std::fs;
use std::path::Path;

use crate::fixtures::fixtures;
use crate::jobs::{METHODS, engine};
use trunkline_aio::facade::Arc;
use trunkline_aio::{Aio, Builder, MethodKind};
use trunkline_engine::catalog::{Catalog, Database, RelationInfo};
use trunkline_engine::pool::Backend;
use trunkline_engine::transactions::Transactions;

/// An open cluster with everything needed to read rows.
pub(crate) struct Cluster {
    pub(crate) catalog: Catalog,
    pub(crate) backend: Backend,
}

pub(crate) fn instance(method: MethodKind) -> Aio {
    // Enough memory for the largest pool in the tests and a few commit log pages.
    Builder::new().method(method).region_bytes(16_448 << 13).start().expect("starts")
}

/// Runs `check` on every fixture, passing the fixture's version. We open PostgreSQL 18's fixture
/// with every I/O method, buffered and direct, and with two pool sizes: one very small, the other
/// large enough for all pages. The fixtures of the other versions are only opened buffered and with
/// a single method. That's enough, because they have a different on-disk format but use the same
/// I/O path.
pub(crate) fn in_every_way(mut check: impl FnMut(u32, &Path, &mut Cluster)) {
    for (major, data) in fixtures() {
        for method in METHODS {
            for (direct, buffers) in [(false, 16), (true, 16), (false, 16_384), (true, 16_384)] {
                if (method, direct) != (MethodKind::Worker, false) && major != 18 {
                    continue;
                }
                let aio = instance(method);
                check(major, &data, &mut Cluster::open(&aio, &data, direct, buffers));
            }
        }
    }
}

impl Cluster {
    pub(crate) fn open(aio: &Aio, data: &Path, direct: bool, buffers: u32) -> Self {
        let engine = engine(aio, buffers, direct);
        let backend = engine.session().expect("a session");
        let catalog = engine.cluster(data).expect("opened").catalog().expect("a catalog");
        Self { catalog, backend }
    }

    pub(crate) fn database(&mut self, name: &str) -> Arc<Database> {
        self.catalog.database(&mut self.backend, name.as_bytes()).expect("a database")
    }

    pub(crate) fn transactions(&self) -> Arc<Transactions> {
        Arc::clone(self.catalog.transactions())
    }
}

/// Returns every table for which we have the server's output, together with that output. Each line
/// of the output consists of tab-separated values, and the first of them is the ctid.
pub(crate) fn printed<'d>(
    data: &Path,
    database: &'d Database,
) -> Vec<(String, &'d RelationInfo, Vec<Vec<u8>>)> {
    let name = String::from_utf8_lossy(&database.info().name).into_owned();
    let directory = data.parent().expect("a parent").join("expected").join(name);
    let mut tables = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let file = path.file_name().expect("a name").to_string_lossy().into_owned();
        let Some((schema, table)) = file.strip_suffix(".copy").and_then(|it| it.split_once('.'))
        else {
            continue;
        };
        let schema = database.schema_named(schema.as_bytes()).expect("a schema");
        let relation = database.find(schema, table.as_bytes()).expect("a table");
        let bytes = fs::read(path).expect("read");
        let mut lines: Vec<_> = bytes.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
        assert_eq!(lines.pop().as_deref(), Some(&b""[..]), "every line has an end");
        tables.push((database.qualified_name(relation), relation, lines));
    }
    tables
}
