//! The artefact as constants of the author's program.

use std::str::FromStr;

use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, format_ident, quote};
use trefoil_codegen::artefact::{
    Access, Code, Constant, GridKind, IndexWidth, Kernel, MatrixNeed, MatrixProduct, MatrixRole, MatrixScalar,
    ParamRole, ParamScalar, Params, TensorMap, Term, Variant,
};
use trefoil_codegen::diagnostic::{Diagnostic, Diagnostics};
use trefoil_codegen::front::Output;
use trefoil_codegen::ir::{self, Module};
use trefoil_codegen::target::{Dialect, ParamTransport, Target};
use trefoil_codegen::timings::{Stage, stage};
use trefoil_codegen::{compile, emit};

use crate::{literals, params};

/// What a kernel without generics is called in its module, and what its instance with wider indices is beside another.
pub const KERNEL: &str = "KERNEL";
pub const WIDE_KERNEL: &str = "KERNEL_INDEX64";
/// The lists of a generic kernel's instances, and of those with wider indices beside others.
pub const INSTANCES: &str = "INSTANCES";
pub const WIDE_INSTANCES: &str = "WIDE_INSTANCES";

/// Whether there is an instance of either width of indices.
pub fn has_both(instances: &[ir::Instance]) -> bool {
    let has = |wide: bool| instances.iter().any(|instance| instance.index.is_wide() == wide);
    has(true) && has(false)
}

/// A compiled instance.
pub struct Made {
    kernel: Kernel,
    /// The compiled CPU function: items, and an expression of type `CpuFunction`.
    cpu: Option<TokenStream>,
    instance: ir::Instance,
}

impl Made {
    /// How many texts it has: variants and the CPU function.
    pub fn variants(&self) -> usize {
        self.kernel.variants.len() + usize::from(self.cpu.is_some())
    }
}

/// Compiles instances for every target.
pub fn instances(
    module: &ir::Module,
    instances: &[ir::Instance],
    support: &TokenStream,
) -> Vec<Result<Made, Diagnostics>> {
    let path = quote!(#support::expansion::artefact).to_string();
    let refused = |message: String| Diagnostic::new(module.entry.span, message);
    let compiled = compile::build_and_print(module, instances, |lowered| {
        stage(Stage::Cpu, || {
            let text = emit::cpu::emit(lowered, &path).map_err(|error| refused(error.to_string()))?;
            Ok(parsed(&text)
                .map_err(|error| refused(format!("the printed Rust of `{}` does not parse: {error}", module.name)))?)
        })
    });
    compiled
        .into_iter()
        .zip(instances)
        .map(|(compiled, instance)| {
            let (compiled, cpu) = compiled?;
            Ok(Made { kernel: compiled.kernel, cpu, instance: instance.clone() })
        })
        .collect()
}

/// The tokens of a source text, by the compiler's own parser: proc-macro2 would read the text twice.
fn parsed(source: &str) -> Result<TokenStream, String> {
    proc_macro::TokenStream::from_str(source).map(TokenStream::from).map_err(|error| error.to_string())
}

/// What the kernel's module holds.
pub fn module(output: &Output, instances: &[Made], support: &TokenStream) -> Result<TokenStream, Diagnostics> {
    let expansion = quote!(#support::expansion);
    let generic = !output.module.generics.is_empty();
    let mut items = TokenStream::new();
    let mut kernels = Vec::new();
    let (mut listed, mut wide) = (Vec::new(), Vec::new());
    let mut codes = codes(instances, &expansion.to_string());
    if let Some(first) = instances.first() {
        codes.push_str("static IR: &[u8] = ");
        literals::push_bytes(&mut codes, &first.kernel.ir);
        codes.push(';');
    }
    items.extend(parsed(&codes).map_err(|error| {
        let Module { name, entry, .. } = &output.module;
        Diagnostic::new(entry.span, format!("the code of `{name}` cannot be written as constants: {error}"))
    })?);
    for (number, made) in instances.iter().enumerate() {
        // Beside one with narrower indices.
        let second = made.instance.index.is_wide() && has_both(&output.instances);
        let name = match (generic, second) {
            (true, _) => format_ident!("{}", made.kernel.name.to_uppercase()),
            (false, false) => format_ident!("{KERNEL}"),
            (false, true) => format_ident!("{WIDE_KERNEL}"),
        };
        let doc = format!("`{}`.", made.kernel.name);
        let kernel = kernel(&made.kernel, number, made.cpu.is_some(), &expansion);
        if let Some(cpu) = &made.cpu {
            let function = format_ident!("CPU_{number}");
            items.extend(quote! {
                const #function: #expansion::artefact::CpuFunction = #cpu;
            });
        }
        items.extend(quote! {
            #[doc = #doc]
            pub static #name: #expansion::artefact::Kernel = #kernel;
        });
        let values = made.instance.values.iter().map(|value| match value {
            ir::GenericValue::Type(scalar) => {
                let scalar = scalar.rust_name();
                quote!(#expansion::GenericValue::Type(#scalar))
            }
            ir::GenericValue::Const(literal) => {
                let value = match literal {
                    ir::Literal::I32(value) => i64::from(*value),
                    other => i64::from(other.bits() as u32),
                };
                quote!(#expansion::GenericValue::Const(#value))
            }
        });
        let list = if second { &mut wide } else { &mut listed };
        list.push(quote!(#expansion::Instance { values: &[#(#values),*], kernel: &#name }));
        kernels.push(name);
    }
    items.extend(params::structs(&instances.iter().map(|made| &made.kernel).collect::<Vec<_>>(), &expansion));
    if generic {
        for (name, list) in [(INSTANCES, listed), (WIDE_INSTANCES, wide)] {
            let name = format_ident!("{name}");
            if !list.is_empty() {
                items.extend(quote! {
                    #[doc(hidden)]
                    pub static #name: &[#expansion::Instance] = &[#(#list),*];
                });
            }
        }
    }
    let constants = constants(instances, &expansion);
    Ok(quote! {
        #constants
        /// Every compiled instance.
        pub static KERNELS: &[&#expansion::artefact::Kernel] = &[#(&#kernels),*];
        #items
    })
}

/// The code of every variant as a constant with a name of its own, as source text.
fn codes(instances: &[Made], expansion: &str) -> String {
    let mut source = String::new();
    for (number, made) in instances.iter().enumerate() {
        for (position, variant) in made.kernel.variants.iter().enumerate() {
            match &variant.code {
                Code::Text(code) => {
                    source += &format!("const CODE_{number}_{position}: &str = ");
                    literals::push_text(&mut source, code);
                    source.push(';');
                }
                Code::Spirv(words) => {
                    // Byte strings cost rustc a sixth of what lists of numbers do.
                    let words_type = format!("{expansion}::Words");
                    source +=
                        &format!("static CODE_{number}_{position}: {words_type}<{}> = {words_type}(*", words.len());
                    literals::push_bytes(&mut source, words);
                    source += ");";
                }
            }
        }
    }
    source
}

/// The struct that a launch is specialised with.
fn constants(instances: &[Made], expansion: &TokenStream) -> TokenStream {
    let Some(first) = instances.first().filter(|made| !made.kernel.constants.is_empty()) else {
        return TokenStream::new();
    };
    let constants = &first.kernel.constants;
    let fields: Vec<_> = constants.iter().map(|constant| format_ident!("{}", constant.name.to_lowercase())).collect();
    let names = constants.iter().map(|constant| constant.name.as_ref());
    let docs = constants.iter().map(|constant| {
        let multiple =
            if constant.multiple > 1 { format!(", a multiple of {}", constant.multiple) } else { String::new() };
        format!("`{}`: from {} to {}{multiple}.", constant.name, constant.low, constant.high)
    });
    let types = constants.iter().map(|constant| match constant.scalar {
        ParamScalar::Bool => quote!(bool),
        ParamScalar::I32 => quote!(i32),
        ParamScalar::Index => quote!(usize),
        // The others are none.
        ParamScalar::U32 | ParamScalar::F32 | ParamScalar::I64 | ParamScalar::U64 | ParamScalar::F64 => quote!(u32),
    });
    let defaults = constants.iter().map(|constant| match constant.scalar {
        ParamScalar::Bool => {
            let value = constant.value != 0;
            quote!(#value)
        }
        _ => Literal::i64_unsuffixed(constant.value).into_token_stream(),
    });
    quote! {
        /// The values of the kernel's specialisation constants, for `Launch::specialise`; their usual values by default.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct Constants {
            #(#[doc = #docs] pub #fields: #types,)*
        }
        impl ::core::default::Default for Constants {
            fn default() -> Self {
                Self { #(#fields: #defaults),* }
            }
        }
        impl #expansion::Constants for Constants {
            fn values(&self) -> ::std::vec::Vec<(&'static str, i64)> {
                // What fits no `i64` is in no range.
                ::std::vec![#((#names, ::core::convert::TryFrom::try_from(self.#fields).unwrap_or(i64::MAX))),*]
            }
        }
    }
}

fn text(text: &str) -> TokenStream {
    quote!(::std::borrow::Cow::Borrowed(#text))
}

fn kernel(kernel: &Kernel, number: usize, cpu: bool, expansion: &TokenStream) -> TokenStream {
    let artefact = quote!(#expansion::artefact);
    let (name, doc) = (text(&kernel.name), text(&kernel.doc));
    let bindings = kernel.bindings.iter().map(|binding| {
        let (name, element) = (text(&binding.name), text(&binding.element.name));
        let (size, align, vector) = (binding.element.size, binding.element.align, binding.vector);
        let access = match binding.access {
            Access::Read => quote!(Read),
            Access::Write => quote!(Write),
            Access::ReadWrite => quote!(ReadWrite),
            Access::Atomic => quote!(Atomic),
        };
        let view = option(binding.view);
        quote! {
            #artefact::Binding {
                name: #name,
                element: #artefact::Element { name: #element, size: #size, align: #align },
                access: #artefact::Access::#access,
                vector: #vector,
                view: #view,
            }
        }
    });
    let params = params(&kernel.params, &artefact);
    let constants = kernel.constants.iter().map(|constant| {
        let (name, scalar) = (text(&constant.name), scalar(constant.scalar));
        let Constant { value, low, high, multiple, .. } = *constant;
        quote! {
            #artefact::Constant {
                name: #name,
                scalar: #artefact::ParamScalar::#scalar,
                value: #value,
                low: #low,
                high: #high,
                multiple: #multiple,
            }
        }
    });
    let [x, y, z] = kernel.workgroup_size;
    let subgroup_size = option(kernel.subgroup_size);
    let workgroup_bytes = kernel.workgroup_bytes;
    let index = match kernel.index {
        IndexWidth::Bits32 => quote!(Bits32),
        IndexWidth::Bits64 => quote!(Bits64),
    };
    let grid = match kernel.grid {
        GridKind::Linear => quote!(Linear),
        GridKind::Volume => quote!(Volume),
    };
    let variants: Vec<_> = kernel
        .variants
        .iter()
        .enumerate()
        .map(|(position, variant)| self::variant(variant, (number, position), expansion))
        .collect();
    let function = format_ident!("CPU_{number}");
    let cpu = if cpu { quote!(::core::option::Option::Some(#function)) } else { quote!(::core::option::Option::None) };
    let instance = Literal::byte_string(&kernel.instance);
    let hash = Literal::byte_string(&kernel.hash);
    quote! {
        #artefact::Kernel {
            name: #name,
            doc: #doc,
            bindings: ::std::borrow::Cow::Borrowed(&[#(#bindings),*]),
            params: #params,
            constants: ::std::borrow::Cow::Borrowed(&[#(#constants),*]),
            workgroup_size: [#x, #y, #z],
            subgroup_size: #subgroup_size,
            workgroup_bytes: #workgroup_bytes,
            index: #artefact::IndexWidth::#index,
            grid: #artefact::GridKind::#grid,
            variants: ::std::borrow::Cow::Borrowed(&[#(#variants),*]),
            cpu: #cpu,
            ir: ::std::borrow::Cow::Borrowed(IR),
            instance: ::std::borrow::Cow::Borrowed(#instance),
            hash: *#hash,
        }
    }
}

fn option(value: Option<u32>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}

fn scalar(scalar: ParamScalar) -> TokenStream {
    match scalar {
        ParamScalar::F32 => quote!(F32),
        ParamScalar::I32 => quote!(I32),
        ParamScalar::U32 => quote!(U32),
        ParamScalar::Index => quote!(Index),
        ParamScalar::Bool => quote!(Bool),
        ParamScalar::I64 => quote!(I64),
        ParamScalar::U64 => quote!(U64),
        ParamScalar::F64 => quote!(F64),
    }
}

fn params(params: &Params, artefact: &TokenStream) -> TokenStream {
    let size = params.size;
    let fields = params.fields.iter().map(|field| {
        let (name, offset) = (text(&field.name), field.offset);
        let role = param_role(field.role);
        let scalar = scalar(field.ty.scalar);
        let (count, array) = (field.ty.count, field.ty.array);
        quote! {
            #artefact::ParamField {
                name: #name,
                role: #artefact::ParamRole::#role,
                ty: #artefact::ParamType {
                    scalar: #artefact::ParamScalar::#scalar,
                    count: #count,
                    array: #array,
                },
                offset: #offset,
            }
        }
    });
    quote!(#artefact::Params { size: #size, fields: ::std::borrow::Cow::Borrowed(&[#(#fields),*]) })
}

fn param_role(role: ParamRole) -> TokenStream {
    match role {
        ParamRole::User(index) => quote!(User(#index)),
        ParamRole::Constant(index) => quote!(Constant(#index)),
        ParamRole::Length(binding) => quote!(Length(#binding)),
        ParamRole::Offset(binding) => quote!(Offset(#binding)),
        ParamRole::Extents(binding) => quote!(Extents(#binding)),
        ParamRole::Strides(binding) => quote!(Strides(#binding)),
        ParamRole::GroupCount => quote!(GroupCount),
    }
}

fn tensor_map(map: &TensorMap, artefact: &TokenStream) -> TokenStream {
    let TensorMap { binding, rows, width } = map;
    let terms = width.iter().map(|term| {
        let term = match term {
            Term::Literal(value) => quote!(Literal(#value)),
            Term::Parameter(role) => {
                let role = param_role(*role);
                quote!(Parameter(#artefact::ParamRole::#role))
            }
            Term::Binary(operator) => {
                let operator = format_ident!("{operator:?}");
                quote!(Binary(#artefact::BinaryOperator::#operator))
            }
            Term::Select => quote!(Select),
        };
        quote!(#artefact::Term::#term)
    });
    quote! {
        #artefact::TensorMap { binding: #binding, rows: #rows, width: ::std::borrow::Cow::Borrowed(&[#(#terms),*]) }
    }
}

fn matrix_need(need: &MatrixNeed, artefact: &TokenStream) -> TokenStream {
    let scalar = |scalar: MatrixScalar| {
        let name = match scalar {
            MatrixScalar::F16 => quote!(F16),
            MatrixScalar::BF16 => quote!(BF16),
            MatrixScalar::F32 => quote!(F32),
        };
        quote!(#artefact::MatrixScalar::#name)
    };
    match *need {
        MatrixNeed::Product(MatrixProduct { rows, columns, depth, input, accumulator }) => {
            let (input, accumulator) = (scalar(input), scalar(accumulator));
            quote! {
                #artefact::MatrixNeed::Product(#artefact::MatrixProduct {
                    rows: #rows, columns: #columns, depth: #depth, input: #input, accumulator: #accumulator
                })
            }
        }
        MatrixNeed::Teams => quote!(#artefact::MatrixNeed::Teams),
        MatrixNeed::Alone { role, scalar: held, rows, columns } => {
            let role = match role {
                MatrixRole::A => quote!(A),
                MatrixRole::B => quote!(B),
                MatrixRole::Accumulator => quote!(Accumulator),
            };
            let held = scalar(held);
            quote! {
                #artefact::MatrixNeed::Alone {
                    role: #artefact::MatrixRole::#role, scalar: #held, rows: #rows, columns: #columns
                }
            }
        }
    }
}

fn variant(variant: &Variant, (number, position): (usize, usize), expansion: &TokenStream) -> TokenStream {
    let artefact = quote!(#expansion::artefact);
    let target = match variant.target {
        Target::Wgsl => quote!(Wgsl),
        Target::Spirv => quote!(Spirv),
        Target::Cuda => quote!(Cuda),
        Target::Cpu => quote!(Cpu),
    };
    let transport = match variant.transport {
        ParamTransport::Value => quote!(Value),
        ParamTransport::Buffer => quote!(Buffer),
    };
    let dialect = match variant.dialect {
        None => quote!(::core::option::Option::None),
        Some(Dialect::Naga) => quote!(::core::option::Option::Some(#artefact::Dialect::Naga)),
        Some(Dialect::Browsers) => quote!(::core::option::Option::Some(#artefact::Dialect::Browsers)),
    };
    let (profile, features) = (text(&variant.profile), variant.features.0);
    let matrices = variant.matrices.iter().map(|need| matrix_need(need, &artefact));
    let tensor_maps = variant.tensor_maps.iter().map(|map| tensor_map(map, &artefact));
    let name = format_ident!("CODE_{number}_{position}");
    let code = match &variant.code {
        Code::Text(_) => quote!(Text(::std::borrow::Cow::Borrowed(#name))),
        Code::Spirv(_) => quote!(Spirv(::std::borrow::Cow::Borrowed(&#name.0))),
    };
    quote! {
        #artefact::Variant {
            target: #artefact::Target::#target,
            profile: #profile,
            dialect: #dialect,
            features: #artefact::Features(#features),
            matrices: ::std::borrow::Cow::Borrowed(&[#(#matrices),*]),
            transport: #artefact::ParamTransport::#transport,
            tensor_maps: ::std::borrow::Cow::Borrowed(&[#(#tensor_maps),*]),
            code: #artefact::Code::#code,
        }
    }
}
