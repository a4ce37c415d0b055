//! Errors about settings. We use PostgreSQL's wording, so that users can find help by searching for
//! the message.
//!
//! The text is PostgreSQL's error message. Its `DETAIL` and `HINT` lines come from
//! [`SettingError::hint`].

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
    /// The value is not a number, is a number followed by an invalid unit, is not one of the valid
    /// words, or is a list that contains an invalid word.
    #[error("invalid value for parameter \"{name}\": \"{value}\"")]
    Invalid {
        /// The setting.
        name: &'static str,
        /// As written.
        value: String,
        /// PostgreSQL's detail or hint, if any.
        hint: Option<String>,
    },
    /// An out-of-range number.
    #[error("{number} is outside the valid range for parameter \"{name}\" ({min} .. {max})")]
    OutOfRange {
        /// The setting.
        name: &'static str,
        /// The number, converted to the setting's unit, with that unit.
        number: String,
        /// Smallest value.
        min: String,
        /// Largest value.
        max: String,
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
        let hint = match self {
            SettingError::Invalid { hint, .. } => return hint.clone(),
            SettingError::OnlyAutoOrPositive { .. } => "Only -1 or values bigger than 0 are valid.",
            SettingError::NotYet { .. } => "The only supported value is \"data\".",
            SettingError::NoValue { .. } => {
                "Write it as name=value, for example io_combine_limit=256kB."
            }
            SettingError::Unknown { .. }
            | SettingError::OutOfRange { .. }
            | SettingError::NotBoolean { .. } => return None,
        };
        Some(hint.to_owned())
    }
}
