//! What fuzzing begins with: valid inputs, made by the library itself.
//!
//! A target that runs with `TREFOIL_SEEDS=FOLDER` writes them there and ends.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs, io, process};

use quote::ToTokens;
use syn::visit_mut::VisitMut;
use trefoil_codegen::check::{Launch, Program};
use trefoil_codegen::compile::compile_for;
use trefoil_codegen::front::{Output, parse_source};
use trefoil_codegen::ir::{Instance, Module};

use crate::sources::SOURCES;
use crate::stack;
use crate::words::{joined, words};

/// Begins a target: writes the inputs into the folder that the environment names, if it names one, and ends the process.
pub fn asked_for(inputs: impl FnOnce() -> Vec<Vec<u8>>) {
    stack::for_signals();
    let Some(folder) = env::var_os("TREFOIL_SEEDS").map(PathBuf::from) else { return };
    match write(&folder, &inputs()) {
        Ok(()) => process::exit(0),
        Err(error) => {
            eprintln!("{}: {error}", folder.display());
            process::exit(1);
        }
    }
}

fn write(folder: &Path, inputs: &[Vec<u8>]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (position, input) in inputs.iter().enumerate() {
        fs::write(folder.join(format!("seed-{position:04}")), input)?;
    }
    Ok(())
}

/// An item of a file, with where that is from.
struct Item<'a> {
    package: &'a str,
    file: usize,
    item: syn::Item,
}

/// Each kernel of the sources, with the items that it uses.
pub fn kernels() -> Vec<String> {
    let (mut items, mut kernels) = (Vec::new(), Vec::new());
    for (file, &(package, text)) in SOURCES.iter().enumerate() {
        let Ok(parsed) = syn::parse_file(text) else { continue };
        for mut item in parsed.items {
            Undocumented.visit_item_mut(&mut item);
            if is_marked(&item, "kernel") {
                kernels.push(Item { package, file, item });
            } else if is_marked(&item, "device") {
                items.push(Item { package, file, item });
            }
        }
    }
    kernels.iter().map(|kernel| whole(kernel, &items)).collect()
}

/// The kernels that stand alone, understood.
pub fn modules() -> Vec<Output> {
    kernels().iter().filter_map(|source| parse_source(source).ok()).flatten().collect()
}

fn first(output: &Output) -> Instance {
    output.instances.first().cloned().unwrap_or_default()
}

/// IR with an instance: the length of the IR in four bytes, the IR, the instance.
pub fn of_module(output: &Output) -> Option<Vec<u8>> {
    let (module, instance) = (without_places(output).to_bytes().ok()?, first(output).to_bytes().ok()?);
    Some([&u32::try_from(module.len()).ok()?.to_le_bytes(), module.as_slice(), &instance].concat())
}

/// The bytes of IR and of the instance in what [`of_module`] makes.
pub fn parts(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = data.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

/// Where things were written makes inputs longer and decides nothing.
fn without_places(output: &Output) -> Module {
    Module { doc: String::new(), locations: Default::default(), ..output.module.clone() }
}

/// An artefact as bytes, with code for the targets that its kernel lists.
pub fn kernel(output: &Output) -> Option<Vec<u8>> {
    let module = without_places(output);
    compile_for(&module, &first(output), &module.targets).ok()?.to_bytes().ok().filter(|bytes| bytes.len() < 32 << 10)
}

/// A launch of two workgroups as bytes, on some elements.
pub fn launch(output: &Output) -> Option<Vec<u8>> {
    let module = without_places(output);
    let kernel = compile_for(&module, &first(output), &[]).ok()?;
    let constants: Vec<i64> = kernel.constants.iter().map(|constant| constant.value).collect();
    let program = Program::new(&module, &first(output), &constants).ok()?;
    let buffers: Vec<Vec<u8>> = (0..kernel.bindings.len()).map(|binding| program.made_up(binding, 48)).collect();
    let params = vec![2; kernel.params.size as usize];
    Launch::new(&kernel, &buffers, &params, [2, 1, 1]).to_bytes().ok()
}

/// A kernel behind the items that it uses, directly or not: of two of a name, that of the same file.
fn whole(kernel: &Item<'_>, items: &[Item<'_>]) -> String {
    let mut used = BTreeSet::new();
    let mut texts = vec![(kernel.file, kernel.item.to_token_stream().to_string())];
    let mut next = 0;
    while next < texts.len() {
        let (file, text) = texts[next].clone();
        let names: BTreeSet<&str> = words(&text).into_iter().collect();
        let named: Vec<usize> = (0..items.len())
            .filter(|position| items[*position].package == kernel.package)
            .filter(|position| own_name(&items[*position].item).is_some_and(|name| names.contains(name.as_str())))
            .collect();
        for position in named.iter().copied() {
            let (own, name) = (&items[position], own_name(&items[position].item));
            let is_nearer = |other: &usize| items[*other].file == file && own_name(&items[*other].item) == name;
            let is_wanted = own.file == file || !named.iter().any(is_nearer);
            if is_wanted && used.insert(position) {
                texts.push((own.file, own.item.to_token_stream().to_string()));
            }
        }
        next += 1;
    }
    let texts: Vec<_> = texts.into_iter().rev().map(|(_, text)| text).collect();
    joined(&words(&texts.join("\n")))
}

/// The name of an item, or of the type that a block is of.
fn own_name(item: &syn::Item) -> Option<String> {
    Some(match item {
        syn::Item::Fn(item) => item.sig.ident.to_string(),
        syn::Item::Const(item) => item.ident.to_string(),
        syn::Item::Struct(item) => item.ident.to_string(),
        syn::Item::Enum(item) => item.ident.to_string(),
        syn::Item::Impl(item) => match &*item.self_ty {
            syn::Type::Path(path) => path.path.segments.last()?.ident.to_string(),
            _ => return None,
        },
        _ => return None,
    })
}

fn is_marked(item: &syn::Item, name: &str) -> bool {
    let attributes = match item {
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| attribute.path().is_ident(name))
}

/// Takes documentation away, which only makes inputs longer.
struct Undocumented;

impl VisitMut for Undocumented {
    fn visit_attributes_mut(&mut self, attributes: &mut Vec<syn::Attribute>) {
        attributes.retain(|attribute| !attribute.path().is_ident("doc"));
    }
}
