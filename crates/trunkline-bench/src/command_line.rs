//! Command lines as they are stored with results.

/// A command line, with the option's name in place of an absolute path, which would mean nothing on
/// another machine: `--lag-dir LAG-DIR`.
pub(crate) fn without_paths(mut arguments: impl Iterator<Item = String>) -> String {
    let mut words: Vec<String> = arguments.next().into_iter().collect();
    for argument in arguments {
        let (option, value) = match argument.split_once('=') {
            Some((option, value)) => (option, value),
            None => (words.last().map_or("", String::as_str), argument.as_str()),
        };
        let word = if value.starts_with('/') {
            let name = option.trim_start_matches('-').to_uppercase();
            argument.replace(value, &name)
        } else {
            argument
        };
        words.push(word);
    }
    words.join(" ")
}
