//! The name somebody may have meant.

/// Likeness below which nobody would call two names alike.
const LIKENESS_MIN: f64 = 0.4;
/// A name from outside may be a megabyte long; likeness is quadratic, so its beginning must do.
const COMPARED_MAX: usize = 60;

/// The known name most like `wanted`, the first of several: by the share of letters that need not
/// be changed, moved past their neighbour, added or left out (Damerau and Levenshtein); a name that
/// goes on where `wanted` ends is as good as one slip. Nothing if none is alike.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: String = wanted.chars().take(COMPARED_MAX).collect();
    let likeness = |name: &str| {
        let beginning: String = name.chars().take(COMPARED_MAX).collect();
        let alike = strsim::normalized_damerau_levenshtein(&wanted, &beginning);
        if wanted.len() > 1 && name.starts_with(&wanted) { alike.max(0.8) } else { alike }
    };
    let mut best: Option<(f64, &str)> = None;
    for name in known {
        let likeness = likeness(name);
        if likeness >= LIKENESS_MIN && best.is_none_or(|(most, _)| likeness > most) {
            best = Some((likeness, name));
        }
    }
    best.map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_forgiven_and_strangers_are_not_offered() {
        const NAMES: [&str; 5] = ["torus", "fat-tree", "lanes", "lft", "lmc"];
        let near = |wanted| nearest(wanted, NAMES);
        assert_eq!(near("tours"), Some("torus"));
        assert_eq!(near("lcm"), Some("lmc"));
        assert_eq!(near("fattree"), Some("fat-tree"));
        assert_eq!(near("fat"), Some("fat-tree"));
        assert_eq!(near("qqqq"), None);
        assert_eq!(near(&"x".repeat(1 << 20)), None);
        assert_eq!(nearest("a", []), None);
    }
}
