//! Names of what the compiler adds, or puts together from what authors named.

use std::collections::HashSet;

use crate::flat;
use crate::ir::{Function, Module};

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
        fresh(&mut self.taken, name)
    }
}

/// The names that the fields of a parameter block have.
pub struct FieldNames {
    taken: HashSet<String>,
}

impl FieldNames {
    /// Parameters that are one field keep their names, whatever is put together from those of others.
    pub fn new(module: &Module) -> Self {
        let whole = module.params.iter().filter(|param| param.specialise.is_none() && flat::is_leaf(module, param.ty));
        Self { taken: whole.map(|param| plain(&param.name)).collect() }
    }

    /// The name of a leaf of a parameter: the parameter's own, or one with the names of fields behind it.
    pub fn of_leaf(&mut self, param: &str, leaf: &str) -> String {
        if leaf.is_empty() { param.to_owned() } else { self.fresh(&format!("{param}_{leaf}")) }
    }

    /// A name that was put together, with a number where another field has it.
    pub fn fresh(&mut self, name: &str) -> String {
        fresh(&mut self.taken, &plain(name))
    }
}

/// Only a whole name may be a raw one.
fn plain(name: &str) -> String {
    name.replace("r#", "")
}

fn fresh(taken: &mut HashSet<String>, name: &str) -> String {
    let mut fresh = name.to_owned();
    let mut number = 1;
    while !taken.insert(fresh.clone()) {
        number += 1;
        fresh = format!("{name}_{number}");
    }
    fresh
}
