//! The fate of transactions in a cluster: commit log and multixacts.
//!
//! Read from the cluster's files when a row's hint bits do not tell.
