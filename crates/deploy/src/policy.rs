//! A QoS policy of OpenSM that gives every pair of hosts its service level, alone or beside what a
//! site's policy says already.
//!
//! OpenSM takes the first rule that matches (osm_qos_policy.c). Rules name both ends, because a
//! rule with `target-port-guid` alone leaves replies and RDMA READs the other way on SL 0.

use clearlane_ib::{Guid, quoted, short};
use clearlane_subnet::formats::path_groups::GroupDump;

/// Port groups and rules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Policy {
    /// Port GUIDs by group; hosts that are treated alike are one group.
    groups: Vec<Vec<Guid>>,
    /// `groups × groups`, source-major.
    levels: Vec<u8>,
}

/// Why a site's policy cannot be added to.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{file}:{line}: {what}; OpenSM would drop the whole policy with ERR AC03: mend it first")]
pub struct PolicyError {
    /// The file.
    pub file: String,
    /// Where, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

/// Sections a policy is made of, in the order we write them.
const SECTIONS: [&str; 3] = ["port-groups", "qos-levels", "qos-match-rules"];
/// What all our names begin with.
const PREFIX: &str = "clearlane";
/// Port GUIDs on a line.
const GUIDS_A_LINE: usize = 6;

impl Policy {
    /// The policy of these groups, at LID offset 0. Groups with the same SLs from and to all others
    /// become one.
    pub fn of(dump: &GroupDump) -> Self {
        let count = dump.count;
        let none = Vec::new();
        let levels = dump.levels.first().unwrap_or(&none);
        let level = |from: usize, to: usize| levels.get(from * count + to).copied().unwrap_or(0);
        let alike = |a: usize, b: usize| {
            (0..count).all(|other| level(a, other) == level(b, other))
                && (0..count).all(|other| level(other, a) == level(other, b))
        };
        let (mut first, mut of_group) = (Vec::new(), Vec::new());
        for group in 0..count {
            let known = first.iter().position(|known| alike(*known, group));
            of_group.push(known.unwrap_or_else(|| {
                first.push(group);
                first.len() - 1
            }));
        }
        let mut groups = vec![Vec::new(); first.len()];
        for (guid, group, _) in &dump.members {
            if let Some(merged) = of_group.get(usize::from(*group)) {
                groups[*merged].push(*guid);
            }
        }
        let pairs = first.iter().flat_map(|from| first.iter().map(move |to| (*from, *to)));
        Policy { groups, levels: pairs.map(|(from, to)| level(from, to)).collect() }
    }

    /// The same for one pair of hosts alone, of those whose SL is not 0, to try it on; and their
    /// port GUIDs. Nothing if every SL is 0.
    pub fn of_one_pair(&self) -> Option<(Self, [Guid; 2])> {
        let count = self.groups.len();
        let at = (0..count * count).find(|at| {
            let (from, to) = (at / count, at % count);
            self.levels[*at] > 0 && self.groups[from].first() != self.groups[to].last()
        })?;
        let (from, to) = (at / count, at % count);
        let pair = [*self.groups[from].first()?, *self.groups[to].last()?];
        let level = |a: usize, b: usize| self.levels[a * count + b];
        // Nothing is said of a host and itself.
        let levels = vec![0, level(from, to), level(to, from), 0];
        Some((Policy { groups: pair.iter().map(|guid| vec![*guid]).collect(), levels }, pair))
    }

    /// How many port groups there are.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// The SLs that occur, ascending.
    pub fn levels(&self) -> Vec<u8> {
        let mut levels = self.levels.clone();
        levels.sort_unstable();
        levels.dedup();
        levels
    }

    /// Rules: source group, SL, destination groups. SL 0 needs none where it is the default.
    fn rules(&self, with_default: bool) -> Vec<(usize, u8, Vec<usize>)> {
        let count = self.groups.len();
        let mut rules = Vec::new();
        for from in 0..count {
            let row = &self.levels[from * count..(from + 1) * count];
            for level in self.levels().into_iter().filter(|level| with_default || *level > 0) {
                let to: Vec<usize> = (0..count).filter(|to| row[*to] == level).collect();
                if !to.is_empty() {
                    rules.push((from, level, to));
                }
            }
        }
        rules
    }

    /// How many match rules a file of its own has.
    pub fn rule_count(&self) -> usize {
        self.rules(false).len()
    }

    /// A file of its own: everything that no rule matches is on SL 0.
    pub fn text(&self) -> String {
        let sections = [self.port_groups(), self.qos_levels(true), self.match_rules(false)];
        let section = |(name, text): (&&str, &String)| format!("{name}\n{text}end-{name}\n");
        SECTIONS.iter().zip(&sections).map(section).collect()
    }

    /// The site's file with ours added at the end of its sections: rules of the site come first, so
    /// what they match keeps its SL. Fails where the file's sections are not as OpenSM reads them.
    pub fn added_to(&self, text: &str, file: &str) -> Result<String, PolicyError> {
        let outline = Outline::of(text, file)?;
        let sections =
            [self.port_groups(), self.qos_levels(!outline.has_default), self.match_rules(true)];
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut at_end = String::new();
        let mut inserts: Vec<(usize, &String)> = Vec::new();
        for (place, (name, ours)) in SECTIONS.iter().zip(&sections).enumerate() {
            match outline.ends[place] {
                Some(end) => inserts.push((end, ours)),
                None => at_end += &format!("{name}\n{ours}end-{name}\n"),
            }
        }
        inserts.sort_unstable_by_key(|(end, _)| std::cmp::Reverse(*end));
        for (end, ours) in inserts {
            lines.insert(end, ours.trim_end_matches('\n').to_owned());
        }
        let whole: String = lines.iter().map(|line| format!("{line}\n")).collect();
        Ok(whole + &at_end)
    }

    fn port_groups(&self) -> String {
        let mut text = String::new();
        for (group, guids) in self.groups.iter().enumerate() {
            text += &format!("    port-group\n        name: {PREFIX}-{group}\n");
            for some in guids.chunks(GUIDS_A_LINE) {
                let some: Vec<String> = some.iter().map(Guid::to_string).collect();
                text += &format!("        port-guid: {}\n", some.join(","));
            }
            text += "    end-port-group\n";
        }
        text
    }

    fn qos_levels(&self, with_default: bool) -> String {
        let level = |name: &str, level: u8| {
            format!("    qos-level\n        name: {name}\n        sl: {level}\n    end-qos-level\n")
        };
        let default = if with_default { level("DEFAULT", 0) } else { String::new() };
        let own = self.levels().into_iter();
        default + &own.map(|sl| level(&format!("{PREFIX}-sl{sl}"), sl)).collect::<String>()
    }

    fn match_rules(&self, with_default: bool) -> String {
        let rule = |(from, level, to): (usize, u8, Vec<usize>)| {
            let to: Vec<String> = to.iter().map(|to| format!("{PREFIX}-{to}")).collect();
            let (source, to) = (format!("{PREFIX}-{from}"), to.join(","));
            format!(
                "    qos-match-rule\n        source: {source}\n        destination: {to}\n        \
                 qos-level-name: {PREFIX}-sl{level}\n    end-qos-match-rule\n"
            )
        };
        self.rules(with_default).into_iter().map(rule).collect()
    }
}

/// Where the sections of a site's policy end.
struct Outline {
    /// By section: the line, from 0, of its end.
    ends: [Option<usize>; 3],
    has_default: bool,
}

impl Outline {
    fn of(text: &str, file: &str) -> Result<Self, PolicyError> {
        let mut outline = Outline { ends: [None; 3], has_default: false };
        let mut open: Vec<(&str, usize)> = Vec::new();
        let error =
            |line: usize, what: String| PolicyError { file: short(file), line: line + 1, what };
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            let word = line.split(|c: char| c.is_whitespace() || c == ':').next().unwrap_or("");
            if let Some(name) = word.strip_prefix("end-") {
                match open.pop() {
                    Some((begun, _)) if begun == name => {}
                    _ => return Err(error(index, format!("{} ends nothing", quoted(word)))),
                }
                if let Some(place) = SECTIONS.iter().position(|section| *section == name) {
                    outline.ends[place] = Some(index);
                }
            } else if BEGINNINGS.contains(&word) {
                open.push((word, index));
            } else if open.is_empty() && !word.is_empty() {
                return Err(error(index, format!("{} is in no section", quoted(line))));
            } else if word.starts_with(PREFIX) || line.contains(&format!("name: {PREFIX}-")) {
                let what = format!("{} is clearlane's own", quoted(line));
                return Err(error(
                    index,
                    what + ": give the policy from before the last deployment",
                ));
            }
            let in_level = open.iter().any(|(name, _)| *name == "qos-level");
            let value = line.split_once(':').map_or("", |(_, value)| value.trim());
            outline.has_default |=
                (in_level && word == "name" && value.eq_ignore_ascii_case("DEFAULT"))
                    || (open.iter().any(|(name, _)| *name == "qos-ulps")
                        && word.eq_ignore_ascii_case("default"));
        }
        match open.pop() {
            None => Ok(outline),
            Some((name, line)) => Err(error(line, format!("{name:?} has no end-{name}"))),
        }
    }
}

/// Keywords that begin a section or an entry of one.
const BEGINNINGS: [&str; 12] = [
    "qos-ulps",
    "sl2vl-scope",
    "port-groups",
    "port-group",
    "qos-setup",
    "vlarb-tables",
    "vlarb-scope",
    "sl2vl-tables",
    "qos-levels",
    "qos-level",
    "qos-match-rules",
    "qos-match-rule",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn dump(levels: &[u8], count: usize) -> GroupDump {
        let members = (0..count).map(|group| (Guid(group as u64 + 1), group as u16, 0));
        GroupDump { members: members.collect(), levels: vec![levels.to_vec()], count }
    }

    #[test]
    fn groups_that_are_treated_alike_are_one() {
        // Leaves 0 to 4 on two lanes: (i + j) mod 2.
        let levels: Vec<u8> =
            (0..5).flat_map(|i| (0..5).map(move |j| ((i + j) % 2) as u8)).collect();
        let policy = Policy::of(&dump(&levels, 5));
        assert_eq!((policy.groups(), policy.rule_count()), (2, 2));
        let text = policy.text();
        assert!(text.contains("port-guid: 0x0000000000000001,0x0000000000000003,0x0"), "{text}");
        assert!(text.contains("source: clearlane-0\n        destination: clearlane-1\n"), "{text}");
        // From the second group everything is on SL 1, to it nothing else than to the first.
        assert_eq!(Policy::of(&dump(&[0, 0, 1, 1], 2)).groups(), 2);
    }

    #[test]
    fn one_pair_is_tried_first() {
        // Two hosts on leaf 0, one on leaf 1; SL 1 between leaves, SL 2 on leaf 1, which has nobody
        // to talk to.
        let mut groups = dump(&[0, 1, 1, 2], 2);
        groups.members.insert(1, (Guid(9), 0, 0));
        let (pair, guids) = Policy::of(&groups).of_one_pair().unwrap();
        assert_eq!(guids, [Guid(1), Guid(2)]);
        assert_eq!((pair.groups(), pair.rule_count(), pair.levels()), (2, 2, vec![0, 1]));
        groups.levels = vec![vec![3, 0, 0, 2]];
        assert_eq!(Policy::of(&groups).of_one_pair().unwrap().1, [Guid(1), Guid(9)]);
        groups.levels = vec![vec![0, 0, 0, 2]];
        assert!(Policy::of(&groups).of_one_pair().is_none());
    }

    #[test]
    fn a_sites_rules_stay_first_and_its_default_stays() {
        let site = "qos-levels\n    qos-level\n        name: Default\n        sl: 3\n    \
            end-qos-level\nend-qos-levels\nqos-match-rules\n    qos-match-rule # theirs\n        \
            qos-class: 7\n        qos-level-name: DEFAULT\n    end-qos-match-rule\n\
            end-qos-match-rules\n";
        let policy = Policy::of(&dump(&[0, 1, 1, 0], 2));
        let both = policy.added_to(site, "site").unwrap();
        let at = |what: &str| both.find(what).unwrap_or_else(|| panic!("{what}: {both}"));
        assert!(at("# theirs") < at("clearlane-0\n        destination"));
        assert!(at("clearlane-sl1\n        sl: 1") < at("end-qos-levels"));
        assert_eq!(both.matches("DEFAULT").count() + both.matches("Default").count(), 2);
        // All of our pairs have rules, as the default is not ours.
        assert_eq!(both.matches("source: clearlane").count(), 4);
        assert!(both.ends_with("end-port-groups\n"));
        let again = policy.added_to(&both, "site").unwrap_err().to_string();
        assert!(again.contains("clearlane's own"), "{again}");
    }

    #[test]
    fn every_section_of_a_site_is_known_and_its_simple_default_counts() {
        let site = "qos-ulps\n    Default : 2 # theirs\n    ipoib : 3\nend-qos-ulps\nqos-setup\n  \
            sl2vl-tables\n        sl2vl-scope\n            group: x\n        end-sl2vl-scope\n    \
            end-sl2vl-tables\n    vlarb-tables\n        vlarb-scope\n        end-vlarb-scope\n    \
            end-vlarb-tables\nend-qos-setup\n";
        let both = Policy::of(&dump(&[0, 1, 1, 0], 2)).added_to(site, "site").unwrap();
        assert!(both.starts_with(site) && !both.contains("DEFAULT"), "{both}");
    }

    #[test]
    fn broken_sections_are_refused() {
        let policy = Policy::of(&dump(&[0], 1));
        let said = |text: &str| policy.added_to(text, "p").unwrap_err().to_string();
        assert!(said("qos-levels\n").starts_with("p:1: \"qos-levels\" has no end-qos-levels"));
        assert!(said("\nend-port-groups\n").starts_with("p:2: \"end-port-groups\" ends nothing"));
    }
}
