//! Rows as `COPY … TO STDOUT` prints them.
//!
//! Text and CSV, in physical order.
