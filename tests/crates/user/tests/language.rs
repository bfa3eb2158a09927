//! rustc and the front end agree on the types of everything here: this compiles only if they do, and if every target takes it.
#![allow(
    unused_variables,
    unused_assignments,
    dead_code,
    unused_parens,
    reason = "constructs of the language, without a purpose"
)]

/// The kernels that the front end's own tests read.
pub mod realistic {
    use gpu::prelude::*;

    include!("../../../../codegen/tests/front/kernels.txt");
}

/// Constructs one after the other.
pub mod constructs {
    use gpu::prelude::*;

    #[device]
    fn bump(v: &mut [f32], i: usize) -> f32 {
        v[i] += 1.0;
        v[i]
    }

    #[device]
    fn total<T: Number, const N: usize>(v: &[T], zero: T) -> T {
        let mut s = zero;
        for i in 0..N {
            s += v[i];
        }
        s
    }

    #[device]
    fn add(v: &mut [f32; 4], t: &mut f32, by: f32) {
        v[1] += by;
        *t += by;
    }

    #[kernel(workgroup(64))]
    pub fn values(x: &[f32], y: &mut [f32], u: &mut [u32], a: f32, n: u32, k: i32, c: bool) {
        let i = 3;
        let s = 0.5;
        let t = 7;
        y[i] = s;
        u[t as usize] = 0xff;
        let m = -5;
        let z = m + k;
        let q = 1 + n;
        let large = 4000000000 as u32;
        let float = 3 as f32;
        let whole = 2.5 as u32;
        let mut v = Vec4::new(1.0, 2.0, 3.0, a);
        v = 2.0 * v + v.exp();
        v.x = v.y;
        v /= 2.0;
        let d = v.dot(v);
        y.set_vec4(0, -v);
        y[0] = d + x.vec2(1).y;
        let bits = !n & 7 | 1 ^ n << 3;
        let ones = n.count_ones() + n.wrapping_add(1) + (n + 1).div_ceil(4);
        let shifted = k >> n;
        let b = a.to_bits();
        let f = f32::from_bits(b);
        let g = bitcast::<i32>(b);
        y[0] = select(c, f, f32::MAX) + PI + g as f32;
        y[2] = max(a, 1.0).clamp(0.0, 2.0) + min(x[0], x[1]) + abs(a) + a.mul_add(2.0, 1.0) + max(n, 3) as f32;
    }

    #[kernel(workgroup(64))]
    pub fn control(x: &[f32], y: &mut [f32], u: &mut [u32], a: f32, n: u32, k: i32, c: bool) {
        for j in (0..n).step_by(2) {
            u[j as usize] = j;
        }
        for _ in 0..=3 {
            y[0] += 1.0;
        }
        for i in unroll(0..4) {
            y[i] = 0.0;
        }
        for i in (1..=n).rev() {
            u[0] += i;
        }
        for mut i in 0..n {
            i += 1;
            u[0] = i;
        }
        let w = match n {
            0 => 1,
            1 | 2 => 5,
            3..=4 => n,
            other => other * 2,
        };
        match k {
            -1 => y[0] = 1.0,
            _ => {}
        }
        let mut i = n;
        while {
            i += 1;
            i < 9
        } {
            y[0] = 1.0;
        }
        y[1] = y[0] + {
            y[0] = 2.0;
            a
        } * y[0];
        y[9] = y[0] + bump(y, 0) * bump(y, 1);
        y[3] = total::<f32, 4>(x, 0.0);
        let mut array = [0.0; 4];
        let mut pair = Vec2::splat(0.0);
        add(&mut array, &mut pair.y, 1.0);
        let late;
        if c {
            late = 1.0;
        } else {
            late = 2.0;
        }
        y[4] = late + array[n as usize] + x.is_empty() as u32 as f32;
    }
}

/// Functions of functions, methods and operators of another crate.
pub mod abstractions {
    use gpu::prelude::*;
    use trefoil_test_helpers::{self as helpers, Act, Complex};

    #[device]
    fn product(a: f32, b: f32) -> f32 {
        a * b
    }

    /// Also the helper's private functions are found from here.
    #[kernel(workgroup(64))]
    pub fn foreign(x: &[f32], z: &mut [Complex], y: &mut [f32], act: Act) {
        y[0] = helpers::reduce(x, 1.0, product) + helpers::reduce(x, 0.0, |a, b| a.max(b));
        let mut c = z[0] * 2.0 + Complex::I * z[1];
        c += Complex::new(1.0, -1.0);
        c.turn();
        z[2].turn();
        if c == -z[3] {
            z[3] = c.map(|v| v + 1.0);
        }
        let parts = [0.5; Complex::PARTS];
        y[1] = act.harder().apply(c.norm()) + parts[1];
    }
}
