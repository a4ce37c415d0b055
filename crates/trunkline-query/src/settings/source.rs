//! Where the value of a setting comes from (`GucSource`).

/// Where a value comes from, from the weakest to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// It comes with the program.
    Default,
    /// The directory says so.
    Override,
    /// The file of ALTER SYSTEM.
    ConfigurationFile,
    /// The command line.
    CommandLine,
    /// `ALTER DATABASE … SET` or `ALTER ROLE ALL SET`.
    Database,
    /// The parameters of the connection.
    Client,
    /// `SET`.
    Session,
}

impl Source {
    /// The word in `pg_settings.source`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Override => "override",
            Self::ConfigurationFile => "configuration file",
            Self::CommandLine => "command line",
            Self::Database => "database",
            Self::Client => "client",
            Self::Session => "session",
        }
    }
}
