//! What was recorded, as the proof looks at it.

use std::sync::Arc;

use trefoil_dsl::device::{Command, Memory, MemoryRange};
use trefoil_dsl::support::check::same_memory;

use super::plan::Plan;
use super::program::{Meaning, Program};
use super::prove::{Access, Event, Trace};
use super::steps::{Step, Use};

/// What was recorded, for the proof: ranges and accesses are those of the commands, not of the plan.
///
/// # Errors
/// A command binds memory that the plan does not know.
pub fn trace(
    program: &Program,
    plan: &Plan,
    memory: &[Arc<dyn Memory>],
    steps: &[Step],
    commands: &[Command],
) -> Result<Trace, String> {
    let buffer = |range: &MemoryRange| {
        memory
            .iter()
            .position(|known| same_memory(known, &range.memory))
            .ok_or_else(|| "a command binds memory that is not in the plan".to_owned())
    };
    let bytes = |value: usize| u64::try_from(program.values[value].bytes.bounds().1).unwrap_or(0);
    let access = |range: &MemoryRange, used: &Use, reads: bool, writes: bool| {
        // The padding behind a value belongs to the binding, not to the value.
        let place = plan.places[used.value].ok_or("a step binds a value without a place")?;
        let end = (range.offset + range.bytes).min(place.offset.max(range.offset) + bytes(used.value));
        let meaning = program.values[used.value].meaning;
        let bytes =
            end.saturating_sub(range.offset).min((place.offset + bytes(used.value)).saturating_sub(range.offset));
        let over = used.over.map(|below| program.values[below].meaning);
        Ok::<_, String>(Access { buffer: buffer(range)?, offset: range.offset, bytes, reads, writes, meaning, over })
    };
    let mut trace = Trace::default();
    for (value, info) in program.values.iter().enumerate() {
        if let (Some(place), false) = (plan.places[value], !info.origin.is_given()) {
            trace.given.push(Access {
                buffer: place.buffer,
                offset: place.offset,
                bytes: bytes(value),
                reads: false,
                writes: true,
                meaning: info.meaning,
                over: None,
            });
        }
    }
    let mut next = steps.iter();
    for command in commands {
        let mut accesses = Vec::new();
        let step = match command {
            Command::Barrier => {
                trace.events.push(Event::Barrier);
                continue;
            }
            Command::Dispatch(dispatch) => {
                let step = next.next().ok_or("there are more commands than steps")?;
                let kernel = dispatch.pipeline.kernel();
                // Reports go to memory of the device's own, where no value lies.
                let reports = dispatch.bindings.get(step.uses.len()..).unwrap_or_default();
                if reports.len() > usize::from(!kernel.sites.is_empty()) || reports.iter().any(|at| buffer(at).is_ok())
                {
                    return Err(format!("`{}` binds more than its step uses", dispatch.label));
                }
                for ((range, used), binding) in dispatch.bindings.iter().zip(&step.uses).zip(&*kernel.bindings) {
                    accesses.push(access(range, used, binding.access.reads(), binding.access.writes())?);
                }
                step
            }
            Command::Call(call) => {
                let step = next.next().ok_or("there are more commands than steps")?;
                let reads = call.reads.iter().map(|range| (range, true));
                let ranges = reads.chain(call.writes.iter().map(|range| (range, false)));
                for ((range, reads), used) in ranges.zip(&step.uses) {
                    accesses.push(access(range, used, reads, !reads)?);
                }
                step
            }
            Command::Copy(copy) => return Err(format!("`{}`: no stage makes copies", copy.label)),
        };
        let (label, claims, part) = (step.label.to_string(), step.claims.clone(), step.part);
        trace.events.push(Event::Step { label, claims, part, accesses });
    }
    let outputs = program.outputs.iter().map(|(_, output)| (output.tensor, output.value));
    let resident = program.resident.iter().filter_map(|value| match program.values[*value].meaning {
        Meaning::Tensor(tensor) => Some((tensor, *value)),
        Meaning::Copy(_) | Meaning::Scratch { .. } | Meaning::Counters { .. } => None,
    });
    for (tensor, value) in outputs.chain(resident) {
        let place = plan.places[value].ok_or("what is there at the end has no place")?;
        let access = Access {
            buffer: place.buffer,
            offset: place.offset,
            bytes: bytes(value),
            reads: true,
            writes: false,
            meaning: program.values[value].meaning,
            over: None,
        };
        trace.taken.push((tensor, access));
    }
    Ok(trace)
}
