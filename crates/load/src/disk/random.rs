//! Chance for places and contents: fast, repeatable, good enough for both, of no use for secrets
//! (xorshift64*, Vigna 2016).

/// A source of numbers.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    /// Begins somewhere.
    pub(super) fn new(seed: u64) -> Self {
        // Zero would stay zero.
        Self(seed ^ 0x9e37_79b9_7f4a_7c15 | 1)
    }

    /// The next number.
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below a limit; 0 when that is 0.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// Fills memory.
    pub(super) fn fill(&mut self, memory: &mut [u8]) {
        for part in memory.chunks_mut(8) {
            let bytes = self.next().to_le_bytes();
            part.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_spread_and_stay_below_the_limit() {
        let mut random = Random::new(1);
        let mut seen = [0_u32; 10];
        for _ in 0..10_000 {
            seen[random.below(10) as usize] += 1;
        }
        assert!(seen.iter().all(|n| (800..1200).contains(n)), "{seen:?}");
        assert_eq!((random.below(0), random.below(1)), (0, 0));
        let mut memory = [0; 100];
        random.fill(&mut memory);
        assert!(memory.chunks(8).all(|part| part.iter().any(|byte| *byte != 0)));
    }
}
