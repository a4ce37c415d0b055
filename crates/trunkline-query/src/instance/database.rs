//! A database whose catalogs are open.
//!
//! Opening takes some time, because all names are indexed, so it happens once for each database. The
//! directory doesn't change, so the catalogs stay valid.

use std::collections::BTreeMap;
use std::sync::Arc;

use trunkline_engine::catalog::{CatalogError, Database};
use trunkline_engine::{Cluster, Engine, EngineError};
use trunkline_format::Oid;
use trunkline_sql::catalog::{SqlCatalog, ViewQueries};
use trunkline_sql::functions::Collations;
use trunkline_sql::{SqlError, SqlState};

use crate::environment::collations;

/// A database with everything that binding and execution look up.
#[derive(Debug, Clone)]
pub struct OpenedDatabase {
    name: String,
    database: Arc<Database>,
    catalog: SqlCatalog,
    collations: Arc<Collations>,
    settings: BTreeMap<String, String>,
}

impl OpenedDatabase {
    /// Reads the catalogs, which blocks.
    pub(super) fn open(cluster: &Cluster, name: &str) -> Result<Self, SqlError> {
        let database = cluster.database(name).map_err(|error| engine_error(&error))?;
        let database = Arc::clone(database.catalog());
        let mut session = cluster.engine().session().map_err(|error| engine_error(&error))?;
        let relations = database.relations().iter();
        let types = relations.filter_map(|relation| database.columns(relation).ok());
        let types: Vec<_> = types.flatten().map(|column| column.type_oid).collect();
        let failed = |error: CatalogError| catalog_error(&error);
        database.load_names(&mut session, types).map_err(failed)?;
        let (settings, _damage) = database.settings(&mut session).map_err(failed)?;
        let expressions = database.expression_catalogs(&mut session).map_err(failed)?;
        let collations = Arc::new(collations(&database, expressions.collations()));
        let views = DatabaseViews::new(cluster.engine(), &database);
        let catalog = SqlCatalog::new(Arc::clone(&database), expressions);
        let catalog = catalog.with_views(Arc::new(views));
        Ok(Self { name: name.to_owned(), database, catalog, collations, settings })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its relations and types.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// Its catalogs, indexed for the binder.
    pub fn catalog(&self) -> &SqlCatalog {
        &self.catalog
    }

    /// Values of `ALTER DATABASE … SET` and `ALTER ROLE ALL SET`, by the names of settings.
    pub fn settings(&self) -> &BTreeMap<String, String> {
        &self.settings
    }

    /// Its collations.
    pub fn collations(&self) -> &Arc<Collations> {
        &self.collations
    }
}

/// The queries of a database's views, which are read when a statement needs them.
#[derive(Clone)]
pub struct DatabaseViews {
    engine: Engine,
    database: Arc<Database>,
}

impl DatabaseViews {
    /// The views of a database.
    pub fn new(engine: &Engine, database: &Arc<Database>) -> Self {
        Self { engine: engine.clone(), database: Arc::clone(database) }
    }
}

impl std::fmt::Debug for DatabaseViews {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DatabaseViews").finish_non_exhaustive()
    }
}

impl ViewQueries for DatabaseViews {
    fn query(&self, view: Oid) -> Result<Option<Vec<u8>>, SqlError> {
        let mut session = self.engine.session().map_err(|error| engine_error(&error))?;
        self.database.view_query(&mut session, view).map_err(|error| catalog_error(&error))
    }

    fn replaced_commands(&self, relation: Oid) -> Result<u32, SqlError> {
        let mut session = self.engine.session().map_err(|error| engine_error(&error))?;
        let found = self.database.replaced_commands(&mut session, relation);
        found.map_err(|error| catalog_error(&error))
    }
}

/// An error of opening a cluster, a database or a session.
pub(super) fn engine_error(error: &EngineError) -> SqlError {
    match error {
        EngineError::Catalog(error) => catalog_error(error),
        EngineError::TooManySessions(_) => {
            SqlError::new(SqlState::TOO_MANY_CONNECTIONS, error.to_string())
                .with_hint("Raise max_sessions.")
        }
        EngineError::Storage(_) => SqlError::new(SqlState::UNDEFINED_FILE, error.to_string()),
        EngineError::Start(_) | EngineError::Pool(_) | EngineError::DataDir(_) => {
            SqlError::new(SqlState::IO_ERROR, error.to_string())
        }
    }
}

fn catalog_error(error: &CatalogError) -> SqlError {
    let code = match error {
        CatalogError::NoDatabase { .. } => SqlState::INVALID_CATALOG_NAME,
        CatalogError::InvalidDatabase { .. } => SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        error if error.file_fault().is_some() => SqlState::UNDEFINED_FILE,
        error if error.is_damage() => SqlState::DATA_CORRUPTED,
        _ => SqlState::IO_ERROR,
    };
    let sql = SqlError::new(code, error.to_string());
    match error.hint() {
        Some(hint) => sql.with_hint(hint),
        None => sql,
    }
}
