//! **The instance**: what all sessions share.
//!
//! ```text
//!   Instance ── Engine, Cluster
//!       ├── OpenedDatabase: catalogs, opened once and kept
//!       ├── configuration: the file of ALTER SYSTEM, and what it changes in the running engine
//!       ├── TimeLimits: a thread that cancels statements whose time is over
//!       └── ActivityRegistry: what every session does now
//! ```

mod activity;
mod configuration;
mod database;
mod live;
mod shared;
mod time_limits;

pub use activity::{Activity, ActivityState, SessionWait};
pub(crate) use activity::{ActivityEntry, Interrupts};
pub use configuration::configure_engine;
pub use database::{DatabaseViews, OpenedDatabase};
pub use shared::{Instance, InstanceOptions};
pub(crate) use time_limits::{TimeLimit, TimeLimits};
