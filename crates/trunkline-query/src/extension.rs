//! `CREATE EXTENSION`: extensions that are built in answer so, and others would be a write.
//!
//! ```
//! use trunkline_query::create_extension;
//! let notice = create_extension("pg_prewarm")?;
//! assert_eq!(notice, "extension \"pg_prewarm\" is built into trunkline");
//! assert!(create_extension("hstore").is_err());
//! # Ok::<(), trunkline_sql::SqlError>(())
//! ```

use trunkline_sql::catalog::BUILT_IN_EXTENSIONS;
use trunkline_sql::{SqlError, SqlState};

/// The text of the `NOTICE` with which `CREATE EXTENSION` answers. The catalogs stay as they are.
///
/// # Errors
/// 25006: the extension isn't built in, so the directory would have to change.
pub fn create_extension(name: &str) -> Result<String, SqlError> {
    if BUILT_IN_EXTENSIONS.iter().any(|(built_in, ..)| *built_in == name) {
        return Ok(format!("extension \"{name}\" is built into trunkline"));
    }
    let message = "cannot execute CREATE EXTENSION in a read-only transaction";
    Err(SqlError::new(SqlState::READ_ONLY_SQL_TRANSACTION, message))
}
