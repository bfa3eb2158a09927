//! Arenas and handles.
//!
//! Everything that refers to something else does so by a typed index into an arena. Handles are cheap, serialise as numbers, and an
//! arena's order is the order in which things were made, which makes emitted text reproducible.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

/// A typed index into an [`Arena`].
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Handle<T> {
    index: u32,
    #[serde(skip)]
    kind: PhantomData<fn() -> T>,
}

impl<T> Handle<T> {
    /// The handle at that position.
    pub const fn from_index(index: usize) -> Self {
        Self { index: index as u32, kind: PhantomData }
    }

    /// Its position in the arena.
    pub const fn index(self) -> usize {
        self.index as usize
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> PartialEq for Handle<T> {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index
    }
}

impl<T> Eq for Handle<T> {}

impl<T> PartialOrd for Handle<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Handle<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.index.cmp(&other.index)
    }
}

impl<T> Hash for Handle<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.index.hash(state);
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.index)
    }
}

/// A growing list addressed by [`Handle`].
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Arena<T> {
    items: Vec<T>,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self { items: Vec::new() }
    }
}

impl<T: fmt::Debug> fmt::Debug for Arena<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<T> Arena<T> {
    /// An empty arena.
    pub const fn new() -> Self {
        Self { items: Vec::new() }
    }

    /// An empty arena with room for so many items.
    pub fn with_capacity(items: usize) -> Self {
        Self { items: Vec::with_capacity(items) }
    }

    /// Adds `item`.
    pub fn add(&mut self, item: T) -> Handle<T> {
        self.items.push(item);
        Handle::from_index(self.items.len() - 1)
    }

    /// The handle of an item equal to `item`, which is added if there is none.
    pub fn intern(&mut self, item: T) -> Handle<T>
    where
        T: PartialEq,
    {
        match self.items.iter().position(|known| *known == item) {
            Some(index) => Handle::from_index(index),
            None => self.add(item),
        }
    }

    /// The item, or `None` if the handle is not of this arena.
    pub fn get(&self, handle: Handle<T>) -> Option<&T> {
        self.items.get(handle.index())
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Handles and items, in the order in which they were made.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Handle<T>, &T)> + ExactSizeIterator {
        self.items.iter().enumerate().map(|(index, item)| (Handle::from_index(index), item))
    }

    /// Like [`Arena::iter`], for changing items.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (Handle<T>, &mut T)> + ExactSizeIterator {
        self.items.iter_mut().enumerate().map(|(index, item)| (Handle::from_index(index), item))
    }
}

impl<T> Index<Handle<T>> for Arena<T> {
    type Output = T;
    fn index(&self, handle: Handle<T>) -> &T {
        &self.items[handle.index()]
    }
}

impl<T> IndexMut<Handle<T>> for Arena<T> {
    fn index_mut(&mut self, handle: Handle<T>) -> &mut T {
        &mut self.items[handle.index()]
    }
}
