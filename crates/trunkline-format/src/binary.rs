//! **Binary format**: values as clients send and receive them, and as `COPY … (FORMAT binary)` writes
//! them.
//!
//! ```text
//!   stored value ── write_binary ──▶ binary format        as the type's send function
//!   binary format ── read_binary ──▶ stored value         as its receive function
//! ```
//! Numbers are big-endian here, and little-endian in storage. For example, the `int4` 1 is stored as
//! `01 00 00 00` and sent as `00 00 00 01`. Types that have no send function, such as `aclitem`, are
//! refused by name.

mod message;
mod receive;
mod receive_compound;
mod send;
mod send_compound;

#[cfg(test)]
mod tests;

pub use receive_compound::read_binary;
pub use send::SendError;
pub use send_compound::write_binary;
