//! How values that came from outside are shown in an error: quoted, short, on one line.

use clearlane_ib::quoted;

/// A description from a file without outer blanks and control characters.
pub(crate) fn clean(name: &str) -> String {
    name.trim().chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// The known name that resembles `wanted` most, as the end of a sentence: `; did you mean "…"?`.
/// Empty where nothing resembles it.
pub(crate) fn nearest<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> String {
    let near = clearlane_ib::nearest(wanted, known);
    near.map(|name| format!("; did you mean {}?", quoted(name))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_offered_or_none() {
        let known = || ["torus", "mesh", "star"].into_iter();
        assert_eq!(nearest("tours", known()), r#"; did you mean "torus"?"#);
        assert_eq!(nearest("qqq", known()), "");
    }
}
