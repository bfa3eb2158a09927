//! `#[device]` items: names, copies of functions, bundles, library functions.

use trefoil_codegen::front::{self, Bundle, Bundles, Names, path_name};
use trefoil_codegen::ir::Module;

use super::{ir, mistakes};

#[test]
fn a_function_has_one_copy_for_each_set_of_variables_and_types() {
    let text = ir("
        #[device] fn total<T: Number, const N: usize>(v: &[T], zero: T) -> T { let mut s = zero; for i in 0..N { s += v[i]; } s }
        #[kernel(workgroup(64))]
        pub fn g(x: &[f32], z: &[f32], y: &mut [f32], u: &mut [u32]) {
            let mut tile = workgroup_array::<f32>(64);
            tile[local_index()] = 0.0;
            y[0] = total::<f32, 4>(x, 0.0) + total::<f32, 4>(x, 1.0);
            y[1] = total::<f32, 4>(z, 0.0) + total::<f32, 4>(&tile, 0.0);
            u[0] = total::<_, 2>(u, 0);
        }");
    assert_eq!(text.matches("fn total").count(), 4, "{text}");
    for name in ["fn total(", "fn total_1(", "fn total_2(", "fn total_3(zero: u32) -> u32"] {
        assert!(text.contains(name), "expected `{name}` in\n{text}");
    }
}

#[test]
fn the_length_of_an_array_argument_is_inferred() {
    let text = ir("
        #[device] fn sum<const N: usize>(v: [f32; N]) -> f32 { let mut s = 0.0; for i in 0..v.len() { s += v[i]; } s }
        #[kernel(workgroup(64))]
        pub fn g(y: &mut [f32]) { y[0] = sum([1.0, 2.0, 3.0]); }");
    assert!(text.contains("fn sum(v: [f32; 3]) -> f32") && text.contains("in 0..3"), "{text}");
}

#[test]
fn references_are_copied_in_and_out() {
    let text = ir("
        #[device] fn add(v: &mut [f32; 4], t: &mut f32, by: f32) { v[1] += by; *t += by; more(t); }
        #[device] fn more(t: &mut f32) { *t *= 2.0; }
        #[kernel(workgroup(64))]
        pub fn g(y: &mut [f32]) {
            let mut v = [0.0; 4];
            let mut p = Vec2::splat(0.0);
            add(&mut v, &mut p.y, 1.0);
            y[0] = v[1] + p.y;
        }");
    for line in [
        "fn add(v: &mut [f32; 4], t: &mut f32, by: f32)",
        "more(&mut t);",
        "let mut part.2: f32 = p.1.1;",
        "add(&mut v.0, &mut part.2, 1.0);",
        "p.1.1 = part.2;",
    ] {
        assert!(text.contains(line), "expected `{line}` in\n{text}");
    }
}

#[test]
fn constants_are_computed_while_compiling() {
    let text = ir("
        #[device] const N: usize = 4 * M;
        #[device] const M: usize = 3;
        #[device] const THIRD: f32 = 1.0 / 3.0;
        #[device] const WEIGHTS: [f32; 2] = [THIRD, 2.0 * THIRD];
        #[kernel(workgroup(N))]
        pub fn g(y: &mut [f32]) { let v = [0.0; N]; y[N] = THIRD + WEIGHTS[1] + v[0]; match y.len() { N => {} _ => {} } }");
    for line in [
        "kernel(12, 1, 1)",
        "[f32; 12]::splat(0.0)",
        "y[?12] = ((0.33333334 + [f32; 2](0.33333334, 0.6666667).1)",
        "12 => {",
    ] {
        assert!(text.contains(line), "expected `{line}` in\n{text}");
    }
}

#[test]
fn a_constant_may_stand_in_the_attribute_alone() {
    let text = ir("
        #[device] const SIZE: usize = 32;
        #[device] const LANES: usize = 16;
        #[kernel(workgroup(2 * SIZE), subgroup(LANES), resident(SIZE), requires(Subgroups))]
        pub fn g(y: &mut [f32]) { y[0] = 1.0; }");
    assert!(text.contains("kernel(64, 1, 1; subgroup 16; resident 32)"), "{text}");
    let attribute =
        quote::quote!(workgroup(N, sizes::WIDE, N * 2), specialise(TILE: usize = 4, in 1..=8), resident(TILE));
    let item = syn::parse_quote! { fn f<const N: usize>(y: &mut [f32]) { y[0] = LAST; } };
    let names: Vec<String> = front::kernel_items_named(&attribute, &item).iter().map(path_name).collect();
    assert_eq!(names, ["LAST", "sizes::WIDE"]);
}

#[test]
fn capitals_are_names_where_a_pattern_always_fits() {
    let item: syn::ItemFn = syn::parse_quote! {
        fn gemm(A: &[f32], N: usize) {
            let M = A.len();
            for I in 0..N { let t = reduce(A, |X, Y| X + Y) + A[I]; }
            match M { LIMIT => {}, _ => {} }
            if let TOP = M {}
        }
    };
    let names: Vec<String> = front::items_named(&item).iter().map(path_name).collect();
    assert_eq!(names, ["reduce", "LIMIT", "TOP"]);
    let text = ir("
        #[device] fn total<F: Fn(f32, f32) -> f32>(A: &[f32], N: usize, F_: F) -> f32 { let mut S = 0.0; for I in 0..N { S = F_(S, A[I]); } S }
        #[kernel(workgroup(64))]
        pub fn gemm(A: &[f32], C: &mut [f32], N: u32) {
            let I = global_index();
            if I < C.len() { C[I] = total(A, N as usize, |X, Y| X + Y); }
        }");
    assert!(text.contains("A: &[f32]") && text.contains("C: &mut [f32]"), "{text}");
}

#[test]
fn what_can_be_no_item_is_not_looked_for() {
    let item: syn::ItemFn = syn::parse_quote! {
        fn f(y: &mut [f32]) {
            const K: usize = 3;
            fn twice(x: f32) -> f32 { helper(x) }
            use other::Thing;
            let a = std::f32::consts::PI + core::cmp::max(K, 1) + twice(2.0) + std::f32::MAX;
            let b: std::ops::Range<usize> = Some(None);
            let c = vec3(threadIdx.x, get_global_id(0), Ok(Thing));
            __syncthreads();
        }
    };
    assert_eq!(front::items_named(&item).iter().map(path_name).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn the_names_that_an_item_uses() {
    let item: syn::Item = syn::parse_quote! {
        fn f<T: Float, const N: usize>(p: &[Particle], act: shapes::Act, x: T) -> crate::Other {
            let local = helper(p[0].x) + math::scale::<T>(LIMIT as f32) + exp(local) + local + f32::MAX + PI;
            let v = Vec4::<f32>::new(T::lit(1.0), 2.0, 3.0, N as f32);
            match act { shapes::Act::Relu => Other { field: COUNT }, TOP => trefoil::prelude::sqrt(1.0), _ => f(local) }
        }
    };
    let names: Vec<String> = front::items_named(&item).iter().map(path_name).collect();
    assert_eq!(
        names,
        ["Particle", "shapes::Act", "crate::Other", "helper", "math::scale", "LIMIT", "Other", "COUNT", "TOP"]
    );
}

#[test]
fn a_bundle_survives_the_way_through_tokens() {
    let item: syn::Item = syn::parse_quote! { pub fn f(x: f32) -> f32 { a::g(x) } };
    let names = Names::from([("a::g".to_owned(), "00ff".to_owned())]);
    let bundle = Bundle::new(item.clone(), names.clone(), true);
    let other = Bundle::new(item, Names::from([("a::g".to_owned(), "00fe".to_owned())]), true);
    assert_ne!(bundle.hash, other.hash, "what is used is part of what an item is");
    let tokens = quote::quote!(#bundle #other #bundle);
    let again: Bundles = syn::parse2(tokens).unwrap();
    assert_eq!(again.0.len(), 2);
    assert_eq!(again.0[0].hash, bundle.hash);
    assert_eq!(again.0[0].names, names);
    assert!(again.0[0].failed);
}

#[test]
fn two_functions_of_one_name_are_two() {
    let function = |text: &str| syn::parse_str::<syn::Item>(text).unwrap();
    let one = Bundle::new(function("fn scale(x: f32) -> f32 { x * 2.0 }"), Names::new(), false);
    let two = Bundle::new(function("fn scale(x: f32) -> f32 { x * 3.0 }"), Names::new(), false);
    let names = Names::from([("a::scale".to_owned(), one.hash.clone()), ("b::scale".to_owned(), two.hash.clone())]);
    let output = front::parse(front::Input {
        attribute: quote::quote!(workgroup(64)),
        item: syn::parse_quote! { pub fn g(y: &mut [f32]) { y[0] = a::scale(1.0) + b::scale(1.0); } },
        bundles: vec![one, two],
        names,
        support: quote::quote!(::trefoil),
        file: "test".to_owned(),
    })
    .unwrap();
    let text = output.module.to_string();
    assert!(text.contains("(scale(1.0) + scale_1(1.0))"), "{text}");
}

#[test]
fn a_failed_item_says_nothing_more() {
    let item = syn::parse_str("fn scale(x: f32) -> f64 { x * 2.0 }").unwrap();
    let bundle = Bundle::new(item, Names::new(), true);
    let errors = front::parse(front::Input {
        attribute: quote::quote!(workgroup(64)),
        item: syn::parse_quote! { pub fn g(y: &mut [f32]) { let s = scale(1.0); y[0] = s + 1.0; } },
        names: Names::from([("scale".to_owned(), bundle.hash.clone())]),
        bundles: vec![bundle],
        support: quote::quote!(::trefoil),
        file: "test".to_owned(),
    })
    .unwrap_err();
    assert!(errors.0.is_empty(), "{errors}");
}

#[test]
fn library_functions_are_added_once() {
    let source = "
        #[device] fn square(x: f32) -> f32 { x * x }
        #[device] fn quartic(x: f32) -> f32 { square(square(x)) }
        #[device] fn sextic(x: f32) -> f32 { quartic(x) * square(x) }";
    let mut module = Module::default();
    let quartic = front::library(source, "quartic", &mut module).unwrap();
    let sextic = front::library(source, "sextic", &mut module).unwrap();
    assert_eq!(front::library(source, "quartic", &mut module).unwrap(), quartic);
    let names: Vec<_> = module.functions.iter().map(|(_, function)| function.name.as_str()).collect();
    assert_eq!(names, ["square", "quartic", "sextic"]);
    assert_eq!(module.functions[sextic].name, "sextic");
    assert!(front::library(source, "nothing", &mut module).is_err());
}

#[test]
fn recursion_is_refused_however_long_the_way() {
    let said = mistakes(
        "
        #[device] fn a(x: f32) -> f32 { b(x) }
        #[device] fn b(x: f32) -> f32 { a(x) }
        #[device] fn c(x: f32) -> f32 { c(x) }
        #[device] const D: usize = D;
        #[kernel(workgroup(64))] pub fn g(y: &mut [f32]) { y[0] = a(1.0); }",
    );
    assert!(said.contains("recursion is not part of the kernel language"), "{said}");
    assert!(said.contains("4:41: `c` calls itself"), "{said}");
}

#[test]
fn mistakes_in_functions_are_shown_where_they_are_and_once() {
    let said = mistakes(
        "
        #[device] fn a<T: Number>(x: T, y: u32) -> T { x + y }
        #[kernel(workgroup(64))] pub fn g(y: &mut [f32]) { y[0] = a(1.0, 2); y[1] = a(2.0, 3); }",
    );
    assert!(said.contains("2:60: expected `T`, found `u32`"), "{said}");
}

#[test]
fn a_bound_must_be_met() {
    let said = mistakes(
        "
        #[device] fn a<T: Number>(x: T) -> T { x + x }
        #[kernel(workgroup(64), instances(T = [f16]))] pub fn g<T: Float>(x: &[T], y: &mut [T]) { y[0] = a(x[0]); }",
    );
    assert!(said.contains("`T` cannot stand for `T: Number` of `a`"), "{said}");
}

#[test]
fn the_checked_text_has_the_types_written_in() {
    let outputs = super::outputs(
        "#[kernel(workgroup(64), instances(T = [f32]))]
         pub fn g<T: Number>(x: &[T], y: &mut [f32]) {
            let i = 1; let mut s = 0.; let v = Vec2::splat(1e3); let w = x[i]; let a = [s; 3];
            for j in 0..4 { y[j] += v.x; }
            let mut tile = workgroup_array::<f32>(4 * 2);
            let q: u32 = 0xff; let r = T::lit(2.0);
            tile[i] = s; s = a[0];
         }",
    );
    let text = outputs[0].checked.to_string().replace(' ', "");
    for part in [
        "fng<T:Number>(x:&[T],y:&mut[f32])",
        "leti:usize=1usize;",
        "letmuts:f32=0f32;",
        "letv:::trefoil::prelude::Vec2<f32>=Vec2::splat(1e3f32);",
        "letw:T=x[i];",
        "leta:[f32;3]=[s;3];",
        "forjin0usize..4usize",
        "workgroup_array::<f32>(4*2)",
        "letq:u32=0xffu32;",
        "letr:T=T::lit(2.0);",
    ] {
        assert!(text.contains(part), "expected `{part}` in\n{text}");
    }
}
