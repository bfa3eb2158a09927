//! Kernels for the tests of the CPU, in the language that authors write.

#[kernel(workgroup(256))]
fn scaled(x: &[f32], y: &mut [f32], s: f32) {
    let i = global_index();
    if i < y.len() {
        y[i] = x[i] * s + 1.0;
    }
}

#[kernel(workgroup(64))]
fn sum(x: &[f32], y: &mut [f32]) {
    let mut part = workgroup_array::<f32>(64);
    let l = local_index();
    let mut total = 0.0;
    for i in (global_index()..x.len()).step_by(64 * group_count()) {
        total += x[i];
    }
    part[l] = total;
    barrier();
    let mut step = 32usize;
    while step > 0 {
        if l < step {
            part[l] = part[l] + part[l + step];
        }
        barrier();
        step = step / 2;
    }
    if l == 0 {
        y[group_index()] = part[0];
    }
}

#[kernel(workgroup(8, 8))]
fn tiled(a: &[f32], b: &[f32], c: &mut [f32], m: usize, n: usize, k: usize) {
    let mut left = workgroup_array::<f32>(64);
    let mut right = workgroup_array::<f32>(64);
    let row = group_id().y * 8 + local_id().y;
    let column = group_id().x * 8 + local_id().x;
    let mut total = 0.0;
    let mut t = 0usize;
    while t < k {
        let at = local_id().y * 8 + local_id().x;
        left[at] = if row < m && t + local_id().x < k { a[row * k + t + local_id().x] } else { 0.0 };
        right[at] = if column < n && t + local_id().y < k { b[(t + local_id().y) * n + column] } else { 0.0 };
        barrier();
        for i in 0..8 {
            total += left[local_id().y * 8 + i] * right[i * 8 + local_id().x];
        }
        barrier();
        t += 8;
    }
    if row < m && column < n {
        c[row * n + column] = total;
    }
}

#[kernel(workgroup(64))]
fn histogram(x: &[u32], bins: &[Atomic<u32>]) {
    let counts = workgroup_array::<Atomic<u32>>(16);
    let l = local_index();
    if l < 16 {
        counts[l].store(0);
    }
    barrier();
    let i = global_index();
    if i < x.len() {
        let _before = counts[(x[i] % 16) as usize].add(1);
    }
    barrier();
    if l < 16 {
        let _before = bins[l].add(counts[l].load());
    }
}

#[kernel(workgroup(32))]
fn winding(x: &[u32], y: &mut [u32]) {
    let i = global_index();
    if i >= y.len() {
        return;
    }
    let mut n = x[i];
    let mut steps = 0u32;
    if n == 0 {
        y[i] = 4_000_000_000;
        return;
    }
    loop {
        if n == 1 {
            break;
        }
        if n % 2 == 0 {
            n = n / 2;
            steps += 1;
            continue;
        }
        n = n * 3 + 1;
        steps += 1;
        if steps > 100 {
            break;
        }
    }
    match steps {
        0 => y[i] = 1000,
        1 | 2 => y[i] = 2000 + steps,
        _ => y[i] = steps,
    }
}

#[kernel(workgroup(32), requires(Subgroups))]
fn lanes(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    let v = if i < x.len() { x[i] } else { 0.0 };
    let all = subgroup_add(v);
    let most = subgroup_max(v);
    let first = subgroup_broadcast(v, 0);
    let neighbour = subgroup_shuffle_xor(v, 1);
    if i < y.len() {
        y[i] = all + most * 2.0 + first * 4.0 + neighbour * 8.0 + subgroup_lane() as f32;
    }
}

#[device]
fn workgroup_max(x: f32, scratch: &mut [f32]) -> f32 {
    let l = local_index();
    scratch[l] = x;
    barrier();
    let mut step = 32usize;
    while step > 0 {
        if l < step {
            scratch[l] = max(scratch[l], scratch[l + step]);
        }
        barrier();
        step /= 2;
    }
    let result = workgroup_uniform_load(&scratch[0]);
    result
}

#[device]
fn workgroup_add(x: f32, scratch: &mut [f32]) -> f32 {
    let l = local_index();
    scratch[l] = x;
    barrier();
    let mut step = 32usize;
    while step > 0 {
        if l < step {
            scratch[l] = scratch[l] + scratch[l + step];
        }
        barrier();
        step /= 2;
    }
    let result = workgroup_uniform_load(&scratch[0]);
    result
}

#[kernel(workgroup(64))]
fn softmax(x: &[f32], y: &mut [f32], n: usize) {
    let mut scratch = workgroup_array::<f32>(64);
    let row = group_index();
    let base = row * n;
    let mut most = f32::NEG_INFINITY;
    for j in (local_index()..n).step_by(64) {
        most = max(most, x[base + j]);
    }
    let most = workgroup_max(most, &mut scratch);
    let mut total = 0.0;
    for j in (local_index()..n).step_by(64) {
        total += exp(x[base + j] - most);
    }
    let total = workgroup_add(total, &mut scratch);
    for j in (local_index()..n).step_by(64) {
        y[base + j] = exp(x[base + j] - most) / total;
    }
}

#[device]
struct Pair {
    a: f32,
    b: u32,
}

#[device]
fn bump(p: &mut Pair, by: u32) -> f32 {
    if by == 0 {
        return -1.0;
    }
    for i in 0..by {
        if i == 3 {
            return p.a;
        }
        p.a += 1.0;
        p.b += i;
    }
    p.a * 2.0
}

#[kernel(workgroup(32))]
fn pairs(x: &[Pair], y: &mut [Pair], z: &mut [f32]) {
    let i = global_index();
    if i < x.len() {
        let mut p = x[i];
        let n = p.b;
        z[i] = bump(&mut p, n % 6);
        y[i] = p;
    }
}

#[kernel(workgroup(32))]
fn halves(x: &[f16], y: &mut [f16], z: &mut [f32]) {
    let i = global_index();
    if i < z.len() / 4 {
        let v = z.vec4(i);
        z.set_vec4(i, v * 2.0 + Vec4::splat(v.dot(v)));
    }
    if i < y.len() {
        y[i] = f16::from_f32(x[i].to_f32() * 3.0);
    }
}

#[kernel(workgroup(32))]
fn tables(x: &[u32], y: &mut [u32]) {
    let i = global_index();
    let mut t = [0u32; 8];
    for k in 0..8 {
        t[k] = (k as u32) * 10;
    }
    if i < y.len() {
        let j = x[i] as usize;
        t[j] = 7;
        y[i] = t[j] + t[j + 1] + x[j];
    }
}

#[kernel(workgroup(64))]
fn blocked(a: &[f32], b: &[f32], c: &mut [f32], m: usize, n: usize, k: usize) {
    let mut left = workgroup_array::<f32>(512);
    let mut right = workgroup_array::<f32>(1024);
    let l = local_index();
    let tall = (m + 31) / 32;
    let row = group_index() % tall * 32;
    let column = group_index() / tall * 64;
    let my_row = l / 8 * 4;
    let my_column = l % 8 * 8;
    let mut sums = [0.0; 32];
    for t in (0..k).step_by(16) {
        for e in (l..512).step_by(64) {
            let r = row + e / 16;
            let d = t + e % 16;
            left[e % 16 * 32 + e / 16] = if r < m && d < k { a[r * k + d] } else { 0.0 };
        }
        for e in (l..1024).step_by(64) {
            let d = t + e / 64;
            let j = column + e % 64;
            right[e] = if j < n && d < k { b[d * n + j] } else { 0.0 };
        }
        barrier();
        for d in 0..16 {
            for i in unroll(0..4) {
                let x = left[d * 32 + my_row + i];
                for j in unroll(0..8) {
                    sums[i * 8 + j] = mul_add(x, right[d * 64 + my_column + j], sums[i * 8 + j]);
                }
            }
        }
        barrier();
    }
    for i in 0..4 {
        for j in 0..8 {
            let r = row + my_row + i;
            let q = column + my_column + j;
            if r < m && q < n {
                c[r * n + q] = sums[i * 8 + j];
            }
        }
    }
}

/// How many rounds an invocation does depends on it; within each it goes over a row with the others.
#[kernel(workgroup(64))]
fn rounds(x: &[u32], y: &mut [u32]) {
    let mut sum = 0u32;
    for r in 0..64usize {
        for i in (local_index()..x.len()).step_by(64) {
            sum += x[i];
        }
        if r >= local_index() {
            break;
        }
        if r % 2 == local_index() % 2 {
            continue;
        }
        for i in (local_index()..x.len()).step_by(64) {
            sum += 1000 * x[i];
        }
    }
    y[global_index()] = sum;
}
