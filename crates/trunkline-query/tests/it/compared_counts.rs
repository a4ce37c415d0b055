//! What a test has compared, as counts in a line that `cargo xtask soak access-paths` collects. A test that
//! passes could have compared nothing; the counts in the soak's record show what it did.

/// Prints the counts, each with its noun, under the name of a kind of comparison.
pub(crate) fn print_counts(what: &str, counts: &[(usize, &str)]) {
    let counts: Vec<String> = counts.iter().map(|(count, of)| format!("{count} {of}")).collect();
    println!("compared {what}: {}", counts.join(", "));
}
