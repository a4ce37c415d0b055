//! Data directories created by PostgreSQL, and statements on them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use trunkline_engine::Engine;
use trunkline_engine::settings::Settings;
use trunkline_format::text_output::{ByteaOutput, IntervalStyle, Type, Utc, write_text};
use trunkline_query::{
    Cancellation, DatabaseViews, Environment, FileSizes, ResultColumn, StatementContext,
    StatementOptions, collations, execute,
};
use trunkline_sql::SqlError;
use trunkline_sql::bound::BoundStatement;
use trunkline_sql::catalog::{SearchPath, SessionCatalog, SqlCatalog};
use trunkline_sql::functions::CallSettings;
use trunkline_sql::values::PayloadReader;

/// When the transactions of these tests start: in May 2025, in microseconds since 2000.
const NOW_US: i64 = 800_000_000_000_000;

/// The available data directories.
#[expect(clippy::disallowed_methods, reason = "a test has no main that could pass this down")]
pub(crate) fn fixtures() -> Vec<PathBuf> {
    let Some(directory) = std::env::var_os("TRUNKLINE_FIXTURE_DIR").map(PathBuf::from) else {
        println!("skipped: no fixture");
        return Vec::new();
    };
    let found = (15..=19).map(|major| directory.join(format!("pg{major}/data")));
    let found: Vec<PathBuf> = found.filter(|data| data.is_dir()).collect();
    assert!(!found.is_empty(), "no fixture in {}", directory.display());
    found
}

/// Opens a database with a small pool.
pub(crate) fn open(data: &Path, database: &str) -> StatementContext {
    let mut settings = Settings::default();
    settings.set("shared_buffers", "2MB").expect("a setting");
    let engine = Engine::open(&settings).expect("an engine");
    let cluster = engine.cluster(data).expect("a cluster");
    let major = cluster.dir().control().version.major();
    let database = Arc::clone(cluster.database(database).expect("a database").catalog());
    let mut session = engine.session().expect("a session");
    let types = database.relations().iter().filter_map(|relation| database.columns(relation).ok());
    let types: Vec<_> = types.flatten().map(|column| column.type_oid).collect();
    database.load_names(&mut session, types).expect("names");
    let expressions = database.expression_catalogs(&mut session).expect("catalogs");
    drop(session);
    let sql = SqlCatalog::new(Arc::clone(&database), Arc::clone(&expressions));
    let sql = sql.with_views(Arc::new(DatabaseViews::new(&engine, &database)));
    let session = SessionCatalog {
        path: SearchPath::new(&sql, &["$user", "public"], Some("postgres")),
        catalog: sql.clone(),
        sizes: Arc::new(FileSizes::new(&database, &cluster)),
        user: "postgres".into(),
        addresses: None,
    };
    let settings = CallSettings {
        major,
        session: Some(Arc::new(session)),
        catalog: Arc::clone(&database) as _,
        collations: Arc::new(collations(&database, expressions.collations())),
        zone: Arc::new(Utc),
        extra_float_digits: 1,
        bytea_output: ByteaOutput::Hex,
        date_order: Default::default(),
        interval_style: IntervalStyle::Postgres,
        transaction_start: NOW_US,
        statement_start: NOW_US,
        server: None,
    };
    let environment =
        Environment { catalog: sql, settings: Arc::new(settings), parameters: Arc::default() };
    let (cancellation, options) = (Cancellation::default(), StatementOptions::default());
    StatementContext { engine, database, environment, cancellation, options }
}

/// All batches of a statement, with its columns.
pub(crate) fn batches(
    context: &StatementContext,
    statement: &BoundStatement,
) -> Result<(Vec<ResultColumn>, Vec<RecordBatch>), SqlError> {
    runtime().block_on(async {
        let mut rows = execute(statement, context).await?;
        let mut batches = Vec::new();
        while let Some(batch) = rows.next().await? {
            batches.push(batch);
        }
        Ok((rows.columns().to_vec(), batches))
    })
}

/// A runtime of one thread, which all tasks of a statement share.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime")
}

/// The rows of a statement as lines of `COPY`.
pub(crate) fn lines(context: &StatementContext, statement: &BoundStatement) -> Vec<String> {
    try_lines(context, statement).unwrap_or_else(|error| {
        panic!("{}: {error}, {:?}", error.code().as_str(), error.detail());
    })
}

/// The rows of a statement as lines of `COPY`, or why it failed.
pub(crate) fn try_lines(
    context: &StatementContext,
    statement: &BoundStatement,
) -> Result<Vec<String>, SqlError> {
    let (columns, batches) = batches(context, statement)?;
    let environment = &context.environment;
    let mut lines = Vec::new();
    for batch in &batches {
        let mut rows = vec![Vec::new(); batch.num_rows()];
        for (at, (column, array)) in columns.iter().zip(batch.columns()).enumerate() {
            let ty = Type::resolve(column.ty.oid, &*environment.settings.catalog).expect("a type");
            let mut values =
                PayloadReader::new(column.carrier, array).expect("the carrier's array");
            for (number, row) in rows.iter_mut().enumerate() {
                if at > 0 {
                    row.push(b'\t');
                }
                match values.get(number) {
                    None => row.extend(br"\N"),
                    Some(payload) => {
                        let mut text = Vec::new();
                        let options = environment.settings.text_options();
                        write_text(&ty, payload, &options, &mut text).expect("a sound value");
                        escape(&text, row);
                    }
                }
            }
        }
        lines.extend(rows.into_iter().map(|row| String::from_utf8(row).expect("UTF-8")));
    }
    Ok(lines)
}

/// The escapes of `COPY`.
pub(crate) fn escape(text: &[u8], line: &mut Vec<u8>) {
    for &byte in text {
        let letter = match byte {
            b'\\' => b'\\',
            b'\t' => b't',
            b'\n' => b'n',
            b'\r' => b'r',
            0x08 => b'b',
            0x0B => b'v',
            0x0C => b'f',
            _ => {
                line.push(byte);
                continue;
            }
        };
        line.extend([b'\\', letter]);
    }
}
