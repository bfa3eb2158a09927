//! The late path, in one place: an instance of a generic module, verified, lowered, emitted and put together as an artefact.
//!
//! The macro runs it for listed instances while the author's crate is built, the graph compiler for late ones; both get the same code.

#[cfg(feature = "cpu")]
mod side_by_side;

use std::borrow::Cow;

use crate::artefact::{Binding, Code, Constant, Element, Kernel, Site, Variant};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::emit::{self, Emitter, Printed, Source};
use crate::ir::{Instance, Module, instantiate};
use crate::layout;
#[cfg(feature = "cpu")]
use crate::lower::{Lowered, lower};
use crate::target::{Dialect, ParamTransport, Profile, Target};
use crate::timings::{Stage, stage};
use crate::variants::variants;
use crate::verify::{Verified, check_profile, matrix_bindings, type_name, verify, verify_reporting};

#[cfg(feature = "cpu")]
pub use side_by_side::{Built, build_and_print};

/// A compiled instance.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The artefact; its `cpu` is empty, since that is code of the author's crate, printed from [`lower_for_cpu`].
    pub kernel: Kernel,
    /// The instance with the facts about it.
    pub verified: Verified,
}

/// Compiles an instance for every target that its kernel lists.
///
/// # Errors
/// What is wrong with the kernel, in the author's terms, for every target that it does not fit.
pub fn compile(module: &Module, instance: &Instance) -> Result<Kernel, Diagnostics> {
    build(module, instance, &module.targets).map(|compiled| compiled.kernel)
}

/// Compiles an instance for those of `targets` that its kernel lists.
///
/// # Errors
/// As [`compile`].
pub fn compile_for(module: &Module, instance: &Instance, targets: &[Target]) -> Result<Kernel, Diagnostics> {
    build(module, instance, targets).map(|compiled| compiled.kernel)
}

/// Compiles an instance for those of `targets` that its kernel lists, and keeps what was found on the way.
///
/// # Errors
/// As [`compile`].
pub fn build(module: &Module, instance: &Instance, targets: &[Target]) -> Result<Compiled, Diagnostics> {
    build_with(module, instance, targets, Reports::Dropped)
}

/// As [`build`], where it is said what becomes of the kernel's reports.
///
/// # Errors
/// As [`compile`].
pub fn build_with(
    module: &Module,
    instance: &Instance,
    targets: &[Target],
    reports: Reports,
) -> Result<Compiled, Diagnostics> {
    let made = instantiated(module, instance, reports)?;
    let mut profiles = variants(&made.verified);
    profiles.retain(|(profile, _)| targets.contains(&profile.target));
    let mut emitted = emit(&Source::new(&made.verified), &profiles);
    let judged = emitted.variants.iter().filter_map(unjudged).map(|text| judge(module, text));
    let refused: Vec<_> = judged.filter_map(Result::err).collect();
    emitted.refuse(refused);
    let kernel = assemble(module, &module_bytes(module), instance, targets, &made, emitted)?;
    Ok(Compiled { kernel, verified: made.verified })
}

/// An instance that obeys the rules.
struct Instantiated {
    verified: Verified,
    /// What it reports; nothing but for a kernel that has the buffer for it.
    sites: Vec<Site>,
}

/// What becomes of what a kernel asserts and prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reports {
    /// It is left out.
    Dropped,
    /// It is written to a buffer, on those targets that have room for one beside the kernel's own.
    Buffered,
}

fn instantiated(module: &Module, instance: &Instance, reports: Reports) -> Result<Instantiated, Diagnostics> {
    stage(Stage::Verify, || {
        let instance = instantiate(module, instance)?;
        if reports == Reports::Dropped {
            return Ok(Instantiated { verified: verify(instance)?, sites: Vec::new() });
        }
        let (mut verified, sites) = verify_reporting(instance)?;
        let unfit: Vec<Target> = variants(&verified)
            .into_iter()
            .filter(|(profile, _)| check_profile(&verified, profile).is_err())
            .map(|(profile, _)| profile.target)
            .collect();
        verified.module.targets.retain(|target| !unfit.contains(target));
        Ok(Instantiated { verified, sites })
    })
}

/// The code for some targets, or what stands against it.
#[derive(Default)]
struct Emitted {
    variants: Vec<Variant>,
    served: Vec<Target>,
    found: Vec<Diagnostic>,
}

impl Emitted {
    #[cfg(feature = "cpu")]
    fn append(&mut self, other: Self) {
        self.variants.extend(other.variants);
        self.served.extend(other.served);
        self.refuse(other.found);
    }

    fn refuse(&mut self, found: Vec<Diagnostic>) {
        for new in found {
            if !self.found.contains(&new) {
                self.found.push(new);
            }
        }
    }
}

/// The profile of the CPU's code, if the kernel lists the CPU.
#[cfg(feature = "cpu")]
fn of_cpu(profiles: &[(Profile, ParamTransport)]) -> Option<&(Profile, ParamTransport)> {
    profiles.iter().find(|(profile, _)| profile.target == Target::Cpu)
}

/// Emits the code for these profiles of a kernel, which is not judged yet; the CPU's is checked alone.
fn emit(source: &Source<'_>, profiles: &[(Profile, ParamTransport)]) -> Emitted {
    let verified = source.verified();
    let mut emitter = Emitter::new(source);
    let mut emitted = Emitted::default();
    let mut checked: Option<(&Profile, Result<(), Diagnostics>)> = None;
    for (profile, transport) in profiles {
        // What is checked is the same for every transport and dialect.
        let fits = match checked.take() {
            Some((known, fits)) if (known.target, known.features) == (profile.target, profile.features) => fits,
            _ => check_profile(verified, profile),
        };
        let code = fits.clone().and_then(|()| match profile.target {
            Target::Cpu => Ok(None),
            _ => emitter.code(profile, *transport).map(Some),
        });
        checked = Some((profile, fits));
        emitted.served.push(profile.target);
        match code {
            Ok(Some(Printed { entry, code, matrices, tensor_maps })) => emitted.variants.push(Variant {
                target: profile.target,
                profile: Cow::Owned(profile.name()),
                dialect: profile.dialect,
                features: profile.features,
                matrices: Cow::Owned(matrices),
                transport: *transport,
                tensor_maps: Cow::Owned(tensor_maps),
                entry: Cow::Owned(entry),
                code,
            }),
            Ok(None) => {}
            Err(Diagnostics(found)) => emitted.refuse(found),
        }
    }
    emitted
}

/// The text of a variant that naga has to judge: what browsers read is another variant's text under another directive, which is judged with that.
fn unjudged(variant: &Variant) -> Option<&str> {
    match &variant.code {
        Code::Text(text) if variant.target == Target::Wgsl && variant.dialect != Some(Dialect::Browsers) => Some(text),
        _ => None,
    }
}

/// Has naga judge a text of a kernel.
fn judge(module: &Module, text: &str) -> Result<(), Diagnostic> {
    stage(Stage::Naga, || emit::validate_wgsl(text))
        .map_err(|error| Diagnostic::new(module.entry.span, error.to_string()))
}

fn module_bytes(module: &Module) -> Result<Vec<u8>, Diagnostics> {
    written(module, module.to_bytes(), "the IR")
}

fn instance_bytes(module: &Module, instance: &Instance) -> Result<Vec<u8>, Diagnostics> {
    written(module, instance.to_bytes(), "the instance")
}

/// A hash of all that decides what a kernel's instances become, but for this crate itself.
///
/// # Errors
/// The IR cannot be written.
pub fn digest(module: &Module, instances: &[Instance]) -> Result<[u8; 16], Diagnostics> {
    let mut fields = Fields::default();
    fields.add(&module_bytes(module)?);
    for instance in instances {
        fields.add(&instance_bytes(module, instance)?);
    }
    Ok(fields.hash())
}

/// What was written of a kernel, or that it could not be.
fn written<E: std::fmt::Display>(
    module: &Module,
    bytes: Result<Vec<u8>, E>,
    what: &str,
) -> Result<Vec<u8>, Diagnostics> {
    bytes.map_err(|error| {
        let message = format!("{what} of `{}` cannot be written: {error}", module.name);
        Diagnostic::new(module.entry.span, message).into()
    })
}

/// The artefact of what was emitted for those of `targets` that the kernel lists.
fn assemble(
    module: &Module,
    ir: &Result<Vec<u8>, Diagnostics>,
    instance: &Instance,
    targets: &[Target],
    Instantiated { verified, sites }: &Instantiated,
    emitted: Emitted,
) -> Result<Kernel, Diagnostics> {
    let Emitted { variants: made, served, mut found } = emitted;
    let name = &verified.module.name;
    let at = verified.module.entry.span;
    for target in targets.iter().filter(|target| verified.module.targets.contains(target)) {
        if !served.contains(target) && found.is_empty() {
            found.push(Diagnostic::new(at, format!("`{name}` has no code for {}", target.name())));
        }
    }
    if !found.is_empty() {
        return Err(Diagnostics(found));
    }
    let params = layout::params(&verified.module, verified.info.grid)
        .ok_or_else(|| Diagnostic::new(at, format!("`{name}` has a parameter that cannot be one")))?;
    let mut kernel = Kernel {
        name: Cow::Owned(name.clone()),
        doc: Cow::Owned(verified.module.doc.clone()),
        bindings: Cow::Owned(bindings(verified)?),
        params,
        constants: Cow::Owned(constants(verified)),
        workgroup_size: verified.info.workgroup_size,
        subgroup_size: verified.info.subgroup_size,
        workgroup_bytes: verified.info.workgroup_bytes,
        no_robustness: verified.module.no_robustness,
        index: verified.module.index,
        grid: verified.info.grid,
        variants: Cow::Owned(made),
        cpu: None,
        sites: Cow::Owned(sites.clone()),
        reporting: None,
        ir: Cow::Owned(ir.clone()?),
        instance: Cow::Owned(instance_bytes(module, instance)?),
        hash: [0; 16],
    };
    kernel.hash = hash(&kernel);
    Ok(kernel)
}

/// What the CPU function of an instance is printed from by [`crate::emit::cpu::emit`].
///
/// # Errors
/// The kernel lists no CPU, or holds something that cannot be made legal for it.
#[cfg(feature = "cpu")]
pub fn lower_for_cpu(verified: &Verified) -> Result<Lowered, Diagnostics> {
    let profiles = variants(verified);
    let Some((profile, transport)) = of_cpu(&profiles) else {
        let module = &verified.module;
        return Err(Diagnostic::new(module.entry.span, format!("`{}` has no code for the CPU", module.name)).into());
    };
    stage(Stage::Lower, || lower(verified, profile, *transport))
}

/// The specialisation constants at their first values.
fn constants(verified: &Verified) -> Vec<Constant> {
    let constants = verified.module.constants();
    constants
        .filter_map(|(_, param, range)| {
            Some(Constant {
                name: Cow::Owned(param.name.clone()),
                scalar: layout::param_type(&verified.module, param.ty)?.scalar,
                value: range.default,
                low: range.low,
                high: range.high,
                multiple: range.multiple,
            })
        })
        .collect()
}

/// The bindings as the host sees them.
fn bindings(verified: &Verified) -> Result<Vec<Binding>, Diagnostics> {
    let Verified { module, info } = verified;
    let mut bindings = Vec::new();
    let matrices = matrix_bindings(module);
    for (index, binding) in module.bindings.iter().enumerate() {
        let ty = &module.types[binding.element];
        let layout = layout::of(module, binding.element).ok_or_else(|| {
            Diagnostic::new(binding.span, format!("a buffer cannot hold the elements of `{}`", binding.name))
        })?;
        // Narrow elements share a word where a device has no such access, and a slice starts at a whole word.
        let mut packed = 4 / layout.size.clamp(1, 4);
        // Lines of matrices begin at multiples of 16 bytes.
        if matrices[index] {
            packed = packed.max(16 / layout.size.clamp(1, 16));
        }
        bindings.push(Binding {
            name: Cow::Owned(binding.name.clone()),
            element: Element { name: Cow::Owned(type_name(module, ty)), size: layout.size, align: layout.align },
            access: info.access[index],
            vector: info.vector[index].max(packed).max(info.copied[index]),
            view: binding.view,
        });
    }
    Ok(bindings)
}

/// Whether an artefact says of an instance what an engine that runs the instance's IR relies on: what it is bound to, its parameter block and its workgroups. An artefact that was read from
/// bytes may say anything.
pub fn is_described(kernel: &Kernel, verified: &Verified) -> bool {
    let Verified { module, info } = verified;
    let Ok(own) = bindings(verified) else { return false };
    let fits = |told: &Binding, own: &Binding| {
        let same =
            (told.element.size, told.element.align, told.view) == (own.element.size, own.element.align, own.view);
        // Other values of specialisation constants may leave less to do.
        same && told.vector >= own.vector && (told.access.writes() || !own.access.writes())
    };
    kernel.bindings.len() == own.len()
        && kernel.bindings.iter().zip(&own).all(|(told, own)| fits(told, own))
        && layout::params(module, info.grid).as_ref() == Some(&kernel.params)
        && (kernel.workgroup_size, kernel.subgroup_size, kernel.grid)
            == (info.workgroup_size, info.subgroup_size, info.grid)
}

/// A hash of everything that decides the code: the same on every machine.
fn hash(kernel: &Kernel) -> [u8; 16] {
    let mut fields = Fields::default();
    // The emitter may change while the IR stays, and the evaluator and the CPU function depend on the IR alone.
    fields.add(env!("CARGO_PKG_VERSION").as_bytes());
    fields.add(kernel.name.as_bytes());
    fields.add(&kernel.ir);
    fields.add(&kernel.instance);
    if !kernel.sites.is_empty() {
        fields.add(b"reporting");
    }
    for variant in kernel.variants.iter() {
        fields.add(variant.target.name().as_bytes());
        fields.add(&variant.features.0.to_le_bytes());
        fields.add(&[u8::from(variant.transport == ParamTransport::Buffer)]);
        match &variant.code {
            Code::Text(text) => fields.add(text.as_bytes()),
            Code::Spirv(words) => fields.add(words),
        }
    }
    fields.hash()
}

/// A hash of fields one after the other, each with its length.
#[derive(Default)]
struct Fields(xxhash_rust::xxh3::Xxh3);

impl Fields {
    fn add(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn hash(&self) -> [u8; 16] {
        self.0.digest128().to_le_bytes()
    }
}
