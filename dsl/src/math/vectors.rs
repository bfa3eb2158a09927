//! Functions of vectors as a whole.

use super::Lanes;
use crate::vector::{Lane, Vec2, Vec3, Vec4};
use trefoil_codegen::meaning;

/// Vectors, for [`dot`].
pub trait Vector: Lanes {
    /// The sum of the products of lanes.
    #[doc(hidden)]
    fn product(self, other: Self) -> Self::Scalar;
}

macro_rules! vectors {
    ($($Vector:ident),*) => {
        $(
            impl<T: Lane + std::ops::Mul<Output = T> + std::ops::Add<Output = T>> Vector for $Vector<T> {
                fn product(self, other: Self) -> T {
                    self.dot(other)
                }
            }

            impl $Vector<f32> {
                /// `sqrt(dot(v, v))`
                #[must_use]
                pub fn length(self) -> f32 {
                    length(self)
                }

                /// The length of the difference.
                #[must_use]
                pub fn distance(self, other: Self) -> f32 {
                    distance(self, other)
                }

                /// The vector of length 1 in the same direction.
                #[must_use]
                pub fn normalize(self) -> Self {
                    normalize(self)
                }

                /// Mirrored at the plane with this normal.
                #[must_use]
                pub fn reflect(self, normal: Self) -> Self {
                    reflect(self, normal)
                }
            }
        )*
    };
}

vectors!(Vec2, Vec3, Vec4);

impl Vec3<f32> {
    /// Vector product.
    #[must_use]
    pub fn cross(self, other: Self) -> Self {
        cross(self, other)
    }
}

/// Scalar product of two vectors.
pub fn dot<V: Vector>(x: V, y: V) -> V::Scalar {
    x.product(y)
}

/// `sqrt(dot(v, v))`; infinite where the squares overflow.
pub fn length<V: Vector<Scalar = f32>>(v: V) -> f32 {
    v.product(v).sqrt()
}

/// `length(a - b)`
pub fn distance<V: Vector<Scalar = f32>>(a: V, b: V) -> f32 {
    length(a.zip(b, |a, b| a - b))
}

/// The vector of length 1 in the same direction, `v * inverse_sqrt(dot(v, v))`; of the zero vector NaN in every lane.
pub fn normalize<V: Vector<Scalar = f32>>(v: V) -> V {
    let scale = 1.0 / length(v);
    v.map(|lane| lane * scale)
}

/// Vector product.
///
/// ```
/// use trefoil_dsl::prelude::*;
/// assert_eq!(cross(Vec3::new(1.0, 0.0, 0.0), Vec3::new(0.0, 1.0, 0.0)), Vec3::new(0.0, 0.0, 1.0));
/// ```
pub fn cross(a: Vec3<f32>, b: Vec3<f32>) -> Vec3<f32> {
    Vec3::from_array(meaning::cross(a.to_array(), b.to_array()))
}

/// `v - n * (2 * dot(n, v))`: v mirrored at the plane whose normal of length 1 is n.
pub fn reflect<V: Vector<Scalar = f32>>(v: V, n: V) -> V {
    let twice = 2.0 * n.product(v);
    v.zip(n, |v, n| v - n * twice)
}
