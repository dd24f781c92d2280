//! What a subnet manager sets in switches and adapters for congestion control.

use super::fecn_marker::Victims;
use super::{
    CCTI_INCREASE, CCTI_LIMIT, CCTI_MIN, CCTI_TIMER, MARKING_RATE, PACKET_SIZE, PORT_CONTROL,
    THRESHOLD, TRIGGER_THRESHOLD, table,
};
use crate::parameter::{ParameterError, Values};

/// The values of the attributes of the congestion control class (IBA vol. 1, A10.4.3), the same for
/// all switches, adapters and service levels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attributes {
    /// Threshold, 0 to 15.
    pub threshold: u8,
    /// Packet_Size, in units of 64 B.
    pub packet_size: u8,
    /// Marking_Rate: mean number of packets between two that are marked.
    pub marking_rate: u16,
    /// The ports in Victim_Mask.
    pub victims: Victims,
    /// Port_Control, bit 0: whether all queue pairs of a service level share one CCTI.
    pub per_service_level: bool,
    /// CCTI_Timer, in units of 1.024 us; at least 1.
    pub ccti_timer: u16,
    /// CCTI_Increase.
    pub ccti_increase: u8,
    /// Trigger_Threshold.
    pub trigger_threshold: u8,
    /// CCTI_Min, at most CCTI_Limit.
    pub ccti_min: u8,
    /// Entries of the congestion control table as (shift, multiplier), from CCTI 0 to CCTI_Limit.
    pub table: Vec<(u8, u16)>,
}

impl Attributes {
    /// Those of a mechanism with these values. Fails where the mechanism cannot be built of them.
    pub fn of(values: &Values) -> Result<Self, ParameterError> {
        let limit = values.integer(&CCTI_LIMIT) as u8;
        Ok(Attributes {
            threshold: values.integer(&THRESHOLD) as u8,
            packet_size: values.integer(&PACKET_SIZE) as u8,
            marking_rate: values.integer(&MARKING_RATE) as u16,
            victims: Victims::of(values),
            per_service_level: values.word(&PORT_CONTROL) == "sl",
            ccti_timer: values.integer(&CCTI_TIMER) as u16,
            ccti_increase: values.integer(&CCTI_INCREASE) as u8,
            trigger_threshold: values.integer(&TRIGGER_THRESHOLD) as u8,
            ccti_min: values.integer(&CCTI_MIN) as u8,
            table: table(values, limit)?.up_to(limit).to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CCT, CCT_ENTRIES, ENTRY, VICTIM_MASK};
    use super::*;
    use crate::parameter::Value;

    #[test]
    fn they_are_those_of_the_preset_or_what_is_set() {
        let mut values = Values::default();
        for (parameter, value) in ENTRY.presets[0].values {
            values.set(parameter, value.clone()).unwrap();
        }
        let attributes = Attributes::of(&values).unwrap();
        assert_eq!(
            (attributes.threshold, attributes.marking_rate, attributes.packet_size),
            (15, 1, 8)
        );
        assert_eq!((attributes.ccti_timer, attributes.victims), (150, Victims::FacingAdapters));
        assert_eq!(attributes.table, (0..128).map(|ccti| (0, ccti)).collect::<Vec<_>>());
        for (parameter, value) in [
            (&PORT_CONTROL, Value::Word("sl")),
            (&VICTIM_MASK, Value::Word("none")),
            (&TRIGGER_THRESHOLD, Value::Integer(255)),
            (&CCTI_INCREASE, Value::Integer(4)),
            (&CCTI_MIN, Value::Integer(1)),
            (&CCTI_LIMIT, Value::Integer(2)),
        ] {
            values.set(parameter, value).unwrap();
        }
        let attributes = Attributes::of(&values).unwrap();
        assert!(attributes.per_service_level && attributes.victims == Victims::None);
        assert_eq!(
            (attributes.trigger_threshold, attributes.ccti_increase, attributes.ccti_min),
            (255, 4, 1)
        );
        assert_eq!(attributes.table, [(0, 0), (0, 1), (0, 2)]);
    }

    #[test]
    fn entries_above_the_limit_are_left_out_and_missing_ones_are_an_error() {
        let mut values = Values::default();
        values.set(&CCT, Value::Word("given")).unwrap();
        values.set(&CCT_ENTRIES, Value::Table(vec![(0, 1), (3, 9), (1, 7)])).unwrap();
        values.set(&CCTI_LIMIT, Value::Integer(1)).unwrap();
        assert_eq!(Attributes::of(&values).unwrap().table, [(0, 1), (3, 9)]);
        values.set(&CCTI_LIMIT, Value::Integer(3)).unwrap();
        assert!(Attributes::of(&values).is_err());
    }
}
