//! What makes kernels of a list of operators. Lists are files of their own, since a kernel is compiled anew where its lines move.

/// Makes the kernels of a list of operators, and the list of them.
macro_rules! operators {
    ($($(#[$doc:meta])* $name:ident $types:tt $operator:tt)*) => {
        $(operator! { $(#[$doc])* $name $types $operator })*

        /// Every kernel of this file.
        pub fn kernels() -> Vec<&'static Kernel> {
            [$($name::KERNELS),*].concat()
        }
    };
}

/// A kernel for several float types or for one type: `(types) { value, neutral value, join, up }`.
macro_rules! operator {
    ($(#[$doc:meta])* $name:ident ($($float:ident),+ as $T:ident) { $($operator:tt)* }) => {
        operator! {
            @kernel $(#[$doc])* $name [, instances($T = [$($float),*])] [<$T: Float>] $T,
            { [[|x, i| x.vec4(i)], set_quad], [$T::lit(0.0)], [|x| x.to_f32()], [|a| $T::from_f32(a)], $($operator)* }
        }
    };
    ($(#[$doc:meta])* $name:ident ($element:ty, $zero:literal) { $($operator:tt)* }) => {
        operator! {
            @kernel $(#[$doc])* $name [] [] $element, { [[|x, i| x.vec4(i)], set_quad], [$zero], [|x| x], [|a| a], $($operator)* }
        }
    };
    ($(#[$doc:meta])* $name:ident ($element:ty, $zero:literal, requires($($feature:ident),*)) { $($operator:tt)* }) => {
        operator! {
            @kernel $(#[$doc])* $name [, requires($($feature),*)] [] $element,
            { [[two_pairs], set_two_pairs], [$zero], [|x| x], [|a| a], $($operator)* }
        }
    };
    (
        @kernel $(#[$doc:meta])* $name:ident [$($arguments:tt)*] [$($generics:tt)*] $element:ty,
        { [[$($read:tt)*], $write:path], [$($zero:tt)*], [$($take:tt)*], [$($give:tt)*], $value:ty, [$($start:tt)*], [$($join:tt)*], [$($up:tt)*] }
    ) => {
        $(#[$doc])*
        #[kernel(
            workgroup(256),
            resident(RESIDENT),
            specialise(WALK: usize = 0, in 0..=3; PART: usize = 0, in 0..=2; EARLY: bool = false; ALONG: usize = 0, in 0..=256; RESIDENT: usize = 1, in 1..=8)
            $($arguments)*
        )]
        pub fn $name $($generics)* (
            x: &[$element],
            y: &mut [$element],
            before: &[$value],
            totals: &mut [$value],
            exclusive: bool,
            reverse: bool,
            shape: [usize; 3],
            strides: [usize; 4],
            levels: usize,
            extents: [usize; 4],
            x_strides: [usize; 4],
            y_strides: [usize; 4],
            split: [usize; 3],
        ) {
            let mut scratch = workgroup_array::<$value>(2048);
            scan(
                x, y, before, totals, &mut scratch, walk_of(WALK), part_of(PART), EARLY, ALONG, exclusive, reverse, shape, strides, levels, extents,
                x_strides, y_strides, split, $($zero)*, $($start)*, $($take)*, $($join)*, $($give)*, $($up)*, $($read)*, $write,
            );
        }
    };
}
