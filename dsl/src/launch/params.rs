//! The ranges that a launch binds, and its parameter block.

use trefoil_codegen::artefact::{Binding, Kernel, MOST_ELEMENTS, ParamField, ParamRole};

use super::{BoundBuffer, Launch, argument};
use crate::device::{Device, MemoryRange};
use crate::error::Result;
use crate::param::halves;
use crate::support::check::{BINDING_MULTIPLE, padded};

/// Bindings of elements smaller than this start at a multiple of it, because devices without 16-bit memory access move words.
const WORD: u64 = 4;

/// A bound range, and the element of it at which the kernel's slice starts.
pub(super) struct Bound {
    pub range: MemoryRange,
    pub offset: u64,
}

/// What of its memory is bound for `buffer`.
pub(super) fn bind(kernel: &Kernel, binding: &Binding, buffer: &BoundBuffer, device: &Device) -> Result<Bound> {
    let wrong = |reason: String| Err(argument(kernel, &binding.name, reason));
    let size = u64::from(binding.element.size);
    let vector = u64::from(binding.vector.max(1));
    if !buffer.first.is_multiple_of(vector) {
        return wrong(format!(
            "it starts at element {}; the kernel moves {vector} elements at once, so it must start at a multiple of {vector}",
            buffer.first
        ));
    }
    let (Some(first), Some(bytes)) = (buffer.first.checked_mul(size), buffer.length.checked_mul(size)) else {
        return wrong(format!("{} elements from {} on are more than memory can hold", buffer.length, buffer.first));
    };
    if !first.is_multiple_of(WORD) {
        return wrong(format!("it starts at element {}, which is not at a multiple of {WORD} bytes", buffer.first));
    }
    if device.kind().has_pointers() {
        let end = first.saturating_add(padded(bytes)).min(padded(buffer.memory.bytes()));
        return Ok(Bound {
            range: MemoryRange { memory: buffer.memory.clone(), offset: first, bytes: end.saturating_sub(first) },
            offset: 0,
        });
    }
    // From the rest on, the kernel counts in its own elements and vectors, so the start is a multiple of those too.
    let alignment = device.limits().binding_alignment.max(BINDING_MULTIPLE);
    let step = least_common_multiple(alignment, size * vector);
    // WGSL wants what the kernel moves at once, of an empty slice too: so it starts early enough for that.
    let least = size * vector;
    let last = buffer.memory.room().saturating_sub(least);
    let start = first.min(last) / step * step;
    let rest = first - start;
    Ok(Bound {
        range: MemoryRange { memory: buffer.memory.clone(), offset: start, bytes: padded(least.max(rest + bytes)) },
        offset: rest / size,
    })
}

/// The parameter block of a launch.
pub(super) fn block(kernel: &Kernel, launch: &Launch, bound: &[Bound], group_count: u32) -> Result<Vec<u8>> {
    let mut block = vec![0u8; kernel.params.size as usize];
    for field in &*kernel.params.fields {
        let words = words(kernel, launch, bound, group_count, field)?;
        let start = field.offset as usize;
        let bytes = words.iter().flat_map(|word| word.to_le_bytes());
        let Some(place) = block.get_mut(start..start + 4 * words.len()) else {
            return Err(argument(
                kernel,
                &field.name,
                format!("it leaves the parameter block of {} bytes", kernel.params.size),
            ));
        };
        place.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
    }
    Ok(block)
}

fn words(kernel: &Kernel, launch: &Launch, bound: &[Bound], group_count: u32, field: &ParamField) -> Result<Vec<u32>> {
    let missing = || argument(kernel, &field.name, "it is not given");
    let index = |what: &str, number: u64| -> Result<Vec<u32>> {
        if field.ty.scalar.bytes() == 8 {
            return Ok(halves(number).to_vec());
        }
        match u32::try_from(number) {
            Ok(word) => Ok(vec![word]),
            Err(_) => Err(argument(kernel, &field.name, format!("its {what}, {number}, does not fit into 32 bits"))),
        }
    };
    // What loops count up to.
    let counted = |what: &str, number: u64| -> Result<Vec<u32>> {
        if field.ty.scalar.bytes() != 8 && number > u64::from(MOST_ELEMENTS) {
            let reason =
                format!("its {what}, {number}, is above {MOST_ELEMENTS}, the most that indices of 32 bits count up to");
            return Err(argument(kernel, &field.name, reason));
        }
        index(what, number)
    };
    let all = |numbers: &[u64], words: &dyn Fn(u64) -> Result<Vec<u32>>| -> Result<Vec<u32>> {
        let words = numbers.iter().map(|number| words(*number)).collect::<Result<Vec<_>>>()?;
        Ok(words.concat())
    };
    let buffer = |index: u32| launch.buffers.get(index as usize).ok_or_else(missing);
    match field.role {
        ParamRole::User(index) => {
            let given = launch.values.get(index as usize).ok_or_else(missing)?;
            given.words(field.ty.scalar).map_err(|reason| argument(kernel, &field.name, reason))
        }
        // Two's complement for an `i32`.
        ParamRole::Constant(index) => Ok(vec![kernel.constants.get(index as usize).ok_or_else(missing)?.value as u32]),
        ParamRole::Length(binding) => counted("length", buffer(binding)?.length),
        ParamRole::Offset(binding) => {
            let bound = bound.get(binding as usize).ok_or_else(missing)?;
            // The last index that the kernel computes is offset + length - 1.
            index("end", bound.offset.saturating_add(buffer(binding)?.length))?;
            index("start", bound.offset)
        }
        ParamRole::Extents(binding) => all(&buffer(binding)?.extents, &|extent| counted("extent", extent)),
        ParamRole::Strides(binding) => all(&buffer(binding)?.strides, &|stride| index("stride", stride)),
        ParamRole::GroupCount => Ok(vec![group_count]),
    }
}

fn least_common_multiple(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a.checked_div(x).map_or(1, |times| times * b)
}
