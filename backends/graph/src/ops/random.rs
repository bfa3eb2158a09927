//! Random numbers, which depend on the run's seed, the op's stream and an element's own index alone.
//!
//! **Seed and streams.** A graph with random ops has an input of two words, [`crate::Graph::seed`], which they all read: a run gives it, or takes the executable's next one
//! ([`crate::Executable::set_seed`]). The n-th random op of a graph has stream n, for good: neither what is fused or left out nor extents change a number. The same graph, seed and element index give the same bits on every device, and
//! normals that are the same up to a few units in the last place.
//!
//! **Which numbers.** The word at index i of a stream is word `i % 4` of Philox4x32-10 at the counter `(i / 4, 0, stream, 0)` and the key `seed`. What a distribution makes of words is said in its [`Distribution`].

mod builders;
mod sample;
mod words;

pub use self::sample::Sampling;

use trefoil_kernels::random::kernels;

use super::support::{
    expect_element, expect_extents, expect_inputs, expect_shape, instance, kernel_time, one_kernel, transfer_time,
    upper,
};
use crate::dim::Dim;
use crate::graph::SEED_WORDS;
use crate::op::{
    Candidate, Grid, HostTensor, Implementation, Ineligible, Op, OpError, OpKind, ParamValue, Request, Slot,
};
use crate::types::{ElementType, TensorType};

use ElementType::{BF16, Bool, F16, F32, F64, U32, U64};

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Every integer alike: the words themselves, of 64 bits two with the lower first.
    Bits,
    /// Every number from `low` up to and without `high` alike, both rounded to the element type: `low + (high - low) k / 2^24`, rounded after each operation, with the first 24 bits k of a word; of doubles k is
    /// the first 53 bits of two words, over 2^53. What rounding makes `high` is the number before it.
    Uniform {
        /// The least number.
        low: f64,
        /// What all numbers are below.
        high: f64,
    },
    /// `mean + deviation n` with normals n of mean 0 and variance 1, which come in pairs `r cos a` and `r sin a` from two words, with `r = sqrt(-2 ln u)`: u is what the first 24 significant bits of the first word over 2^32
    /// say (of 0 as of 1), and the angle `q + t` quarter turns, where q is what the first two bits of the second say, and t, from -1/2 up to 1/2, the next 25. Doubles come from four words: u is `(k + 1) / 2^53`
    /// with the first 53 bits k of two, and q and t are what the first 2 and the next 53 bits of the others say.
    Normal {
        /// The mean.
        mean: f64,
        /// The standard deviation.
        deviation: f64,
    },
    /// True with a probability of `p`, to the nearest multiple of 2^-32 that is neither 0 nor 1: if a word is below it.
    Bernoulli {
        /// The probability.
        p: f64,
    },
}

use Distribution::{Bernoulli, Bits, Normal, Uniform};

impl Distribution {
    /// The op's name, and the element types in which it is drawn.
    const fn definition(self) -> (&'static str, &'static [ElementType]) {
        match self {
            Bits => ("random_bits", &[U32, U64]),
            Uniform { .. } => ("uniform", &[F32, F16, BF16, F64]),
            Normal { .. } => ("normal", &[F32, F16, BF16, F64]),
            Bernoulli { .. } => ("bernoulli", &[Bool]),
        }
    }

    /// Its attributes.
    fn attributes(self) -> Vec<(&'static str, f64)> {
        match self {
            Bits => Vec::new(),
            Uniform { low, high } => vec![("low", low), ("high", high)],
            Normal { mean, deviation } => vec![("mean", mean), ("deviation", deviation)],
            Bernoulli { p } => vec![("p", p)],
        }
    }

    /// What is wrong with its attributes for elements of a type: which, and what would be right.
    fn broken(self, element: ElementType) -> Option<(&'static str, String)> {
        let finite = |value: f64| element.rounded(value).is_finite();
        let words = || format!("a number that {element} has");
        match self {
            Bits => None,
            Uniform { low, .. } if !finite(low) => Some(("low", words())),
            Uniform { high, .. } if !finite(high) => Some(("high", words())),
            Uniform { low, high } => {
                let [.., span] = bounds(element, low, high);
                let words = format!("a number above {low:?} in {element}, and not farther from it than the largest");
                (span <= 0.0 || !span.is_finite()).then_some(("high", words))
            }
            Normal { mean, .. } if !finite(mean) => Some(("mean", words())),
            Normal { deviation, .. } if !finite(deviation) || deviation < 0.0 => {
                Some(("deviation", format!("{}, not below 0", words())))
            }
            Bernoulli { p } if !(0.0..=1.0).contains(&p) => Some(("p", "a probability, from 0 to 1".to_owned())),
            Normal { .. } | Bernoulli { .. } => None,
        }
    }
}

/// The bounds of a uniform distribution in an element type, and how far they are apart, as it is computed.
fn bounds(element: ElementType, low: f64, high: f64) -> [f64; 3] {
    let (low, high) = (element.rounded(low), element.rounded(high));
    let span = if element == F64 { high - low } else { f64::from((high - low) as f32) };
    [low, high, span]
}

/// The number before another in a float type.
fn before(element: ElementType, value: f64) -> f64 {
    let bits = element.bits(value);
    let sign = 1u64 << (element.bytes() * 8 - 1);
    let before = match value {
        0.0 => sign | 1,
        _ if bits & sign == 0 => bits - 1,
        _ => bits + 1,
    };
    crate::data::to_f64(element, &before.to_le_bytes()[..element.bytes() as usize])[0]
}

/// Of how many 2^32nds a word must be below for what has that probability.
fn threshold(p: f64) -> u32 {
    (p * 4_294_967_296.0).round().clamp(1.0, f64::from(u32::MAX)) as u32
}

/// A tensor of random numbers. Its input is the seed: two words, the lower first.
#[derive(Clone, Debug, PartialEq)]
pub struct Random {
    /// What is drawn.
    pub distribution: Distribution,
    /// Which of the seed's streams.
    pub stream: u32,
    /// Element type and shape of the result.
    pub ty: TensorType,
}

impl Op for Random {
    fn name(&self) -> &'static str {
        self.distribution.definition().0
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        let own = self.distribution.attributes().into_iter().map(|(name, value)| (name, format!("{value:?}")));
        own.chain([("stream", self.stream.to_string()), ("type", self.ty.to_string())]).collect()
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 1..=1)?;
        expect_element("seed", &inputs[0], U32)?;
        expect_shape("seed", &inputs[0], &[Dim::from(SEED_WORDS)])?;
        let (_, takes) = self.distribution.definition();
        let wrong = |attribute, given, expected| Err(OpError::Attribute { attribute, given, expected });
        if !takes.contains(&self.ty.element) {
            let expected =
                format!("elements of {} (`cast` converts)", ElementType::list(|element| takes.contains(&element)));
            return wrong("type", self.ty.to_string(), expected);
        }
        if let Some((attribute, expected)) = self.distribution.broken(self.ty.element) {
            let given = self.distribution.attributes().into_iter().find(|(name, _)| *name == attribute);
            return wrong(attribute, given.map_or(f64::NAN, |(_, value)| value).to_string(), expected);
        }
        expect_extents(&self.ty.shape)?;
        Ok(vec![self.ty.clone()])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let count = outputs[0].iter().product();
        let values = words::values(self, &inputs[0].values, count);
        vec![HostTensor { shape: outputs[0].clone(), values }]
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> Dim {
        Dim::from(0i64)
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Kernels(vec![Box::new(Blocks(self))])
    }
}

/// The family's kernels.
#[derive(Debug)]
struct Blocks<'a>(&'a Random);

/// The bits of a double as two words, the lower first.
fn words_of(value: f64) -> ParamValue {
    let bits = value.to_bits();
    ParamValue::Dims([bits & 0xffff_ffff, bits >> 32].map(|word| Dim::from(word as i64)).to_vec())
}

impl Candidate for Blocks<'_> {
    fn name(&self) -> &'static str {
        "random by blocks of four words"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let Random { distribution, stream, ty } = self.0;
        let element = ty.element;
        let wide = element == F64;
        let number = |value: f64| if wide { words_of(value) } else { ParamValue::F32(value as f32) };
        let suffixed = |name: &str| format!("{name}_{element}");
        let (kernel, own) = match *distribution {
            Bits => ("random_bits".to_owned(), Vec::new()),
            Uniform { low, high } => {
                let [low, high, span] = bounds(element, low, high);
                let last = before(element, high);
                let nothing = ParamValue::Dim(Dim::from(0i64));
                (suffixed("random_uniform"), vec![number(low), number(span), number(last), nothing])
            }
            Normal { mean, deviation } => (suffixed("random_normal"), vec![number(mean), number(deviation)]),
            Bernoulli { p } => {
                let threshold = ParamValue::Dim(Dim::from(threshold(p)));
                ("random_bernoulli".to_owned(), vec![threshold])
            }
        };
        let mut params = vec![ParamValue::Dim(Dim::from(*stream))];
        params.extend(own);
        let in_a_block = if element.bytes() == 8 { 2 } else { 4 };
        Ok(one_kernel(
            instance(&kernels(), &kernel)?,
            vec![Slot::Input(0), Slot::Output(0)],
            params,
            Grid::Invocations(ty.elements().quotient_up(in_a_block)),
            kernel_time(request.device, transfer_time(upper(&ty.bytes()))),
        ))
    }
}
