//! The late path, in one place: an instance of a generic module, verified, lowered, emitted and put together as an artefact.
//!
//! The macro runs it for listed instances while the author's crate is built, the graph compiler for late ones; both get the same code.

use std::borrow::Cow;

use crate::artefact::{Binding, Code, Element, Kernel, Variant};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::emit::{self, EmitError};
use crate::ir::{Instance, Module, Scalar, Type, instantiate};
use crate::layout;
use crate::lower::{self, Lowered};
use crate::target::{ParamTransport, Profile, Target};
use crate::verify::{Verified, check_profile, type_name, verify};

/// A compiled instance.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The artefact; its `cpu` is empty, since that is code of the author's crate.
    pub kernel: Kernel,
    /// What the CPU function is printed from ([`emit::cpu::emit`]), if the CPU is among the targets.
    pub cpu: Option<Lowered>,
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
    let verified = verify(instantiate(module, instance)?)?;
    let name = &verified.module.name;
    let at = verified.module.entry.span;
    let (mut variants, mut found, mut cpu) = (Vec::new(), Vec::new(), None);
    for (profile, transport) in lower::variants(&verified) {
        if !targets.contains(&profile.target) {
            continue;
        }
        match variant(&verified, &profile, transport) {
            Ok(Emitted::Variant(variant)) => variants.push(*variant),
            Ok(Emitted::Cpu(lowered)) => cpu = Some(*lowered),
            Err(Diagnostics(more)) => {
                found.extend(more.into_iter().filter(|new| !found.contains(new)).collect::<Vec<_>>())
            }
        }
    }
    for target in targets.iter().filter(|target| verified.module.targets.contains(target)) {
        let emitted = if *target == Target::Cpu { cpu.is_some() } else { variants.iter().any(|v| v.target == *target) };
        if !emitted && found.is_empty() {
            found.push(Diagnostic::new(at, format!("`{name}` has no code for {}", target.name())));
        }
    }
    if !found.is_empty() {
        return Err(Diagnostics(found));
    }
    let bytes = |bytes: Result<Vec<u8>, _>, what: &str| {
        bytes.map_err(|error| {
            Diagnostics::from(Diagnostic::new(at, format!("{what} of `{name}` cannot be written: {error}")))
        })
    };
    let params = layout::params(&verified.module, verified.info.grid)
        .ok_or_else(|| Diagnostic::new(at, format!("`{name}` has a parameter that cannot be one")))?;
    let mut kernel = Kernel {
        name: Cow::Owned(name.clone()),
        doc: Cow::Owned(verified.module.doc.clone()),
        bindings: Cow::Owned(bindings(&verified)?),
        params,
        workgroup_size: verified.info.workgroup_size,
        workgroup_bytes: verified.info.workgroup_bytes,
        grid: verified.info.grid,
        variants: Cow::Owned(variants),
        cpu: None,
        ir: Cow::Owned(bytes(module.to_bytes(), "the IR")?),
        instance: Cow::Owned(bytes(instance.to_bytes(), "the instance")?),
        hash: [0; 16],
    };
    kernel.hash = hash(&kernel);
    Ok(Compiled { kernel, cpu, verified })
}

enum Emitted {
    Variant(Box<Variant>),
    Cpu(Box<Lowered>),
}

fn variant(verified: &Verified, profile: &Profile, transport: ParamTransport) -> Result<Emitted, Diagnostics> {
    check_profile(verified, profile)?;
    let lowered = lower::lower(verified, profile, transport)?;
    let failed = |error: EmitError| Diagnostics::from(Diagnostic::new(verified.module.entry.span, error.to_string()));
    let code = match profile.target {
        Target::Wgsl => {
            let text = emit::wgsl::emit(&lowered).map_err(failed)?;
            emit::wgsl::validate(&text).map_err(failed)?;
            Code::Text(Cow::Owned(text))
        }
        Target::Cuda => Code::Text(Cow::Owned(emit::cuda::emit(&lowered).map_err(failed)?)),
        Target::Spirv => {
            let words = emit::spirv::emit(&lowered).map_err(failed)?;
            Code::Spirv(Cow::Owned(words.into_iter().flat_map(u32::to_le_bytes).collect()))
        }
        Target::Cpu => return Ok(Emitted::Cpu(Box::new(lowered))),
    };
    Ok(Emitted::Variant(Box::new(Variant {
        target: profile.target,
        profile: Cow::Owned(profile.name()),
        features: profile.features,
        transport,
        code,
    })))
}

/// The bindings as the host sees them.
fn bindings(verified: &Verified) -> Result<Vec<Binding>, Diagnostics> {
    let Verified { module, info } = verified;
    let mut bindings = Vec::new();
    for (index, binding) in module.bindings.iter().enumerate() {
        let ty = &module.types[binding.element];
        let layout = layout::of(module, binding.element).ok_or_else(|| {
            Diagnostic::new(binding.span, format!("a buffer cannot hold the elements of `{}`", binding.name))
        })?;
        // Two halves share a word where a device has no 16-bit access, and a slice starts at a whole word.
        let packed = if *ty == Type::Scalar(Scalar::F16) { 2 } else { 1 };
        bindings.push(Binding {
            name: Cow::Owned(binding.name.clone()),
            element: Element { name: Cow::Owned(type_name(module, ty)), size: layout.size, align: layout.align },
            access: info.access[index],
            vector: info.vector[index].max(packed),
            view: binding.view,
        });
    }
    Ok(bindings)
}

/// A hash of everything that decides the code: the same on every machine.
fn hash(kernel: &Kernel) -> [u8; 16] {
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    let mut add = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    // The emitter may change while the IR stays, and the evaluator and the CPU function depend on the IR alone.
    add(env!("CARGO_PKG_VERSION").as_bytes());
    add(kernel.name.as_bytes());
    add(&kernel.ir);
    add(&kernel.instance);
    for variant in kernel.variants.iter() {
        add(variant.target.name().as_bytes());
        add(&variant.features.0.to_le_bytes());
        add(&[u8::from(variant.transport == ParamTransport::Buffer)]);
        match &variant.code {
            Code::Text(text) => add(text.as_bytes()),
            Code::Spirv(words) => add(words),
        }
    }
    hasher.digest128().to_le_bytes()
}
