//! Constants where their value is asked for while compiling: in patterns and in sizes.

use super::{ir, mistakes, refused};

fn with(constants: &str, body: &str) -> String {
    format!("{constants}\n#[kernel(workgroup(64))] pub fn g(x: &[u32], y: &mut [u32], k: i32, c: bool) {{\n{body}\n}}")
}

#[test]
fn a_constant_in_a_pattern_is_converted_as_it_says() {
    let text = ir(&with(
        "#[device] const NONE: u32 = -1i32 as u32; #[device] const CUT: u32 = 300u32 as u8 as u32; #[device] const ROUNDED: u32 = (2.5 * 3.0) as u32;",
        "y[0] = match x[0] { NONE => 70, CUT => 71, ROUNDED => 72, _ => 73 };",
    ));
    for case in ["4294967295 => {", "44 => {", "7 => {"] {
        assert!(text.contains(case), "expected `{case}` in\n{text}");
    }
    for value in 70..74 {
        assert!(text.contains(&format!("{value}u32;")), "no arm is lost:\n{text}");
    }
}

#[test]
fn a_constant_in_a_pattern_has_any_operator() {
    let text = ir(&with(
        "#[device] const FLAG: u32 = 1 << 4; #[device] const BOTH: u32 = FLAG | 1 ^ 2; #[device] const REST: u32 = !FLAG & 0xff; #[device] const LEAST: i32 = -2147483648; #[device] const YES: bool = FLAG == 16 && !false;",
        "y[0] = match x[0] { FLAG => 1, BOTH => 2, REST => 3, _ => 4 }; y[1] = match k { LEAST => 1, _ => 2 }; y[2] = match c { YES => 1, _ => 2 };",
    ));
    for case in ["16 => {", "19 => {", "239 => {", "2147483648 => {", "if selector"] {
        assert!(text.contains(case), "expected `{case}` in\n{text}");
    }
}

#[test]
fn a_pattern_that_is_no_number_of_its_type_is_refused() {
    refused("match n { 5_000_000_000 => {} _ => {} }", "3:11", &["too large for u32"]);
    refused("match k { ..-9223372036854775808 => {} _ => {} }", "3:13", &["too small for i32"]);
    refused("match k { -2147483649 => {} _ => {} }", "3:11", &["too small for i32"]);
    refused("match k { -99999999999999999999 => {} _ => {} }", "3:11", &["too small for i32"]);
    let said = mistakes(&with(
        "#[device] const L: i64 = -9223372036854775808; #[device] const WORD: u32 = (L - 1) as u32;",
        "match x[0] { WORD => {} _ => {} }",
    ));
    assert!(said.contains("none of which overflows"), "{said}");
    // What rustc says of it must not end the compiler before.
    let _ = ir(&with(
        "#[device] const L: i64 = -9223372036854775808; #[device] const WORD: u32 = -L as u32;",
        "match x[0] { WORD => {} _ => {} }",
    ));
}

#[test]
fn a_pattern_of_indices_has_as_many_bits_as_they_have() {
    let with = |width: &str| {
        format!(
            "#[device] const FAR: usize = 5_000_000_000; #[device] const LAST: usize = (1 << 33) - 1;
            #[kernel(workgroup(64), index = {width}, targets(spirv, cuda, cpu))] pub fn g(x: &[u32], y: &mut [u32]) {{
            y[0] = match x.len() {{ FAR => 1, LAST => 2, 6_000_000_000 => 3, _ => 4 }};
            }}"
        )
    };
    let text = ir(&with("64"));
    for number in ["5000000000", "8589934591", "6000000000"] {
        assert!(text.contains(number), "expected `{number}` in\n{text}");
    }
    assert!(mistakes(&with("[32, 64]")).contains("too large for usize"));
}

#[test]
fn an_index_that_is_computed_is_not_cut() {
    let with = |attribute: &str, value: &str| {
        format!(
            "#[device] const FAR: usize = {value};
            #[kernel(workgroup(64){attribute})] pub fn g(y: &mut [u32]) {{ y[global_index() + FAR] = 1; }}"
        )
    };
    for value in ["100_000 * 100_000", "1 << 35", "4_000_000_000 + 294_967_296", "(1 << 32) / 4"] {
        for attribute in ["", ", index = [32, 64]"] {
            let said = mistakes(&with(attribute, value));
            assert!(said.contains("instances of kernels that are not `index = 64`"), "{value}{attribute}: {said}");
        }
        let _ = ir(&with(", index = 64, targets(spirv, cuda, cpu)", value));
    }
    for value in ["65_536 * 65_535", "1 << 31", "4_000_000_000 + 294_967_295", "(1 << 31) - 4"] {
        let _ = ir(&with("", value));
    }
    refused("y[global_index() + 65_536 * 65_536] = a;", "3:20", &["too large for usize"]);
    refused("y[global_index() << 32] = a;", "3:21", &["`usize` has 32 bits", "not `index = 64`"]);
    let of_itself = "#[device] fn far(i: usize) -> usize { (i >> 40) + (1 << 35) }";
    assert!(trefoil_codegen::front::parse_source(of_itself).is_ok());
}

#[test]
fn a_size_is_not_cut_by_a_conversion() {
    let text = ir(&with(
        "#[device] const N: u32 = 300;",
        "let mut t = workgroup_array::<u32>(N as usize); t[0] = 1; let s = [0u32; 7 as u8 as usize]; y[0] = s[1];",
    ));
    assert!(text.contains("workgroup t: [u32; 300]") && text.contains("[u32; 7]"), "{text}");
    refused(
        "let mut t = workgroup_array::<f32>(300 as u8 as usize);",
        "3:43",
        &["`u8` cannot hold this size, which is 300"],
    );
    refused("let t = [0.0; 3 as f32 as usize];", "3:20", &["`as usize`"]);
}
