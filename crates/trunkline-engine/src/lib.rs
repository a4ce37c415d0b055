//! trunkline's storage engine: relations, and later pool, streams, log and recovery, on top of the
//! I/O core.
//!
//! `trunkline-aio` knows file descriptors and memory, `trunkline-format` knows PostgreSQL's bytes;
//! this crate joins the two. Its modules, in reading order:
//!
//! - [`settings`]: what a user may tune, under PostgreSQL's names and with its units and messages;
//! - [`datadir`]: opening a PostgreSQL data directory read-only, refusing what is not safe to read,
//!   and listing every relation file in it;
//! - [`storage`]: relations as forks of segments, and the table of open files;
//! - [`scan`]: reading many files whole, in any order, through a small window of pages;
//! - [`verify`]: checking every page of a directory;
//! - [`prewarm`]: reading files into the operating system's cache;
//! - [`sample`]: relation files with valid pages, for demonstrations.
//!
//! Nothing in this crate ever writes into a PostgreSQL data directory.
#![forbid(unsafe_code)]

pub mod settings;

pub mod datadir;

pub mod storage;

pub mod scan;

pub mod verify;

pub mod prewarm;

pub mod sample;
