//! The major releases that we support, and the numbers by which files name them.

use std::fmt;

/// A major release that we support.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PgVersion {
    /// PostgreSQL 15.
    V15,
    /// PostgreSQL 16.
    V16,
    /// PostgreSQL 17.
    V17,
    /// PostgreSQL 18.
    V18,
    /// PostgreSQL 19, as of its first release candidate.
    V19,
}

impl PgVersion {
    /// All supported releases, oldest first.
    pub const ALL: [Self; 5] = [Self::V15, Self::V16, Self::V17, Self::V18, Self::V19];

    /// The major version, `PG_CONTROL_VERSION` and `CATALOG_VERSION_NO`.
    fn numbers(self) -> (u32, u32, u32) {
        match self {
            Self::V15 => (15, 1300, 202_209_061),
            Self::V16 => (16, 1300, 202_307_071),
            Self::V17 => (17, 1700, 202_406_281),
            Self::V18 => (18, 1800, 202_506_291),
            Self::V19 => (19, 1905, 202_610_061),
        }
    }

    /// The major version: 15 to 19.
    pub fn major(self) -> u32 {
        self.numbers().0
    }

    /// `PG_CONTROL_VERSION`: the layout version of the control file.
    pub fn control_version(self) -> u32 {
        self.numbers().1
    }

    /// `CATALOG_VERSION_NO`. Betas and release candidates have different catalog versions.
    pub fn catalog_version(self) -> u32 {
        self.numbers().2
    }

    pub(super) fn find(control: u32, catalog: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|version| {
            version.control_version() == control && version.catalog_version() == catalog
        })
    }
}

/// Prints `PostgreSQL 18`, for example.
impl fmt::Display for PgVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgreSQL {}", self.major())
    }
}
