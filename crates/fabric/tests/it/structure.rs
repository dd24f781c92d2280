//! Coordinates and levels hold under damage: what is recovered fits every cable that is left.

use clearlane_fabric::damage::{Choice, choose, cut};
use clearlane_fabric::{Fabric, NodeId, NodeKind, structure, topologies};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Coordinates as the builder put them into the name.
fn named(fabric: &Fabric, id: NodeId) -> Vec<u32> {
    fabric.node(id).name.split('-').skip(1).map(|text| text.parse().unwrap()).collect()
}

/// One step along one dimension, or around it where it wraps.
fn one_step(grid: &structure::Grid, a: &[u32], b: &[u32]) -> bool {
    let apart: Vec<usize> = (0..a.len()).filter(|d| a[*d] != b[*d]).collect();
    let [d] = apart[..] else { return false };
    let distance = a[d].abs_diff(b[d]);
    distance == 1 || grid.wraps[d] && distance == grid.dims[d] - 1
}

#[test]
fn sizes_are_found_where_no_single_way_around_tells_them() {
    // Of 32 cables 14 are cut; the ways around that are left are of length 4 and 8.
    let mut fabric = topologies::build("torus:4x4").unwrap();
    let choice = Choice { links: 14, seed: 43, uplinks_min: 1 };
    let chosen = choose(&fabric, &choice).unwrap();
    cut(&mut fabric, &chosen);
    let grid = structure::grid(&fabric).unwrap();
    assert_eq!((grid.dims, grid.wraps), (vec![4, 4], vec![true, true]));
}

proptest! {
    #[test]
    fn a_recovered_grid_fits_every_cable(
        sizes in prop::collection::vec(2u32..6, 1..4),
        wrapped: bool,
        cuts in 0usize..12,
        seed: u64,
    ) {
        let name = if wrapped { "torus" } else { "mesh" };
        let texts: Vec<String> = sizes.iter().map(u32::to_string).collect();
        let mut fabric = topologies::build(&format!("{name}:{}", texts.join("x"))).unwrap();
        if let Ok(chosen) = choose(&fabric, &Choice { links: cuts, seed, uplinks_min: 1 }) {
            cut(&mut fabric, &chosen);
        }
        let Ok(grid) = structure::grid(&fabric) else { return Ok(()) };
        let mut places = BTreeSet::new();
        for id in fabric.ids(NodeKind::Switch) {
            let at = grid.coords(id).unwrap();
            prop_assert!(places.insert(at.to_vec()));
            prop_assert_eq!(grid.node_at(at), Some(id));
            if grid.dims == sizes && grid.wraps.iter().all(|wraps| *wraps == wrapped) {
                prop_assert_eq!(at.to_vec(), named(&fabric, id));
            }
        }
        for link in fabric.links() {
            if let (Some(a), Some(b)) = (grid.coords(link.a.node), grid.coords(link.b.node)) {
                prop_assert!(one_step(&grid, a, b), "{} {a:?} {b:?}", fabric.cable(link));
            }
        }
    }

    #[test]
    fn a_few_cuts_never_hide_a_torus(seed: u64, cuts in 0usize..9) {
        let mut fabric = topologies::build("torus:4x5x3").unwrap();
        let chosen = choose(&fabric, &Choice { links: cuts, seed, uplinks_min: 2 }).unwrap();
        cut(&mut fabric, &chosen);
        let grid = structure::grid(&fabric).unwrap();
        prop_assert_eq!((grid.dims, grid.wraps), (vec![4, 5, 3], vec![true; 3]));
    }

    #[test]
    fn a_damaged_tree_keeps_its_levels(seed: u64, cuts in 0usize..200) {
        let mut fabric = topologies::build("fat-tree:648").unwrap();
        let whole = structure::tree(&fabric).unwrap();
        let chosen = choose(&fabric, &Choice { links: cuts, seed, uplinks_min: 1 }).unwrap();
        cut(&mut fabric, &chosen);
        prop_assert_eq!(structure::tree(&fabric), Ok(whole));
    }
}
