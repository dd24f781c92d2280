//! Headers come back from their bytes as they were, and any bytes are read or refused.

use clearlane_ib::{
    Bth, Cnp, CnpRoute, Lid, Lrh, Opcode, PadCount, Psn, QueuePairNumber, ServiceLevel,
    TransportVersion, VirtualLane, wire,
};
use proptest::prelude::*;

fn queue_pair() -> impl Strategy<Value = QueuePairNumber> {
    (0..=QueuePairNumber::MAX.value()).prop_map(|value| QueuePairNumber::new(value).unwrap())
}

prop_compose! {
    fn bth()(
        opcode: u8,
        p_key: u16,
        flags: [bool; 5],
        pad in 0..=PadCount::MAX.value(),
        version in 0..=TransportVersion::MAX.value(),
        destination in queue_pair(),
        psn in 0..=Psn::MAX.value(),
    ) -> Bth {
        let [solicited_event, migration, fecn, becn, ack_request] = flags;
        Bth {
            opcode: Opcode(opcode),
            solicited_event,
            migration,
            pad: PadCount::new(pad).unwrap(),
            version: TransportVersion::new(version).unwrap(),
            p_key,
            fecn,
            becn,
            destination,
            ack_request,
            psn: Psn::new(psn).unwrap(),
        }
    }
}

prop_compose! {
    fn route()(lane in 0u8..15, level in 0u8..16, lids in [1u16..=0xbfff, 1u16..=0xbfff])
        -> CnpRoute
    {
        let [dlid, slid] = lids.map(|lid| Lid::new(lid).unwrap());
        let lane = VirtualLane::new(lane).unwrap();
        CnpRoute { lane, service_level: ServiceLevel::new(level).unwrap(), dlid, slid }
    }
}

proptest! {
    #[test]
    fn a_bth_comes_back_as_it_was(bth in bth()) {
        prop_assert_eq!(Bth::read(&bth.bytes()), Ok(bth));
    }

    #[test]
    fn marks_change_their_own_bits_alone(bth in bth()) {
        let masked = |bth: Bth| {
            let mut bytes = bth.bytes();
            bytes[4] |= 0xc0;
            bytes
        };
        prop_assert_eq!(masked(Bth { fecn: !bth.fecn, becn: !bth.becn, ..bth }), masked(bth));
        prop_assert_ne!(Bth { fecn: !bth.fecn, ..bth }.bytes(), bth.bytes());
        prop_assert_ne!(Bth { becn: !bth.becn, ..bth }.bytes(), bth.bytes());
    }

    #[test]
    fn an_lrh_comes_back_as_it_was(route in route(), words in 0u32..2048) {
        let CnpRoute { lane, service_level, dlid, slid } = route;
        let lrh = Lrh::new(lane, service_level, dlid, slid, words * 4 + 2).unwrap();
        prop_assert_eq!(u32::from(lrh.words()), words);
        prop_assert_eq!(Lrh::read(&lrh.bytes()), Ok(lrh));
    }

    #[test]
    fn a_cnp_comes_back_as_it_was(p_key: u16, destination in queue_pair(), route in route()) {
        let cnp = Cnp { p_key, destination };
        prop_assert_eq!(Cnp::read(&cnp.bytes(&route)), Ok((route, cnp)));
        prop_assert_eq!(Cnp::read_roce(&cnp.roce_bytes()), Ok(cnp));
    }

    #[test]
    fn any_bytes_are_read_or_refused_in_one_line(
        bytes in prop::collection::vec(any::<u8>(), 0..40)
    ) {
        // What is read of them is what is written again, reserved bits aside.
        match Bth::read(&bytes) {
            Ok(bth) => prop_assert_eq!(Bth::read(&bth.bytes()), Ok(bth)),
            Err(error) => {
                prop_assert!(bytes.len() < wire::BTH as usize);
                prop_assert!(!error.to_string().contains('\n'));
            }
        }
        if let Ok(lrh) = Lrh::read(&bytes) {
            prop_assert_eq!(Lrh::read(&lrh.bytes()), Ok(lrh));
        }
        if let Ok((route, cnp)) = Cnp::read(&bytes) {
            prop_assert_eq!(Cnp::read(&cnp.bytes(&route)), Ok((route, cnp)));
        }
        if let Ok(cnp) = Cnp::read_roce(&bytes) {
            prop_assert_eq!(Cnp::read_roce(&cnp.roce_bytes()), Ok(cnp));
        }
    }
}
