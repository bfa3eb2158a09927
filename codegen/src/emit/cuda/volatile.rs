//! Reads that stay where they are written (`volatile(x)`): inline PTX, since what C++ calls volatile also passes by the caches.

use crate::emit::text::{Code, Printer, infix};
use crate::ir::{BinaryOperator, Root};
use crate::target::Target;

use super::Cuda;

/// Whether a place is in a buffer whose reads are volatile.
pub(super) fn is_volatile(p: &Printer<'_, Cuda>, root: Root) -> bool {
    matches!(root, Root::Binding(binding) if p.lowered.module.bindings[binding as usize].volatile.contains(&Target::Cuda))
}

/// Such a read, of a scalar or a vector; zero if the condition does not hold, without a branch.
pub(super) fn read(p: &mut Printer<'_, Cuda>, pointer: Code, index: Code, condition: &str) -> Code {
    p.prelude("read_here", || {
        let sizes = WAYS.iter().map(Way::text).collect::<Vec<_>>().join(" else ");
        format!(
            "// `*from` if it is inside, read here and once.\n\
             template <typename T> __device__ __forceinline__ T read_here(const T* from, bool inside) {{\n    {sizes}\n}}\n"
        )
    });
    let at = infix(BinaryOperator::Add, pointer, index);
    Code::call("read_here", [at, Code::atom(condition)])
}

/// How a value of some size is read: so many parts of a type of PTX, which a letter stands for among the constraints of inline assembly.
struct Way {
    bytes: usize,
    holder: &'static str,
    ty: &'static str,
    letter: char,
    parts: usize,
}

/// PTX has no registers of eight bits.
const WAYS: [Way; 6] = [
    Way { bytes: 1, holder: "unsigned short", ty: "u8", letter: 'h', parts: 1 },
    Way { bytes: 2, holder: "unsigned short", ty: "u16", letter: 'h', parts: 1 },
    Way { bytes: 4, holder: "uint", ty: "u32", letter: 'r', parts: 1 },
    Way { bytes: 8, holder: "uint", ty: "u32", letter: 'r', parts: 2 },
    Way { bytes: 16, holder: "uint", ty: "u32", letter: 'r', parts: 4 },
    Way { bytes: 32, holder: "unsigned long long", ty: "u64", letter: 'l', parts: 4 },
];

impl Way {
    fn text(&self) -> String {
        let Self { bytes, holder, ty, letter, parts } = self;
        let held = if *ty == "u8" { "u16" } else { ty };
        let zeros: String = (0..*parts).map(|part| format!("mov.{held} %{part}, 0; ")).collect();
        let outputs: Vec<_> = (0..*parts).map(|part| format!("\"=&{letter}\"(held[{part}])")).collect();
        // No load has more than 16 bytes.
        let at_once = (*parts).min(16 * parts / bytes).max(1);
        let reads: String = (0..*parts)
            .step_by(at_once)
            .map(|first| {
                let into: Vec<_> = (first..first + at_once).map(|part| format!("%{part}")).collect();
                let vector = if at_once > 1 { format!("v{at_once}.") } else { String::new() };
                format!(
                    "@p ld.global.nc.{vector}{ty} {{{}}}, [%{parts} + {}]; ",
                    into.join(", "),
                    first * bytes / parts
                )
            })
            .collect();
        format!(
            "if constexpr (sizeof(T) == {bytes}) {{\n        alignas(T) alignas({holder}) {holder} held[{parts}];\n        \
             asm volatile(\"{{ .reg .pred p; setp.ne.u32 p, %{}, 0; {zeros}{reads}}}\" : {} : \"l\"(from), \"r\"(uint(inside)));\n        \
             return *reinterpret_cast<const T*>(held);\n    }}",
            parts + 1,
            outputs.join(", ")
        )
    }
}
