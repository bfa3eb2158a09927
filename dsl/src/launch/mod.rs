//! Launching kernels by hand: arguments are bound to a kernel ([`Launch`]), a grid is chosen ([`Dispatch`]), and a device runs it
//! ([`Device::run`](crate::Device::run)).
//!
//! A [`Launch`] keeps its buffers' memory alive and holds no borrow. That is sound because what a kernel writes is bound once, since a
//! launch refuses bindings that overlap unless both are read, and because whatever is submitted to a device runs as if in order (`order.rs` says what waits for what).

mod argument;
mod grid;
mod order;
mod params;
mod run;

use std::sync::Arc;

use trefoil_codegen::artefact::{Binding, Kernel, MOST_ELEMENTS, ParamRole};

use crate::buffer::BufferSlice;
use crate::device::{Memory, MemoryRange};
use crate::element::{Element, scalar_name};
use crate::error::{Error, Result};
use crate::param::{Leaf, Param};
use crate::support::check::{GROUP_BYTES, overlap, same_memory};

pub use argument::{ReadBuffer, ReadView, WriteBuffer, WriteView};
pub use run::{Pipelines, Recorded};

/// A kernel that is a constant of the program, or one built while it runs.
#[derive(Clone, Debug)]
pub enum KernelHandle {
    /// A listed instance.
    Static(&'static Kernel),
    /// A late instance.
    Shared(Arc<Kernel>),
}

impl KernelHandle {
    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        match self {
            Self::Static(kernel) => kernel,
            Self::Shared(kernel) => kernel,
        }
    }

    /// The kernel, as devices load it.
    pub fn into_shared(self) -> Arc<Kernel> {
        match self {
            Self::Static(kernel) => Arc::new(kernel.clone()),
            Self::Shared(kernel) => kernel,
        }
    }
}

impl From<&'static Kernel> for KernelHandle {
    fn from(kernel: &'static Kernel) -> Self {
        Self::Static(kernel)
    }
}

impl From<Arc<Kernel>> for KernelHandle {
    fn from(kernel: Arc<Kernel>) -> Self {
        Self::Shared(kernel)
    }
}

/// Values of a kernel's specialisation constants: `#[kernel]` makes a struct of these for each kernel that has some.
pub trait Constants {
    /// Names and values; of a `bool` 0 or 1.
    fn values(&self) -> Vec<(&'static str, i64)>;
}

/// A kernel with its arguments, which a grid makes a [`Dispatch`].
///
/// The launch function of each kernel makes one. For a kernel built at run time it is made by hand: [`Launch::of`], then one call
/// for each parameter in the order of the signature, buffers and values each in their own order.
#[derive(Clone, Debug)]
#[must_use = "nothing runs until `Device::run`"]
pub struct Launch {
    kernel: KernelHandle,
    /// An instance of the same kernel with wider indices.
    wide: Option<KernelHandle>,
    buffers: Vec<BoundBuffer>,
    values: Vec<Leaf>,
}

/// What is bound to one binding.
#[derive(Clone, Debug)]
struct BoundBuffer {
    memory: Arc<dyn Memory>,
    device: u64,
    /// In elements.
    first: u64,
    length: u64,
    /// Whether the kernel may write it.
    mutable: bool,
    /// Of a view; empty for a slice.
    extents: Vec<u64>,
    strides: Vec<u64>,
}

impl BoundBuffer {
    /// The bytes that the elements of a binding are.
    fn range(&self, binding: &Binding) -> MemoryRange {
        let bytes = |elements: u64| elements.saturating_mul(binding.element.size.into());
        MemoryRange { memory: self.memory.clone(), offset: bytes(self.first), bytes: bytes(self.length) }
    }
}

/// How many workgroups are asked for.
#[derive(Clone, Debug)]
enum Grid {
    /// As many as hold that many invocations, by axis for a kernel that looks at axes.
    Over([u64; 3]),
    /// So many.
    Groups([u64; 3]),
    /// So many, whatever kind of grid the kernel has.
    Count(u64),
    /// As many as hold that many invocations, for a kernel that does not look at axes.
    Invocations(u64),
    /// As many as three words of a buffer say, of the device with that id.
    Indirect(MemoryRange, u64),
}

/// A kernel with its arguments and its grid: what [`crate::Device::run`] takes.
#[derive(Clone, Debug)]
#[must_use = "nothing runs until `Device::run`"]
pub struct Dispatch {
    launch: Launch,
    grid: Grid,
}

impl Launch {
    /// Begins a launch of `kernel`.
    pub fn of(kernel: impl Into<KernelHandle>) -> Self {
        Self { kernel: kernel.into(), wide: None, buffers: Vec::new(), values: Vec::new() }
    }

    /// With an instance of the same kernel whose indices are 64 bits wide (`index = [32, 64]`): it runs where arguments or the grid want such.
    pub fn or_wide(self, wide: impl Into<KernelHandle>) -> Self {
        Self { wide: Some(wide.into()), ..self }
    }

    /// The kernel; where there is one with wider indices too, that with 32 bits.
    pub fn kernel(&self) -> &Kernel {
        self.kernel.kernel()
    }

    /// With other values of the kernel's specialisation constants: the struct `Constants` in the kernel's module. A device makes a pipeline for each
    /// set of values when it first runs it, and keeps it as long as it is open.
    ///
    /// # Errors
    /// A value that its constant's declaration does not allow, or constants of another kernel.
    pub fn specialise(self, constants: impl Constants) -> Result<Self> {
        let values = constants.values();
        let specialised = |handle: &KernelHandle| {
            let kernel = handle.kernel();
            let made = kernel.specialise(&values).map_err(|error| argument(kernel, &error.constant, error.reason))?;
            Ok::<_, Error>(KernelHandle::Shared(Arc::new(made)))
        };
        let wide = self.wide.as_ref().map(specialised).transpose()?;
        Ok(Self { kernel: specialised(&self.kernel)?, wide, ..self })
    }

    /// Binds the next buffer, which the kernel reads.
    ///
    /// # Errors
    /// The kernel has no further buffer, writes it, wants a view, or has other elements; or a binding before, which is written, overlaps it.
    pub fn read<'a, T: Element>(self, slice: impl ReadBuffer<'a, T>) -> Result<Self> {
        self.bind(slice.slice(), false, None)
    }

    /// Binds the next buffer, which the kernel may write.
    ///
    /// # Errors
    /// The kernel has no further buffer, wants a view, or has other elements; or a binding before overlaps it.
    pub fn write<'a, T: Element>(self, slice: impl WriteBuffer<'a, T>) -> Result<Self> {
        self.bind(slice.slice_mut().shared(), true, None)
    }

    /// Binds the next buffer, a view that the kernel reads.
    ///
    /// # Errors
    /// The kernel has no further buffer, writes it, wants a slice or another rank, or has other elements; or a binding before, which is written, overlaps it.
    pub fn read_view<'a, T: Element, const R: usize>(self, view: impl ReadView<'a, T, R>) -> Result<Self> {
        let view = view.view();
        self.bind(view.slice(), false, Some((&view.extents(), &view.strides())))
    }

    /// Binds the next buffer, a view that the kernel may write.
    ///
    /// # Errors
    /// The kernel has no further buffer, wants a slice or another rank, or has other elements; or a binding before overlaps it.
    pub fn write_view<'a, T: Element, const R: usize>(self, view: impl WriteView<'a, T, R>) -> Result<Self> {
        let view = view.view_mut().shared();
        self.bind(view.slice(), true, Some((&view.extents(), &view.strides())))
    }

    /// Gives the next by-value parameter.
    ///
    /// # Errors
    /// The kernel has no further parameter, it has another type or size, or the value does not fit into the kernel's indices.
    pub fn value<P: Param>(mut self, value: P) -> Result<Self> {
        let first = self.values.len();
        // What does not fit into 32 bits may fit into 64.
        let kernel = self.wide.as_ref().unwrap_or(&self.kernel).kernel();
        let mut leaves = vec![Leaf::default(); P::LEAVES];
        let of = |leaf: usize| kernel.params.fields.iter().find(|field| field.role == ParamRole::User(leaf as u32));
        let Some(named) = of(first) else {
            return Err(too_many(kernel, "value", first));
        };
        value.words(&mut leaves).map_err(|reason| argument(kernel, &named.name, reason))?;
        for (leaf, given) in leaves.iter().enumerate() {
            let Some(field) = of(first + leaf) else {
                return Err(too_many(kernel, "value", first + leaf));
            };
            let words = given.words(field.ty.scalar).map_err(|reason| argument(kernel, &field.name, reason))?;
            let each = field.ty.scalar.bytes() as usize / 4;
            if words.len() != field.ty.count as usize * each {
                return Err(argument(
                    kernel,
                    &field.name,
                    format!("{} numbers given, {} expected", words.len() / each, field.ty.count),
                ));
            }
        }
        self.values.extend(leaves);
        Ok(self)
    }

    fn bind<T: Element>(
        mut self,
        slice: BufferSlice<'_, T>,
        mutable: bool,
        view: Option<(&[usize], &[usize])>,
    ) -> Result<Self> {
        let index = self.buffers.len();
        let kernel = self.kernel();
        let Some(binding) = kernel.bindings.get(index) else {
            return Err(too_many(kernel, "buffer", index));
        };
        check_binding::<T>(binding, mutable, view.map(|(extents, _)| extents.len()))
            .map_err(|reason| argument(kernel, &binding.name, reason))?;
        let widen = |numbers: &[usize]| numbers.iter().map(|n| *n as u64).collect::<Vec<_>>();
        let (extents, strides) = view.unwrap_or_default();
        let bound = BoundBuffer {
            memory: slice.buffer().memory().clone(),
            device: slice.buffer().device().id(),
            first: slice.first() as u64,
            length: slice.len() as u64,
            mutable,
            extents: widen(extents),
            strides: widen(strides),
        };
        check_alone(kernel, &self.buffers, binding, &bound)?;
        self.buffers.push(bound);
        Ok(self)
    }

    /// With as many workgroups along x as hold `invocations` invocations: usually one invocation per element.
    pub fn over(self, invocations: usize) -> Dispatch {
        self.with(Grid::Invocations(invocations as u64))
    }

    /// With as many workgroups along each axis as hold so many invocations.
    pub fn over_axes(self, invocations: [usize; 3]) -> Dispatch {
        self.with(Grid::Over(invocations.map(|n| n as u64)))
    }

    /// With `count` workgroups.
    pub fn groups(self, count: usize) -> Dispatch {
        self.with(Grid::Count(count as u64))
    }

    /// With so many workgroups along each axis.
    pub fn grid(self, groups: [usize; 3]) -> Dispatch {
        self.with(Grid::Groups(groups.map(|n| n as u64)))
    }

    /// With as many workgroups along x, y and z as the first three elements of `counts` say when the kernel begins: a kernel before it may have computed them.
    /// Nothing runs if one of them is 0.
    ///
    /// The kernel looks at the axes of its grid ([`group_id`](crate::intrinsics::group_id) and its like), or has `indirect` in its attribute, and it does not write
    /// `counts`. The product of the counts and the invocations of a workgroup must fit into 32 bits, and each count within
    /// [`Limits::max_groups`](crate::device::Limits::max_groups) (65535 is, on every device), which the kernel that computes them has to see to: with more than
    /// that wgpu runs nothing, CUDA and the CPU answer with an error, and Vulkan does not say what happens. CUDA has no such dispatch: running it waits for what was
    /// submitted before, and reads the counts.
    ///
    /// ```
    /// # use trefoil_dsl as trefoil;
    /// use trefoil::prelude::*;
    ///
    /// /// Says how many workgroups the next kernel needs.
    /// #[kernel(workgroup(1))]
    /// fn count(flags: &[u32], counts: &mut [u32]) {
    ///     let mut n = 0;
    ///     for i in 0..flags.len() {
    ///         n += flags[i];
    ///     }
    ///     counts[0] = n;
    ///     counts[1] = 1;
    ///     counts[2] = 1;
    /// }
    ///
    /// #[kernel(workgroup(64), indirect)]
    /// fn fill(y: &mut [u32]) {
    ///     y[global_index()] = group_count() as u32;
    /// }
    ///
    /// # fn run(device: &trefoil::Device) -> trefoil::error::Result<()> {
    /// let flags = device.buffer(&[1, 0, 1])?;
    /// let mut counts = device.zeros::<u32>(3)?;
    /// let mut y = device.zeros::<u32>(256)?;
    /// let first = count(&flags, &mut counts)?.groups(1);
    /// let then = fill(&mut y)?.indirect(&counts)?;
    /// device.run_all([first, then])?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `counts` has fewer than three elements.
    pub fn indirect<'a>(self, counts: impl ReadBuffer<'a, u32>) -> Result<Dispatch> {
        let slice = counts.slice();
        if slice.len() < 3 {
            return Err(Error::WrongLength {
                what: format!("the workgroup counts of kernel `{}`", self.kernel().name),
                given: slice.len() as u64,
                expected: 3,
            });
        }
        let offset = slice.first() as u64 * size_of::<u32>() as u64;
        let range = MemoryRange { memory: slice.buffer().memory().clone(), offset, bytes: GROUP_BYTES as u64 };
        let device = slice.buffer().device().id();
        Ok(self.with(Grid::Indirect(range, device)))
    }

    fn with(self, grid: Grid) -> Dispatch {
        Dispatch { launch: self, grid }
    }
}

impl Dispatch {
    /// The kernel that runs: that with the narrowest indices that hold the arguments and the grid.
    pub fn kernel(&self) -> &Kernel {
        match &self.launch.wide {
            Some(wide) if !self.fits() => wide.kernel(),
            _ => self.launch.kernel(),
        }
    }

    /// Whether indices of 32 bits hold the arguments and the grid.
    fn fits(&self) -> bool {
        let kernel = self.launch.kernel();
        let fits = |numbers: &[u64]| numbers.iter().all(|number| u32::try_from(*number).is_ok());
        let counted = |numbers: &[u64]| numbers.iter().all(|number| *number <= u64::from(MOST_ELEMENTS));
        let buffers = self.launch.buffers.iter().all(|buffer| {
            fits(&[buffer.first.saturating_add(buffer.length)])
                && counted(&[buffer.length])
                && counted(&buffer.extents)
                && fits(&buffer.strides)
        });
        let values = self.launch.values.iter().enumerate().all(|(position, leaf)| {
            let role = ParamRole::User(position as u32);
            let field = kernel.params.fields.iter().find(|field| field.role == role);
            field.is_none_or(|field| leaf.words(field.ty.scalar).is_ok())
        });
        buffers && values && grid::fits(kernel, &self.grid)
    }
}

/// Checks what is bound against what the kernel declares.
fn check_binding<T: Element>(binding: &Binding, mutable: bool, rank: Option<usize>) -> Result<(), String> {
    if binding.access.writes() && !mutable {
        return Err("the kernel writes it, so it must be bound as mutable".to_owned());
    }
    // Of structs and vectors only the size is known here.
    let is_other = scalar_name::<T>().is_some_and(|given| given != binding.element.name);
    if is_other || size_of::<T>() != binding.element.size as usize {
        return Err(format!(
            "elements of {} bytes ({}) given, elements of {} bytes ({}) expected",
            size_of::<T>(),
            std::any::type_name::<T>(),
            binding.element.size,
            binding.element.name
        ));
    }
    match (binding.view.map(|rank| rank as usize), rank) {
        (expected, given) if expected == given => Ok(()),
        (None, Some(_)) => Err("a view given, a slice expected".to_owned()),
        (Some(expected), None) => Err(format!("a slice given, a view of {expected} axes expected")),
        (Some(expected), Some(given)) => Err(format!("a view of {given} axes given, {expected} expected")),
        (None, None) => Ok(()),
    }
}

/// Checks that what is written is bound once: the CPU has slices of it, and CUDA pointers without aliases.
fn check_alone(kernel: &Kernel, before: &[BoundBuffer], binding: &Binding, bound: &BoundBuffer) -> Result<()> {
    for (other_binding, other) in kernel.bindings.iter().zip(before) {
        if (bound.mutable || other.mutable)
            && same_memory(&bound.memory, &other.memory)
            && overlap(&bound.range(binding), &other.range(other_binding))
        {
            let does = |buffer: &BoundBuffer| if buffer.mutable { "written" } else { "read" };
            return Err(argument(
                kernel,
                &binding.name,
                format!(
                    "elements {}..{} of its buffer are {}, and those that overlap them are {} as `{}`: what is written must be bound once",
                    bound.first,
                    bound.first + bound.length,
                    does(bound),
                    does(other),
                    other_binding.name
                ),
            ));
        }
    }
    Ok(())
}

fn argument(kernel: &Kernel, argument: &str, reason: impl Into<String>) -> Error {
    Error::Argument { kernel: kernel.name.to_string(), argument: argument.to_owned(), reason: reason.into() }
}

fn too_many(kernel: &Kernel, what: &str, index: usize) -> Error {
    argument(kernel, &format!("{what} {index}"), format!("the kernel takes only {index} of them"))
}

#[cfg(test)]
mod tests;
