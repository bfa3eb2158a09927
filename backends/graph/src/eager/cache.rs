//! Executables of calls by their keys, the least recently used of which goes when there are too many.

use std::collections::HashMap;
use std::sync::Arc;

use super::single::Single;

/// A bounded number of executables.
#[derive(Debug)]
pub(super) struct Cache {
    known: HashMap<Box<str>, Entry>,
    most: usize,
    /// Counts look-ups.
    clock: u64,
    pub hits: u64,
    pub misses: u64,
}

#[derive(Debug)]
struct Entry {
    single: Arc<Single>,
    /// The look-up that used it last.
    used: u64,
}

impl Cache {
    pub fn new(most: usize) -> Self {
        Self { known: HashMap::new(), most: most.max(1), clock: 0, hits: 0, misses: 0 }
    }

    pub fn get(&mut self, key: &str) -> Option<Arc<Single>> {
        self.clock += 1;
        match self.known.get_mut(key) {
            Some(entry) => {
                entry.used = self.clock;
                self.hits += 1;
                Some(entry.single.clone())
            }
            None => {
                self.misses += 1;
                None
            }
        }
    }

    /// Keeps an executable, unless another thread was faster; gives the one that is kept.
    pub fn insert(&mut self, key: String, single: Single) -> Arc<Single> {
        if let Some(entry) = self.known.get(key.as_str()) {
            return entry.single.clone();
        }
        if self.known.len() >= self.most {
            // A look at all of them costs little beside the compilation that brought us here.
            let oldest = self.known.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
            if let Some(oldest) = oldest {
                self.known.remove(&oldest);
            }
        }
        let single = Arc::new(single);
        self.known.insert(key.into(), Entry { single: single.clone(), used: self.clock });
        single
    }

    pub fn len(&self) -> usize {
        self.known.len()
    }
}
