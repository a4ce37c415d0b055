//! **Child process**: a program to run, which can also be printed as a shell command, so that the
//! developer can repeat it. xtask starts all its child processes through this module, so it can
//! show the command whenever one of them fails.

use std::ffi::OsString;
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::Failure;

/// A program with its arguments, additional environment variables and working directory.
#[derive(Debug, Clone)]
pub(crate) struct Invocation {
    program: String,
    args: Vec<String>,
    env: Vec<(String, OsString)>,
    dir: PathBuf,
}

/// The result of a run with captured output.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Exit code; `None` if the program was killed by a signal.
    pub(crate) code: Option<i32>,
    /// Standard output, followed by standard error.
    pub(crate) text: String,
}

impl Outcome {
    /// Did the program end with code 0?
    pub(crate) fn success(&self) -> bool {
        self.code == Some(0)
    }
}

impl Invocation {
    /// `program` with whitespace-separated `args`, run in `dir`.
    pub(crate) fn new(dir: &Path, program: &str, args: &str) -> Self {
        Self {
            program: program.to_owned(),
            args: args.split_whitespace().map(str::to_owned).collect(),
            env: Vec::new(),
            dir: dir.to_owned(),
        }
    }

    /// Adds an argument, which may contain spaces.
    pub(crate) fn arg(mut self, arg: impl AsRef<Path>) -> Self {
        self.args.push(arg.as_ref().display().to_string());
        self
    }

    /// Sets an environment variable, which is also part of the printed command.
    pub(crate) fn env(mut self, key: &str, value: impl Into<OsString>) -> Self {
        self.env.push((key.to_owned(), value.into()));
        self
    }

    /// Runs the program under `timeout`, which terminates the whole process group after `seconds`.
    /// The exit code is 124 in that case, or 137 if `timeout` had to send SIGKILL.
    pub(crate) fn within(mut self, seconds: u64) -> Self {
        let mut args = vec!["--kill-after=10".to_owned(), seconds.to_string(), self.program];
        args.append(&mut self.args);
        Self { program: "timeout".to_owned(), args, ..self }
    }

    /// Runs with inherited output streams; fails unless the exit code is 0.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let status = self.command().status().map_err(|error| Failure::io(self, error))?;
        if status.success() { Ok(()) } else { Err(Failure::new(format!("{self}: {status}"))) }
    }

    /// Runs the program and prints only those lines of its standard output for which `show` returns
    /// true. Returns the exit code, or `None` if a signal killed the program.
    pub(crate) fn tee(&self, mut show: impl FnMut(&str) -> bool) -> Result<Option<i32>, Failure> {
        let fail = |error| Failure::io(self, error);
        let mut child = self.command().stdout(Stdio::piped()).spawn().map_err(fail)?;
        if let Some(stdout) = child.stdout.take() {
            let mut reader = BufReader::new(stdout);
            let mut line = Vec::new();
            // Read bytes, because tests may print invalid UTF-8.
            while reader.read_until(b'\n', &mut line).map_err(fail)? > 0 {
                let text = String::from_utf8_lossy(&line);
                if show(&text) {
                    print!("{text}");
                }
                line.clear();
            }
            std::io::stdout().flush().map_err(fail)?;
        }
        Ok(child.wait().map_err(fail)?.code())
    }

    /// Runs without echoing, and returns both output streams.
    pub(crate) fn capture(&self) -> Result<Outcome, Failure> {
        let output = self
            .command()
            .stdin(Stdio::null())
            .output()
            .map_err(|error| Failure::io(self, error))?;
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        Ok(Outcome { code: output.status.code(), text })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).current_dir(&self.dir);
        for (key, value) in &self.env {
            command.env(key, value);
        }
        command
    }
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, value) in &self.env {
            write!(f, "{key}={} ", quoted(&value.to_string_lossy()))?;
        }
        f.write_str(&quoted(&self.program))?;
        self.args.iter().try_for_each(|arg| write!(f, " {}", quoted(arg)))
    }
}

/// Quotes a word for the shell, if necessary.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,@+*".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Invocation {
        Invocation::new(Path::new("/"), "sh", "-c").arg(script)
    }

    #[test]
    fn prints_a_line_that_can_be_typed() {
        let line =
            Invocation::new(Path::new("/"), "cargo", "test -p x").env("RUSTFLAGS", "--cfg loom");
        assert_eq!(line.to_string(), "RUSTFLAGS='--cfg loom' cargo test -p x");
        assert_eq!(shell("it's").to_string(), r"sh -c 'it'\''s'");
    }

    #[test]
    fn keeps_code_and_both_streams() {
        let outcome = shell("echo out; echo err >&2; exit 3").capture().unwrap();
        assert_eq!((outcome.code, outcome.text.as_str()), (Some(3), "out\nerr\n"));
        assert!(!outcome.success());
    }

    #[test]
    fn failure_names_the_command() {
        let text = shell("exit 7").run().unwrap_err().to_string();
        assert!(text.starts_with("sh -c 'exit 7': "), "{text}");
    }

    #[test]
    fn timeout_ends_what_hangs() {
        let outcome = shell("while :; do :; done").within(1).capture().unwrap();
        assert_eq!(outcome.code, Some(124));
    }

    #[test]
    fn tee_survives_bytes_that_are_no_text() {
        let mut lines = Vec::new();
        let script = shell(r"printf 'a\377\nb'; exit 2");
        let code = script.tee(|line| {
            lines.push(line.to_owned());
            false
        });
        assert_eq!(code.unwrap(), Some(2));
        assert_eq!(lines, ["a\u{fffd}\n", "b"]);
    }
}
