//! Which elements can be multiplied, what comes out, and which kernels do it.

use crate::op::OpError;
use crate::types::{ElementType, TensorType};

use ElementType::{BF16, F16, F32, F64, I8, I32, I64, U8, U32, U64};

/// Elements of A, of B and of the result, and what a kernel's name has between its family's and the types that it is generic over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Types {
    a: ElementType,
    b: ElementType,
    out: ElementType,
    kernel: &'static str,
}

const fn row(a: ElementType, b: ElementType, out: ElementType, kernel: &'static str) -> Types {
    Types { a, b, out, kernel }
}

/// Every product that there is; of those of the same operands the usual one first.
const ALL: [Types; 16] = [
    row(F32, F32, F32, "f32"),
    row(F16, F16, F16, "f16"),
    row(F16, F16, F32, "wide_f16"),
    row(BF16, BF16, BF16, "bf16"),
    row(BF16, BF16, F32, "wide_bf16"),
    row(F32, F16, F32, "mixed_f16"),
    row(F32, BF16, F32, "mixed_bf16"),
    row(F64, F64, F64, "f64"),
    row(I32, I32, I32, "words"),
    row(U32, U32, U32, "words"),
    row(I64, I64, I64, "longs"),
    row(U64, U64, U64, "longs"),
    row(I8, I8, I32, "bytes_i8_i8"),
    row(I8, U8, I32, "bytes_i8_u8"),
    row(U8, I8, I32, "bytes_u8_i8"),
    row(U8, U8, I32, "bytes_u8_u8"),
];

/// What the elements of a product are if nothing else is asked for; of operands that have none, those of `a`.
pub(super) fn usual(a: ElementType, b: ElementType) -> ElementType {
    ALL.iter().find(|row| row.a == a && row.b == b).map_or(a, |row| row.out)
}

impl Types {
    /// The types of a product.
    ///
    /// # Errors
    /// There is no such product; the message names what could be instead.
    pub(super) fn new(a: &TensorType, b: &TensorType, out: ElementType) -> Result<Self, OpError> {
        let (a, b) = (a.element, b.element);
        if let Some(row) = ALL.iter().find(|row| (row.a, row.b, row.out) == (a, b, out)) {
            return Ok(*row);
        }
        let list = |holds: &dyn Fn(&Types) -> Option<ElementType>| {
            ElementType::list(|element| ALL.iter().any(|row| holds(row) == Some(element)))
        };
        if !ALL.iter().any(|row| row.a == a) {
            return Err(OpError::ElementType { input: "a", given: a, expected: list(&|row| Some(row.a)) });
        }
        if !ALL.iter().any(|row| row.a == a && row.b == b) {
            let expected = format!("{} beside an `a` of {a}", list(&|row| (row.a == a).then_some(row.b)));
            return Err(OpError::ElementType { input: "b", given: b, expected });
        }
        Err(OpError::Attribute {
            attribute: "out",
            given: out.to_string(),
            expected: format!("{} of {a} and {b}", list(&|row| (row.a == a && row.b == b).then_some(row.out))),
        })
    }

    /// The name of the kernel of a family for these types.
    pub(super) fn kernel(self, family: &str) -> String {
        format!("{family}_{}", self.kernel)
    }

    /// Whether all of them are single floats.
    pub(super) fn are_single(self) -> bool {
        self.kernel == "f32"
    }
}
