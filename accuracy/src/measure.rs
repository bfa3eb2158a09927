//! Inputs, and how far from the reference a device's results are.

use serde::{Deserialize, Serialize};
use trefoil::Device;

use crate::kernels::{Group, groups};
use crate::number::Format;
use crate::reference::{Range, Reference, reference};

/// Inputs of each list of ranges.
pub const SAMPLES: usize = 1 << 16;
/// Where the sequence of inputs begins.
pub const SEED: u64 = 0x7265_666f_696c;

/// What a device gave.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Its kind: `vulkan`.
    pub device: String,
    /// The adapter's name.
    pub name: String,
    /// The driver and its version.
    pub driver: String,
    /// For each function, type and list of ranges the worst that was found.
    pub rows: Vec<Worst>,
}

/// The largest error of a function.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Worst {
    /// The function.
    pub function: String,
    /// The type.
    pub scalar: String,
    /// The inputs, in words.
    pub inputs: String,
    /// The largest error, in units of the last place; `None` where a result is no number and should be.
    pub steps: Option<f64>,
    /// The largest error as a number, of results whose size is at most 1.
    pub absolute: f64,
    /// The arguments at the largest error.
    pub at: Vec<f64>,
    /// What was given there, in words, since JSON knows no infinity.
    pub given: String,
    /// What is right.
    pub expected: f64,
}

/// A sequence of numbers that look random: Steele, Lea and Flood's split mix.
struct Sequence(u64);

impl Sequence {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

impl Range {
    /// Both ends, as far as the type reaches.
    fn ends(self, format: Format) -> (f64, f64) {
        match self {
            Self::Even(low, high) => (low.max(-format.largest), high.min(format.largest)),
            Self::Sizes(low, high) | Self::Signed(low, high) => (low.max(format.smallest), high.min(format.largest)),
        }
    }

    /// The ends, what lies next to them, and what many functions treat apart.
    fn edges(self, format: Format) -> Vec<f64> {
        let (low, high) = self.ends(format);
        let mut edges = vec![low, low + format.step(low), high - format.step(high), high];
        for apart in [0.0, 0.5, 1.0, 1.0 - format.step(0.5), 1.0 + format.step(1.0), 2.0] {
            edges.extend([apart, -apart]);
        }
        if matches!(self, Self::Signed(..)) {
            edges.extend([-low, -high]);
        }
        edges.retain(|edge| match self {
            Self::Even(..) | Self::Sizes(..) => (low..=high).contains(edge),
            Self::Signed(..) => *edge == 0.0 || (low..=high).contains(&edge.abs()),
        });
        edges
    }

    fn draw(self, format: Format, sequence: &mut Sequence) -> f64 {
        let (low, high) = self.ends(format);
        let of_size = |sequence: &mut Sequence| {
            let power = low.log2() + (high.log2() - low.log2()) * sequence.unit();
            power.exp2().clamp(low, high)
        };
        match self {
            Self::Even(..) => low + (high - low) * sequence.unit(),
            Self::Sizes(..) => of_size(sequence),
            Self::Signed(..) => of_size(sequence).copysign(sequence.unit() - 0.5),
        }
    }

    fn words(self) -> String {
        let number = |x: f64| match x.abs() {
            0.0 => "0".to_owned(),
            size if !(1e-3..1e5).contains(&size) => format!("{x:e}"),
            _ => format!("{}", (x * 1e4).round() / 1e4),
        };
        let sizes = |low: f64, high: f64| match (low, high) {
            (0.0, f64::MAX) => "of every size".to_owned(),
            (low, f64::MAX) => format!("of sizes from {}", number(low)),
            _ => format!("of sizes from {} to {}", number(low), number(high)),
        };
        match self {
            Self::Even(low, high) => format!("{} to {}", number(low), number(high)),
            Self::Sizes(low, high) => format!("positive, {}", sizes(low, high)),
            Self::Signed(low, high) => sizes(low, high),
        }
    }
}

/// The inputs of a list of ranges, in words.
fn words(ranges: &[Range]) -> String {
    let mut words: Vec<String> = ranges.iter().map(|range| range.words()).collect();
    words.dedup();
    words.join("; ")
}

/// One list of values an argument: every combination of edges, then what is drawn.
fn inputs(ranges: &[Range], group: &Group) -> Vec<Vec<f64>> {
    let mut tuples: Vec<Vec<f64>> = vec![Vec::new()];
    for range in ranges {
        let edges = range.edges(group.format);
        let longer = tuples.iter().flat_map(|tuple| edges.iter().map(|edge| [&tuple[..], &[*edge]].concat()));
        tuples = longer.collect();
    }
    let mut sequence = Sequence(SEED);
    for _ in 0..SAMPLES {
        tuples.push(ranges.iter().map(|range| range.draw(group.format, &mut sequence)).collect());
    }
    // Rounding may lead out of a range at its ends, where the reference's results are as good.
    (0..ranges.len()).map(|argument| tuples.iter().map(|tuple| (group.round)(tuple[argument])).collect()).collect()
}

/// How far apart two results are; `None` if that does not count: what is right is smaller than any normal number of the type, and so is what is given.
fn error(reference: &Reference, format: Format, arguments: [f64; 3], given: f64, expected: f64) -> Option<(f64, f64)> {
    if expected.abs() < format.smallest && given.abs() <= format.smallest {
        return None;
    }
    let step = format.step(expected);
    if expected.abs() >= format.largest + 0.5 * step {
        // It is infinity, or the largest number, to which others may come down.
        let right = given.signum() == expected.signum() && given.abs() >= format.largest;
        return Some(if right { (0.0, 0.0) } else { (f64::INFINITY, 0.0) });
    }
    let mut apart = (given - expected).abs();
    if let Some(period) = reference.period {
        apart = apart.min((period(arguments) - apart).abs());
    }
    let scale = reference.scale.map_or(step, |scale| format.step(scale(arguments)).max(step));
    let steps = if apart.is_nan() { f64::INFINITY } else { apart / scale };
    Some((steps, if expected.abs() <= 1.0 { apart } else { 0.0 }))
}

fn one(
    device: &Device,
    group: &Group,
    number: usize,
    ranges: &[Range],
    reference: &Reference,
) -> trefoil::Result<Worst> {
    let given = inputs(ranges, group);
    let results = (group.run)(device, &given, number as u32)?;
    let mut worst = Worst {
        function: group.functions[number].name().to_owned(),
        scalar: group.scalar.to_owned(),
        inputs: words(ranges),
        steps: Some(0.0),
        absolute: 0.0,
        at: Vec::new(),
        given: String::new(),
        expected: 0.0,
    };
    let mut most = -1.0;
    for (i, result) in results.into_iter().enumerate() {
        let at: Vec<f64> = given.iter().map(|values| values[i]).collect();
        let mut arguments = [0.0; 3];
        arguments[..at.len()].copy_from_slice(&at);
        let expected = (reference.value)(arguments);
        if !expected.is_finite() {
            // What lies beyond a function's domain is for the tests of meaning.
            continue;
        }
        let Some((steps, absolute)) = error(reference, group.format, arguments, result, expected) else { continue };
        worst.absolute = worst.absolute.max(absolute);
        if steps > most {
            most = steps;
            worst = Worst {
                steps: steps.is_finite().then_some(steps),
                at,
                given: format!("{result:e}"),
                expected,
                ..worst
            };
        }
    }
    Ok(worst)
}

/// Measures everything that the device has.
///
/// # Errors
/// A function has no reference, or the device failed.
pub fn measure(device: &Device) -> Result<Measured, Box<dyn std::error::Error>> {
    let mut rows = Vec::new();
    let wide = device.properties().features.has(trefoil::artefact::Feature::Float64);
    for group in groups().into_iter().filter(|group| wide || group.scalar != "f64") {
        for (number, function) in group.functions.iter().enumerate() {
            let reference = reference(*function).ok_or_else(|| format!("`{}` has no reference", function.name()))?;
            for ranges in &reference.inputs {
                rows.push(one(device, &group, number, ranges, &reference)?);
            }
        }
    }
    let properties = device.properties();
    Ok(Measured {
        device: device.kind().name().to_owned(),
        name: properties.name.clone(),
        driver: properties.driver.clone(),
        rows,
    })
}
