use trefoil_dsl::prelude::*;

#[device]
#[derive(Clone, Copy)]
struct Pair {
    a: f32,
    b: f32,
}

#[kernel(workgroup(64))]
fn report_format(y: &mut [f32], pair: Pair) {
    let i = global_index();
    assert!(i < y.len(), "element {missing} is not there");
    assert!(i < y.len(), "{} of {}", i);
    assert!(i < y.len(), "{i:>8}");
    assert_eq!(i);
    println!(i);
    println!("{pair:?}");
    y[i] = pair.a + pair.b;
}

fn main() {}
