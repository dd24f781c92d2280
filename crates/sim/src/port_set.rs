//! Sets of ports of one switch, as wide as its switches need.

/// Ports of a switch, counted from 0, one bit each.
pub(crate) trait PortSet: Copy + Send + 'static {
    /// No ports.
    const EMPTY: Self;
    /// How many ports there is room for.
    const PORTS: u32;
    /// Puts a port in.
    fn insert(&mut self, port: u8);
    /// Takes a port out.
    fn remove(&mut self, port: u8);
    /// Whether no port is in.
    fn is_empty(&self) -> bool;
    /// The ports from `first` on and then around, until `found` returns something.
    fn find_from<R>(&self, first: u8, found: impl FnMut(u8) -> Option<R>) -> Option<R>;
}

macro_rules! one_word {
    ($word:ty) => {
        impl PortSet for $word {
            const EMPTY: Self = 0;
            const PORTS: u32 = <$word>::BITS;

            #[inline(always)]
            fn insert(&mut self, port: u8) {
                *self |= 1 << (u32::from(port) % Self::PORTS);
            }

            #[inline(always)]
            fn remove(&mut self, port: u8) {
                *self &= !(1 << (u32::from(port) % Self::PORTS));
            }

            #[inline(always)]
            fn is_empty(&self) -> bool {
                *self == 0
            }

            #[inline(always)]
            fn find_from<R>(&self, first: u8, mut found: impl FnMut(u8) -> Option<R>) -> Option<R> {
                let first = u32::from(first);
                let mut bits = self.rotate_right(first);
                while bits != 0 {
                    let port = (bits.trailing_zeros() + first) % Self::PORTS;
                    bits &= bits - 1;
                    if let Some(result) = found(port as u8) {
                        return Some(result);
                    }
                }
                None
            }
        }
    };
}

one_word!(u16);
one_word!(u64);

impl PortSet for [u64; 4] {
    const EMPTY: Self = [0; 4];
    const PORTS: u32 = 256;

    #[inline(always)]
    fn insert(&mut self, port: u8) {
        self[usize::from(port) / 64] |= 1 << (port % 64);
    }

    #[inline(always)]
    fn remove(&mut self, port: u8) {
        self[usize::from(port) / 64] &= !(1 << (port % 64));
    }

    #[inline(always)]
    fn is_empty(&self) -> bool {
        *self == Self::EMPTY
    }

    #[inline(always)]
    fn find_from<R>(&self, first: u8, mut found: impl FnMut(u8) -> Option<R>) -> Option<R> {
        let (at, upper) = (usize::from(first) / 64, !0 << (first % 64));
        // Words with ports, from that of `first` on. That one comes twice: its upper part to begin
        // with, its lower part at the end. Most sets have ports in one word.
        let used = (0..4).fold(0, |used, word| used | u32::from(self[word] != 0) << word);
        let mut steps = (used | used << 4) >> at & 0b1_1111;
        while steps != 0 {
            let step = steps.trailing_zeros() as usize;
            steps &= steps - 1;
            let word = (at + step) % 4;
            let mut bits = self[word];
            match step {
                0 => bits &= upper,
                4 => bits &= !upper,
                _ => {}
            }
            while bits != 0 {
                let port = word as u32 * 64 + bits.trailing_zeros();
                bits &= bits - 1;
                if let Some(result) = found(port as u8) {
                    return Some(result);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order<S: PortSet>(ports: &[u8], first: u8) -> Vec<u8> {
        let mut set = S::EMPTY;
        ports.iter().for_each(|port| set.insert(*port));
        let mut order = Vec::new();
        set.find_from(first, |port| {
            order.push(port);
            None::<()>
        });
        ports.iter().for_each(|port| set.remove(*port));
        assert!(set.is_empty());
        order
    }

    #[test]
    fn ports_come_around_from_the_one_asked_for() {
        let ports = [0u8, 3, 9, 15];
        for first in 0..16 {
            let mut expected = ports;
            expected.sort_by_key(|port| (*port + 16 - first) % 16);
            assert_eq!(order::<u16>(&ports, first), expected);
            assert_eq!(order::<u64>(&ports, first), expected);
            assert_eq!(order::<[u64; 4]>(&ports, first), expected);
        }
        let far = [1u8, 63, 64, 100, 191, 254];
        for first in [0u8, 1, 2, 63, 64, 65, 120, 192, 255] {
            let mut expected = far;
            expected.sort_by_key(|port| port.wrapping_sub(first));
            assert_eq!(order::<[u64; 4]>(&far, first), expected);
        }
    }
}
