//! How many workgroups may run at once: what is proved of kernels, and what a launch makes of that.

use trefoil_codegen::artefact::{CpuArguments, CpuFunction, ParamRole, ShareStep};
use trefoil_codegen::layout;

use super::*;

/// A kernel of 64 invocations with these statements and indices of that width.
fn verified(statements: &str, index: IndexWidth) -> Verified {
    let source = format!(
        "#[device] struct Shape {{ rows: u32, sides: Vec2<u32>, width: u32 }}
        #[kernel(workgroup(64), targets(spirv, cuda, cpu))]
        fn k(y: &mut [f32], z: &mut [f32], n: usize, shape: Shape) {{ {statements} }}"
    );
    let outputs = parse_source(&source).unwrap_or_else(|errors| panic!("{errors}"));
    let instance = Instance { index, ..Instance::default() };
    accepted(instantiate(&outputs[0].module, &instance).unwrap_or_else(|found| panic!("{found}")))
}

/// Statements that write a row for each workgroup.
fn rows(width: &str) -> String {
    format!(
        "let row = group_index(); let w = {width}; for c in (local_index()..w).step_by(64) {{ y[row * w + c] = 1.0; }}"
    )
}

/// How many workgroups may run at once where `n` has this value, the parameters behind it 10 more each, the second lane of one more, and `y` has 500 elements.
fn at_once(verified: &Verified, n: u64) -> u64 {
    let params = layout::params(&verified.module, verified.info.grid).expect("it has parameters that can be ones");
    let mut block = vec![0; params.size as usize];
    for field in params.fields.iter() {
        for number in 0..field.ty.count {
            let value = match field.role {
                ParamRole::User(leaf) => n + 10 * u64::from(leaf) + u64::from(number),
                ParamRole::Length(0) => 500,
                _ => 0,
            };
            let bytes = field.ty.scalar.bytes();
            let at = (field.offset + bytes * number) as usize;
            block[at..at + bytes as usize].copy_from_slice(&value.to_le_bytes()[..bytes as usize]);
        }
    }
    verified.info.at_once(&block)
}

#[test]
fn as_many_workgroups_run_at_once_as_have_all_elements_together() {
    let all = 1u64 << 32;
    for (statements, n, expected) in [
        ("y[global_index()] = 1.0;".to_owned(), 0, all / 64),
        (
            "y[global_index()] = 1.0; z[4 * global_index() + 3] = 1.0; z[4 * global_index()] = 2.0;".to_owned(),
            0,
            all / 256,
        ),
        ("y[group_index() * 1_073_741_824 + local_index()] = 1.0;".to_owned(), 0, 4),
        ("y[group_index() * 4_294_967_295 + local_index()] = 1.0;".to_owned(), 0, 1),
        (rows("n"), 1000, all / 1000),
        (rows("n"), 0, all),
        (rows("n"), 1 << 31, 2),
        (rows("n"), (1 << 31) + 1, 1),
        (rows("n / 4"), 1000, all / 250),
        (rows("n % 300"), 1000, all / 100),
        (rows("3 * n + 5"), 1000, all / 3005),
        (rows("min(n, 100)"), 1000, all / 100),
        (rows("max(n, 3000)"), 1000, all / 3000),
        (rows("n << (shape.rows % 4)"), 1000, all / 4000),
        (rows("n >> (shape.rows % 4)"), 1000, all / 250),
        (rows("shape.sides.y as usize"), 1000, all / 1021),
        (rows("shape.width as usize"), 1000, all / 1030),
        (rows("y.len()"), 0, all / 500),
        (format!("{} z[global_index()] = 1.0;", rows("n")), 63, all / 64),
        (format!("{} z[global_index()] = 1.0;", rows("n")), 65, all / 65),
        (
            "let row = 2 * group_index() + local_index() % 2;
            for c in (local_index() / 2..n).step_by(32) { y[row * n + c] = 1.0; }"
                .to_owned(),
            1000,
            all / 2000,
        ),
    ] {
        for index in IndexWidth::ALL {
            let verified = verified(&statements, index);
            assert_eq!(verified.info.disjoint, [true, true], "{statements}");
            assert_eq!(at_once(&verified, n), expected, "{statements} of {n} with {index:?}");
        }
    }
}

#[test]
fn sizes_wrap_as_the_kernels_do() {
    // 2^16 + 1 squared is 2^32 + 2^17 + 1.
    for (index, expected) in [(IndexWidth::Bits32, (1u64 << 32) / ((1 << 17) + 1)), (IndexWidth::Bits64, 1)] {
        assert_eq!(at_once(&verified(&rows("n * n"), index), (1 << 16) + 1), expected, "{index:?}");
    }
}

#[test]
fn where_nothing_is_divided_all_workgroups_run_at_once() {
    for statements in ["y[0] = 1.0;", "z[0] = y[0];"] {
        assert_eq!(at_once(&verified(statements, IndexWidth::Bits32), 0), u64::MAX, "{statements}");
    }
}

unsafe fn nothing(_: &CpuArguments<'_>, _: u64, _: u64) {}

#[test]
fn what_cannot_be_computed_may_be_anything() {
    use ShareStep as S;
    let of = |share: &'static [ShareStep]| CpuFunction { entry: nothing, share }.at_once(&[0xff; 8]);
    let all = 1u64 << 32;
    assert_eq!(of(&[]), u64::MAX);
    assert_eq!(of(&[S::Word(0)]), 1);
    assert_eq!(of(&[S::Long(0)]), 1);
    // Behind the block.
    assert_eq!(of(&[S::Word(8)]), 1);
    assert_eq!(of(&[S::Long(4)]), 1);
    // No steps to a number.
    assert_eq!(of(&[S::Number(8), S::Add]), 1);
    assert_eq!(of(&[S::Number(8), S::Number(8)]), 1);
    assert_eq!(of(&[S::Number(1), S::Number(64), S::ShiftLeft]), 1);
    assert_eq!(of(&[S::Number(i128::MAX), S::Number(2), S::Multiply]), 1);
    // A share of no elements, or of fewer, is one of nothing.
    assert_eq!(of(&[S::Signed(0)]), all);
    assert_eq!(of(&[S::Number(8), S::Number(0), S::Divide]), all);
    // -1 as a number without a sign, and back.
    assert_eq!(of(&[S::Signed(0), S::Wrap { signed: false, wide: false }, S::Number(1 << 30), S::Divide]), all / 3);
    assert_eq!(of(&[S::Word(0), S::Wrap { signed: true, wide: false }, S::Number(17), S::Add]), all / 16);
    assert_eq!(of(&[S::Number(12), S::Number(10), S::Xor, S::Number(2), S::Or, S::Number(4), S::Remainder]), all / 2);
    assert_eq!(of(&[S::Number(12), S::Number(10), S::And, S::Number(2), S::ShiftRight, S::Number(7), S::Max]), all / 7);
}
