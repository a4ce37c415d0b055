//! `sync`: the issuing session executes each I/O itself, inline and in order.
//!
//! The method doesn't take anything from the batch, so the session executes all of it. Under
//! `sync`, read-ahead is only advice to the kernel ([`crate::Session::advise`]).

use super::{Batch, Method};
use crate::completion::in_flight::InFlight;
use std::sync::Arc;

/// The method `sync`.
#[derive(Debug)]
pub(crate) struct Inline;

impl Method for Inline {
    fn submit(&self, _in_flight: &Arc<InFlight>, _batch: &mut Batch<'_>) {}
}
