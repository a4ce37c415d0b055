//! `sync`: the issuing session executes each I/O itself, inline and in order.
//!
//! The method takes nothing from the batch, and the session executes what is left. Read-ahead under
//! `sync` is advice to the kernel ([`crate::Session::advise`]).

use super::{Batch, Method};
use crate::completion::in_flight::InFlight;
use std::sync::Arc;

/// The method `sync`.
#[derive(Debug)]
pub(crate) struct Inline;

impl Method for Inline {
    fn submit(&self, _in_flight: &Arc<InFlight>, _batch: &mut Batch<'_>) {}
}
