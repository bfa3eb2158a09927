//! What a function of elements is: its definition, from which its op, its method of [`crate::graph::Graph`], its tests and its row in tables follow.

use std::fmt;

use super::term::Term;
use crate::types::ElementType;

/// Which element types a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Floats,
    Signed,
    Numbers,
    Integers,
    Bools,
    All,
}

impl Takes {
    pub(super) fn allows(self, element: ElementType) -> bool {
        let scalar = element.scalar();
        match self {
            Self::Floats => element.is_float(),
            Self::Signed => element.is_float() || scalar.is_signed(),
            Self::Numbers => scalar.is_number(),
            Self::Integers => element.is_integer(),
            Self::Bools => element == ElementType::Bool,
            Self::All => true,
        }
    }

    pub(super) fn words(self) -> String {
        let list = ElementType::list(|element| self.allows(element));
        match self {
            Self::Floats => format!("a float ({list}; `cast` converts)"),
            Self::Signed => format!("a number with a sign ({list}; `cast` converts)"),
            Self::Numbers => format!("a number ({list}; `cast` converts)"),
            Self::Integers => format!(
                "an integer ({list}); of bools there are `logical_not`, `logical_and`, `logical_or` and `logical_xor`"
            ),
            Self::Bools => format!("{list}; a comparison or `cast` gives that"),
            Self::All => "any type".to_owned(),
        }
    }
}

/// What an attribute may be. Of integers' functions it must also be an integer of the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A number, which may be infinite.
    Number,
    /// A number, not below the attribute before.
    NotBelowLast,
    /// A finite number.
    Finite,
    /// A finite number other than 0.
    FiniteNotZero,
}

impl Rule {
    /// What is wrong with a value behind the attributes `before`: what would be right.
    pub(super) fn broken_by(self, value: f32, before: &[f32]) -> Option<String> {
        let last = before.last().copied().unwrap_or(f32::NEG_INFINITY);
        let (holds, words) = match self {
            Self::Number => (!value.is_nan(), "a number"),
            Self::NotBelowLast if !value.is_nan() => {
                return (value < last).then(|| format!("a number not below {last}"));
            }
            Self::NotBelowLast => (false, "a number"),
            Self::Finite => (value.is_finite(), "a finite number"),
            Self::FiniteNotZero => (value.is_finite() && value != 0.0, "a finite number other than 0"),
        };
        (!holds).then(|| words.to_owned())
    }
}

/// An attribute of a function: a number that its kernels hold as a literal.
#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    /// Its name.
    pub name: &'static str,
    /// What it may be.
    pub rule: Rule,
    /// Two values that it may have and that make a difference, for tests and examples.
    pub samples: [f32; 2],
}

/// A value for elements and attributes.
type Reference = fn(&[f64], &[f32]) -> Option<f64>;
/// The same for integers so many bits wide, before it wraps.
type IntegerReference = fn(u32, &[i128], &[f32]) -> Option<i128>;

/// A function of one, two or three elements of one type. Its name tells it from all others.
pub struct Function {
    /// Its name, which is also that of the method that adds it.
    pub name: &'static str,
    /// What it computes.
    pub formula: &'static str,
    /// The names of its inputs.
    pub inputs: &'static [&'static str],
    /// Its attributes.
    pub attributes: &'static [Attribute],
    /// Whether its result is bool, rather than of its inputs' type.
    pub is_test: bool,
    pub(super) takes: Takes,
    /// Its formula on elements and attributes; `None` if there are too few of either.
    pub(super) body: for<'s> fn(&[Term<'s>], &[f32]) -> Option<Term<'s>>,
    /// Its value for elements and attributes, by the plainest means; none if it takes integers alone.
    pub(super) reference: Option<Reference>,
    /// The same of integers so many bits wide, before it wraps, where that differs.
    pub(super) integers: Option<IntegerReference>,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Function({})", self.name)
    }
}

impl Function {
    /// Every function, family by family.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        super::rows::TABLES.iter().copied().flatten().copied()
    }

    /// The function of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::all().find(|function| function.name == name)
    }

    /// Whether it takes elements of that type.
    pub fn takes(&self, element: ElementType) -> bool {
        self.takes.allows(element)
    }
}

/// A table of functions and the methods that add them. Each row is a doc comment, which is also the formula's text; the name with the inputs and the types that
/// it takes; attributes, each with its rule and two values; the body, a [`Term`]; and beside it the reference, in `f64`. Of integers the
/// reference is the optional last line, in `i128`, of which the result wraps; what stands behind `integers` is how wide they are.
macro_rules! functions {
    (
        $(#[doc = $about:literal])+
        impl Graph;
        $(
            $(#[doc = $doc:literal])+
            $name:ident $header:tt $(-> $gives:ident)? {
                body: $body:expr,
                $(reference: $reference:expr,)?
                $(integers($bits:ident): $whole:expr,)?
            }
        )+
    ) => {
        /// The definitions, each under its own name.
        #[allow(non_upper_case_globals, reason = "a function is named as its method is")]
        mod definitions {
            #[allow(unused_imports, reason = "what a table's bodies share, which may be nothing")]
            use super::*;
            use $crate::ops::map::functions::{Function, Takes, functions};
            use $crate::ops::map::term::Term;

            $(
                pub(super) static $name: Function = {
                    functions!(@compute body $header [<'s>] [] Term<'s>, f64, $body);
                    $(functions!(@compute real $header [] [] f64, f64, $reference);)?
                    $(functions!(@compute whole $header [] [$bits: u32,] i128, i128, $whole);)?
                    functions!(
                        @definition $name $header concat!($($doc),+), [$($gives)?],
                        functions!(@real $($reference)?), functions!(@whole $($bits)?)
                    )
                };
            )+
        }

        /// Every function here.
        pub(super) static TABLE: &[&$crate::ops::map::functions::Function] = &[$(&definitions::$name),+];

        $(#[doc = $about])+
        impl $crate::graph::Graph {
            $($crate::ops::map::functions::functions!(@method $name $header $($doc)+);)+
        }

        impl $crate::eager::Eager {
            $($crate::ops::map::functions::functions!(@eager $name $header);)+
        }
    };

    // What a row computes, as a function of slices.
    (
        @compute $function:ident
        ($($input:ident),+: $takes:ident $(; $($attribute:ident: $rule:ident = $samples:tt),+)?)
        [$($lifetime:tt)*] [$($first:tt)*] $element:ty, $number:ty, $value:expr
    ) => {
        fn $function $($lifetime)* ($($first)* elements: &[$element], attributes: &[f32]) -> Option<$element> {
            let (mut elements, mut attributes) = (elements.iter(), attributes.iter());
            $(let $input = *elements.next()?;)+
            $($(let $attribute = *attributes.next()? as $number;)+)?
            (elements.next().is_none() && attributes.next().is_none()).then(|| $value)
        }
    };

    (
        @definition $name:ident
        ($($input:ident),+: $takes:ident $(; $($attribute:ident: $rule:ident = $samples:tt),+)?)
        $formula:expr, [$($gives:tt)?], $reference:expr, $integers:expr
    ) => {
        Function {
            name: stringify!($name),
            formula: $formula.trim_ascii(),
            inputs: &[$(stringify!($input)),+],
            attributes: &[$($(
                $crate::ops::map::functions::Attribute {
                    name: stringify!($attribute),
                    rule: $crate::ops::map::functions::Rule::$rule,
                    samples: $samples,
                }
            ),+)?],
            is_test: functions!(@is_test $($gives)?),
            takes: Takes::$takes,
            body,
            reference: $reference,
            integers: $integers,
        }
    };

    (
        @method $name:ident
        ($($input:ident),+: $takes:ident $(; $($attribute:ident: $rule:ident = $samples:tt),+)?) $($doc:literal)+
    ) => {
        $(#[doc = $doc])+
        ///
        /// # Errors
        /// The function does not take elements of this type, several inputs differ in type or do not broadcast, or an attribute is impossible.
        pub fn $name(
            &mut self,
            $($input: $crate::graph::Tensor,)+
            $($($attribute: f32,)+)?
        ) -> Result<$crate::graph::Tensor, $crate::graph::GraphError> {
            self.elementwise(&definitions::$name, &[$($input),+], &[$($($attribute),+)?])
        }
    };

    (
        @eager $name:ident
        ($($input:ident),+: $takes:ident $(; $($attribute:ident: $rule:ident = $samples:tt),+)?)
    ) => {
        #[doc = concat!(
            "[`Graph::", stringify!($name), "`](crate::graph::Graph::", stringify!($name),
            ") of tensors on the device: shapes, types and errors are its own."
        )]
        ///
        /// # Errors
        /// As [`Eager::elementwise`](crate::eager::Eager::elementwise).
        pub fn $name(
            &self,
            $($input: &$crate::eager::EagerTensor,)+
            $($($attribute: f32,)+)?
        ) -> $crate::error::Result<$crate::eager::EagerTensor> {
            self.elementwise(&definitions::$name, &[$($input),+], &[$($($attribute),+)?])
        }
    };

    (@is_test) => { false };
    (@is_test Bool) => { true };
    (@real) => { None };
    (@real $reference:expr) => { Some(real) };
    (@whole) => { None };
    (@whole $bits:ident) => { Some(whole) };
}

pub(super) use functions;
