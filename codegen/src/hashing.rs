//! Maps and sets by hash for the compiler's own keys: handles, types, instructions, forms. Nobody chooses such keys to collide, and they are looked up
//! so often that the standard library's hash, which is proof against that, would be a twentieth of a compilation.

use std::hash::BuildHasherDefault;

/// A map by hash; what it holds comes in no order.
pub type HashMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<Hasher>>;
/// A set by hash; what it holds comes in no order.
pub type HashSet<K> = std::collections::HashSet<K, BuildHasherDefault<Hasher>>;

/// Adds word after word by a rotation, an exclusive or and a product.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hasher(u64);

impl Hasher {
    const fn add(&mut self, word: u64) {
        // An odd number without a pattern in its bits: the fraction of the golden ratio.
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl std::hash::Hasher for Hasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        for byte in rest {
            self.add(u64::from(*byte));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.add(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.add(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.add(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.add(value as u64);
    }

    fn finish(&self) -> u64 {
        // A product is best in its upper bits, and maps take places by the lower ones.
        self.0.rotate_left(26)
    }
}
