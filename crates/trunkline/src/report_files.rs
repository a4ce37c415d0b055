//! **Report files**: what a long measurement writes at its end.
//!
//! They are created before the measurement, as `NAME.partial`, so that a directory that is missing or
//! read-only is noticed before hours are spent. They get their names when they are complete.

use std::path::PathBuf;

use trunkline_engine::copy::{Output, Outputs};

use crate::copy::outputs::Files;
use crate::data_dir::resolve_link;
use crate::exit::Failure;

/// The files of one run, each with its format. Those that are dropped without
/// [`ReportFiles::write`] are removed.
pub(crate) struct ReportFiles<F>(Vec<(F, Box<dyn Output>)>);

impl<F: Copy> ReportFiles<F> {
    /// Creates the files. Pipes and devices are opened.
    pub(crate) fn create(
        files: impl IntoIterator<Item = (F, PathBuf)>,
    ) -> Result<ReportFiles<F>, Failure> {
        let files = files.into_iter().map(|(format, path)| (format, resolve_link(&path)));
        let (formats, paths): (Vec<F>, Vec<PathBuf>) = files.unzip();
        let files = Files(paths);
        let create = |(task, format)| Ok((format, files.open(task).map_err(Failure::cannot_run)?));
        let outputs = formats.into_iter().enumerate().map(create);
        Ok(ReportFiles(outputs.collect::<Result<_, Failure>>()?))
    }

    /// Writes the text of each format to its file, and returns the first error.
    pub(crate) fn write(self, text: impl Fn(F) -> Result<String, Failure>) -> Result<(), Failure> {
        let mut result = Ok(());
        for (format, output) in self.0 {
            let written = text(format).and_then(|text| write(output, &text));
            result = result.and(written);
        }
        result
    }
}

fn write(mut output: Box<dyn Output>, text: &str) -> Result<(), Failure> {
    let written = output.write(text.as_bytes()).and_then(|()| output.sync());
    written.and_then(|()| output.finish(true)).map_err(Failure::cannot_run)
}
