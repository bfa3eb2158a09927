//! Functions with barriers that a workgroup leaves early, in the language that authors write.

/// What the invocation at the other end of the workgroup has.
#[device]
fn across(x: u32, scratch: &mut [u32]) -> u32 {
    let l = local_index();
    scratch[l] = x;
    barrier();
    let other = scratch[63 - l];
    barrier();
    other
}

/// From some ways through a branch.
#[device]
fn from_branches(x: u32, n: u32, scratch: &mut [u32]) -> u32 {
    let mut sum = x;
    if n > 4 {
        if n > 8 {
            return sum + 1000;
        }
        sum += 10;
    }
    let other = across(sum, scratch);
    sum += 2 * other;
    if n > 2 {
        if n > 6 {
            if n > 7 {
                return sum + 2000;
            }
            sum += 20;
        } else if n == 3 {
            return sum + 3000;
        }
        sum += 1;
    }
    let last = across(sum, scratch);
    sum + 3 * last
}

#[kernel(workgroup(64))]
fn branches(x: &[u32], y: &mut [u32], n: u32) {
    let mut scratch = workgroup_array::<u32>(64);
    let i = global_index();
    let first = from_branches(x[i], n, &mut scratch);
    let second = from_branches(first, n / 2, &mut scratch);
    y[i] = first + 7 * second;
}

/// From some cases of a match; nothing in the kernel is true or false.
#[device]
fn from_cases(x: u32, kind: u32, scratch: &mut [u32]) -> u32 {
    let mut sum = x;
    match kind {
        0 => {
            return 7;
        }
        1 => {
            sum += 5;
        }
        2 | 3 => {
            let other = across(sum, scratch);
            return sum + other;
        }
        _ => {
            sum += 6;
        }
    }
    let other = across(sum, scratch);
    sum + 2 * other
}

#[kernel(workgroup(64))]
fn choices(x: &[u32], y: &mut [u32], kind: u32) {
    let mut scratch = workgroup_array::<u32>(64);
    let i = global_index();
    let first = from_cases(x[i], kind, &mut scratch);
    let second = from_cases(first, kind / 2, &mut scratch);
    y[i] = first + 7 * second;
}

/// From loops within each other, behind barriers in them.
#[device]
fn from_loops(x: u32, n: u32, scratch: &mut [u32]) -> u32 {
    let mut sum = x;
    for i in 0u32..3 {
        for j in 0u32..4 {
            let other = across(sum, scratch);
            sum += other + j;
            if i * 4 + j == n {
                return sum + 100;
            }
            if j > i {
                break;
            }
        }
        if i + 20 == n {
            return sum + 200;
        }
        sum += 1;
    }
    let mut k = 0u32;
    loop {
        k += 1;
        match k {
            5 => {
                return sum + 300;
            }
            _ => {}
        }
        if k + 30 == n {
            return sum + 400;
        }
        let other = across(sum + k, scratch);
        sum += 2 * other;
    }
}

#[kernel(workgroup(64))]
fn rounds(x: &[u32], y: &mut [u32], n: u32) {
    let mut scratch = workgroup_array::<u32>(64);
    let i = global_index();
    let first = from_loops(x[i], n, &mut scratch);
    let second = from_loops(first, n / 2, &mut scratch);
    y[i] = first + 7 * second;
}

/// Without a result, from a loop in which no invocation waits.
#[device]
fn marked(n: u32, tile: &mut [u32]) {
    let l = local_index();
    let mut k = 0u32;
    while k < 8 {
        if k == n {
            return;
        }
        tile[l] += 1;
        k += 1;
    }
    barrier();
    let other = tile[63 - l];
    barrier();
    tile[l] += 100 * other;
}

#[kernel(workgroup(64))]
fn marks(x: &[u32], y: &mut [u32], n: u32) {
    let mut tile = workgroup_array::<u32>(64);
    let l = local_index();
    tile[l] = x[global_index()];
    for round in 0u32..3 {
        marked(n + round, &mut tile);
    }
    y[global_index()] = tile[l];
}

/// Behind the last barrier each invocation leaves by itself.
#[device]
fn found(x: u32, scratch: &mut [u32]) -> u32 {
    let l = local_index();
    barrier();
    scratch[l] = x;
    barrier();
    for i in 0..l {
        if scratch[i] % 7 == 3 {
            return scratch[i] + i as u32;
        }
    }
    let mut sum = x;
    if x % 2 == 0 {
        if x % 3 == 0 {
            return 500;
        }
        sum += 10;
    }
    sum + 1000
}

#[kernel(workgroup(64))]
fn finds(x: &[u32], y: &mut [u32]) {
    let mut scratch = workgroup_array::<u32>(64);
    let i = global_index();
    let first = found(x[i], &mut scratch);
    let second = found(first, &mut scratch);
    barrier();
    let other = across(first + 7 * second, &mut scratch);
    y[i] = first + 3 * other;
}

/// The kernel itself is left.
#[kernel(workgroup(64))]
fn itself(x: &[u32], y: &mut [u32], n: u32) {
    let mut scratch = workgroup_array::<u32>(64);
    let i = global_index();
    let mut sum = x[i];
    if n > 4 {
        if n > 6 {
            y[i] = 1;
            return;
        }
        sum += 10;
    }
    let other = across(sum, &mut scratch);
    for k in 0u32..3 {
        if k == n {
            y[i] = sum;
            return;
        }
        sum += other;
    }
    match n {
        3 => {
            return;
        }
        _ => {}
    }
    let last = across(sum, &mut scratch);
    y[i] = sum + 3 * last;
}
