//! The options of `EXPLAIN`. Checks and messages are those of PostgreSQL's `ParseExplainOptionList`.

use trunkline_sql::syntax::{CommandOption, OptionValue};
use trunkline_sql::{SqlError, SqlState};

/// `FORMAT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ExplainFormat {
    /// Lines.
    #[default]
    Text,
    /// One JSON document.
    Json,
}

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ExplainOptions {
    /// The query is executed.
    pub(crate) analyze: bool,
    /// Output columns, schemas and workers.
    pub(crate) verbose: bool,
    /// The costs of each scan, and of the other ways to its rows.
    pub(crate) alternatives: bool,
    /// Estimates.
    pub(crate) costs: bool,
    /// Settings that aren't the defaults.
    pub(crate) settings: bool,
    /// Pages.
    pub(crate) buffers: bool,
    /// Reads.
    pub(crate) io: bool,
    /// The time of each node.
    pub(crate) timing: bool,
    /// The time of planning and of execution.
    pub(crate) summary: bool,
    pub(crate) format: ExplainFormat,
}

impl ExplainOptions {
    /// Reads and checks the options of a statement.
    ///
    /// # Errors
    /// Those of the server. 0A000 for options that we don't have.
    pub(crate) fn read(options: &[CommandOption]) -> Result<Self, SqlError> {
        let mut read = Self::default();
        let (mut buffers, mut timing, mut summary) = (None, None, None);
        let mut needs_analyze = None;
        for option in options {
            let at = option.span.start;
            match &*option.name.text {
                "analyze" => read.analyze = boolean(option)?,
                "verbose" => read.verbose = boolean(option)?,
                "alternatives" => read.alternatives = boolean(option)?,
                "costs" => read.costs = boolean(option)?,
                "settings" => read.settings = boolean(option)?,
                "buffers" => buffers = Some(boolean(option)?),
                "io" => read.io = boolean(option)?,
                "timing" => timing = Some(boolean(option)?),
                "summary" => summary = Some(boolean(option)?),
                "format" => read.format = format(option)?,
                name @ ("wal" | "serialize") => {
                    let wanted = match name {
                        "wal" => boolean(option)?,
                        _ => !matches!(word(option).as_deref(), Some("none")),
                    };
                    if wanted {
                        needs_analyze = Some(name);
                    }
                }
                name @ ("generic_plan" | "memory") if boolean(option)? => {
                    return Err(unsupported(name).at(at));
                }
                "generic_plan" | "memory" => {}
                name => {
                    let message = format!("unrecognized EXPLAIN option \"{name}\"");
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(at));
                }
            }
        }
        if let Some(name) = needs_analyze {
            return Err(if read.analyze { unsupported(name) } else { requires_analyze(name) });
        }
        read.buffers = buffers.unwrap_or(read.analyze);
        read.timing = timing.unwrap_or(read.analyze);
        read.summary = summary.unwrap_or(read.analyze);
        if read.timing && !read.analyze {
            return Err(requires_analyze("timing"));
        }
        if read.io && !read.analyze {
            return Err(requires_analyze("io"));
        }
        Ok(read)
    }
}

fn unsupported(name: &str) -> SqlError {
    let name = name.to_ascii_uppercase();
    SqlError::unsupported(format!("EXPLAIN option {name} is not supported by trunkline"))
}

fn requires_analyze(name: &str) -> SqlError {
    let message = format!("EXPLAIN option {} requires ANALYZE", name.to_ascii_uppercase());
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// The value of an option as a word.
fn word(option: &CommandOption) -> Option<String> {
    match &option.value {
        OptionValue::Word(text) | OptionValue::String(text) => Some(text.clone()),
        OptionValue::Integer(number) => Some(number.to_string()),
        OptionValue::Float(text) => Some(text.clone()),
        _ => None,
    }
}

fn format(option: &CommandOption) -> Result<ExplainFormat, SqlError> {
    let at = option.span.start;
    let Some(name) = word(option) else {
        let message = "format requires a parameter";
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
    };
    match &*name {
        "text" => Ok(ExplainFormat::Text),
        "json" => Ok(ExplainFormat::Json),
        "xml" | "yaml" => {
            let name = name.to_ascii_uppercase();
            let message = format!("EXPLAIN (FORMAT {name}) is not supported by trunkline");
            Err(SqlError::unsupported(message).at(at))
        }
        _ => {
            let message = format!("unrecognized value for EXPLAIN option \"format\": \"{name}\"");
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message).at(at))
        }
    }
}

/// The value of an option that is on or off. Without a value it is on.
fn boolean(option: &CommandOption) -> Result<bool, SqlError> {
    let value = match &option.value {
        OptionValue::None => Some(true),
        OptionValue::Integer(0) => Some(false),
        OptionValue::Integer(1) => Some(true),
        _ => match word(option).map(|word| word.to_ascii_lowercase()).as_deref() {
            Some("true" | "on") => Some(true),
            Some("false" | "off") => Some(false),
            _ => None,
        },
    };
    value.ok_or_else(|| {
        let message = format!("{} requires a Boolean value", option.name.text);
        SqlError::new(SqlState::SYNTAX_ERROR, message)
    })
}
