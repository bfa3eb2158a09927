//! What makes kernels of a list of operators. Lists are files of their own, since a kernel is compiled anew where its lines move.

/// Makes the kernels of a list of operators, and the list of them.
macro_rules! operators {
    ($($(#[$doc:meta])* $kind:ident! $name:ident $types:tt $operator:tt)*) => {
        $($kind! { $(#[$doc])* $name $types $operator })*

        /// Every kernel of this file.
        pub fn kernels() -> Vec<&'static Kernel> {
            [$($name::KERNELS),*].concat()
        }
    };
}

/// A kernel that takes elements, of several float types, with what its compilers are told, or of one type: `(types) { value => result, neutral value, push, join, end }`. With `no quads` it goes down one column at a time; with
/// `push_four` behind `end` it has a constant, `FOURS`, by which four elements of a row are pushed at once.
macro_rules! elements {
    ($(#[$doc:meta])* $name:ident ($($float:ident),+ as $T:ident $(, $volatile:meta)?) $operator:tt) => {
        elements! {
            @kernel $(#[$doc])* $name [, instances($T = [$($float),*]) $(, $volatile)?] [<$T: Float>] $T, [2, 1024, quad, $T::lit(0.0)] $operator
        }
    };
    ($(#[$doc:meta])* $name:ident ($element:ty) $operator:tt) => {
        elements! { @kernel $(#[$doc])* $name [] [] $element, [2, 1024, quad, 0] $operator }
    };
    ($(#[$doc:meta])* $name:ident ($element:ty, $zero:literal, requires($($feature:ident),*)) $operator:tt) => {
        elements! {
            @kernel $(#[$doc])* $name [, requires($($feature),*)] [] $element, [2, 1024, two_pairs, $zero] $operator
        }
    };
    ($(#[$doc:meta])* $name:ident ($element:ty, $zero:literal, requires($($feature:ident),*), no quads) $operator:tt) => {
        elements! {
            @kernel $(#[$doc])* $name [, requires($($feature),*)] [] $element, [1, 256, two_pairs, $zero] $operator
        }
    };
    (
        @kernel $(#[$doc:meta])* $name:ident [$($arguments:tt)*] [$($generics:tt)*] $element:ty, [$($how:tt)*]
        { $value:ty => $result:ty, $start:tt, $push:tt, $join:tt, $end:tt }
    ) => {
        elements! {
            @written $(#[$doc])* $name [$($arguments)*] [$($generics)*] $element, [$($how)*] [] [false, false]
            { $value => $result, $start, $push, $join, $end, [|a, _, _, _| a] }
        }
    };
    (
        @kernel $(#[$doc:meta])* $name:ident [$($arguments:tt)*] [$($generics:tt)*] $element:ty, [$($how:tt)*]
        { $value:ty => $result:ty, $start:tt, $push:tt, $join:tt, $end:tt, $push_four:tt }
    ) => {
        elements! {
            @written $(#[$doc])* $name [$($arguments)*] [$($generics)*] $element, [$($how)*] [FOURS: bool = false] [true, FOURS]
            { $value => $result, $start, $push, $join, $end, $push_four }
        }
    };
    (
        @written $(#[$doc:meta])* $name:ident [$($arguments:tt)*] [$($generics:tt)*] $element:ty,
        [$walks:tt, $held:tt, $read:path, $($zero:tt)*] [$($constant:tt)*] [$possible:tt, $fours:tt]
        { $value:ty => $result:ty, [$($start:tt)*], [$($push:tt)*], [$($join:tt)*], [$($end:tt)*], [$($push_four:tt)*] }
    ) => {
        $(#[$doc])*
        #[kernel(workgroup(256), specialise(WALK: usize = 0, in 0..=$walks; $($constant)*) $($arguments)*)]
        pub fn $name $($generics)* (
            x: &[$element],
            y: &mut [$result],
            parts: &mut [$value],
            shape: [usize; 4],
            strides: [usize; 3],
            levels: usize,
            extents: [usize; 4],
            x_strides: [usize; 4],
            y_strides: [usize; 4],
            split: [usize; 3],
            place: usize,
            finish: bool,
        ) {
            let mut scratch = workgroup_array::<$value>($held);
            reduce::<$element, $value, $result, $possible, _, _, _, _, _>(
                x, y, parts, &mut scratch, walk_of(WALK), $fours, shape, strides, levels, extents, x_strides, y_strides, split,
                place, finish, $($zero)*, $($start)*, $($push)*, $($join)*, $($end)*, $read, $($push_four)*,
            );
        }
    };
}

/// A kernel that takes values, with results of several float types or of one type: `(types) { value => result, neutral value, shift, join, end }`.
macro_rules! parts {
    ($(#[$doc:meta])* $name:ident ($($float:ident),+ as $T:ident) $operator:tt) => {
        parts! { @kernel $(#[$doc])* $name [, instances($T = [$($float),*])] [<$T: Float>] $operator }
    };
    ($(#[$doc:meta])* $name:ident () $operator:tt) => {
        parts! { @kernel $(#[$doc])* $name [] [] $operator }
    };
    ($(#[$doc:meta])* $name:ident (requires($($feature:ident),*)) $operator:tt) => {
        parts! { @kernel $(#[$doc])* $name [, requires($($feature),*)] [] $operator }
    };
    (
        @kernel $(#[$doc:meta])* $name:ident [$($arguments:tt)*] [$($generics:tt)*]
        { $value:ty => $result:ty, [$($start:tt)*], [$($shift:tt)*], [$($join:tt)*], [$($end:tt)*] }
    ) => {
        $(#[$doc])*
        #[kernel(workgroup(256) $($arguments)*)]
        pub fn $name $($generics)* (
            parts: &[$value],
            y: &mut [$result],
            next: &mut [$value],
            shape: [usize; 4],
            along: usize,
            place: usize,
            finish: bool,
        ) {
            let mut scratch = workgroup_array::<$value>(256);
            join_parts(
                parts, y, next, &mut scratch, shape, along, place, finish, $($start)*, $($shift)*, $($join)*, $($end)*,
            );
        }
    };
}
