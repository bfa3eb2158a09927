use trefoil_dsl::prelude::*;

#[device]
fn taken(counter: &[Atomic<u32>]) -> u32 {
    counter[0].add(1)
}

#[kernel(workgroup(64))]
fn report_effects(counter: &[Atomic<u32>], y: &mut [f32]) {
    let i = global_index();
    let mut last = 0;
    assert!(counter[0].add(1) < 64);
    assert!(taken(counter) < 64, "too many");
    assert!({
        last = i;
        last < 64
    });
    println!("{}", {
        barrier();
        i
    });
    y[i] = last as f32;
}

fn main() {}
