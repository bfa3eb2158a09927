//! `specialise(TILE: usize = 16, in 1..=64, multiple_of 4; FAST: bool = false)`: specialisation constants, as a kernel's attribute declares them.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;

use super::attributes::Part;
use super::infer::{Length, Ty};
use super::session::{GenericArgument, Generics, Scope, Session};
use crate::ir::{Param, Scalar, Size, Specialise};

const ADVICE: &str = "write a name, a type, the usual value and the values that are possible: `specialise(TILE: usize = 16, in 1..=64, multiple_of 4)`, with `;` before the next";

/// Words that are no names of fields, even behind `r#`.
const NO_FIELDS: [&str; 3] = ["self", "super", "crate"];

/// A constant as it is written.
struct Written {
    name: syn::Ident,
    ty: syn::Type,
    default: Value,
    range: Option<(Value, Value)>,
    multiple: Option<Value>,
}

/// A literal, with its sign.
struct Value {
    literal: syn::Lit,
    number: Option<i64>,
}

impl Parse for Value {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let minus: Option<syn::Token![-]> = input.parse()?;
        let literal: syn::Lit = input.parse()?;
        let number = match &literal {
            syn::Lit::Int(value) => {
                value.base10_parse::<i64>().ok().map(|value| if minus.is_some() { -value } else { value })
            }
            syn::Lit::Bool(value) if minus.is_none() => Some(i64::from(value.value)),
            _ => None,
        };
        Ok(Self { literal, number })
    }
}

impl Parse for Written {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.parse()?;
        input.parse::<syn::Token![:]>()?;
        let ty = input.parse()?;
        input.parse::<syn::Token![=]>()?;
        let default = input.parse()?;
        let (mut range, mut multiple) = (None, None);
        while input.peek(syn::Token![,]) {
            input.parse::<syn::Token![,]>()?;
            if input.is_empty() {
                break;
            }
            if range.is_none() && input.peek(syn::Token![in]) {
                input.parse::<syn::Token![in]>()?;
                let low = input.parse()?;
                input.parse::<syn::Token![..=]>()?;
                range = Some((low, input.parse()?));
                continue;
            }
            let word: syn::Ident = input.parse()?;
            if word != "multiple_of" || multiple.is_some() {
                return Err(syn::Error::new(word.span(), "expected `in` or `multiple_of`, each once"));
            }
            multiple = Some(input.parse()?);
        }
        Ok(Self { name, ty, default, range, multiple })
    }
}

/// What the constants of an attribute are called: names in the kernel that mean no item. Nothing is said about mistakes.
pub(super) fn names(attribute: &TokenStream) -> Vec<syn::Ident> {
    read(attribute).unwrap_or_default().into_iter().map(|constant| constant.name).collect()
}

fn read(attribute: &TokenStream) -> syn::Result<Vec<Written>> {
    let parts = Punctuated::<Part, syn::Token![,]>::parse_terminated.parse2(attribute.clone()).unwrap_or_default();
    let Some(part) = parts.into_iter().find(|part| part.name == "specialise") else {
        return Ok(Vec::new());
    };
    let list = Punctuated::<Written, syn::Token![;]>::parse_terminated.parse2(part.content)?;
    if list.is_empty() {
        return Err(syn::Error::new(part.name.span(), "no constant is declared"));
    }
    Ok(list.into_iter().collect())
}

/// A constant that was understood.
pub(super) struct Declared {
    name: syn::Ident,
    scalar: Scalar,
    range: Specialise,
}

impl Session {
    /// The constants that an attribute declares; what is wrong is reported.
    pub(super) fn specialised(&mut self, attribute: &TokenStream) -> Vec<Declared> {
        let written = match read(attribute) {
            Ok(written) => written,
            Err(error) => {
                self.errors.add((error.span(), error.span()), format!("{error}: {ADVICE}"));
                return Vec::new();
            }
        };
        let mut declared: Vec<Declared> = Vec::new();
        for constant in written {
            let (name, plain) = (constant.name.to_string(), constant.name.unraw());
            if declared.iter().any(|known| known.name == constant.name)
                || self.module.generics.iter().any(|generic| generic.name == name)
            {
                self.error(&constant.name, format!("`{name}` is declared twice"));
            } else if plain.to_string().chars().any(char::is_lowercase) {
                self.error(
                    &constant.name,
                    format!("a specialisation constant is written in capitals: `{}`", plain.to_string().to_uppercase()),
                );
            } else if plain != constant.name {
                self.error(&constant.name, format!("a specialisation constant is written without `r#`: `{plain}`"));
            } else if NO_FIELDS.contains(&name.to_lowercase().as_str()) {
                let field = name.to_lowercase();
                self.error(
                    &constant.name,
                    format!(
                        "a launch names `{name}` by the field `{field}`, which Rust has no field of: take another name"
                    ),
                );
            } else if let Some(constant) = self.constant(constant) {
                declared.push(constant);
            }
        }
        declared
    }

    fn constant(&mut self, written: Written) -> Option<Declared> {
        let Written { name, ty, default, range, multiple } = written;
        let scalar = match self.resolve_type(&ty, &Scope::default()) {
            Ty::Scalar(scalar @ (Scalar::U32 | Scalar::I32 | Scalar::Index | Scalar::Bool)) => scalar,
            Ty::Error => return None,
            _ => {
                self.error(&ty, "a specialisation constant is a usize, u32, i32 or bool");
                return None;
            }
        };
        let limits = match scalar {
            Scalar::Bool => (0, 1),
            Scalar::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
            _ => (0, i64::from(u32::MAX)),
        };
        let mut number = |value: &Value| {
            let of_kind = matches!(value.literal, syn::Lit::Bool(_)) == (scalar == Scalar::Bool);
            let found = value.number.filter(|number| of_kind && (limits.0..=limits.1).contains(number));
            if found.is_none() {
                self.error(&value.literal, format!("this is no {} of 32 bits", scalar.rust_name()));
            }
            found
        };
        let value = number(&default)?;
        let (low, high) = match (&range, scalar) {
            (Some((low, high)), _) => (number(low)?, number(high)?),
            (None, Scalar::Bool) => limits,
            (None, _) => {
                self.error(
                    &name,
                    format!("the possible values of `{name}` are missing, which limits are checked with: {ADVICE}"),
                );
                return None;
            }
        };
        let step = match &multiple {
            None => 1,
            Some(multiple) => match multiple.number.and_then(|number| u32::try_from(number).ok()).filter(|n| *n > 0) {
                Some(number) => number,
                None => {
                    self.error(&multiple.literal, "`multiple_of` takes a number from 1 on");
                    return None;
                }
            },
        };
        if low > high || value < low || value > high || value % i64::from(step) != 0 {
            let multiple = if step > 1 { format!(", or no multiple of {step}") } else { String::new() };
            self.error(&default.literal, format!("the usual value {value} is not in {low}..={high}{multiple}"));
            return None;
        }
        let range = Specialise { default: value, low, high, multiple: step };
        Some(Declared { name, scalar, range })
    }

    /// Adds the constants to the module, whose other params are there.
    pub(super) fn add_constants(&mut self, declared: &[Declared]) {
        for Declared { name, scalar, range } in declared {
            let ty = self.module.intern(crate::ir::Type::Scalar(*scalar));
            let span = self.span(name);
            self.module.params.push(Param { name: name.to_string(), ty, specialise: Some(*range), span });
        }
    }
}

/// The names of constants, which stand behind the params of a signature.
pub(super) fn scope(declared: &[Declared], signature: &syn::Signature) -> Generics {
    let by_value = |input: &&syn::FnArg| matches!(input, syn::FnArg::Typed(input) if !is_reference(&input.ty));
    let first = signature.inputs.iter().filter(by_value).count() as u32;
    let names = declared.iter().zip(first..);
    names
        .map(|(constant, index)| {
            let argument = GenericArgument::Const(constant.scalar, Length::Known(Size::Param(index)));
            (constant.name.to_string(), argument)
        })
        .collect()
}

fn is_reference(ty: &syn::Type) -> bool {
    match ty {
        syn::Type::Group(group) => is_reference(&group.elem),
        syn::Type::Paren(paren) => is_reference(&paren.elem),
        other => matches!(other, syn::Type::Reference(_)),
    }
}

/// The constants as Rust has them, beside the text that rustc checks.
pub(super) fn items(declared: &[Declared]) -> TokenStream {
    let constants = declared.iter().map(|Declared { name, scalar, range }| {
        let ty = syn::Ident::new(scalar.rust_name(), name.span());
        let value = match scalar {
            Scalar::Bool => {
                let value = range.default != 0;
                quote!(#value)
            }
            _ => {
                let value = proc_macro2::Literal::i64_unsuffixed(range.default);
                quote!(#value)
            }
        };
        quote! {
            #[allow(dead_code, reason = "a constant that decides a length may be no value anywhere")]
            const #name: #ty = #value;
        }
    });
    quote!(#(#constants)*)
}
