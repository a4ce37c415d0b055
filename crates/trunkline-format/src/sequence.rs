//! A sequence's page: its last value and whether it was handed out.
//!
//! One row, read without regard to visibility.
