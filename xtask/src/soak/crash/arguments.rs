//! Arguments and environment of the soaks that compare us with servers.

use std::path::PathBuf;

use crate::failure::Failure;
use crate::tree::Checkout;

/// The first argument if it is a number, and the others.
pub(in crate::soak) fn number_and_bins<'a>(
    args: &'a [&'a str],
    default: u64,
) -> Option<(u64, &'a [&'a str])> {
    let (first, rest) = args.split_first()?;
    let (number, bins) = match first.parse() {
        Ok(number) => (number, rest),
        Err(_) => (default, args),
    };
    (!bins.is_empty()).then_some((number, bins))
}

/// Runs a test with each of the servers, which have seeds of their own from `TRUNKLINE_SEED` on. The test returns
/// what it has compared, and whether that differs. Returns the texts of all servers.
pub(super) fn each_server(
    bins: &[&str],
    test: impl Fn(&str, u64) -> Result<(String, bool), Failure>,
) -> Result<String, Failure> {
    let first = std::env::var("TRUNKLINE_SEED").ok().and_then(|text| text.parse().ok());
    let (mut summary, mut has_failed) = (Vec::new(), false);
    for (bin, seed) in bins.iter().zip(first.unwrap_or(1)..) {
        // After a failure, another server may still be able to run.
        let (text, is_different) = test(bin, seed)
            .unwrap_or_else(|failure| (format!("{bin}, seed {seed}: {failure}"), true));
        has_failed |= is_different;
        println!("{text}");
        summary.push(text);
    }
    let summary = summary.join("; ");
    if has_failed { Err(Failure::new(summary)) } else { Ok(summary) }
}

/// The program that is tested.
pub(super) fn program(checkout: &Checkout) -> Result<PathBuf, Failure> {
    if let Some(program) = std::env::var_os("TRUNKLINE_PROGRAM") {
        return Ok(PathBuf::from(program));
    }
    checkout.cargo("build --release -p trunkline").run()?;
    Ok(checkout.target.join("release/trunkline"))
}
