//! What a statement is lowered with: the database's functions and types, and the session's settings.
//!
//! The bound tree names functions by OID. The catalog says which C function that is, because our
//! kernels and aggregates are found by the names of those: 177 is `int4pl`, the `+` of `int4`.

use std::fmt;
use std::sync::Arc;

use trunkline_engine::catalog::Database;
use trunkline_format::Oid;
use trunkline_format::catalog::CollationRow;
use trunkline_format::text_output::{Type, UnsupportedType};
use trunkline_sql::catalog::SqlCatalog;
use trunkline_sql::functions::{CallSettings, Collation, Collations, Provider};
use trunkline_sql::values::Carrier;
use trunkline_sql::{SqlError, SqlState};

/// `provolatile`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Volatility {
    /// The result depends on nothing but the arguments.
    Immutable,
    /// The result may depend on settings and catalogs, but is the same throughout a statement.
    Stable,
    /// The result may differ in every row.
    Volatile,
}

/// What lowering needs of a row of `pg_proc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FunctionInfo {
    /// `proname`.
    pub(crate) name: String,
    /// The name of its kernel, mostly `prosrc`; empty if the function isn't built into the server.
    pub(crate) source: String,
    /// Whether it can be evaluated ahead, or only once a row.
    pub(crate) volatility: Volatility,
    /// `prorettype`.
    pub(crate) result: Oid,
}

/// What lowering needs of a row of `pg_aggregate`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AggregateInfo {
    /// `proname`.
    pub(crate) name: String,
    /// `prosrc` of the transition function.
    pub(crate) transition: String,
    /// `prosrc` of the final function; empty if there is none.
    pub(crate) last: String,
}

/// The value of a parameter: its payload, or `None` if it is null.
pub type ParameterValue = Option<Box<[u8]>>;

/// Everything besides the bound tree that a plan depends on. Clones are cheap.
#[derive(Clone)]
pub struct Environment {
    /// The functions of the database.
    pub catalog: SqlCatalog,
    /// The settings of the session, with the catalog of types and the collations.
    pub settings: Arc<CallSettings>,
    /// The values of the parameters `$1` and so on, of the types that the bound tree has for them.
    pub parameters: Arc<[ParameterValue]>,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Environment {
    /// Resolves a type.
    ///
    /// # Errors
    /// 0A000: we can't hold its values.
    pub(crate) fn resolve(&self, oid: Oid) -> Result<Type, SqlError> {
        Type::resolve(oid, &*self.settings.catalog).map_err(|error| unsupported_type(&error))
    }

    /// The carrier of a type.
    ///
    /// # Errors
    /// As for [`Environment::resolve`].
    pub(crate) fn carrier(&self, oid: Oid) -> Result<Carrier, SqlError> {
        // `unknown`, `cstring` and `void` have no row that describes values, but expressions may have
        // them.
        match oid {
            Oid(705 | 2275 | 2278) => Ok(Carrier::Text),
            Oid(2249) => Ok(Carrier::Bytes),
            _ => Ok(Carrier::of(&self.resolve(oid)?)),
        }
    }

    /// A function that the bound tree calls.
    ///
    /// # Errors
    /// XX000: the function is not in the catalog.
    pub(crate) fn function(&self, oid: Oid) -> Result<FunctionInfo, SqlError> {
        let missing = || SqlError::internal(format!("cache lookup failed for function {oid}"));
        let row = self.catalog.procedure(oid).ok_or_else(missing)?;
        let volatility = match row.volatility {
            b'i' => Volatility::Immutable,
            b's' => Volatility::Stable,
            _ => Volatility::Volatile,
        };
        let source = self.catalog.kernel_name(oid).unwrap_or_default().into_owned();
        let name = self.catalog.encoding().decode(&row.name);
        Ok(FunctionInfo { name, source, volatility, result: row.result })
    }

    /// An aggregate that the bound tree calls.
    ///
    /// # Errors
    /// XX000: the aggregate is not in the catalog.
    pub(crate) fn aggregate(&self, oid: Oid) -> Result<AggregateInfo, SqlError> {
        let missing = || SqlError::internal(format!("cache lookup failed for aggregate {oid}"));
        let row = self.catalog.aggregate(oid).ok_or_else(missing)?;
        let source = |function: Oid| match function {
            Oid(0) => Ok(String::new()),
            function => self.function(function).map(|info| info.source),
        };
        let (transition, last) = (source(row.transition)?, source(row.finish)?);
        Ok(AggregateInfo { name: self.function(oid)?.name, transition, last })
    }

    /// Whether an aggregate is called with `WITHIN GROUP`.
    pub(crate) fn is_ordered_set(&self, oid: Oid) -> bool {
        self.catalog.aggregate(oid).is_some_and(|row| row.kind != b'n')
    }

    /// Whether a collation orders text by its bytes; true for 0, which stands for none.
    pub(crate) fn sorts_by_bytes(&self, collation: Oid) -> bool {
        let found = self.settings.collations.get(&collation);
        collation == Oid(0) || found.is_some_and(|found| found.orders_by_bytes())
    }

    /// Whether text is equal only if its bytes are; true for 0, which stands for none.
    pub(crate) fn is_deterministic(&self, collation: Oid) -> bool {
        let found = self.settings.collations.get(&collation);
        collation == Oid(0) || found.is_some_and(|found| found.is_deterministic())
    }

    /// Refuses a comparison for which text must be sorted by a locale.
    ///
    /// # Errors
    /// 0A000 unless the collation compares bytes.
    pub(crate) fn require_bytewise(&self, collation: Oid) -> Result<(), SqlError> {
        if self.sorts_by_bytes(collation) {
            return Ok(());
        }
        let message = "sorting text by a locale is not supported by trunkline";
        let hint = "Add COLLATE \"C\" to sort by bytes.";
        Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).with_hint(hint))
    }
}

fn unsupported_type(error: &UnsupportedType) -> SqlError {
    SqlError::unsupported(format!("{error}; this is not supported by trunkline"))
}

/// The collations of a database, from the rows of `pg_collation`. The collation `default` is that of
/// the database. In most encodings besides UTF-8, the bytes of two texts compare in another way than
/// those of our texts do, so there no collation orders by bytes.
pub fn collations(database: &Database, rows: &[CollationRow]) -> Collations {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let row = |row: &CollationRow| {
        let collation = match Provider::from_code(row.provider) {
            Some(provider) => {
                let locale = match provider {
                    Provider::Libc => &row.lc_collate,
                    Provider::Builtin | Provider::Icu => &row.locale,
                };
                let locale = locale.as_deref().map(text).unwrap_or_default();
                Collation::new(provider, &locale, &locale, row.deterministic)
            }
            None => default_collation(database),
        };
        // SQL_ASCII, UTF8 and LATIN1.
        match database.info().encoding {
            0 | 6 | 8 => (row.oid, collation),
            _ => (row.oid, collation.in_other_order()),
        }
    };
    rows.iter().map(row).collect()
}

/// The collation of the database itself.
fn default_collation(database: &Database) -> Collation {
    let info = database.info();
    let provider = Provider::from_code(info.provider).unwrap_or(Provider::Icu);
    let locale = String::from_utf8_lossy(&info.collate);
    Collation::new(provider, &locale, &locale, true)
}
