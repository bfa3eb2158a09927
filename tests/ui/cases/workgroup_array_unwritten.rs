use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn read_alone(y: &mut [f32]) {
    let t = workgroup_array::<f32>(64);
    y[global_index()] = t[local_index()];
}

#[device]
fn last(t: &[f32]) -> f32 {
    t[t.len() - 1]
}

#[kernel(workgroup(64))]
fn read_by_a_function(y: &mut [f32]) {
    let t = workgroup_array::<f32>(64);
    y[global_index()] = last(&t);
}

#[device]
fn fill(t: &mut [f32]) {
    t[local_index()] = 1.0;
}

#[device]
fn count(t: &[Atomic<u32>]) {
    t[0].add(1);
}

// What functions write is written.
#[kernel(workgroup(64))]
fn written_by_functions(y: &mut [f32]) {
    let mut t = workgroup_array::<f32>(64);
    let counts = workgroup_array::<Atomic<u32>>(1);
    fill(&mut t);
    count(&counts);
    barrier();
    y[global_index()] = last(&t) + counts[0].load() as f32;
}

fn main() {}
