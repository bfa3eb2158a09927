//! Names of functions that lowering adds.

use std::collections::HashSet;

use crate::ir::Function;

/// The names that a module's functions have.
pub struct FunctionNames {
    taken: HashSet<String>,
}

impl FunctionNames {
    pub fn new<'a>(functions: impl Iterator<Item = &'a Function>) -> Self {
        Self { taken: functions.map(|function| function.name.clone()).collect() }
    }

    /// `name`, or `name` with a number where another function has it.
    pub fn fresh(&mut self, name: &str) -> String {
        let mut fresh = name.to_owned();
        let mut number = 1;
        while !self.taken.insert(fresh.clone()) {
            number += 1;
            fresh = format!("{name}_{number}");
        }
        fresh
    }
}
