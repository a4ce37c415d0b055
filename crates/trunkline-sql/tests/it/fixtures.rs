//! Opens databases of the fixtures.

use std::path::PathBuf;

use trunkline_aio::{Builder, MethodKind};
use trunkline_engine::catalog::OnDamage;
use trunkline_engine::engine::Engine;
use trunkline_engine::settings::Settings;
use trunkline_sql::catalog::SqlCatalog;

/// The data directory of a version, if there are fixtures.
#[expect(clippy::disallowed_methods, reason = "a test has no main that could pass this down")]
fn data_directory(major: u32) -> Option<PathBuf> {
    let Some(directory) = std::env::var_os("TRUNKLINE_FIXTURE_DIR").map(PathBuf::from) else {
        println!("skipped: no fixture");
        return None;
    };
    Some(directory.join(format!("pg{major}/data"))).filter(|data| data.is_dir())
}

/// The catalog of database `fixture` of a version. Catalogs are copied, so they outlive the engine.
pub(crate) fn catalog(major: u32) -> Option<SqlCatalog> {
    let data = data_directory(major)?;
    let aio = Builder::new().method(MethodKind::Sync).start().expect("started");
    let engine = Engine::builder(&Settings::default()).io(&aio).buffers(512).open();
    let engine = engine.expect("an engine");
    let cluster = engine.cluster(&data).expect("a data directory");
    let mut backend = engine.session().expect("a backend");
    let catalog = cluster.read_catalog(&mut backend, OnDamage::Fail).expect("a catalog");
    let database = catalog.database(&mut backend, b"fixture").expect("a database");
    let expressions = database.expression_catalogs(&mut backend).expect("loaded");
    Some(SqlCatalog::new(database, expressions))
}
