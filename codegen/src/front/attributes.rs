//! What stands inside of `#[kernel(..)]`: `workgroup`, `subgroup`, `resident`, `volatile`, `index`, `instances`, `targets`, `requires`, `indirect`, `no_robustness`, `strict` and `fast`; for `specialise` see there.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;

use super::infer::{Length, Ty};
use super::items;
use super::session::{Scope, Session};
use crate::ir::{GenericKind, GenericValue, IndexWidth, Instance, Literal, Precision, Scalar, Size, StatedSubgroup};
use crate::target::{Feature, Features, Target};
use crate::verify::no_wide_indices;

/// One `name(..)`, `index = ..`, or a word alone.
pub(super) struct Part {
    pub name: syn::Ident,
    pub content: TokenStream,
    pub alone: bool,
}

impl Parse for Part {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name: syn::Ident = input.parse()?;
        if is_word(&name) {
            return Ok(Self { name, content: TokenStream::new(), alone: true });
        }
        if name == "index" {
            input.parse::<syn::Token![=]>()?;
            let value: syn::Expr = input.parse()?;
            return Ok(Self { name, content: value.into_token_stream(), alone: false });
        }
        let content;
        syn::parenthesized!(content in input);
        Ok(Self { name, content: content.parse()?, alone: false })
    }
}

/// The expressions of sizes in an attribute, in which constants may be named. Nothing is said about mistakes.
pub(super) fn sizes(attribute: &TokenStream) -> Vec<syn::Expr> {
    let parts = Punctuated::<Part, syn::Token![,]>::parse_terminated.parse2(attribute.clone()).unwrap_or_default();
    let sized =
        parts.into_iter().filter(|part| ["workgroup", "subgroup", "resident"].iter().any(|name| part.name == name));
    let read = Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated;
    sized.flat_map(|part| read.parse2(part.content).unwrap_or_default()).collect()
}

/// Whether a part is a word without anything in parentheses.
fn is_word(name: &syn::Ident) -> bool {
    ["indirect", "no_robustness"].iter().any(|word| name == word) || Precision::from_name(&name.to_string()).is_some()
}

/// The parts that the attribute may have, as they are written.
const PARTS: [&str; 13] = [
    "workgroup(..)",
    "subgroup(..)",
    "resident(..)",
    "volatile(..)",
    "index = ..",
    "instances(..)",
    "specialise(..)",
    "targets(..)",
    "requires(..)",
    "indirect",
    "no_robustness",
    "strict",
    "fast",
];

/// All of them, in words.
fn all_parts() -> String {
    let [first @ .., last] = PARTS;
    format!("{} and {last}", first.join(", "))
}

/// The word of the attribute that an unknown one is taken for: what it begins with, or what begins with it.
fn meant(name: &str) -> Option<&'static str> {
    let plain = |name: &str| name.replace('_', "").replace('z', "s").to_lowercase();
    let written = plain(name);
    PARTS.into_iter().filter_map(|part| part.split(['(', ' ']).next()).find(|known| {
        let known = plain(known);
        written.starts_with(&known) || written.len() > 3 && known.starts_with(&written)
    })
}

/// `T = [f32, f16]`
struct Values {
    name: syn::Ident,
    values: Punctuated<syn::Expr, syn::Token![,]>,
}

impl Parse for Values {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.parse()?;
        input.parse::<syn::Token![=]>()?;
        let content;
        syn::bracketed!(content in input);
        Ok(Self { name, values: Punctuated::parse_terminated(&content)? })
    }
}

impl Session {
    /// Reads the attribute into the module, whose generics are set. Gives the instances.
    pub(super) fn attribute(&mut self, attribute: TokenStream, scope: &Scope, item: &syn::ItemFn) -> Vec<Instance> {
        let parts = match Punctuated::<Part, syn::Token![,]>::parse_terminated.parse2(attribute) {
            Ok(parts) => parts,
            Err(error) => {
                self.error_of(&error, "write `#[kernel(workgroup(256))]`, and if need be `subgroup(..)`, `resident(..)`, `volatile(..)`, `index = 64`, `instances(..)`, `specialise(..)`, `targets(..)`, `requires(..)`, `indirect`, `no_robustness` and `strict` or `fast` after it");
                return Vec::new();
            }
        };
        let mut seen: Vec<String> = Vec::new();
        let (mut instances, mut index, mut robustness) = (None, None, None);
        let mut is_size_meant = false;
        self.module.targets = Target::ALL.to_vec();
        for part in parts {
            let name = part.name.to_string();
            if seen.contains(&name) {
                let written = match name.as_str() {
                    "index" => "index = ..".to_owned(),
                    _ if part.alone => name,
                    _ => format!("{name}(..)"),
                };
                self.error(&part.name, format!("`{written}` is given twice"));
                continue;
            }
            if let Some(precision) = Precision::from_name(&name) {
                if self.precision != Precision::Usual {
                    self.error(&part.name, "a kernel is `strict` or `fast`, not both");
                }
                self.precision = precision;
            }
            match name.as_str() {
                "workgroup" => self.workgroup(&part, scope),
                "instances" => instances = Some(self.instances(&part)),
                "targets" => self.targets(&part),
                "requires" => self.requires(&part),
                "subgroup" => self.subgroup(&part, scope),
                "resident" => self.resident(&part, scope),
                "volatile" => self.volatile(&part),
                "index" => index = Some(part),
                // Read before, since the kernel's own names depend on it.
                "specialise" => {}
                "indirect" => self.module.indirect = true,
                "no_robustness" => {
                    self.module.no_robustness = true;
                    robustness = Some(part.name);
                }
                _ if part.alone => {}
                _ if let Some(known) = meant(&name) => {
                    is_size_meant |= known == "workgroup";
                    self.error(&part.name, format!("`{name}` is unknown: did you mean `{known}`?"));
                }
                _ => self.error(&part.name, format!("`{name}` is unknown: a kernel has {}", all_parts())),
            }
            seen.push(name);
        }
        if let Some(part) = index {
            self.index(&part);
        }
        if let Some(word) = robustness.filter(|_| !self.module.targets.contains(&Target::Spirv)) {
            self.error(&word, "`no_robustness` is for pipelines of SPIR-V, which is not among the targets");
        }
        if !is_size_meant && !seen.iter().any(|name| name == "workgroup") {
            self.error(
                &item.sig.ident,
                "the size of a workgroup is missing: `#[kernel(workgroup(256))]`, or up to three sizes",
            );
        }
        let instances = self.listed(instances, item);
        let widths = self.widths.clone();
        instances
            .into_iter()
            .flat_map(|instance| widths.iter().map(move |index| Instance { index: *index, ..instance.clone() }))
            .collect()
    }

    /// The instances for the values of the generics.
    fn listed(&mut self, instances: Option<Vec<Instance>>, item: &syn::ItemFn) -> Vec<Instance> {
        if self.module.generics.is_empty() {
            return vec![Instance::default()];
        }
        match instances {
            Some(instances) => instances,
            None => {
                let names: Vec<String> = self
                    .module
                    .generics
                    .iter()
                    .map(|generic| match generic.kind {
                        GenericKind::Type(_) => format!("{} = [f32]", generic.name),
                        GenericKind::Const(_) => format!("{} = [16]", generic.name),
                    })
                    .collect();
                self.error(
                    &item.sig.generics,
                    format!("the values of the generics are missing: `instances({})`", names.join(", ")),
                );
                Vec::new()
            }
        }
    }

    fn error_of(&mut self, error: &syn::Error, advice: &str) {
        let span = error.span();
        self.errors.add((span, span), format!("{error}: {advice}"));
    }

    fn list<T: Parse>(&mut self, part: &Part, advice: &str) -> Vec<T> {
        match Punctuated::<T, syn::Token![,]>::parse_terminated.parse2(part.content.clone()) {
            Ok(list) => {
                if list.is_empty() {
                    self.error(&part.name, advice);
                }
                list.into_iter().collect()
            }
            Err(error) => {
                self.error_of(&error, advice);
                Vec::new()
            }
        }
    }

    fn workgroup(&mut self, part: &Part, scope: &Scope) {
        let sizes: Vec<syn::Expr> =
            self.list(part, "the size of a workgroup is one to three sizes: `workgroup(16, 16)`");
        if sizes.len() > 3 {
            self.error(&sizes[3], "a workgroup has three axes");
        }
        let mut result = Vec::new();
        for size in sizes.iter().take(3) {
            if let Some(Length::Known(value)) = self.size(size, scope) {
                if value.literal() == Some(0) {
                    self.error(size, "a workgroup has at least one invocation");
                }
                result.push(value);
            }
        }
        result.resize(3, Size::Literal(1));
        self.module.workgroup_size = result;
    }

    fn subgroup(&mut self, part: &Part, scope: &Scope) {
        let advice = "a subgroup has one size: `subgroup(32)`";
        let sizes: Vec<syn::Expr> = self.list(part, advice);
        if let Some(second) = sizes.get(1) {
            self.error(second, advice);
        }
        if let Some(size) = sizes.first()
            && let Some(Length::Known(value)) = self.size(size, scope)
        {
            let span = self.span(size);
            self.module.subgroup = Some(StatedSubgroup { size: value, span });
        }
    }

    fn resident(&mut self, part: &Part, scope: &Scope) {
        let advice = "how many workgroups a multiprocessor has room for at once is one number: `resident(8)`";
        let numbers: Vec<syn::Expr> = self.list(part, advice);
        if let Some(second) = numbers.get(1) {
            self.error(second, advice);
        }
        if let Some(number) = numbers.first()
            && let Some(Length::Known(value)) = self.workgroup_size(number, scope)
        {
            if value.literal() == Some(0) {
                self.error(number, "a multiprocessor has room for one workgroup at least");
            }
            self.module.resident = Some(value);
        }
    }

    /// `volatile(x)`, or `volatile(cuda(x), spirv(x, y))`: kept until the bindings are known.
    fn volatile(&mut self, part: &Part) {
        let advice = "slices are named whose reads stay where they are written: `volatile(x)`, or on some targets only: `volatile(cuda(x), spirv(x, y))`";
        let mut named: Vec<(Target, syn::Ident)> = Vec::new();
        for item in self.list::<syn::Meta>(part, advice) {
            match item {
                syn::Meta::Path(path) => match path.get_ident() {
                    Some(name) => {
                        let targets = Target::ALL.into_iter().filter(|target| target.has_volatile_reads());
                        named.extend(targets.map(|target| (target, name.clone())));
                    }
                    None => self.error(&path, advice),
                },
                syn::Meta::List(list) => {
                    let name = list.path.get_ident().map(ToString::to_string).unwrap_or_default();
                    let slices = list.parse_args_with(Punctuated::<syn::Ident, syn::Token![,]>::parse_terminated);
                    match (Target::from_name(&name).filter(|target| target.has_volatile_reads()), slices) {
                        (Some(target), Ok(slices)) if !slices.is_empty() => {
                            named.extend(slices.into_iter().map(|slice| (target, slice)));
                        }
                        (Some(_), Err(error)) => self.error_of(&error, advice),
                        (Some(_), Ok(_)) => self.error(&list, advice),
                        (None, _) => {
                            self.error(&list.path, format!("`{name}` has no volatile reads: spirv and cuda have"))
                        }
                    }
                }
                syn::Meta::NameValue(pair) => self.error(&pair, advice),
            }
        }
        self.volatile = named;
    }

    /// `index = 64`, or `index = [32, 64]`: read when the targets are known.
    fn index(&mut self, part: &Part) {
        let advice =
            "indices have 32 bits, or 64: write `index = 64`, or `index = [32, 64]` for an instance of either width";
        let given: Vec<syn::Expr> = match syn::parse2(part.content.clone()) {
            Ok(syn::Expr::Array(list)) => list.elems.into_iter().collect(),
            Ok(one) => vec![one],
            Err(error) => return self.error_of(&error, advice),
        };
        let mut widths: Vec<IndexWidth> = Vec::new();
        for value in &given {
            let bits = match value {
                syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(number), .. }) => number.base10_parse::<u32>().ok(),
                _ => None,
            };
            match IndexWidth::ALL.into_iter().find(|width| bits == Some(width.bits())) {
                Some(width) if widths.contains(&width) => self.error(value, "this width is listed twice"),
                Some(width) => widths.push(width),
                None => self.error(value, advice),
            }
        }
        if given.is_empty() {
            self.error(&part.name, advice);
        }
        // The narrower ones first, which launches prefer.
        widths.sort_unstable();
        let lacking = self.module.targets.iter().copied().find(|target| !target.has_wide_indices());
        let nowhere = !self.module.targets.iter().any(|target| target.has_wide_indices());
        match lacking {
            Some(target) if widths == [IndexWidth::Bits64] => self.error(&given[0], no_wide_indices(target)),
            Some(target) if widths.contains(&IndexWidth::Bits64) && nowhere => {
                let (name, advice) = (target.name(), "and no other target is listed: leave `index` away");
                self.error(&part.name, format!("{name} has no indices of 64 bits, {advice}"));
            }
            _ => {}
        }
        if !widths.is_empty() {
            self.widths = widths;
        }
    }

    fn targets(&mut self, part: &Part) {
        let names: Vec<syn::Ident> = self.list(part, "targets are wgsl, spirv, cuda and cpu: `targets(wgsl, cpu)`");
        let mut targets = Vec::new();
        for name in names {
            match Target::from_name(&name.to_string()) {
                Some(target) if targets.contains(&target) => self.error(&name, "this target is listed twice"),
                Some(target) => targets.push(target),
                None => self.error(&name, format!("`{name}` is no target: there are wgsl, spirv, cuda and cpu")),
            }
        }
        // The order of people's lists is that of the targets everywhere.
        self.module.targets = Target::ALL.into_iter().filter(|target| targets.contains(target)).collect();
    }

    fn requires(&mut self, part: &Part) {
        let known: Vec<&str> = Feature::ALL.into_iter().map(Feature::variant_name).collect();
        let advice = format!("features are {}: `requires(Subgroups)`", known.join(", "));
        let names: Vec<syn::Path> = self.list(part, &advice);
        let mut features = Vec::new();
        for path in names {
            let name = path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
            match Feature::from_variant_name(&name) {
                // Atomics of 64 bits are of little use without their arithmetic.
                Some(Feature::Int64Atomics) => features.extend([Feature::Int64Atomics, Feature::Int64]),
                Some(feature) => features.push(feature),
                None => self.error(&path, format!("`{name}` is no feature: {advice}")),
            }
        }
        self.module.requires = Features::of(&features);
    }

    /// Every combination of the values, the first generic's changing slowest.
    fn instances(&mut self, part: &Part) -> Vec<Instance> {
        let lists: Vec<Values> =
            self.list(part, "instances list the values of each generic: `instances(T = [f32, f16], N = [16, 32])`");
        let generics = self.module.generics.clone();
        for list in &lists {
            if !generics.iter().any(|generic| list.name == generic.name) {
                self.error(&list.name, format!("the kernel has no generic parameter `{}`", list.name));
            }
        }
        let mut combinations = vec![Vec::new()];
        for generic in &generics {
            let mut of_generic = lists.iter().filter(|list| list.name == generic.name);
            let Some(list) = of_generic.next() else {
                self.error(&part.name, format!("the values of `{}` are missing", generic.name));
                return Vec::new();
            };
            if let Some(again) = of_generic.next() {
                self.error(&again.name, format!("the values of `{}` are given twice", generic.name));
            }
            if list.values.is_empty() {
                self.error(&list.name, format!("`{}` has no values", generic.name));
            }
            let mut values: Vec<GenericValue> = Vec::new();
            for value in &list.values {
                match self.instance_value(value, generic.kind) {
                    Some(value) if values.contains(&value) => {
                        self.error(&list.name, format!("`{}` has a value twice", generic.name));
                    }
                    Some(value) => values.push(value),
                    None => {}
                }
            }
            combinations = combinations
                .into_iter()
                .flat_map(|before: Vec<GenericValue>| {
                    values.iter().map(move |value| {
                        let mut all = before.clone();
                        all.push(*value);
                        all
                    })
                })
                .collect();
        }
        combinations.into_iter().map(|values| Instance { values, ..Instance::default() }).collect()
    }

    fn instance_value(&mut self, value: &syn::Expr, kind: GenericKind) -> Option<GenericValue> {
        match kind {
            GenericKind::Type(bound) => {
                let scalar = match value {
                    syn::Expr::Path(path) => {
                        path.path.segments.last().and_then(|last| items::scalar(&last.ident.to_string()))
                    }
                    _ => None,
                };
                let known = bound.names();
                match scalar {
                    Some(scalar)
                        if self.satisfies(&Ty::Scalar(scalar), bound)
                            && !matches!(scalar, Scalar::Bool | Scalar::Index) =>
                    {
                        Some(GenericValue::Type(scalar))
                    }
                    _ => {
                        self.error(value, format!("{} `{}` is one of {known}", bound.article(), bound.name()));
                        None
                    }
                }
            }
            GenericKind::Const(scalar) => {
                let (negative, literal) = match value {
                    syn::Expr::Unary(syn::ExprUnary { op: syn::UnOp::Neg(_), expr, .. }) => (true, &**expr),
                    other => (false, other),
                };
                let literal = match literal {
                    syn::Expr::Lit(literal) => &literal.lit,
                    _ => {
                        self.error(value, "the values of a const parameter are literals");
                        return None;
                    }
                };
                let number = match literal {
                    syn::Lit::Int(number) => {
                        number.base10_parse::<i64>().ok().map(|number| if negative { -number } else { number })
                    }
                    _ => None,
                };
                let constant = match (scalar, literal, number) {
                    (Scalar::Bool, syn::Lit::Bool(value), _) => Some(Literal::Bool(value.value)),
                    (Scalar::I32, _, Some(number)) => i32::try_from(number).ok().map(Literal::I32),
                    (Scalar::U32, _, Some(number)) => u32::try_from(number).ok().map(Literal::U32),
                    (Scalar::Index, _, Some(number)) => u32::try_from(number).ok().map(Literal::Index),
                    _ => None,
                };
                if constant.is_none() {
                    self.error(value, format!("this is no {} of 32 bits", scalar.rust_name()));
                }
                constant.map(GenericValue::Const)
            }
        }
    }
}
