//! Adaptive routing groups: where a switch may choose among output ports while packets run.

use clearlane_ib::Lid;

/// For each switch and LID, the output ports among which the switch may choose for every packet
/// anew. Any choice at any switch leads to the destination, and the credit-loop checker looks at
/// all of them. The port of the forwarding table is always one of the group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdaptiveGroups {
    columns: usize,
    /// By row (in the order of [`crate::ForwardingTables::switches`]) and LID.
    of_lid: Vec<u16>,
    /// By row and group: port numbers, ascending.
    lists: Vec<Vec<Box<[u8]>>>,
}

/// The forwarding table alone decides.
const NO_GROUP: u16 = u16::MAX;

impl AdaptiveGroups {
    /// No group yet, for so many switches and LIDs below `columns`.
    pub fn empty(rows: usize, columns: usize) -> Self {
        AdaptiveGroups {
            columns,
            of_lid: vec![NO_GROUP; rows * columns],
            lists: vec![vec![]; rows],
        }
    }

    /// The group of a LID at the switch in `row`: an index into [`AdaptiveGroups::lists`]; nothing
    /// where the forwarding table alone decides.
    #[inline]
    pub fn group(&self, row: usize, lid: Lid) -> Option<u16> {
        let lid = usize::from(lid.value());
        if lid >= self.columns {
            return None;
        }
        let group = *self.of_lid.get(row * self.columns + lid)?;
        (group != NO_GROUP).then_some(group)
    }

    /// The ports among which the switch in `row` may choose for a LID, ascending, at least two;
    /// none where the forwarding table alone decides.
    #[inline]
    pub fn ports(&self, row: usize, lid: Lid) -> &[u8] {
        self.group(row, lid).map_or(&[], |group| &self.lists[row][usize::from(group)])
    }

    /// The port lists of a switch by group, each once.
    pub fn lists(&self, row: usize) -> &[Box<[u8]>] {
        &self.lists[row]
    }

    /// Gives LIDs, all below the number of columns, a group at the switch in `row`. `ports` must be
    /// ascending; with fewer than two of them there is nothing to choose and so no group.
    pub fn set(&mut self, row: usize, lids: impl IntoIterator<Item = Lid>, ports: &[u8]) {
        let group = if ports.len() < 2 { NO_GROUP } else { self.number(row, ports) };
        for lid in lids {
            self.of_lid[row * self.columns + usize::from(lid.value())] = group;
        }
    }

    /// The number of a port list, a new one if it is not known. More lists than numbers there are
    /// leave the rest to the forwarding tables.
    fn number(&mut self, row: usize, ports: &[u8]) -> u16 {
        let lists = &mut self.lists[row];
        if let Some(known) = lists.iter().position(|list| **list == *ports) {
            return known as u16;
        }
        if lists.len() >= usize::from(NO_GROUP) {
            return NO_GROUP;
        }
        lists.push(ports.into());
        (lists.len() - 1) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lists_are_stored_once_and_one_port_is_no_choice() {
        let mut groups = AdaptiveGroups::empty(2, 10);
        let lid = |lid| Lid::new(lid).unwrap();
        groups.set(1, [lid(3), lid(4)], &[5, 6]);
        groups.set(1, [lid(5)], &[5, 7, 9]);
        groups.set(1, [lid(6)], &[5, 6]);
        groups.set(1, [lid(7)], &[5]);
        assert_eq!(groups.lists(1).len(), 2);
        assert_eq!(groups.ports(1, lid(6)), [5, 6]);
        assert_eq!(groups.ports(1, lid(5)), [5, 7, 9]);
        assert_eq!((groups.group(1, lid(7)), groups.group(0, lid(3))), (None, None));
        assert!(groups.ports(1, lid(4000)).is_empty());
        // Taken away again.
        groups.set(1, [lid(3)], &[]);
        assert!(groups.ports(1, lid(3)).is_empty());
    }
}
