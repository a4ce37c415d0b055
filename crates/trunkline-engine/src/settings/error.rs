//! Errors about settings. We use PostgreSQL's texts, so that searching for a message finds an
//! answer.
//!
//! The text is PostgreSQL's error message. Its `DETAIL` and `HINT` lines come from
//! [`SettingError::hint`].

use super::definitions::Unit;
use super::number::show_real;

/// Why a setting was not changed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SettingError {
    /// No setting has this name.
    #[error("unrecognized configuration parameter \"{name}\"")]
    Unknown {
        /// The name as written.
        name: String,
    },
    /// `-c name` without `=value`.
    #[error("-c {name} requires a value")]
    NoValue {
        /// The name as written.
        name: String,
    },
    /// Not a number, or followed by an invalid unit.
    #[error("invalid value for parameter \"{name}\": \"{value}\"")]
    Invalid {
        /// The setting.
        name: &'static str,
        /// As written.
        value: String,
        /// PostgreSQL's hint, if any.
        hint: Option<&'static str>,
    },
    /// An out-of-range integer.
    #[error(
        "{number}{} is outside the valid range for parameter \"{name}\" ({min} .. {max})",
        unit_suffix(*unit)
    )]
    OutOfRange {
        /// The setting.
        name: &'static str,
        /// The number after conversion to the setting's unit.
        number: i32,
        /// The setting's unit.
        unit: Unit,
        /// Smallest value.
        min: i32,
        /// Largest value.
        max: i32,
    },
    /// An out-of-range floating-point number.
    #[error(
        "{} is outside the valid range for parameter \"{name}\" ({} .. {})",
        show_real(*number),
        show_real(*min),
        show_real(*max)
    )]
    RealOutOfRange {
        /// The setting.
        name: &'static str,
        /// The number.
        number: f64,
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// Zero, for a setting that accepts only -1 and positive numbers.
    #[error("invalid value for parameter \"{name}\": 0")]
    OnlyAutoOrPositive {
        /// The setting.
        name: &'static str,
    },
    /// Not a Boolean value.
    #[error("parameter \"{name}\" requires a Boolean value")]
    NotBoolean {
        /// The setting.
        name: &'static str,
    },
    /// Not one of the valid words.
    #[error("invalid value for parameter \"{name}\": \"{value}\"")]
    NotAChoice {
        /// The setting.
        name: &'static str,
        /// As written.
        value: String,
        /// The words.
        words: &'static [&'static str],
    },
    /// A list with an empty element, an unterminated quote or a missing comma.
    #[error("invalid value for parameter \"{name}\": \"{value}\"")]
    ListSyntax {
        /// The setting.
        name: &'static str,
        /// As written.
        value: String,
    },
    /// A list with an unknown word.
    #[error("invalid value for parameter \"{name}\": \"{value}\"")]
    NotInList {
        /// The setting.
        name: &'static str,
        /// The list as written.
        value: String,
        /// The word.
        word: String,
        /// The valid words.
        words: &'static [&'static str],
    },
    /// A word PostgreSQL accepts but that would have no effect here.
    #[error("\"{word}\" is not supported yet in parameter \"{name}\"")]
    NotYet {
        /// The setting.
        name: &'static str,
        /// The word.
        word: &'static str,
    },
}

impl SettingError {
    /// PostgreSQL's detail or hint: what to write instead.
    pub fn hint(&self) -> Option<String> {
        match self {
            SettingError::Invalid { hint, .. } => hint.map(str::to_owned),
            SettingError::OnlyAutoOrPositive { .. } => {
                Some("Only -1 or values bigger than 0 are valid.".to_owned())
            }
            SettingError::NotAChoice { words, .. } => {
                Some(format!("Available values: {}.", words.join(", ")))
            }
            SettingError::ListSyntax { name, .. } => {
                Some(format!("Invalid list syntax in parameter \"{name}\"."))
            }
            SettingError::NotInList { word, words, .. } => {
                Some(format!("Invalid option \"{word}\". Available values: {}.", words.join(", ")))
            }
            SettingError::NotYet { .. } => {
                Some("Only \"data\" has an effect: no log is written yet.".to_owned())
            }
            SettingError::NoValue { .. } => {
                Some("Write it as name=value, for example io_combine_limit=256kB.".to_owned())
            }
            SettingError::Unknown { .. }
            | SettingError::OutOfRange { .. }
            | SettingError::RealOutOfRange { .. }
            | SettingError::NotBoolean { .. } => None,
        }
    }
}

/// The unit as it appears in PostgreSQL's out-of-range message.
fn unit_suffix(unit: Unit) -> &'static str {
    match unit {
        Unit::None => "",
        Unit::Blocks => " 8kB",
        Unit::Milliseconds => " ms",
        Unit::Seconds => " s",
    }
}
