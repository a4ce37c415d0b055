//! **Settings of sessions** (GUCs): definitions, values, and what a rollback undoes.
//!
//! ```text
//!   SET, RESET, SHOW, set_config() ── SettingsStore ──▶ search path, time zone, work_mem, …
//!                                        ├──▶ ParameterStatus: what clients are informed of
//!                                        └──▶ SettingRow: what pg_settings shows
//! ```

mod category;
mod definition;
mod listing;
mod live;
mod reload;
mod source;
mod store;
mod value;

pub(crate) use listing::{FileValues, SettingRow};
pub(crate) use live::{BOTH_BOUNDS, LIVE};
pub(crate) use source::Source;
pub(crate) use store::SESSION_IO;
pub(crate) use store::{SettingsStore, cannot_write};
pub(crate) use value::{identifiers, zone_shown_as};
