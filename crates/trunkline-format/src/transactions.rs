//! Transaction ids, the commit log and multixacts: what decides whether a row version is visible.
//!
//! Addresses and bits only; who reads the files is the engine.
