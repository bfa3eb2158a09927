//! What reductions that keep more than one number have of what they have met, in `f32` and in `f64`.

use trefoil_dsl::prelude::*;

/// Moments and sums of exponentials of numbers of a type, by these names.
macro_rules! statistics {
    ($float:ident, $moments:ident, $exponentials:ident) => {
        /// Numbers by their count, their mean and the sum of the squares of their distances from it.
        ///
        /// The mean of no numbers enters no distance: its square could be infinite, and that times no numbers would be NaN, in whatever order a driver multiplies.
        #[device(methods)]
        #[derive(Debug, PartialEq)]
        pub struct $moments {
            /// How many.
            pub count: $float,
            /// Their mean.
            pub mean: $float,
            /// The sum of the squares.
            pub squares: $float,
        }

        #[device]
        impl $moments {
            /// Of no numbers.
            pub const NONE: Self = Self { count: 0.0, mean: 0.0, squares: 0.0 };

            /// With one number more.
            pub fn push(self, x: $float) -> Self {
                let count = self.count + 1.0;
                let before = if self.count > 0.0 { self.mean } else { x };
                let distance = x - before;
                let mean = before + distance / count;
                Self { count, mean, squares: self.squares + distance * (x - mean) }
            }

            /// Of both together.
            pub fn join(self, other: Self) -> Self {
                let count = self.count + other.count;
                let share = if count > 0.0 { other.count / count } else { 0.0 };
                let one = if self.count > 0.0 { self.mean } else { other.mean };
                let distance = if other.count > 0.0 { other.mean - one } else { 0.0 };
                Self {
                    count,
                    mean: one + distance * share,
                    squares: self.squares + other.squares + distance * distance * (self.count * share),
                }
            }
        }

        /// $exponentials by the largest exponent and their sum, divided by the largest of them.
        #[device(methods)]
        #[derive(Debug, PartialEq)]
        pub struct $exponentials {
            /// The largest exponent.
            pub largest: $float,
            /// The sum.
            pub sum: $float,
        }

        #[device]
        impl $exponentials {
            /// Of no exponents.
            pub const NONE: Self = Self { largest: $float::NEG_INFINITY, sum: 0.0 };

            /// Of both together.
            pub fn join(self, other: Self) -> Self {
                // Equal ones may be infinite.
                let distance = if self.largest == other.largest { 0.0 } else { other.largest - self.largest };
                let factor = exp(-abs(distance));
                if distance > 0.0 {
                    Self { largest: other.largest, sum: self.sum * factor + other.sum }
                } else {
                    Self { largest: self.largest, sum: self.sum + other.sum * factor }
                }
            }

            /// With one exponent more. A NaN becomes the sum.
            pub fn push(self, x: $float) -> Self {
                self.join(Self { largest: x, sum: 1.0 })
            }
        }
    };
}

statistics!(f32, Moments, Exponentials);
statistics!(f64, DoubleMoments, DoubleExponentials);
