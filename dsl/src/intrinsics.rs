//! What only a kernel can ask or do: who am I in the grid, wait for the others, talk to the subgroup.
//!
//! Each has a meaning on the host too, that of one invocation alone, so that `#[device]` functions can be tested as plain Rust: it
//! is the first and only invocation of the first and only workgroup.

use crate::math::Lanes;
use crate::vector::{Vec3, Vec4};
use trefoil_codegen::ir::{Literal, Scalar, SubgroupOperator};

macro_rules! builtins {
    (
        index { $($(#[$doc:meta])* $variant:ident $name:ident = $value:literal;)* }
        axes { $($(#[$axes_doc:meta])* $axes_variant:ident $axes_name:ident = $axes_value:literal;)* }
    ) => {
        $(
            $(#[$doc])*
            #[doc = concat!("\n\nOn the host it is ", stringify!($value), ".")]
            pub const fn $name() -> usize {
                $value
            }
        )*
        $(
            $(#[$axes_doc])*
            #[doc = concat!("\n\nOn the host every axis is ", stringify!($axes_value), ".")]
            pub const fn $axes_name() -> Vec3<usize> {
                Vec3::splat($axes_value)
            }
        )*

        #[cfg(test)]
        const BUILTINS: &[(trefoil_codegen::ir::Builtin, &str)] = &[
            $((trefoil_codegen::ir::Builtin::$variant, stringify!($name)),)*
            $((trefoil_codegen::ir::Builtin::$axes_variant, stringify!($axes_name)),)*
        ];
    };
}

builtins! {
    index {
        /// This invocation's position among all of the dispatch: `group_index() * invocations of a workgroup + local_index()`.
        ///
        /// As every `usize` of a kernel it has 32 bits, or 64 in instances that say so:
        ///
        /// ```
        /// # use trefoil_dsl as trefoil;
        /// use trefoil::prelude::*;
        ///
        /// /// Works on buffers of any length: a launch takes the instance with 64 bits where 32 do not do.
        /// #[kernel(workgroup(256), index = [32, 64])]
        /// fn doubled(x: &mut [f32]) {
        ///     let i = global_index();
        ///     if i < x.len() {
        ///         x[i] *= 2.0;
        ///     }
        /// }
        ///
        /// assert_eq!(doubled::KERNEL.index.bits(), 32);
        /// assert_eq!(doubled::KERNEL_INDEX64.index.bits(), 64);
        /// ```
        GlobalIndex global_index = 0;
        /// This invocation's position in its workgroup, x fastest.
        LocalIndex local_index = 0;
        /// The workgroup's position in the dispatch, x fastest.
        GroupIndex group_index = 0;
        /// How many workgroups the dispatch has.
        GroupCount group_count = 1;
        /// Invocations of the device's subgroup; never assume a number. A kernel that needs one states it, `#[kernel(workgroup(256), subgroup(32))]`, and
        /// is an error on devices that lack it; there it is that number, known while building.
        SubgroupSize subgroup_size = 1;
        /// This invocation's position in its subgroup.
        SubgroupLane subgroup_lane = 0;
        /// The subgroup's position in its workgroup.
        SubgroupIndex subgroup_index = 0;
    }
    axes {
        /// This invocation's position in the dispatch, by axis. A kernel that uses it is launched with a grid of up to three axes.
        GlobalId global_id = 0;
        /// This invocation's position in its workgroup, by axis.
        LocalId local_id = 0;
        /// The workgroup's position in the grid, by axis. A kernel that uses it is launched with a grid of up to three axes.
        GroupId group_id = 0;
        /// The grid, by axis. A kernel that uses it is launched with a grid of up to three axes.
        GroupCounts group_counts = 1;
    }
}

/// Waits until every invocation of the workgroup is here; each then sees what the others wrote to workgroup memory and buffers.
///
/// All invocations of the workgroup must get here or none: the compiler refuses a barrier in control flow that may differ among
/// them. On the host it does nothing.
pub const fn barrier() {}

/// What this invocation did before comes before what it does after, for every invocation of the device that has such a fence, or an atomic that
/// orders memory ([`crate::atomic::Atomic`]), of its own. It waits for nobody.
///
/// A relaxed write behind it releases; a relaxed read before it acquires. It needs [`target::Feature::Ordering`].
pub fn device_fence() {
    std::sync::atomic::fence(std::sync::atomic::Ordering::AcqRel);
}

/// As [`device_fence`], for the invocations of the workgroup.
pub fn workgroup_fence() {
    device_fence();
}

/// The value of a place in workgroup memory, the same for all invocations, with a [`barrier`] before and after.
///
/// On the host it is the value.
pub fn workgroup_uniform_load<T: Copy>(place: &T) -> T {
    *place
}

macro_rules! subgroup_operations {
    ($($(#[$doc:meta])* $name:ident($($lane:ident)?);)*) => {
        $(
            $(#[$doc])*
            ///
            /// All invocations of the workgroup must get here or none. On the host it is `x`.
            pub fn $name<V: Lanes>(x: V $(, $lane: u32)?) -> V {
                $(let _ = $lane;)?
                x
            }
        )*
    };
}

subgroup_operations! {
    /// The sum of `x` over the subgroup, in no stated order.
    subgroup_add();
    /// The product of `x` over the subgroup, in no stated order.
    subgroup_mul();
    /// The smallest `x` of the subgroup.
    subgroup_min();
    /// The largest `x` of the subgroup.
    subgroup_max();
    /// The bitwise and of the integers of the subgroup.
    subgroup_and();
    /// The bitwise or of the integers of the subgroup.
    subgroup_or();
    /// The bitwise exclusive or of the integers of the subgroup.
    subgroup_xor();
    /// The `x` of one lane, which must be the same for all; zero if that lane does not exist.
    subgroup_broadcast(lane);
    /// The `x` of lane 0.
    subgroup_broadcast_first();
    /// The `x` of the lane asked for; one's own where that does not exist.
    subgroup_shuffle(lane);
    /// The `x` of the lane whose number is this one's exclusive-or `mask`; one's own where that does not exist.
    subgroup_shuffle_xor(mask);
    /// The `x` of the lane `distance` before this one; one's own where that does not exist.
    subgroup_shuffle_up(distance);
    /// The `x` of the lane `distance` behind this one; one's own where that does not exist.
    subgroup_shuffle_down(distance);
}

/// Values whose lanes are combined on the host, where the neutral element of an exclusive scan is needed.
pub trait Scanned: Lanes {
    #[doc(hidden)]
    #[must_use]
    fn neutral(self, operator: SubgroupOperator) -> Self;
}

impl<V: Lanes> Scanned for V
where
    V::Scalar: Combined,
{
    fn neutral(self, operator: SubgroupOperator) -> Self {
        self.map(|_| V::Scalar::neutral(operator))
    }
}

/// Scalars with neutral elements.
pub trait Combined: Copy {
    #[doc(hidden)]
    fn neutral(operator: SubgroupOperator) -> Self;
}

macro_rules! combined {
    ($($ty:ty: $scalar:ident;)*) => {
        $(impl Combined for $ty {
            fn neutral(operator: SubgroupOperator) -> $ty {
                match operator.neutral(Scalar::$scalar) {
                    Some(Literal::$scalar(value)) => value,
                    _ => Default::default(),
                }
            }
        })*
    };
}

combined! {
    f32: F32;
    i32: I32;
    u32: U32;
}

macro_rules! subgroup_scans {
    ($($(#[$doc:meta])* $inclusive:ident $(#[$before:meta])* $exclusive:ident $operator:ident;)*) => {
        $(
            $(#[$doc])*
            ///
            /// All invocations of the workgroup must get here or none. On the host it is `x`.
            pub fn $inclusive<V: Lanes>(x: V) -> V {
                x
            }

            $(#[$before])*
            ///
            /// All invocations of the workgroup must get here or none. On the host, where nothing is before it, it is that neutral value.
            pub fn $exclusive<V: Scanned>(x: V) -> V {
                x.neutral(SubgroupOperator::$operator)
            }
        )*
    };
}

subgroup_scans! {
    /// The sum of the `x` of the lanes up to this one.
    subgroup_inclusive_add
    /// The sum of the `x` of the lanes before this one; 0 in lane 0.
    subgroup_exclusive_add Add;
    /// The product of the `x` of the lanes up to this one.
    subgroup_inclusive_mul
    /// The product of the `x` of the lanes before this one; 1 in lane 0.
    subgroup_exclusive_mul Multiply;
    /// The smallest of the `x` of the lanes up to this one.
    subgroup_inclusive_min
    /// The smallest of the `x` of the lanes before this one; the largest value (infinity of `f32`) in lane 0.
    subgroup_exclusive_min Min;
    /// The largest of the `x` of the lanes up to this one.
    subgroup_inclusive_max
    /// The largest of the `x` of the lanes before this one; the smallest value (minus infinity of `f32`) in lane 0.
    subgroup_exclusive_max Max;
    /// The bitwise and of the `x` of the lanes up to this one.
    subgroup_inclusive_and
    /// The bitwise and of the `x` of the lanes before this one; all ones in lane 0.
    subgroup_exclusive_and And;
    /// The bitwise or of the `x` of the lanes up to this one.
    subgroup_inclusive_or
    /// The bitwise or of the `x` of the lanes before this one; 0 in lane 0.
    subgroup_exclusive_or Or;
    /// The bitwise exclusive or of the `x` of the lanes up to this one.
    subgroup_inclusive_xor
    /// The bitwise exclusive or of the `x` of the lanes before this one; 0 in lane 0.
    subgroup_exclusive_xor Xor;
}

/// A bit for each lane of the subgroup: whether its `x` is true. Lane 0 is the lowest bit of the first word; lanes that do not exist are 0.
///
/// All invocations of the workgroup must get here or none. On the host there is one lane.
///
/// ```
/// use trefoil_dsl::prelude::*;
/// assert_eq!(subgroup_ballot(true).x, 1);
/// ```
pub fn subgroup_ballot(x: bool) -> Vec4<u32> {
    Vec4::new(x.into(), 0, 0, 0)
}

/// Whether `x` is true in any lane of the subgroup.
///
/// All invocations of the workgroup must get here or none. On the host it is `x`.
pub fn subgroup_any(x: bool) -> bool {
    x
}

/// Whether `x` is true in all lanes of the subgroup.
///
/// All invocations of the workgroup must get here or none. On the host it is `x`.
pub fn subgroup_all(x: bool) -> bool {
    x
}

/// True in one lane of the subgroup, the first.
pub fn subgroup_elect() -> bool {
    subgroup_lane() == 0
}

/// One of two values. Both may be evaluated.
pub fn select<T>(condition: bool, accept: T, reject: T) -> T {
    if condition { accept } else { reject }
}

/// The same bits as another type of equal size: `bitcast::<u32>(1.0f32)`.
pub fn bitcast<To: bytemuck::Pod>(value: impl bytemuck::Pod) -> To {
    fn checked<From: bytemuck::Pod, To: bytemuck::Pod>(value: From) -> To {
        const { assert!(size_of::<From>() == size_of::<To>(), "bitcast between types of different sizes") };
        bytemuck::cast(value)
    }
    checked(value)
}

/// A loop over this range is written out in the emitted code: `for i in unroll(0..4)`. Its bounds must be constants. In Rust for the CPU a long one stays a loop, of which rustc unrolls what is worth it.
pub fn unroll<R: IntoIterator>(range: R) -> R {
    range
}

/// What the device has for which code is being emitted.
pub mod target {
    pub use trefoil_codegen::target::Feature;

    /// Whether the variant being emitted may use `feature`: `if const { target::has(Feature::Subgroups) } { .. } else { .. }`.
    ///
    /// On the host it is false.
    pub const fn has(feature: Feature) -> bool {
        let _ = feature;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trefoil_codegen::ir::Builtin;

    #[test]
    fn every_builtin_of_the_ir_is_here_by_its_name() {
        assert_eq!(BUILTINS.len(), Builtin::ALL.len());
        for known in Builtin::ALL {
            assert!(BUILTINS.contains(&known), "{known:?}");
        }
    }

    #[test]
    fn the_host_is_one_invocation_alone() {
        assert_eq!(global_index() + local_index() + group_index(), 0);
        assert_eq!(group_count() * subgroup_size(), 1);
        assert_eq!(group_counts().x, 1);
        assert_eq!(subgroup_add(3.0), 3.0);
        assert_eq!(subgroup_shuffle_xor(7u32, 1), 7);
        assert_eq!((subgroup_inclusive_add(3), subgroup_exclusive_add(3), subgroup_exclusive_min(3)), (3, 0, i32::MAX));
        assert_eq!(subgroup_exclusive_mul(Vec3::splat(2.0)), Vec3::splat(1.0));
        assert!(subgroup_elect() && subgroup_any(true) && !subgroup_all(false));
        assert_eq!(bitcast::<u32>(1.0f32), 0x3f80_0000);
        assert_eq!(select(false, 1, 2), 2);
        assert!(!const { target::has(target::Feature::Subgroups) });
    }
}
