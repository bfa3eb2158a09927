//! The late path, in one place: an instance of a generic module, verified, lowered, emitted and put together as an artefact.
//!
//! The macro runs it for listed instances while the author's crate is built, the graph compiler for late ones; both get the same code.

use std::borrow::Cow;

use crate::artefact::{Binding, Code, Constant, Element, Kernel, Variant};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::emit::Emitter;
use crate::ir::{Instance, Module, instantiate};
use crate::layout;
#[cfg(feature = "cpu")]
use crate::lower::{Lowered, lower};
use crate::target::{ParamTransport, Target};
use crate::timings::{Stage, stage};
use crate::variants::variants;
use crate::verify::{Verified, check_profile, type_name, verify};

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
    let verified = stage(Stage::Verify, || verify(instantiate(module, instance)?))?;
    let name = &verified.module.name;
    let at = verified.module.entry.span;
    let (mut made, mut found, mut served) = (Vec::new(), Vec::new(), Vec::new());
    let mut emitter = Emitter::new(&verified);
    for (profile, transport) in variants(&verified) {
        if !targets.contains(&profile.target) {
            continue;
        }
        let code = check_profile(&verified, &profile).and_then(|()| match profile.target {
            Target::Cpu => Ok(None),
            _ => emitter.code(&profile, transport).map(Some),
        });
        served.push(profile.target);
        match code {
            Ok(Some(code)) => made.push(Variant {
                target: profile.target,
                profile: Cow::Owned(profile.name()),
                dialect: profile.dialect,
                features: profile.features,
                transport,
                code,
            }),
            Ok(None) => {}
            Err(Diagnostics(more)) => {
                found.extend(more.into_iter().filter(|new| !found.contains(new)).collect::<Vec<_>>())
            }
        }
    }
    for target in targets.iter().filter(|target| verified.module.targets.contains(target)) {
        if !served.contains(target) && found.is_empty() {
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
        constants: Cow::Owned(constants(&verified)),
        workgroup_size: verified.info.workgroup_size,
        workgroup_bytes: verified.info.workgroup_bytes,
        grid: verified.info.grid,
        variants: Cow::Owned(made),
        cpu: None,
        ir: Cow::Owned(bytes(module.to_bytes(), "the IR")?),
        instance: Cow::Owned(bytes(instance.to_bytes(), "the instance")?),
        hash: [0; 16],
    };
    kernel.hash = hash(&kernel);
    Ok(Compiled { kernel, verified })
}

/// What the CPU function of an instance is printed from by [`crate::emit::cpu::emit`].
///
/// # Errors
/// The kernel lists no CPU, or holds something that cannot be made legal for it.
#[cfg(feature = "cpu")]
pub fn lower_for_cpu(verified: &Verified) -> Result<Lowered, Diagnostics> {
    let Some((profile, transport)) = variants(verified).into_iter().find(|(profile, _)| profile.target == Target::Cpu)
    else {
        let module = &verified.module;
        return Err(Diagnostic::new(module.entry.span, format!("`{}` has no code for the CPU", module.name)).into());
    };
    stage(Stage::Lower, || lower(verified, &profile, transport))
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
    for (index, binding) in module.bindings.iter().enumerate() {
        let ty = &module.types[binding.element];
        let layout = layout::of(module, binding.element).ok_or_else(|| {
            Diagnostic::new(binding.span, format!("a buffer cannot hold the elements of `{}`", binding.name))
        })?;
        // Narrow elements share a word where a device has no such access, and a slice starts at a whole word.
        let packed = 4 / layout.size.clamp(1, 4);
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
