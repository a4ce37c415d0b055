//! `CREATE EXTENSION`: extensions that are built in answer so, and others would be a write.
//!
//! ```
//! use trunkline_query::create_extension;
//! let notice = create_extension("pg_prewarm")?;
//! assert_eq!(notice, "extension \"pg_prewarm\" is built into trunkline");
//! assert!(create_extension("hstore").is_err());
//! # Ok::<(), trunkline_sql::SqlError>(())
//! ```

use trunkline_sql::{SqlError, SqlState};

/// Extensions whose functions are in the overlay of the catalogs. `test_aio` belongs to PostgreSQL's
/// own tests.
const BUILT_IN: [&str; 3] = ["pg_buffercache", "pg_prewarm", "test_aio"];

/// The text of the `NOTICE` with which `CREATE EXTENSION` answers. The catalogs stay as they are.
///
/// # Errors
/// 25006: the extension isn't built in, so the directory would have to change.
pub fn create_extension(name: &str) -> Result<String, SqlError> {
    if BUILT_IN.contains(&name) {
        return Ok(format!("extension \"{name}\" is built into trunkline"));
    }
    let message = "cannot execute CREATE EXTENSION in a read-only transaction";
    Err(SqlError::new(SqlState::READ_ONLY_SQL_TRANSACTION, message))
}
