//! `trefoil check`: kernels run in the checker, with arguments that are made up from their signatures.

use trefoil::artefact::{GridKind, Kernel, ParamField, ParamRole, ParamScalar};
use trefoil::codegen::check::{Options, Order, Program};
use trefoil::codegen::ir::{Instance, Module};

use crate::Outcome;
use crate::emit::instances;

/// Elements of a buffer of which nothing is said.
const ELEMENTS: u64 = 256;
/// The most elements of a buffer: the checker keeps who accessed each of them.
const MOST_ELEMENTS: u64 = 1 << 28;

/// What to run, and what to look for.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// The kernel, by its name or by the name of one instance.
    kernel: String,
    /// The elements of a buffer; 256 if nothing is said.
    #[arg(long = "len", value_name = "BUFFER=ELEMENTS", value_parser = length)]
    lengths: Vec<(String, u64)>,
    /// The value of a param, or that of each of its numbers; 16 for integers, 1 for floats and false for bools if nothing is said.
    #[arg(long = "set", value_name = "PARAM=VALUE", value_parser = assignment)]
    values: Vec<(String, String)>,
    /// Workgroups along x, y and z; as many along x as there are invocations for the longest buffer if nothing is said.
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = counts)]
    groups: Option<[u32; 3]>,
    /// Invocations of a subgroup, for kernels that do not state it; 32 if nothing is said.
    #[arg(long, value_name = "INVOCATIONS")]
    subgroup: Option<u32>,
    /// Runs the workgroups in an order that the seed decides, of kernels that do not order memory.
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

/// `NAME=VALUE`
fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("`{text}` is not of the form NAME=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}

/// `BUFFER=ELEMENTS`
fn length(text: &str) -> Result<(String, u64), String> {
    let (name, value) = assignment(text)?;
    match value.parse::<u64>() {
        Ok(elements) if elements <= MOST_ELEMENTS => Ok((name, elements)),
        _ => Err(format!("`{value}` elements for `{name}`; a whole number up to {MOST_ELEMENTS} is expected")),
    }
}

/// `X[,Y[,Z]]`
fn counts(text: &str) -> Result<[u32; 3], String> {
    let wrong = || {
        format!(
            "`{text}` workgroups; one to three whole numbers above 0, whose product fits into 32 bits, are expected"
        )
    };
    let given =
        text.split(',').map(|count| count.parse::<u32>().map_err(|_| wrong())).collect::<Result<Vec<u32>, _>>()?;
    let mut counts = [1; 3];
    if given.len() > counts.len() {
        return Err(wrong());
    }
    counts.iter_mut().zip(given).for_each(|(to, from)| *to = from);
    let product = counts.iter().try_fold(1u32, |product, count| product.checked_mul(*count));
    if product.is_none_or(|product| product == 0) { Err(wrong()) } else { Ok(counts) }
}

/// Refuses a name that is given twice.
fn once<T>(option: &str, given: &[(String, T)]) -> Outcome {
    for (position, (name, _)) in given.iter().enumerate() {
        if given[..position].iter().any(|(other, _)| other == name) {
            return Err(format!("`--{option}` says twice what `{name}` is").into());
        }
    }
    Ok(())
}

/// Says of a kernel of some name why an option that was given changes nothing for it, if that is so.
type Unread = fn(&str, &Program, &Arguments) -> Option<String>;

/// Each for an option that some kernels do not read.
const UNREAD: [Unread; 2] = [unread_shuffle, unread_subgroup];

fn unread_shuffle(name: &str, program: &Program, arguments: &Arguments) -> Option<String> {
    let is_unread = arguments.shuffle.is_some() && program.verified().module.orders_memory();
    is_unread.then(|| {
        format!(
            "`--shuffle` changes nothing for `{name}`, which orders memory: its workgroups run from the first on, since one may wait for an earlier one"
        )
    })
}

fn unread_subgroup(name: &str, program: &Program, arguments: &Arguments) -> Option<String> {
    let stated = program.verified().info.subgroup_size?;
    let given = arguments.subgroup.filter(|given| *given != stated)?;
    Some(format!("`--subgroup {given}` changes nothing for `{name}`, which states subgroups of {stated}"))
}

/// Refuses an option that changes nothing for any instance; where some read it, the others say so beside their reports.
fn refuse_unread(checked: &[(&Kernel, Program)], arguments: &Arguments) -> Outcome {
    for unread in UNREAD {
        let reasons: Option<Vec<String>> =
            checked.iter().map(|(_, program)| unread(&arguments.kernel, program, arguments)).collect();
        if let Some(reason) = reasons.and_then(|reasons| reasons.into_iter().next()) {
            return Err(reason.into());
        }
    }
    Ok(())
}

/// An instance, ready to be checked.
fn program(kernel: &Kernel) -> Outcome<Program> {
    let (module, instance) = (Module::from_bytes(&kernel.ir)?, Instance::from_bytes(&kernel.instance)?);
    let constants: Vec<i64> = kernel.constants.iter().map(|constant| constant.value).collect();
    Ok(Program::new(&module, &instance, &constants)?)
}

/// Runs the instances of a kernel and prints what is found; it fails if there is anything.
pub fn run(arguments: &Arguments) -> Outcome {
    once("len", &arguments.lengths)?;
    once("set", &arguments.values)?;
    let mut checked = Vec::new();
    for kernel in instances(&arguments.kernel)? {
        checked.push((kernel, program(kernel)?));
    }
    refuse_unread(&checked, arguments)?;
    let mut amiss = false;
    for (kernel, program) in &checked {
        amiss |= !one(kernel, program, arguments)?;
    }
    if amiss {
        return Err(format!("`{}` does what it should not", arguments.kernel).into());
    }
    say!(
        "(with made-up arguments, which may be none that the kernel is ever given; --len, --set and --groups say others)"
    );
    Ok(())
}

/// Whether nothing was found.
fn one(kernel: &Kernel, program: &Program, arguments: &Arguments) -> Outcome<bool> {
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
    let lengths: Vec<u64> = kernel
        .bindings
        .iter()
        .map(|binding| said(&arguments.lengths, &binding.name).copied().unwrap_or(ELEMENTS))
        .collect();
    let invocations = kernel.workgroup_size.iter().map(|size| u64::from(*size)).product::<u64>().max(1);
    let most = lengths.iter().copied().max().unwrap_or(1);
    let mut groups = match arguments.groups {
        Some(groups) => groups,
        // Without any workgroup nothing would be looked at.
        None => [u32::try_from(most.div_ceil(invocations).max(1))?, 1, 1],
    };
    if kernel.grid == GridKind::Linear {
        groups = [groups.iter().product(), 1, 1];
    }
    let mut block = vec![0; kernel.params.size as usize];
    let mut used: Vec<String> = kernel
        .bindings
        .iter()
        .zip(&lengths)
        .map(|(binding, length)| format!("{}: {length} elements", binding.name))
        .collect();
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
        let value = said(&arguments.values, &field.name).map_or(otherwise(field.ty.scalar), String::as_str);
        if is_param(&field) {
            used.push(format!("{} = {value}", field.name));
        }
        let size = field.ty.scalar.bytes() as usize;
        for index in 0..field.ty.count as usize {
            let bytes = match &integers {
                Some(integers) => integers[index].to_le_bytes(),
                None => param(field.ty.scalar, value)
                    .map_err(|reason| format!("param `{}` of `{}`: {reason}", field.name, kernel.name))?,
            };
            let at = field.offset as usize + index * size;
            block[at..at + size].copy_from_slice(&bytes[..size]);
        }
    }
    let mut buffers: Vec<Vec<u8>> =
        lengths.iter().enumerate().map(|(binding, length)| program.made_up(binding, *length)).collect();
    let defaults = Options::default();
    let options = Options {
        reads_past_end: !arguments.reads_past_end,
        writes_past_end: !arguments.writes_past_end,
        overflow: arguments.overflow,
        not_a_number: arguments.nan,
        subgroup_size: arguments.subgroup.unwrap_or(defaults.subgroup_size),
        has_subgroups: !arguments.without_subgroups,
        order: arguments.shuffle.map_or(Order::Ascending, Order::Shuffled),
        ..defaults
    };
    let report = program.run(&options, &mut buffers, &block, groups)?;
    say!("{report}");
    for unread in UNREAD {
        if let Some(reason) = unread(&kernel.name, program, arguments) {
            say!("  {reason}");
        }
    }
    if !report.is_clean() {
        used.push(format!("workgroups {groups:?}"));
        say!(
            "  with these arguments, made up where nothing was said, and perhaps none that it is ever given: {}",
            used.join(", ")
        );
    }
    Ok(report.is_clean())
}

/// What was said of a name.
fn said<'a, T>(given: &'a [(String, T)], name: &str) -> Option<&'a T> {
    given.iter().find(|(of, _)| of == name).map(|(_, value)| value)
}

/// The side of the largest cube of so many axes within so many elements.
fn side(elements: u64, axes: u32) -> i64 {
    if axes == 1 {
        return elements as i64;
    }
    let fits = |side: &u64| side.checked_pow(axes).is_some_and(|all| all <= elements);
    (0..=elements).take_while(fits).last().unwrap_or(0) as i64
}

/// The value of a number of a param of which nothing is said. Of integers it is the side of a square of [`ELEMENTS`].
const fn otherwise(scalar: ParamScalar) -> &'static str {
    match scalar {
        ParamScalar::F32 | ParamScalar::F64 => "1",
        ParamScalar::Bool => "false",
        ParamScalar::I32 | ParamScalar::I64 | ParamScalar::U32 | ParamScalar::Index | ParamScalar::U64 => "16",
    }
}

/// The bytes of a number of a param.
fn param(scalar: ParamScalar, value: &str) -> Result<[u8; 8], String> {
    let bits = match scalar {
        ParamScalar::F32 => value.parse::<f32>().ok().map(|number| number.to_bits().into()),
        ParamScalar::F64 => value.parse::<f64>().ok().map(f64::to_bits),
        ParamScalar::Bool => match value {
            "true" | "1" => Some(1),
            "false" | "0" => Some(0),
            _ => None,
        },
        ParamScalar::I32 => value.parse::<i32>().ok().map(|number| i64::from(number).cast_unsigned()),
        ParamScalar::I64 => value.parse::<i64>().ok().map(i64::cast_unsigned),
        ParamScalar::U32 | ParamScalar::Index => value.parse::<u32>().ok().map(u64::from),
        ParamScalar::U64 => value.parse::<u64>().ok(),
    };
    let bits: u64 = bits.ok_or_else(|| {
        let of_32_bits = if scalar == ParamScalar::Index { " of 32 bits" } else { "" };
        format!("`{value}` given, a `{}`{of_32_bits} expected", scalar.rust_name())
    })?;
    Ok(bits.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Check {
        #[command(flatten)]
        arguments: Arguments,
    }

    /// What is said of options that change nothing for a kernel of the guide.
    fn unread(row: &str, options: &[&str]) -> Outcome {
        let row = trefoil_guide::ROWS.iter().find(|other| other.name == row).unwrap();
        let checked: Vec<_> = row.instances().map(|kernel| (kernel, program(kernel).unwrap())).collect();
        let given = ["check", "totals"].into_iter().chain(options.iter().copied());
        refuse_unread(&checked, &Check::try_parse_from(given).unwrap().arguments)
    }

    #[test]
    fn options_that_a_kernel_does_not_read_are_refused() {
        let complaint = unread("subgroup_sizes", &["--subgroup", "8"]).unwrap_err().to_string();
        assert_eq!(complaint, "`--subgroup 8` changes nothing for `totals`, which states subgroups of 32");
        let complaint = unread("memory_orders", &["--shuffle", "5"]).unwrap_err().to_string();
        assert!(complaint.contains("`--shuffle` changes nothing"), "{complaint}");
        // Each is read by the other's kernel, and what is said anyway may be said again.
        assert!(unread("subgroup_sizes", &["--shuffle", "5"]).is_ok());
        assert!(unread("subgroup_sizes", &["--subgroup", "32"]).is_ok());
        assert!(unread("memory_orders", &["--subgroup", "8"]).is_ok());
    }
}
