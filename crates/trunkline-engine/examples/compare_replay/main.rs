//! Compares every page of a crashed directory, as it is read through its log, with the page that a server
//! has after it has recovered a copy of the directory.
//!
//! `cargo run -p trunkline-engine --example compare_replay CRASHED RECOVERED SCRATCH`
//!
//! The server must be shut down right after its recovery. Sessions set hint bits and prune pages, so no
//! session may have read anything. A difference ends the program with exit code 1.

mod pages;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [crashed, recovered, scratch] = &arguments[..] else {
        return Err("expected CRASHED RECOVERED SCRATCH".into());
    };
    let compared = pages::compare(Path::new(crashed), Path::new(recovered), Path::new(scratch))?;
    println!("{compared}");
    for note in &compared.notes {
        println!("note: {note}");
    }
    for difference in &compared.differences {
        println!("{difference}");
    }
    Ok(if compared.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
