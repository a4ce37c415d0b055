//! What can be wrong with a setting, in PostgreSQL's words, so that its users and their searches
//! find them.
//!
//! The text is the error proper; PostgreSQL's `DETAIL` and `HINT` lines come from
//! [`SettingError::hint`].

use std::fmt;

use super::definitions::Unit;
use super::number::show_real;

/// Why a setting was not changed.
#[derive(Debug, Clone, PartialEq)]
pub enum SettingError {
    /// No setting has this name.
    Unknown {
        /// As written.
        name: String,
    },
    /// `-c name` without `=value`.
    NoValue {
        /// As written.
        name: String,
    },
    /// Not a number, or not one of the units that fit.
    Invalid {
        /// The setting.
        name: &'static str,
        /// As written.
        value: String,
        /// PostgreSQL's hint, where it has one.
        hint: Option<&'static str>,
    },
    /// A number outside the bounds.
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
    /// A real number outside the bounds.
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
    /// Zero where only -1 and positive numbers mean something.
    OnlyAutoOrPositive {
        /// The setting.
        name: &'static str,
    },
    /// Neither on nor off.
    NotBoolean {
        /// The setting.
        name: &'static str,
    },
    /// Not one of the words of a choice.
    NotAChoice {
        /// The setting.
        name: &'static str,
        /// As written.
        value: String,
        /// The words.
        words: &'static [&'static str],
    },
    /// A list with an empty element, an open quote or words without a comma.
    ListSyntax {
        /// The setting.
        name: &'static str,
        /// As written.
        value: String,
    },
    /// A list with a word that nobody knows.
    NotInList {
        /// The setting.
        name: &'static str,
        /// The list as written.
        value: String,
        /// The word.
        word: String,
        /// The words that would do.
        words: &'static [&'static str],
    },
    /// A word that PostgreSQL knows and that would have no effect here.
    NotYet {
        /// The setting.
        name: &'static str,
        /// The word.
        word: &'static str,
    },
}

impl SettingError {
    /// What PostgreSQL would print as detail or hint: what to write instead.
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

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingError::Unknown { name } => {
                write!(f, "unrecognized configuration parameter \"{name}\"")
            }
            SettingError::NoValue { name } => write!(f, "-c {name} requires a value"),
            SettingError::Invalid { name, value, .. }
            | SettingError::NotAChoice { name, value, .. }
            | SettingError::ListSyntax { name, value }
            | SettingError::NotInList { name, value, .. } => {
                write!(f, "invalid value for parameter \"{name}\": \"{value}\"")
            }
            SettingError::OnlyAutoOrPositive { name } => {
                write!(f, "invalid value for parameter \"{name}\": 0")
            }
            SettingError::NotBoolean { name } => {
                write!(f, "parameter \"{name}\" requires a Boolean value")
            }
            SettingError::OutOfRange { name, number, unit, min, max } => {
                let unit = match unit {
                    Unit::None => "",
                    Unit::Blocks => " 8kB",
                    Unit::Milliseconds => " ms",
                    Unit::Seconds => " s",
                };
                write!(
                    f,
                    "{number}{unit} is outside the valid range for parameter \"{name}\" \
                     ({min} .. {max})"
                )
            }
            SettingError::RealOutOfRange { name, number, min, max } => {
                let [number, min, max] = [number, min, max].map(|value| show_real(*value));
                write!(
                    f,
                    "{number} is outside the valid range for parameter \"{name}\" ({min} .. {max})"
                )
            }
            SettingError::NotYet { name, word } => {
                write!(f, "\"{word}\" is not supported yet in parameter \"{name}\"")
            }
        }
    }
}

impl std::error::Error for SettingError {}
