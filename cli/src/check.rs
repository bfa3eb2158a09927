//! `trefoil check`: kernels run in the checker, with arguments that are made up from their signatures.

use trefoil::artefact::{GridKind, Kernel, ParamField, ParamRole, ParamScalar};
use trefoil::codegen::check::{Options, Order, Program};
use trefoil::codegen::ir::{Instance, Module};

use crate::Outcome;
use crate::emit::instances;

/// Elements of a buffer of which nothing is said.
const ELEMENTS: u64 = 256;
/// The value of an integer param of which nothing is said: the side of a square of so many elements.
const SIDE: f64 = 16.0;

/// What to run, and what to look for.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// The kernel, by its name or by the name of one instance.
    kernel: String,
    /// The elements of a buffer; 256 if nothing is said.
    #[arg(long = "len", value_name = "BUFFER=ELEMENTS", value_parser = assignment)]
    lengths: Vec<(String, f64)>,
    /// The value of a param, or that of each of its numbers; 16 for integers and 1 for floats if nothing is said.
    #[arg(long = "set", value_name = "PARAM=VALUE", value_parser = assignment)]
    values: Vec<(String, f64)>,
    /// Workgroups along x, y and z; as many along x as there are invocations for the longest buffer if nothing is said.
    #[arg(long, value_name = "X[,Y[,Z]]", value_delimiter = ',')]
    groups: Vec<u32>,
    /// Invocations of a subgroup, for kernels that do not state it.
    #[arg(long, default_value_t = 32)]
    subgroup: u32,
    /// Runs the workgroups in an order that the seed decides.
    #[arg(long, value_name = "SEED")]
    shuffle: Option<u64>,
    /// Runs what a kernel does where there are no subgroups.
    #[arg(long)]
    without_subgroups: bool,
    /// Allows reads past the end, which give zero.
    #[arg(long)]
    reads_past_end: bool,
    /// Allows writes past the end, which are dropped.
    #[arg(long)]
    writes_past_end: bool,
    /// Tells of integers that wrap without having been asked to.
    #[arg(long)]
    overflow: bool,
    /// Tells of operations on numbers that give none.
    #[arg(long)]
    nan: bool,
}

/// `name=number`
fn assignment(text: &str) -> Result<(String, f64), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("`{text}` is not of the form NAME=NUMBER"))?;
    let value = value.parse().map_err(|_| format!("`{value}` is no number"))?;
    Ok((name.to_owned(), value))
}

/// Runs the instances of a kernel and prints what is found; it fails if there is anything.
pub fn run(arguments: &Arguments) -> Outcome {
    let mut amiss = false;
    for kernel in instances(&arguments.kernel)? {
        amiss |= !one(kernel, arguments)?;
    }
    if amiss { Err(format!("`{}` does what it should not", arguments.kernel).into()) } else { Ok(()) }
}

/// Whether nothing was found.
fn one(kernel: &Kernel, arguments: &Arguments) -> Outcome<bool> {
    let (module, instance) = (Module::from_bytes(&kernel.ir)?, Instance::from_bytes(&kernel.instance)?);
    let constants: Vec<i64> = kernel.constants.iter().map(|constant| constant.value).collect();
    let program = Program::new(&module, &instance, &constants)?;
    for (name, _) in &arguments.lengths {
        let of = |binding: &trefoil::artefact::Binding| binding.name == *name;
        if !kernel.bindings.iter().any(of) {
            return Err(format!("`{}` has no buffer `{name}`", kernel.name).into());
        }
    }
    let is_param = |field: &&ParamField| matches!(field.role, ParamRole::User(_));
    for (name, _) in &arguments.values {
        if !kernel.params.fields.iter().filter(is_param).any(|field| field.name == *name) {
            return Err(format!("`{}` has no param `{name}`", kernel.name).into());
        }
    }
    let said = |given: &[(String, f64)], name: &str| given.iter().find(|(of, _)| of == name).map(|(_, value)| *value);
    let lengths: Vec<u64> = kernel
        .bindings
        .iter()
        .map(|binding| said(&arguments.lengths, &binding.name).map_or(ELEMENTS, |length| length as u64))
        .collect();
    let invocations = kernel.workgroup_size.iter().map(|size| u64::from(*size)).product::<u64>().max(1);
    let most = lengths.iter().copied().max().unwrap_or(1);
    let mut groups = [u32::try_from(most.div_ceil(invocations))?, 1, 1];
    if !arguments.groups.is_empty() {
        groups = [1; 3];
        groups.iter_mut().zip(&arguments.groups).for_each(|(to, from)| *to = *from);
    }
    if kernel.grid == GridKind::Linear {
        groups = [groups.iter().product(), 1, 1];
    }
    let mut block = vec![0; kernel.params.size as usize];
    for field in &*kernel.params.fields {
        let integers = match field.role {
            ParamRole::User(_) => None,
            ParamRole::Constant(index) => Some(vec![kernel.constants[index as usize].value]),
            ParamRole::Length(binding) => Some(vec![lengths[binding as usize] as i64]),
            ParamRole::Offset(_) => Some(vec![0]),
            // A view is a cube, as far as its elements go.
            ParamRole::Extents(binding) => {
                Some(vec![side(lengths[binding as usize], field.ty.count); field.ty.count as usize])
            }
            ParamRole::Strides(binding) => {
                let side = side(lengths[binding as usize], field.ty.count);
                Some((0..field.ty.count).rev().map(|axis| side.pow(axis)).collect())
            }
            ParamRole::GroupCount => Some(vec![i64::from(groups[0])]),
        };
        let size = field.ty.scalar.bytes() as usize;
        for index in 0..field.ty.count as usize {
            let bytes = match &integers {
                Some(integers) => integers[index].to_le_bytes(),
                None => param(field.ty.scalar, said(&arguments.values, &field.name)),
            };
            let at = field.offset as usize + index * size;
            block[at..at + size].copy_from_slice(&bytes[..size]);
        }
    }
    let mut buffers: Vec<Vec<u8>> =
        lengths.iter().enumerate().map(|(binding, length)| program.made_up(binding, *length)).collect();
    let options = Options {
        reads_past_end: !arguments.reads_past_end,
        writes_past_end: !arguments.writes_past_end,
        overflow: arguments.overflow,
        not_a_number: arguments.nan,
        subgroup_size: arguments.subgroup,
        has_subgroups: !arguments.without_subgroups,
        order: arguments.shuffle.map_or(Order::Ascending, Order::Shuffled),
        ..Options::default()
    };
    let report = program.run(&options, &mut buffers, &block, groups)?;
    say!("{report}");
    Ok(report.is_clean())
}

/// The side of the largest cube of so many axes within so many elements.
fn side(elements: u64, axes: u32) -> i64 {
    let fits = |side: &u64| side.checked_pow(axes).is_some_and(|all| all <= elements);
    (0..=elements).take_while(fits).last().unwrap_or(0) as i64
}

/// The bytes of a number of a param.
fn param(scalar: ParamScalar, value: Option<f64>) -> [u8; 8] {
    let integer = value.unwrap_or(SIDE);
    let bits = match scalar {
        ParamScalar::F32 => u64::from((value.unwrap_or(1.0) as f32).to_bits()),
        ParamScalar::F64 => value.unwrap_or(1.0).to_bits(),
        ParamScalar::Bool => u64::from(value.unwrap_or(0.0) != 0.0),
        ParamScalar::I32 | ParamScalar::I64 => (integer as i64).cast_unsigned(),
        ParamScalar::U32 | ParamScalar::Index | ParamScalar::U64 => integer as u64,
    };
    bits.to_le_bytes()
}
