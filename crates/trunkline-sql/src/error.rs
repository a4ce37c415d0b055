//! **Errors of a statement**, with the fields that PostgreSQL sends to a client.
//!
//! ```
//! use trunkline_sql::{SqlError, SqlState};
//! let error = SqlError::new(SqlState::UNDEFINED_COLUMN, "column \"a\" does not exist").at(7);
//! assert_eq!(error.code().as_str(), "42703");
//! assert_eq!(error.character("select a"), Some(8));
//! ```

use std::fmt;

use trunkline_format::text_input::InputError;

/// An `SQLSTATE`: five digits or upper-case letters, of which the first two are the class.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SqlState(&'static str);

macro_rules! states {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        impl SqlState {
            $($(#[$doc])* pub const $name: Self = Self($code);)*
        }
    };
}

// The names are those of PostgreSQL's errcodes.txt.
states! {
    /// 00000: a notice.
    SUCCESSFUL_COMPLETION = "00000";
    /// 01000: a warning.
    WARNING = "01000";
    /// 08P01.
    PROTOCOL_VIOLATION = "08P01";
    /// 0A000: what we don't implement.
    FEATURE_NOT_SUPPORTED = "0A000";
    /// 21000: a subquery used as an expression returned more than one row.
    CARDINALITY_VIOLATION = "21000";
    /// 22000.
    DATA_EXCEPTION = "22000";
    /// 22001.
    STRING_DATA_RIGHT_TRUNCATION = "22001";
    /// 22003.
    NUMERIC_VALUE_OUT_OF_RANGE = "22003";
    /// 22004.
    NULL_VALUE_NOT_ALLOWED = "22004";
    /// 22007.
    INVALID_DATETIME_FORMAT = "22007";
    /// 22008.
    DATETIME_FIELD_OVERFLOW = "22008";
    /// 22009.
    INVALID_TIME_ZONE_DISPLACEMENT_VALUE = "22009";
    /// 2200C.
    INVALID_USE_OF_ESCAPE_CHARACTER = "2200C";
    /// 22011.
    SUBSTRING_ERROR = "22011";
    /// 22012.
    DIVISION_BY_ZERO = "22012";
    /// 22013.
    INVALID_PRECEDING_OR_FOLLOWING_SIZE = "22013";
    /// 22014.
    INVALID_ARGUMENT_FOR_NTILE = "22014";
    /// 22016.
    INVALID_ARGUMENT_FOR_NTH_VALUE = "22016";
    /// 22019.
    INVALID_ESCAPE_CHARACTER = "22019";
    /// 2201B.
    INVALID_REGULAR_EXPRESSION = "2201B";
    /// 2201E.
    INVALID_ARGUMENT_FOR_LOG = "2201E";
    /// 2201F.
    INVALID_ARGUMENT_FOR_POWER_FUNCTION = "2201F";
    /// 2201G.
    INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION = "2201G";
    /// 2201W.
    INVALID_ROW_COUNT_IN_LIMIT_CLAUSE = "2201W";
    /// 2201X.
    INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE = "2201X";
    /// 22021.
    CHARACTER_NOT_IN_REPERTOIRE = "22021";
    /// 22023.
    INVALID_PARAMETER_VALUE = "22023";
    /// 22026.
    STRING_DATA_LENGTH_MISMATCH = "22026";
    /// 22025.
    INVALID_ESCAPE_SEQUENCE = "22025";
    /// 2202E.
    ARRAY_SUBSCRIPT_ERROR = "2202E";
    /// 22030.
    DUPLICATE_JSON_OBJECT_KEY_VALUE = "22030";
    /// 22032.
    INVALID_JSON_TEXT = "22032";
    /// 22033.
    INVALID_SQL_JSON_SUBSCRIPT = "22033";
    /// 22036.
    NON_NUMERIC_SQL_JSON_ITEM = "22036";
    /// 22038.
    SINGLETON_SQL_JSON_ITEM_REQUIRED = "22038";
    /// 22039.
    SQL_JSON_ARRAY_NOT_FOUND = "22039";
    /// 2203A.
    SQL_JSON_MEMBER_NOT_FOUND = "2203A";
    /// 2203B.
    SQL_JSON_NUMBER_NOT_FOUND = "2203B";
    /// 2203C.
    SQL_JSON_OBJECT_NOT_FOUND = "2203C";
    /// 22P02.
    INVALID_TEXT_REPRESENTATION = "22P02";
    /// 22P03.
    INVALID_BINARY_REPRESENTATION = "22P03";
    /// 22P05.
    UNTRANSLATABLE_CHARACTER = "22P05";
    /// 22P06.
    NONSTANDARD_USE_OF_ESCAPE_CHARACTER = "22P06";
    /// 23502.
    NOT_NULL_VIOLATION = "23502";
    /// 23514.
    CHECK_VIOLATION = "23514";
    /// 25001.
    ACTIVE_SQL_TRANSACTION = "25001";
    /// 25006: the statement would write.
    READ_ONLY_SQL_TRANSACTION = "25006";
    /// 25P01.
    NO_ACTIVE_SQL_TRANSACTION = "25P01";
    /// 25P02.
    IN_FAILED_SQL_TRANSACTION = "25P02";
    /// 25P03.
    IDLE_IN_TRANSACTION_SESSION_TIMEOUT = "25P03";
    /// 26000.
    INVALID_SQL_STATEMENT_NAME = "26000";
    /// 28000.
    INVALID_AUTHORIZATION_SPECIFICATION = "28000";
    /// 28P01.
    INVALID_PASSWORD = "28P01";
    /// 34000.
    INVALID_CURSOR_NAME = "34000";
    /// 3B001.
    INVALID_SAVEPOINT_SPECIFICATION = "3B001";
    /// 3D000.
    INVALID_CATALOG_NAME = "3D000";
    /// 3F000.
    INVALID_SCHEMA_NAME = "3F000";
    /// 42501.
    INSUFFICIENT_PRIVILEGE = "42501";
    /// 53000.
    INSUFFICIENT_RESOURCES = "53000";
    /// 42601.
    SYNTAX_ERROR = "42601";
    /// 42602.
    INVALID_NAME = "42602";
    /// 42622.
    NAME_TOO_LONG = "42622";
    /// 42701.
    DUPLICATE_COLUMN = "42701";
    /// 42702.
    AMBIGUOUS_COLUMN = "42702";
    /// 42703.
    UNDEFINED_COLUMN = "42703";
    /// 42704.
    UNDEFINED_OBJECT = "42704";
    /// 42712.
    DUPLICATE_ALIAS = "42712";
    /// 42723.
    DUPLICATE_FUNCTION = "42723";
    /// 42725.
    AMBIGUOUS_FUNCTION = "42725";
    /// 42803.
    GROUPING_ERROR = "42803";
    /// 42804.
    DATATYPE_MISMATCH = "42804";
    /// 42809.
    WRONG_OBJECT_TYPE = "42809";
    /// 42846.
    CANNOT_COERCE = "42846";
    /// 42883: there is no such function or operator.
    UNDEFINED_FUNCTION = "42883";
    /// 42P01.
    UNDEFINED_TABLE = "42P01";
    /// 42P02.
    UNDEFINED_PARAMETER = "42P02";
    /// 42P03.
    DUPLICATE_CURSOR = "42P03";
    /// 42P05.
    DUPLICATE_PREPARED_STATEMENT = "42P05";
    /// 42P08.
    AMBIGUOUS_PARAMETER = "42P08";
    /// 42P09.
    AMBIGUOUS_ALIAS = "42P09";
    /// 42P10.
    INVALID_COLUMN_REFERENCE = "42P10";
    /// 42P13.
    INVALID_FUNCTION_DEFINITION = "42P13";
    /// 42P16.
    INVALID_TABLE_DEFINITION = "42P16";
    /// 42P18.
    INDETERMINATE_DATATYPE = "42P18";
    /// 42P19.
    INVALID_RECURSION = "42P19";
    /// 42P20.
    WINDOWING_ERROR = "42P20";
    /// 42P21.
    COLLATION_MISMATCH = "42P21";
    /// 42P22.
    INDETERMINATE_COLLATION = "42P22";
    /// 53200.
    OUT_OF_MEMORY = "53200";
    /// 53300.
    TOO_MANY_CONNECTIONS = "53300";
    /// 54000.
    PROGRAM_LIMIT_EXCEEDED = "54000";
    /// 54001: nested too deeply, or too long.
    STATEMENT_TOO_COMPLEX = "54001";
    /// 54011.
    TOO_MANY_COLUMNS = "54011";
    /// 54023.
    TOO_MANY_ARGUMENTS = "54023";
    /// 55000.
    OBJECT_NOT_IN_PREREQUISITE_STATE = "55000";
    /// 55P02.
    CANT_CHANGE_RUNTIME_PARAM = "55P02";
    /// 57014.
    QUERY_CANCELED = "57014";
    /// 57P01.
    ADMIN_SHUTDOWN = "57P01";
    /// 57P05.
    IDLE_SESSION_TIMEOUT = "57P05";
    /// 58030.
    IO_ERROR = "58030";
    /// 58P01.
    UNDEFINED_FILE = "58P01";
    /// F0000.
    CONFIG_FILE_ERROR = "F0000";
    /// XX000: a bug of ours.
    INTERNAL_ERROR = "XX000";
    /// XX001: a damaged table or catalog.
    DATA_CORRUPTED = "XX001";
    /// XX002: a damaged index.
    INDEX_CORRUPTED = "XX002";
}

impl SqlState {
    /// The five characters.
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Why a statement failed. It is boxed, because results are returned on every path and errors are
/// rare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlError(Box<Fields>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Fields {
    code: SqlState,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
    /// Byte offset in the statement's text.
    position: Option<u32>,
}

impl SqlError {
    /// An error with a message in PostgreSQL's style: lower case, without a full stop.
    pub fn new(code: SqlState, message: impl Into<String>) -> Self {
        let (detail, hint, position) = (None, None, None);
        Self(Box::new(Fields { code, message: message.into(), detail, hint, position }))
    }

    /// What we don't implement; `what` is a complete message, such as `window EXCLUDE is not supported
    /// by trunkline`.
    pub fn unsupported(what: impl Into<String>) -> Self {
        Self::new(SqlState::FEATURE_NOT_SUPPORTED, what)
    }

    /// A broken invariant of ours, which is not the user's fault.
    pub fn internal(what: impl Into<String>) -> Self {
        Self::new(SqlState::INTERNAL_ERROR, what)
    }

    /// Adds the field `DETAIL`: a sentence.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// Adds the field `HINT`: a sentence.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Sets where in the statement the error is, as a byte offset, unless that has been set closer to
    /// the cause.
    #[must_use]
    pub fn at(mut self, offset: u32) -> Self {
        self.0.position.get_or_insert(offset);
        self
    }

    /// Removes the position, because it is one of another text.
    #[must_use]
    pub fn without_position(mut self) -> Self {
        self.0.position = None;
        self
    }

    /// A function that has no implementation here.
    pub fn unsupported_function(name: &str) -> Self {
        Self::unsupported(format!("function {name} is not supported by trunkline"))
    }

    /// The error's class and code.
    pub fn code(&self) -> SqlState {
        self.0.code
    }

    /// The message, without severity.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The field `DETAIL`.
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// The field `HINT`.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Where in the statement the error is, as a byte offset.
    pub fn offset(&self) -> Option<u32> {
        self.0.position
    }

    /// The field `POSITION`: a number of characters in `statement`, from 1.
    pub fn character(&self, statement: &str) -> Option<usize> {
        let offset = usize::try_from(self.0.position?).ok()?;
        Some(statement.char_indices().take_while(|&(at, _)| at < offset).count() + 1)
    }
}

impl From<InputError> for SqlError {
    fn from(error: InputError) -> Self {
        let mut converted = Self::new(SqlState(error.code()), error.message());
        converted.0.detail = error.detail().map(str::to_owned);
        converted.0.hint = error.hint().map(str::to_owned);
        converted
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for SqlError {}
