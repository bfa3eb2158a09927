//! Workgroup arrays that are read and that nothing writes: a device leaves in them what was there before.

use super::session::Session;
use crate::ir::{Function, Root};
use crate::verify::places;

impl Session {
    /// Refuses workgroup arrays that a function or those that it calls read and none of them writes. One that was handed to a function by `&mut` counts as written, whatever stands for the function's types.
    pub(super) fn check_written(&mut self, function: &Function) {
        let mut read = vec![false; self.module.workgroup.len()];
        let mut written = vec![false; self.module.workgroup.len()];
        let called = self.module.functions.iter().map(|(_, called)| called);
        for function in called.chain([function]) {
            places(function, &mut |place, writes| {
                if let Root::Workgroup(variable) = place.root {
                    let touched = if writes { &mut written } else { &mut read };
                    touched[variable.index()] = true;
                }
            });
        }
        let mut lacking = Vec::new();
        for (handle, variable) in self.module.workgroup.iter() {
            let is_written = written[handle.index()] || self.handed.contains(&handle);
            // Tiles are no places.
            if read[handle.index()] && !is_written && variable.tile.is_none() {
                lacking.push((variable.name.clone(), variable.span));
            }
        }
        for (name, span) in lacking {
            self.error_at(
                span,
                format!("`{name}` is read and never written: workgroup memory holds anything until it is written"),
            );
        }
    }
}
