//! When each of several programs was complete.

use super::cell_text;
use crate::measure::{Asked, Scope, kinds};
use crate::result::RunResult;
use crate::table::{Align, Table};

impl RunResult {
    /// A row per variant and program; nothing unless a variant has several programs: of one alone
    /// the headline tells.
    pub fn programs_table(&self) -> Option<Table> {
        let mut table = Table::new([
            ("variant", "", Align::Left),
            ("program", "", Align::Left),
            ("kind", "", Align::Left),
            ("ranks", "", Align::Right),
            ("completion", "µs", Align::Right),
        ]);
        let mut several = false;
        for variant in &self.variants {
            let groups = &variant.prepared.groups;
            let programs = groups.iter().filter_map(|group| Some((group, group.program()?)));
            several |= programs.clone().count() > 1;
            for (group, program) in programs {
                let scope = Scope::Group(group.name.clone());
                let asked = Asked::scoped(&kinds::completion_time::ENTRY, scope);
                table.row([
                    variant.name.clone(),
                    group.name.clone(),
                    program.name().to_owned(),
                    group.senders.len().to_string(),
                    cell_text(self.ask(&asked, variant).as_ref()),
                ]);
            }
        }
        several.then_some(table)
    }
}
