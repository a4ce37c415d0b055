//! Runs `trunkline query`.
