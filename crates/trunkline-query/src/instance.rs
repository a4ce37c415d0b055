//! **The instance**: what all sessions share.
//!
//! ```text
//!   Instance ── Engine, Cluster
//!       ├── OpenedDatabase: catalogs, opened once and kept
//!       ├── InstanceSettings: values of ALTER SYSTEM and of the command line
//!       └── ActivityRegistry: what every session does now
//! ```

mod activity;
mod database;
mod shared;

pub(crate) use activity::ActivityEntry;
pub use activity::{Activity, ActivityState};
pub use database::{DatabaseViews, OpenedDatabase};
pub use shared::{Instance, InstanceOptions};
