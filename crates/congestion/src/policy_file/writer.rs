//! Policies as files.

use super::{Block, CongestionControlPolicy, Item};

/// Blanks before what is in a block, by block.
const INDENT: usize = 4;

impl CongestionControlPolicy {
    /// The lines of the file: what is read of them says the same as this. Comments and spacing of a
    /// file it was read from are gone.
    pub fn write(&self) -> String {
        let mut text = String::new();
        for (index, item) in self.items.iter().enumerate() {
            if index > 0 {
                text.push('\n');
            }
            write(item, 0, &mut text);
        }
        text
    }
}

fn write(item: &Item, depth: usize, text: &mut String) {
    let mut line = |depth: usize, words: &str| {
        text.push_str(&" ".repeat(INDENT * depth));
        text.push_str(words);
        text.push('\n');
    };
    match item {
        Item::Verbatim(words) => line(depth, words),
        Item::Setting(setting) => line(depth, &format!("{}: {}", setting.key, setting.written)),
        Item::Block(Block { name, items, .. }) => {
            line(depth, &format!("{name}_start"));
            items.iter().for_each(|item| write(item, depth + 1, text));
            text.push_str(&format!("{}{name}_end\n", " ".repeat(INDENT * depth)));
        }
    }
}
