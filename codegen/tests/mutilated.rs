//! The compiler takes whatever stands in a kernel: an error, and never a panic.
//!
//! Kernels of the guide lose, double, swap or exchange some of their tokens. What the front end still accepts goes through everything behind it, which may refuse it in the author's
//! words; what passes the verifier must come out of every emitter, in words that naga takes.
//!
//! `TREFOIL_MUTILATED` is how often each file is mutilated, `TREFOIL_MUTILATED_FIRST` the first seed.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::ToTokens;
use trefoil_codegen::compile::compile;
use trefoil_codegen::front::parse_source;
use trefoil_codegen::ir::Instance;

/// Numbers that look random: splitmix64.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) % count.max(1) as u64) as usize
    }
}

/// The kernels of each file of the guide that needs no other crate's items, with the items that they use.
fn sources() -> Vec<(String, TokenStream)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guide/src/rows");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let file = syn::parse_file(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let of_kernels = |item: &&syn::Item| {
            let attributes = match item {
                syn::Item::Fn(item) => &item.attrs,
                syn::Item::Const(item) => &item.attrs,
                syn::Item::Struct(item) => &item.attrs,
                syn::Item::Enum(item) => &item.attrs,
                syn::Item::Impl(item) => &item.attrs,
                _ => return false,
            };
            attributes.iter().any(|known| known.path().is_ident("kernel") || known.path().is_ident("device"))
        };
        let tokens: TokenStream = file.items.iter().filter(of_kernels).map(ToTokens::to_token_stream).collect();
        if parse_source(&tokens.to_string()).is_ok_and(|kernels| !kernels.is_empty()) {
            found.push((path.file_name().unwrap().to_string_lossy().into_owned(), tokens));
        }
    }
    found
}

fn count(tokens: &TokenStream) -> usize {
    let of = |token| match token {
        TokenTree::Group(group) => 1 + count(&group.stream()),
        _ => 1,
    };
    tokens.clone().into_iter().map(of).sum()
}

/// Every token that is no group.
fn leaves(tokens: &TokenStream, into: &mut Vec<TokenTree>) {
    for token in tokens.clone() {
        match token {
            TokenTree::Group(group) => leaves(&group.stream(), into),
            leaf => into.push(leaf),
        }
    }
}

/// What becomes of one token.
enum Wound {
    Lost,
    Doubled,
    Swapped,
    /// For one of these, one of its kind if there is.
    Exchanged([TokenTree; 2]),
}

/// Wounds the token of that number, counted through all groups.
fn wounded(tokens: TokenStream, at: &mut usize, wound: &mut Option<Wound>) -> TokenStream {
    let (mut out, mut waits): (Vec<TokenTree>, Option<TokenTree>) = (Vec::new(), None);
    for token in tokens {
        let is_it = wound.is_some() && *at == 0;
        *at = at.saturating_sub(1);
        match (is_it.then(|| wound.take()).flatten(), token) {
            (Some(Wound::Lost), _) => {}
            (Some(Wound::Doubled), token) => out.extend([token.clone(), token]),
            (Some(Wound::Swapped), token) => waits = Some(token),
            (Some(Wound::Exchanged([one, other])), token) => {
                let is_alike = std::mem::discriminant(&one) == std::mem::discriminant(&token);
                out.push(if is_alike { one } else { other });
            }
            (None, TokenTree::Group(group)) => {
                let inner = wounded(group.stream(), at, wound);
                out.push(Group::new(group.delimiter(), inner).into());
                out.extend(waits.take());
            }
            (None, token) => {
                out.push(token);
                out.extend(waits.take());
            }
        }
    }
    out.extend(waits);
    out.into_iter().collect()
}

/// What the whole compiler says of a source: nothing, or a fault of its own.
fn fault(source: &str, accepted: &mut usize) -> Option<String> {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let Ok(outputs) = parse_source(source) else { return (0, None) };
        for output in &outputs {
            let listed = if output.instances.is_empty() { vec![Instance::default()] } else { output.instances.clone() };
            for instance in listed.iter().take(2) {
                if let Err(refused) = compile(&output.module, instance) {
                    let words = format!("{refused:?}");
                    // A kernel's own name may mean something else in a language, which only its emitter knows.
                    if words.contains("cannot be emitted") && !words.contains("rename the kernel") {
                        return (outputs.len(), Some(words));
                    }
                }
            }
        }
        (outputs.len(), None)
    }));
    match outcome {
        Ok((kernels, fault)) => {
            *accepted += kernels;
            fault
        }
        Err(panic) => {
            let words = panic.downcast_ref::<String>().cloned();
            let words = words.or_else(|| panic.downcast_ref::<&str>().map(|words| (*words).to_owned()));
            Some(format!("a panic: {}", words.unwrap_or_default()))
        }
    }
}

fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} is `{text}`, no number")),
        Err(_) => default,
    }
}

#[test]
fn mutilated_kernels_are_refused_or_compiled() {
    let (first, times) = (number("TREFOIL_MUTILATED_FIRST", 0), number("TREFOIL_MUTILATED", 200));
    let sources = sources();
    assert!(sources.len() > 40, "{} files of the guide stand alone", sources.len());
    let mut words = Vec::new();
    for (_, tokens) in &sources {
        leaves(tokens, &mut words);
    }
    let (mut tried, mut accepted, mut faults) = (0, 0, Vec::new());
    for seed in first..first + times {
        for (file, tokens) in &sources {
            let name = file.bytes().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
            let mut numbers = Numbers(name ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut tokens = tokens.clone();
            for _ in 0..=numbers.below(5) / 3 {
                let mut at = numbers.below(count(&tokens));
                let wound = match numbers.below(8) {
                    0 => Wound::Lost,
                    1 => Wound::Doubled,
                    2 => Wound::Swapped,
                    _ => Wound::Exchanged([(); 2].map(|()| words[numbers.below(words.len())].clone())),
                };
                tokens = wounded(tokens, &mut at, &mut Some(wound));
            }
            tried += 1;
            if let Some(fault) = fault(&tokens.to_string(), &mut accepted) {
                faults.push(format!("seed {seed}, {file}: {fault}\n{tokens}"));
            }
        }
    }
    println!("{tried} mutilated files, {accepted} kernels that the front end takes, {} faults", faults.len());
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

/// Any text at all, and any nesting.
#[test]
fn no_text_is_too_strange() {
    let deep = |depth: usize| {
        let sum = format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
        format!("#[kernel(workgroup(1))] fn k(y: &mut [u32]) {{ y[0] = {sum}; }}")
    };
    let texts = [
        String::new(),
        "#[kernel]".to_owned(),
        "#[kernel(workgroup())] fn k() {}".to_owned(),
        "#[kernel(workgroup(1))] fn k(y: &mut [u32]) { y[0] = 0xffff_ffff_ffff_ffff_ffffu32; }".to_owned(),
        "#[kernel(workgroup(4294967296))] fn k(y: &mut [u32]) { y[0] = 1; }".to_owned(),
        "#[kernel(workgroup(1))] fn k(y: &mut [u32]) { let r#type = 1; y[0] = r#type; }".to_owned(),
        "#[kernel(workgroup(1))] fn größe(y: &mut [f32]) { let größe = 1e400f32; y[0] = größe; }".to_owned(),
        "#[kernel(workgroup(1))] fn k(y: &mut [u32]) { y[0] = -9223372036854775808i64 as u32; }".to_owned(),
        deep(60),
    ];
    let mut accepted = 0;
    for text in &texts {
        assert_eq!(fault(text, &mut accepted), None, "{text}");
    }
}
