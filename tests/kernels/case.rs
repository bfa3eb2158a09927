//! A launch of a kernel with what it must give, and running it on every device.

use trefoil::artefact::{Binding, Kernel};
use trefoil::{Buffer, Device, Launch, Result};

use crate::stand::Stand;

/// One unit in the last place of a number near 1.
pub const EPSILON: f64 = f32::EPSILON as f64;
/// What GPUs may flush to zero lies below.
pub const FLUSHED: f64 = f32::MIN_POSITIVE as f64;

/// At least this many elements before and after a slice belong to nobody.
const GUARD: usize = 67;
/// A NaN that no arithmetic gives.
const POISON: u32 = 0x7fc0_dead;

/// What a kernel reads through one binding.
#[derive(Clone)]
pub enum Operand {
    F32(Vec<f32>),
}

/// What an element of the output must be.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    pub value: f64,
    /// How far from that it may be.
    pub tolerance: f64,
}

/// A launch with what it must give.
pub struct Case {
    pub kernel: &'static Kernel,
    /// Names it in failures.
    pub about: String,
    /// One for each binding that the kernel reads, in order.
    pub operands: Vec<Operand>,
    /// Gives the launch the author's by-value parameters.
    pub values: Box<dyn Fn(Launch) -> Result<Launch> + Send + Sync>,
    /// Workgroups.
    pub groups: usize,
    /// About so many steps of all invocations together.
    pub operations: usize,
    /// One for each element of the slice that it writes; `None` must stay as it was.
    pub expected: Vec<Option<Expected>>,
}

/// Whether a number is what it must be to within a tolerance. An infinity must be that infinity and NaN must be NaN: a tolerance that is relative to them takes any number.
pub fn is_close(given: f64, value: f64, tolerance: f64) -> bool {
    given == value || given.is_nan() && value.is_nan() || value.is_finite() && (given - value).abs() <= tolerance
}

/// The kernel of the library with that name.
pub fn kernel(name: &str) -> &'static Kernel {
    let library = trefoil::kernels::library();
    library.into_iter().find(|kernel| kernel.name == name).unwrap_or_else(|| panic!("the library has no `{name}`"))
}

/// Runs cases on a device.
pub fn check(stand: &Stand, cases: &[Case]) {
    let fit = || cases.iter().filter(|case| stand.runs(case.kernel) && stand.affords(case.operations));
    let kernels: Vec<_> = fit().map(|case| case.kernel).collect();
    stand.device.load(&kernels).unwrap();
    for case in fit() {
        case.check(stand);
    }
}

/// Where the slice of a binding starts: after the guard, at an odd element unless the kernel moves several at once.
fn first(binding: &Binding) -> usize {
    GUARD.next_multiple_of(binding.vector as usize)
}

/// `values` as the slice of a binding, between `guard`s.
fn guarded<T: trefoil::dsl::element::Element>(
    device: &Device,
    binding: &Binding,
    values: &[T],
    guard: T,
) -> Result<Buffer<T>> {
    let mut whole = vec![guard; first(binding)];
    whole.extend_from_slice(values);
    whole.extend([guard; GUARD]);
    device.buffer(&whole)
}

impl Case {
    fn check(&self, stand: &Stand) {
        let place = format!("{}, {}, on {}", self.kernel.name, self.about, stand.name);
        let words = self.run(&stand.device).unwrap_or_else(|error| panic!("{place}: {error}"));
        stand.ran([self.kernel], &place);
        let output = self.kernel.bindings.iter().find(|binding| binding.access.writes()).unwrap();
        let (before, rest) = words.split_at(first(output));
        let (written, after) = rest.split_at(self.expected.len());
        assert!(before.iter().chain(after).all(|word| *word == POISON), "{place}: a guard was overwritten");
        for (index, (word, expected)) in written.iter().zip(&self.expected).enumerate() {
            let given = f32::from_bits(*word);
            match expected {
                None => assert_eq!(*word, POISON, "{place}: element {index} is {given}, and must not be written"),
                Some(Expected { value, tolerance }) => {
                    let close = is_close(given.into(), *value, *tolerance);
                    assert!(close, "{place}: element {index} is {given}, {value} within {tolerance:e} expected");
                }
            }
        }
    }

    /// Runs it and gives the words of the output with its guards.
    fn run(&self, device: &Device) -> Result<Vec<u32>> {
        let mut operands = self.operands.iter();
        let mut launch = Launch::of(self.kernel);
        let mut output = None;
        for binding in self.kernel.bindings.iter() {
            if binding.access.writes() {
                let poison = f32::from_bits(POISON);
                let mut held = guarded(device, binding, &vec![poison; self.expected.len()], poison)?;
                let start = first(binding);
                launch = launch.write(held.slice_mut(start..start + self.expected.len())?)?;
                output = Some(held);
                continue;
            }
            let Operand::F32(values) = operands.next().unwrap();
            let held = guarded(device, binding, values, f32::NAN)?;
            launch = launch.read(held.slice(first(binding)..held.len() - GUARD)?)?;
        }
        assert!(operands.next().is_none(), "{}: more operands than bindings", self.about);
        device.run((self.values)(launch)?.groups(self.groups))?;
        Ok(output.unwrap().read()?.into_iter().map(f32::to_bits).collect())
    }
}
