//! GOAL as text, as `txt2bin` of LogGOPSim reads it (github.com/spcl/LogGOPSim, txt2bin.re).
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//! l1: calc 100 cpu 1
//! l2: send 8b to 1 tag 4 nic 1
//! l2 requires l1
//! }
//! rank 1 {
//! recv 8b from 0 tag 4     // -1 is anybody, tag -1 any tag
//! }
//! ```
//!
//! `calc` is in ns, by the convention of LogGOPSim. Labels belong to a rank. We read a little more:
//! comments may stand behind an item too, and the file may end without a line break. What stands
//! behind the last rank is refused, which `txt2bin` passes over.

use super::{Draft, Node, Place, Trace, TraceError, Until, Work};
use crate::Rank;
use clearlane_ib::ticked;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Reads a text; `name` is what errors call it by.
pub(super) fn read(text: &str, name: &str) -> Result<Trace, TraceError> {
    let mut reader = Reader { words: Words { rest: text, line: 1 }, lines: Vec::new() };
    let drafts = reader
        .file()
        .map_err(|problem| TraceError::new(name, Place::Line(reader.words.line), problem))?;
    Trace::checked(drafts).map_err(|mut fault| {
        if let Place::Node(rank, node) = fault.place {
            let line = reader.lines.get(rank as usize).and_then(|lines| lines.get(node as usize));
            fault.place = line.map_or(fault.place, |line| Place::Line(*line));
        }
        fault.of_file(name)
    })
}

/// What a text is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Token<'a> {
    /// A keyword or a label.
    Word(&'a str),
    Number(u64),
    /// −1: any.
    Any,
    /// A colon, a brace, or what belongs nowhere.
    Mark(char),
    LineEnd,
    End,
}

impl Token<'_> {
    fn shown(&self) -> String {
        match self {
            Token::Word(word) => ticked(word),
            Token::Number(number) => format!("`{number}`"),
            Token::Any => "`-1`".into(),
            Token::Mark(mark) => ticked(&mark.to_string()),
            Token::LineEnd => "the end of the line".into(),
            Token::End => "the end of the file".into(),
        }
    }
}

struct Words<'a> {
    rest: &'a str,
    /// Of what has been read last, from 1.
    line: u32,
}

impl<'a> Words<'a> {
    /// Cuts off so many bytes, which end at a character.
    fn cut(&mut self, bytes: usize) -> &'a str {
        let (word, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        word
    }

    fn next(&mut self) -> Result<Token<'a>, String> {
        self.pass_over()?;
        let Some(first) = self.rest.chars().next() else { return Ok(Token::End) };
        let length =
            |fits: fn(char) -> bool| self.rest.find(|c: char| !fits(c)).unwrap_or(self.rest.len());
        match first {
            '\n' => {
                self.cut(1);
                Ok(Token::LineEnd)
            }
            'a'..='z' | 'A'..='Z' => {
                let length = length(|c| c.is_ascii_alphanumeric() || c == '_');
                Ok(Token::Word(self.cut(length)))
            }
            '0'..='9' => {
                let digits = self.cut(length(|c| c.is_ascii_digit()));
                let number = digits.parse();
                number.map(Token::Number).map_err(|_| {
                    format!("{} is beyond all numbers; the highest is {}", ticked(digits), u64::MAX)
                })
            }
            '-' if self.rest.starts_with("-1") => {
                self.cut(2);
                Ok(Token::Any)
            }
            other => {
                self.cut(other.len_utf8());
                Ok(Token::Mark(other))
            }
        }
    }

    /// Passes over blanks and comments, not over line breaks outside of them.
    fn pass_over(&mut self) -> Result<(), String> {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t', '\r']);
            if self.rest.starts_with("//") {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                self.cut(end);
            } else if self.rest.starts_with("/*") {
                let Some(end) = self.rest.find("*/") else {
                    return Err("a comment begins that does not end; write */ behind it".into());
                };
                let comment = self.cut(end + 2);
                self.line += comment.matches('\n').count() as u32;
            } else {
                return Ok(());
            }
        }
    }
}

struct Reader<'a> {
    words: Words<'a>,
    /// By rank and node: the line it stands in.
    lines: Vec<Vec<u32>>,
}

type Labels<'a> = BTreeMap<&'a str, u32>;

impl<'a> Reader<'a> {
    fn file(&mut self) -> Result<Vec<Draft>, String> {
        self.begins_with("num_ranks", "a GOAL schedule begins with `num_ranks` and their number")?;
        let ranks = self.number("the number of ranks")?;
        if !(1..=u64::from(u32::MAX)).contains(&ranks) {
            return Err(format!("num_ranks {ranks}; write 1 to {}", u32::MAX));
        }
        let mut drafts = Vec::new();
        for rank in 0..ranks {
            let next = format!("rank {rank} of {ranks} comes next, as `rank {rank} {{`");
            self.begins_with("rank", &next)?;
            match self.number("the number of the rank")? {
                number if number == rank => {}
                other => return Err(format!("rank {other}; {next}")),
            }
            self.expect(Token::Mark('{'), "`{`")?;
            drafts.push(self.rank()?);
        }
        match self.token()? {
            Token::End => Ok(drafts),
            other => Err(format!(
                "{} behind the last of {ranks} ranks; take it out or correct num_ranks",
                other.shown()
            )),
        }
    }

    /// The next token that is no line break, whose line is now that of the reader.
    fn token(&mut self) -> Result<Token<'a>, String> {
        loop {
            match self.words.next()? {
                Token::LineEnd => self.words.line += 1,
                token => return Ok(token),
            }
        }
    }

    fn begins_with(&mut self, word: &str, remedy: &str) -> Result<(), String> {
        match self.token()? {
            Token::Word(found) if found == word => Ok(()),
            other => Err(format!("{} where {remedy}", other.shown())),
        }
    }

    fn expect(&mut self, wanted: Token<'_>, name: &str) -> Result<(), String> {
        match self.words.next()? {
            found if found == wanted => Ok(()),
            other => Err(format!("{} where {name} has to stand", other.shown())),
        }
    }

    fn number(&mut self, of: &str) -> Result<u64, String> {
        match self.words.next()? {
            Token::Number(number) => Ok(number),
            other => Err(format!("{} where {of} has to stand", other.shown())),
        }
    }

    /// One that fits into what there are ports, CPUs, ranks or tags of.
    fn small<N: TryFrom<u64>>(&mut self, of: &str) -> Result<N, String> {
        let number = self.number(of)?;
        N::try_from(number).map_err(|_| format!("{of} {number} is beyond its range"))
    }

    /// The items of a rank, from behind its brace to the closing one.
    fn rank(&mut self) -> Result<Draft, String> {
        let (mut draft, mut labels, mut lines) = (Draft::default(), Labels::new(), Vec::new());
        loop {
            let word = match self.token()? {
                Token::Mark('}') => break,
                Token::Word(word) => word,
                other => {
                    return Err(format!(
                        "{} where send, recv, calc, a label or }} has to stand",
                        other.shown()
                    ));
                }
            };
            let end = self.item(word, &mut labels, &mut draft)?;
            if draft.count() as usize > lines.len() {
                lines.push(self.words.line);
            }
            match end {
                Token::LineEnd => self.words.line += 1,
                other => return Err(format!("{} where the line has to end", other.shown())),
            }
        }
        self.lines.push(lines);
        Ok(draft)
    }

    /// An item that begins with a word. Returns what stands behind it.
    fn item(
        &mut self,
        word: &'a str,
        labels: &mut Labels<'a>,
        draft: &mut Draft,
    ) -> Result<Token<'a>, String> {
        if is_operation(word) {
            return self.operation(word, draft);
        }
        match self.words.next()? {
            Token::Mark(':') => {
                if labels.insert(word, draft.count()).is_some() {
                    return Err(format!("label {} stands twice; rename one", ticked(word)));
                }
                match self.words.next()? {
                    Token::Word(keyword) if is_operation(keyword) => self.operation(keyword, draft),
                    other => {
                        Err(format!("{} where send, recv or calc has to stand", other.shown()))
                    }
                }
            }
            Token::Word("requires") => self.dependency(word, labels, draft, true),
            Token::Word("irequires") => self.dependency(word, labels, draft, false),
            other => Err(format!(
                "{} behind {}, where `:`, requires or irequires has to stand",
                other.shown(),
                ticked(word)
            )),
        }
    }

    fn dependency(
        &mut self,
        word: &str,
        labels: &Labels<'_>,
        draft: &mut Draft,
        finished: bool,
    ) -> Result<Token<'a>, String> {
        let known = |label: &str| {
            let node = labels.get(label).copied();
            node.ok_or_else(|| {
                format!("no label {} before this line; define it there", ticked(label))
            })
        };
        let other = match self.words.next()? {
            Token::Word(other) => other,
            other => return Err(format!("{} where a label has to stand", other.shown())),
        };
        let (node, other) = (known(word)?, known(other)?);
        match finished {
            true => draft.starts_after(node, other),
            false => draft.starts_after_start(node, other),
        }
        self.words.next()
    }

    /// An operation behind its keyword. Returns what stands behind it.
    fn operation(&mut self, keyword: &str, draft: &mut Draft) -> Result<Token<'a>, String> {
        if keyword == "calc" {
            let ns = self.number("a time in ns")?;
            let mut node = Node { work: Work::Calc { ns }, cpu: 0, nic: 0 };
            let mut next = self.words.next()?;
            if next == Token::Word("cpu") {
                node.cpu = self.small("cpu")?;
                next = self.words.next()?;
            }
            draft.add(node);
            return Ok(next);
        }
        let sends = keyword == "send";
        let bytes = self.number("a size")?;
        self.expect(Token::Word("b"), "`b`, the unit of the size,")?;
        self.expect(Token::Word(if sends { "to" } else { "from" }), "`to` or `from`")?;
        let peer = self.known_or_any("rank", sends)?;
        let (mut tag, mut cpu, mut nic) = (Some(0), 0, 0);
        let mut next = self.words.next()?;
        // Their order is fixed.
        if next == Token::Word("tag") {
            tag = self.known_or_any("tag", sends)?;
            next = self.words.next()?;
        }
        if next == Token::Word("cpu") {
            cpu = self.small("cpu")?;
            next = self.words.next()?;
        }
        if next == Token::Word("nic") {
            nic = self.small("nic")?;
            next = self.words.next()?;
        }
        let work = match (sends, peer, tag) {
            (true, Some(to), Some(tag)) => Work::Send { to: Rank(to), bytes, tag },
            (_, from, tag) => Work::Receive { from: from.map(Rank), bytes, tag },
        };
        draft.add(Node { work, cpu, nic });
        Ok(next)
    }

    /// A rank or a tag, or −1.
    fn known_or_any(&mut self, of: &str, sends: bool) -> Result<Option<u32>, String> {
        match self.words.next()? {
            Token::Number(number) => match u32::try_from(number) {
                Ok(number) if number < u32::MAX => Ok(Some(number)),
                _ => Err(format!("{of} {number} is beyond its range, 0 to {}", u32::MAX - 1)),
            },
            Token::Any if !sends => Ok(None),
            Token::Any => Err(format!("{of} -1 of a message that is sent; give it one")),
            other => Err(format!("{} where a {of} has to stand", other.shown())),
        }
    }
}

fn is_operation(word: &str) -> bool {
    matches!(word, "send" | "recv" | "calc")
}

/// Writes a trace as a text that [`Trace::read`] reads as the same trace, and `txt2bin` too.
pub fn write(trace: &Trace) -> String {
    let mut text = String::new();
    // A String takes whatever is written to it.
    _ = write_to(&mut text, trace);
    text
}

fn write_to(out: &mut String, trace: &Trace) -> std::fmt::Result {
    writeln!(out, "num_ranks {}", trace.ranks())?;
    for rank in (0..trace.ranks()).map(Rank) {
        writeln!(out, "\nrank {} {{", rank.0)?;
        for (number, node) in (1..).zip(trace.nodes(rank)) {
            write!(out, "l{number}: ")?;
            match node.work {
                Work::Send { to, bytes, tag } => write!(out, "send {bytes}b to {} tag {tag}", to.0),
                Work::Receive { from, bytes, tag } => {
                    let any = |value: Option<u32>| value.map_or("-1".into(), |v| v.to_string());
                    let (from, tag) = (any(from.map(|from| from.0)), any(tag));
                    write!(out, "recv {bytes}b from {from} tag {tag}")
                }
                Work::Calc { ns } => write!(out, "calc {ns}"),
            }?;
            if node.cpu > 0 {
                write!(out, " cpu {}", node.cpu)?;
            }
            if node.nic > 0 {
                write!(out, " nic {}", node.nic)?;
            }
            writeln!(out)?;
        }
        for number in 0..trace.count(rank) {
            for (other, until) in trace.dependents(rank, number) {
                let word = match until {
                    Until::Started => "irequires",
                    Until::Finished => "requires",
                };
                writeln!(out, "l{} {word} l{}", other + 1, number + 1)?;
            }
        }
        writeln!(out, "}}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{calc, receive, send, traces};
    use super::*;
    use proptest::prelude::*;

    const TWO: &str = "\n/* a\ncomment */ num_ranks 2\r\n\nrank 0 {\nl1: calc 100 cpu 1\n\
        l2: send 8b to 1 tag 4 nic 1 // why not\n// l1 requires l2\nl2 requires l1\n}\n\
        rank 1 { recv 8 b from -1 tag -1\n a: calc 0\n b: calc 1\n b irequires a\n}";

    fn said(text: &str) -> String {
        Trace::read(text.as_bytes(), "x").expect_err("it is refused").to_string()
    }

    #[test]
    fn the_whole_grammar_is_read() {
        let trace = Trace::read(TWO.as_bytes(), "x").unwrap();
        let nodes = |rank| trace.nodes(Rank(rank)).collect::<Vec<_>>();
        assert_eq!(trace.ranks(), 2);
        assert_eq!(nodes(0), [calc(100, 1), Node { nic: 1, ..send(1, 8, 4) }]);
        let anything = Work::Receive { from: None, bytes: 8, tag: None };
        assert_eq!(nodes(1), [Node { work: anything, ..receive(0, 8, 4) }, calc(0, 0), calc(1, 0)]);
        let dependents = |rank, node| trace.dependents(Rank(rank), node).collect::<Vec<_>>();
        assert_eq!(dependents(0, 0), [(1, Until::Finished)]);
        assert_eq!(dependents(1, 1), [(2, Until::Started)]);
        assert_eq!(format!("{trace:?}"), "Trace(2 ranks, 5 nodes)");
    }

    #[test]
    fn labels_may_be_keywords_that_no_operation_begins_with() {
        let text = "num_ranks 1\nrank 0 {\nsend1: calc 1\nto: calc 2\nrequires: calc 3\n\
            to requires send1\nrequires requires to\n}\n";
        assert_eq!(Trace::read(text.as_bytes(), "x").unwrap().waits_for(Rank(0)), [0, 1, 1]);
    }

    #[test]
    fn errors_name_the_line_and_what_would_do() {
        let rank = |items: &str| format!("num_ranks 1\nrank 0 {{\nl1: calc 1\n{items}\n}}\n");
        let in_rank = |items: &str| said(&rank(items));
        assert_eq!(
            said(""),
            "x:1: the end of the file where a GOAL schedule begins with `num_ranks` and their \
             number"
        );
        assert_eq!(said("num_ranks 0\n"), "x:1: num_ranks 0; write 1 to 4294967295");
        assert_eq!(
            said("num_ranks 4000000000\nrank 1 {\n}"),
            "x:2: rank 1; rank 0 of 4000000000 comes next, as `rank 0 {`"
        );
        assert_eq!(
            said("num_ranks 1\nrank 0 {\n}\n\nrank 1 {\n"),
            "x:5: `rank` behind the last of 1 ranks; take it out or correct num_ranks"
        );
        assert_eq!(
            said("num_ranks 1\nrank 0 {\ncalc 1"),
            "x:3: the end of the file where the line has to end"
        );
        assert_eq!(
            in_rank("send 8 to 0"),
            "x:4: `to` where `b`, the unit of the size, has to stand"
        );
        assert_eq!(in_rank("send 8b from 0"), "x:4: `from` where `to` or `from` has to stand");
        assert_eq!(in_rank("l2: calc"), "x:4: the end of the line where a time in ns has to stand");
        assert_eq!(in_rank("calc 1 nic 2"), "x:4: `nic` where the line has to end");
        assert_eq!(in_rank("calc 1 cpu 256"), "x:4: cpu 256 is beyond its range");
        assert_eq!(in_rank("l1: calc 2"), "x:4: label `l1` stands twice; rename one");
        assert_eq!(
            in_rank("l1 requires l3"),
            "x:4: no label `l3` before this line; define it there"
        );
        assert_eq!(in_rank("l1 requires l1"), "x:3: waits for itself; take the dependency out");
        assert_eq!(in_rank("\n\nsend 1b to 7"), "x:6: no rank 7; ranks are 0 to 0");
        assert_eq!(
            in_rank("send 1b to 0 tag 4294967295"),
            "x:4: tag 4294967295 is beyond its range, 0 to 4294967294"
        );
        assert_eq!(in_rank("send 1b to -1"), "x:4: rank -1 of a message that is sent; give it one");
        assert_eq!(
            in_rank("calc 99999999999999999999"),
            "x:4: `99999999999999999999` is beyond all numbers; the highest is 18446744073709551615"
        );
        assert_eq!(in_rank("/* \n"), "x:4: a comment begins that does not end; write */ behind it");
        assert_eq!(
            in_rank("send 1b to 0 tag 3"),
            "x: rank 0: rank 0 sends it 1 more with tag 3 than it receives"
        );
        assert_eq!(
            in_rank("\u{1b}é"),
            "x:4: `\\u{1b}` where send, recv, calc, a label or } has to stand"
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_it_was(trace in traces()) {
            let text = write(&trace);
            let again = Trace::read(text.as_bytes(), "x").unwrap();
            prop_assert_eq!(write(&again), text);
            prop_assert_eq!(again, trace);
        }

        #[test]
        fn any_text_is_a_trace_or_an_error_of_one_line(
            text in "(num_ranks 1\nrank 0 \\{\n)?\
                (l[12]|:|send|recv|calc|[0-9]{1,9}b?| to | from |-1|tag |cpu|requires|\
                [ \n}]|//|\\PC){0,60}",
        ) {
            if let Err(error) = Trace::read(text.as_bytes(), "x") {
                let error = error.to_string();
                prop_assert!(!error.contains(|c: char| c.is_control()), "{error:?}");
                prop_assert!(error.starts_with("x:"), "{error:?}");
            }
        }
    }
}
