//! The options of `COPY … TO`.
//!
//! `COPY t TO STDOUT (FORMAT csv, HEADER, DELIMITER ';')` sets three of them. The checks and their
//! messages are those of PostgreSQL's `ProcessCopyOptions`.

use trunkline_sql::syntax::{CommandOption, OptionValue};
use trunkline_sql::{SqlError, SqlState};

use super::client_encoding::ClientEncoding;

/// `FORMAT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CopyFormat {
    /// Values between delimiters, with escapes.
    #[default]
    Text,
    /// Values between delimiters, in quotes where they need them.
    Csv,
    /// Lengths and send functions.
    Binary,
}

/// `FORCE_QUOTE`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ForceQuote {
    /// Values are quoted if they must be.
    #[default]
    None,
    /// All values that aren't null.
    All,
    /// Those of these columns.
    Columns(Vec<String>),
}

/// How rows are copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyOptions {
    /// `FORMAT`.
    pub format: CopyFormat,
    /// `DELIMITER`.
    pub delimiter: u8,
    /// `NULL`, in UTF-8.
    pub null: String,
    /// `HEADER`.
    pub header: bool,
    /// `QUOTE`.
    pub quote: u8,
    /// `ESCAPE`.
    pub escape: u8,
    /// `FORCE_QUOTE`.
    pub force_quote: ForceQuote,
    /// `ENCODING`, by its number; that of the client if it is absent.
    pub encoding: Option<i32>,
}

impl From<CopyFormat> for CopyOptions {
    fn from(format: CopyFormat) -> Self {
        let (delimiter, null) = match format {
            CopyFormat::Csv => (b',', ""),
            CopyFormat::Text | CopyFormat::Binary => (b'\t', "\\N"),
        };
        Self {
            format,
            delimiter,
            null: null.to_owned(),
            header: false,
            quote: b'"',
            escape: b'"',
            force_quote: ForceQuote::None,
            encoding: None,
        }
    }
}

/// The options as they are written.
#[derive(Default)]
struct Written {
    format: Option<CopyFormat>,
    delimiter: Option<String>,
    null: Option<String>,
    header: Option<bool>,
    quote: Option<String>,
    escape: Option<String>,
    force_quote: Option<ForceQuote>,
    encoding: Option<i32>,
    /// An option of COPY FROM, as its error names it.
    only_from: Option<&'static str>,
}

impl CopyOptions {
    /// Reads and checks the options of a statement.
    ///
    /// # Errors
    /// Those of the server whose major version is `major`.
    pub fn read(options: &[CommandOption], major: u32) -> Result<Self, SqlError> {
        let mut written = Written::default();
        let mut seen: Vec<&str> = Vec::new();
        for option in options {
            let at = option.span.start;
            let name = &*option.name.text;
            if seen.contains(&name) {
                return Err(syntax("conflicting or redundant options").at(at));
            }
            seen.push(name);
            written.read(option, major)?;
        }
        written.check(major)
    }
}

impl Written {
    fn read(&mut self, option: &CommandOption, major: u32) -> Result<(), SqlError> {
        let at = option.span.start;
        match &*option.name.text {
            "format" => {
                let name = string(option)?;
                self.format = Some(match &*name {
                    "text" => CopyFormat::Text,
                    "csv" => CopyFormat::Csv,
                    "binary" => CopyFormat::Binary,
                    _ => {
                        let message = format!("COPY format \"{name}\" not recognized");
                        return Err(invalid(message).at(at));
                    }
                });
            }
            "delimiter" => self.delimiter = Some(string(option)?),
            "null" => self.null = Some(string(option)?),
            "quote" => self.quote = Some(string(option)?),
            "escape" => self.escape = Some(string(option)?),
            "header" => self.header = Some(header(option)?),
            "encoding" => {
                let number = string(option).ok().and_then(|name| ClientEncoding::by_name(&name));
                let message = "argument to option \"encoding\" must be a valid encoding name";
                self.encoding = Some(number.ok_or_else(|| invalid(message).at(at))?);
            }
            "force_quote" => self.force_quote = Some(force_quote(option)?),
            "freeze" => {
                // Before version 18, the server ignores it.
                if boolean(option)? && major >= 18 {
                    self.only_from = Some("FREEZE");
                }
            }
            "force_not_null" => self.only_from = Some("FORCE_NOT_NULL"),
            "force_null" => self.only_from = Some("FORCE_NULL"),
            "convert_selectively" => {}
            "default" if major >= 16 => {
                let message = "COPY DEFAULT cannot be used with COPY TO";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            "on_error" if major >= 17 => {
                return Err(invalid("COPY ON_ERROR cannot be used with COPY TO").at(at));
            }
            "log_verbosity" if major >= 17 => {}
            "reject_limit" if major >= 18 => {
                return Err(invalid("COPY REJECT_LIMIT requires ON_ERROR to be set to IGNORE"));
            }
            name => {
                return Err(syntax(format!("option \"{name}\" not recognized")).at(at));
            }
        }
        Ok(())
    }

    /// Checks the options together.
    fn check(self, major: u32) -> Result<CopyOptions, SqlError> {
        let format = self.format.unwrap_or_default();
        let (is_csv, is_binary) = (format == CopyFormat::Csv, format == CopyFormat::Binary);
        if is_binary && self.delimiter.is_some() {
            return Err(syntax("cannot specify DELIMITER in BINARY mode"));
        }
        if is_binary && self.null.is_some() {
            return Err(syntax("cannot specify NULL in BINARY mode"));
        }
        let mut options = CopyOptions::from(format);
        if let Some(delimiter) = &self.delimiter {
            options.delimiter = byte(delimiter, "delimiter")?;
        }
        if matches!(options.delimiter, b'\n' | b'\r') {
            return Err(invalid("COPY delimiter cannot be newline or carriage return"));
        }
        if let Some(null) = self.null {
            options.null = null;
        }
        if options.null.contains(['\n', '\r']) {
            return Err(invalid("COPY null representation cannot use newline or carriage return"));
        }
        let is_ambiguous = |byte: u8| matches!(byte, b'\\' | b'.' | b'a'..=b'z' | b'0'..=b'9');
        if !is_csv && is_ambiguous(options.delimiter) {
            let delimiter = char::from(options.delimiter);
            return Err(invalid(format!("COPY delimiter cannot be \"{delimiter}\"")));
        }
        if is_binary && self.header.is_some_and(|header| header) {
            return Err(refused("cannot specify HEADER in BINARY mode"));
        }
        options.header = self.header.unwrap_or(false);
        for (is_given, old, new) in [
            (self.quote.is_some(), "quote", "QUOTE"),
            (self.escape.is_some(), "escape", "ESCAPE"),
            (self.force_quote.is_some(), "force quote", "FORCE_QUOTE"),
        ] {
            if is_given && !is_csv {
                return Err(refused(match major {
                    18.. => format!("COPY {new} requires CSV mode"),
                    _ => format!("COPY {old} available only in CSV mode"),
                }));
            }
        }
        if let Some(quote) = &self.quote {
            options.quote = byte(quote, "quote")?;
        }
        if is_csv && options.delimiter == options.quote {
            return Err(invalid("COPY delimiter and quote must be different"));
        }
        options.escape = match &self.escape {
            Some(escape) => byte(escape, "escape")?,
            None => options.quote,
        };
        options.force_quote = self.force_quote.unwrap_or_default();
        options.encoding = self.encoding;
        if let Some(name) = self.only_from {
            return Err(only_from(name, major));
        }
        options.check_null(major)?;
        Ok(options)
    }
}

impl CopyOptions {
    fn check_null(&self, major: u32) -> Result<(), SqlError> {
        let code = match major {
            18.. => SqlState::INVALID_PARAMETER_VALUE,
            _ => SqlState::FEATURE_NOT_SUPPORTED,
        };
        if self.null.contains(char::from(self.delimiter)) {
            let what = if major >= 18 { "delimiter character" } else { "delimiter" };
            let message = format!("COPY {what} must not appear in the NULL specification");
            return Err(SqlError::new(code, message));
        }
        if self.format == CopyFormat::Csv && self.null.contains(char::from(self.quote)) {
            let message = "CSV quote character must not appear in the NULL specification";
            return Err(SqlError::new(code, message));
        }
        Ok(())
    }
}

fn only_from(name: &str, major: u32) -> SqlError {
    match major {
        18.. => invalid(format!("COPY {name} cannot be used with COPY TO")),
        _ => {
            let name = name.to_ascii_lowercase().replace('_', " ");
            refused(format!("COPY {name} only available using COPY FROM"))
        }
    }
}

fn syntax(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn refused(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

/// `defGetString`.
fn string(option: &CommandOption) -> Result<String, SqlError> {
    match &option.value {
        OptionValue::Word(text) | OptionValue::String(text) | OptionValue::Float(text) => {
            Ok(text.clone())
        }
        OptionValue::Integer(number) => Ok(number.to_string()),
        OptionValue::Star => Ok("*".to_owned()),
        _ => Err(syntax(format!("{} requires a parameter", option.name.text))),
    }
}

/// `defGetBoolean`.
fn boolean(option: &CommandOption) -> Result<bool, SqlError> {
    known_boolean(&option.value)
        .ok_or_else(|| syntax(format!("{} requires a Boolean value", option.name.text)))
}

fn known_boolean(value: &OptionValue) -> Option<bool> {
    match value {
        OptionValue::None | OptionValue::Integer(1) => Some(true),
        OptionValue::Integer(0) => Some(false),
        OptionValue::Word(text) | OptionValue::String(text) => match &*text.to_ascii_lowercase() {
            "true" | "on" => Some(true),
            "false" | "off" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

fn header(option: &CommandOption) -> Result<bool, SqlError> {
    if let Some(header) = known_boolean(&option.value) {
        return Ok(header);
    }
    match &option.value {
        OptionValue::Word(text) | OptionValue::String(text)
            if text.eq_ignore_ascii_case("match") =>
        {
            Err(refused("cannot use \"match\" with HEADER in COPY TO"))
        }
        _ => Err(syntax("header requires a Boolean value or \"match\"")),
    }
}

fn force_quote(option: &CommandOption) -> Result<ForceQuote, SqlError> {
    let wrong = || {
        let message = "argument to option \"force_quote\" must be a list of column names";
        invalid(message).at(option.span.start)
    };
    match &option.value {
        OptionValue::Star => Ok(ForceQuote::All),
        OptionValue::Names(names) => {
            Ok(ForceQuote::Columns(names.iter().map(|name| name.text.clone()).collect()))
        }
        OptionValue::List(values) => {
            let name = |value: &OptionValue| match value {
                OptionValue::Word(text) | OptionValue::String(text) => Some(text.clone()),
                _ => None,
            };
            let names: Option<Vec<String>> = values.iter().map(name).collect();
            names.map(ForceQuote::Columns).ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

/// A delimiter, quote or escape.
fn byte(text: &str, what: &str) -> Result<u8, SqlError> {
    match text.as_bytes() {
        [byte] => Ok(*byte),
        _ => Err(refused(format!("COPY {what} must be a single one-byte character"))),
    }
}
