//! Source files and how long their functions are.

use super::tree;

/// A text file in one of the languages we write.
pub struct Source {
    /// From the repository's root.
    pub path: String,
    /// What is in it.
    pub text: String,
    language: Language,
}

#[derive(Clone, Copy, PartialEq)]
enum Language {
    Rust,
    Python,
    TypeScript,
    Shell,
}

/// All sources of the repository, scripts without an ending included.
pub fn all() -> Vec<Source> {
    let sources: Vec<_> = tree::files().into_iter().filter_map(read).collect();
    for language in [Language::Rust, Language::Python, Language::Shell] {
        assert!(sources.iter().any(|s| s.language == language), "a language has no sources at all");
    }
    sources
}

fn read(path: String) -> Option<Source> {
    let name = path.rsplit('/').next()?;
    let language = match name.rsplit_once('.') {
        Some((_, "rs")) => Some(Language::Rust),
        Some((_, "py")) => Some(Language::Python),
        Some((_, "ts")) => Some(Language::TypeScript),
        Some((_, "sh")) => Some(Language::Shell),
        Some((stem, _)) if !stem.is_empty() => return None,
        _ => None,
    };
    let text = String::from_utf8(std::fs::read(tree::root().join(&path)).ok()?).ok()?;
    let language = language.or_else(|| {
        let first = text.lines().next()?;
        let interpreter = first.strip_prefix("#!")?;
        let python = interpreter.contains("python").then_some(Language::Python);
        python.or(interpreter.ends_with("sh").then_some(Language::Shell))
    })?;
    Some(Source { path, text, language })
}

impl Source {
    /// Name, first line and length in lines of every function, from its signature to its end.
    pub fn functions(&self) -> Vec<(String, usize, usize)> {
        match self.language {
            Language::Rust => rust_functions(&self.text),
            Language::Python => python_functions(&self.text),
            Language::TypeScript | Language::Shell => Vec::new(),
        }
    }
}

/// What comes before the tests, which are last in a file.
pub fn before_tests(code: &str) -> &str {
    code.find("#[cfg(test)]\nmod ").map_or(code, |at| &code[..at])
}

/// Rust with comments and the insides of literals replaced by blanks, line by line the same length.
pub fn blank_rust(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = literal_end(&chars, at);
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            let blank = |c: &char| if *c == '\n' { '\n' } else { ' ' };
            out.extend(chars[at..end].iter().map(blank));
            at = end;
        }
    }
    out
}

/// Where the comment or literal that starts at `at` ends; `at` if none starts there.
fn literal_end(chars: &[char], at: usize) -> usize {
    let rest = &chars[at..];
    let after_word = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    match rest {
        ['/', '/', ..] => at + rest.iter().position(|c| *c == '\n').unwrap_or(rest.len()),
        ['/', '*', ..] => at + block_comment(rest),
        ['"', ..] => at + quoted(rest, '"'),
        // A lifetime has no closing quote one character on.
        ['\'', '\\', ..] => at + quoted(rest, '\''),
        ['\'', _, '\'', ..] => at + 3,
        ['r', '"' | '#', ..] if !after_word => at + raw_string(rest),
        ['b', 'r', '"' | '#', ..] if !after_word => at + 1 + raw_string(&rest[1..]),
        _ => at,
    }
}

fn block_comment(rest: &[char]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match rest[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn quoted(rest: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

/// Length of `r"…"` or `r##"…"##`; 0 for a raw identifier.
fn raw_string(rest: &[char]) -> usize {
    let hashes = rest[1..].iter().take_while(|c| **c == '#').count();
    if rest.get(1 + hashes) != Some(&'"') {
        return 0;
    }
    let mut end = vec!['"'];
    end.resize(1 + hashes, '#');
    let body = &rest[2 + hashes..];
    let closed = body.windows(end.len()).position(|window| window == end);
    closed.map_or(rest.len(), |at| 2 + hashes + at + end.len())
}

fn rust_functions(text: &str) -> Vec<(String, usize, usize)> {
    let code = blank_rust(text);
    let mut functions = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let word_before = code[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric());
        let signature = &code[at + 3..];
        let name: String =
            signature.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if word_before || name.is_empty() {
            continue;
        }
        let first = code[..at].matches('\n').count() + 1;
        if let Some(length) = body_lines(signature) {
            functions.push((name, first, length));
        }
    }
    functions
}

/// Lines from the signature to the brace that closes the body; none for a declaration.
fn body_lines(signature: &str) -> Option<usize> {
    let (mut round, mut curly, mut lines) = (0, 0, 1);
    for c in signature.chars() {
        match c {
            '\n' => lines += 1,
            '(' | '[' => round += 1,
            ')' | ']' => round -= 1,
            ';' if round == 0 && curly == 0 => return None,
            '{' => curly += 1,
            '}' => {
                curly -= 1;
                if curly == 0 {
                    return Some(lines);
                }
            }
            _ => {}
        }
    }
    None
}

fn python_functions(text: &str) -> Vec<(String, usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut functions = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(rest) = line.trim_start().strip_prefix("def ") else { continue };
        let name = rest.split('(').next().unwrap_or_default().to_owned();
        let inside = |line: &&str| {
            line.trim().is_empty()
                || indent(line) > indent(lines[index])
                || line.trim_start().starts_with(')')
        };
        let body: Vec<_> = lines[index + 1..].iter().take_while(|line| inside(line)).collect();
        let blank_end = body.iter().rev().take_while(|line| line.trim().is_empty()).count();
        functions.push((name, index + 1, 1 + body.len() - blank_end));
    }
    functions
}

#[test]
fn comments_and_literals_are_blank() {
    let text = concat!(
        "a /* { /* } */ */ b // {\n",
        "\"}\\\"{\" r#\"\"{\"# '{' '\\'' x: &'a str br\"{\" for_r"
    );
    let code = blank_rust(text);
    assert_eq!(code.chars().count(), text.chars().count());
    assert_eq!(
        code.split_whitespace().collect::<Vec<_>>(),
        ["a", "b", "x:", "&'a", "str", "for_r"]
    );
}

#[test]
fn functions_are_measured_from_signature_to_brace() {
    let text = "trait T {\n    fn declared(&self) -> [u8; 4];\n}\n\
        fn one() { let s = \"{\"; }\nfn three(\n    a: [u8; 2],\n) { if a == [0; 2] { b } }\n\
        #[test]\nfn five() {\n    // }\n    let c = '}';\n\n}\n";
    let found = rust_functions(text);
    let expected = [("one", 4, 1), ("three", 5, 3), ("five", 9, 5)];
    assert_eq!(found, expected.map(|(name, line, length)| (name.to_owned(), line, length)));
    let python = concat!(
        "def a(\n    x,\n) -> int:\n    return 1\n\n\n",
        "class B:\n    def c(self):\n        pass\n\n    def d(self) -> int:\n        pass\n"
    );
    let expected = [("a", 1, 4), ("c", 8, 2), ("d", 11, 2)];
    assert_eq!(
        python_functions(python),
        expected.map(|(name, line, length)| (name.to_owned(), line, length))
    );
}

#[test]
fn tests_are_cut_off() {
    assert_eq!(before_tests("a\n#[cfg(test)]\nmod tests {}"), "a\n");
    assert_eq!(before_tests("#[cfg(test)]\nfn helper() {}"), "#[cfg(test)]\nfn helper() {}");
}
