//! The artefact as constants of the author's program.
//!
//! It is written as source text, which the compiler's own parser reads in one go: a token made by itself costs a call into the compiler.

use std::str::FromStr;

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use trefoil_codegen::artefact::{
    Binding, Code, Constant, Format, Kernel, MatrixNeed, MatrixProduct, ParamField, ParamRole, ParamScalar, Piece,
    Site, SiteValue, TensorMap, Term, Variant,
};
use trefoil_codegen::compile::{self, Built, Reports};
use trefoil_codegen::diagnostic::{Diagnostic, Diagnostics};
use trefoil_codegen::emit;
use trefoil_codegen::front::Output;
use trefoil_codegen::ir::{self, Module};
use trefoil_codegen::lower::Lowered;
use trefoil_codegen::reports::has_reports;
use trefoil_codegen::timings::{Stage, stage};

use crate::remembered::Expansion;
use crate::{literals, params, shared};

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
    /// The code of each variant as a literal.
    codes: Vec<String>,
    /// The compiled CPU function: an expression of type `CpuFunction`.
    cpu: Option<Printed>,
    instance: ir::Instance,
}

/// The CPU's code. It is read while others emit the rest, and its text is for a later expansion.
struct Printed {
    text: String,
    tokens: TokenStream,
}

impl Made {
    /// How many texts it has: variants and the CPU function.
    fn variants(&self) -> usize {
        self.kernel.variants.len() + usize::from(self.cpu.is_some())
    }
}

/// Compiles instances for every target; `finish` makes of them what the kernel becomes, while their WGSL is judged.
///
/// # Errors
/// What is wrong with the WGSL.
pub fn instances<R>(
    module: &ir::Module,
    instances: &[ir::Instance],
    reports: Reports,
    support: &TokenStream,
    finish: impl FnOnce(Vec<Result<Made, Diagnostics>>) -> R,
) -> (R, Result<(), Diagnostics>) {
    let path = quote!(#support::expansion::artefact).to_string();
    let refused = |message: String| Diagnostic::new(module.entry.span, message);
    let print = |lowered: &Lowered| {
        stage(Stage::Cpu, || {
            let text = emit::cpu::emit(lowered, &path).map_err(|error| refused(error.to_string()))?;
            let tokens = parsed(&text)
                .map_err(|error| refused(format!("the printed Rust of `{}` does not parse: {error}", module.name)))?;
            Ok(Printed { text, tokens })
        })
    };
    compile::build_and_print(module, instances, reports, print, literals::of_code, |all| {
        let made = all.into_iter().zip(instances).map(|(built, instance)| {
            let Built { kernel, printed, spelled } = built?;
            Ok(Made { kernel, codes: spelled, cpu: printed, instance: instance.clone() })
        });
        finish(made.collect())
    })
}

/// The tokens of a source text, by the compiler's own parser: proc-macro2 would read the text twice.
fn parsed(source: &str) -> Result<TokenStream, String> {
    proc_macro::TokenStream::from_str(source).map(TokenStream::from).map_err(|error| error.to_string())
}

/// The instances once more, as kernels that report what they assert and print; none where they do neither. What has no room for the report buffer is left out of their targets.
///
/// # Errors
/// What is wrong with the kernel where it reports, of which nothing was said of the one that does not: that it grows too long, say.
pub fn reporting(output: &Output, support: &TokenStream) -> Result<Vec<Made>, Diagnostics> {
    if !has_reports(&output.module) {
        return Ok(Vec::new());
    }
    let (made, judged) = instances(&output.module, &output.instances, Reports::Buffered, support, |all| {
        all.into_iter().collect::<Result<Vec<_>, _>>()
    });
    judged.and(made)
}

/// What a kernel's module holds: as tokens, and as text for a later expansion.
///
/// # Errors
/// A constant of it does not parse, which is a fault of this crate.
pub fn module(
    output: &Output,
    instances: &[Made],
    reporting: &[Made],
    support: &TokenStream,
) -> Result<(TokenStream, Expansion), Diagnostics> {
    let expansion = quote!(#support::expansion).to_string();
    let writer = Writer { expansion: expansion.clone(), reporting: !reporting.is_empty() };
    let mut source = writer.module(output, instances);
    if !reporting.is_empty() {
        source += &Writer { expansion, reporting: false }.reporting(reporting);
    }
    let mut items = read(output, &source)?;
    for (number, made) in instances.iter().enumerate() {
        if let Some(Printed { text, tokens }) = &made.cpu {
            let function = format_ident!("CPU_{number}");
            items.extend(quote!(const #function: #support::expansion::artefact::CpuFunction = #tokens;));
            source += &format!("const {function}: {}::artefact::CpuFunction = {text};", writer.expansion);
        }
    }
    let variants = instances.iter().chain(reporting).map(Made::variants).sum();
    Ok((items, Expansion { counts: [instances.len(), variants], source }))
}

/// The items of a kernel's module from their text.
///
/// # Errors
/// They do not parse.
pub fn read(output: &Output, source: &str) -> Result<TokenStream, Diagnostics> {
    parsed(source).map_err(|error| {
        let Module { name, entry, .. } = &output.module;
        Diagnostic::new(entry.span, format!("`{name}` cannot be written as constants: {error}")).into()
    })
}

/// `&[a, b, c]` as a borrowed `Cow`.
fn list(parts: impl IntoIterator<Item = String>) -> String {
    let mut source = "::std::borrow::Cow::Borrowed(&[".to_owned();
    for part in parts {
        source += &part;
        source.push(',');
    }
    source += "])";
    source
}

/// A text as a borrowed `Cow`.
fn text(text: &str) -> String {
    let mut source = "::std::borrow::Cow::Borrowed(".to_owned();
    literals::push_text(&mut source, text);
    source.push(')');
    source
}

fn option(value: Option<impl std::fmt::Display>) -> String {
    match value {
        Some(value) => format!("::core::option::Option::Some({value})"),
        None => "::core::option::Option::None".to_owned(),
    }
}

/// Writes source text. What is named after its variant, with [`std::fmt::Debug`], is an enum of the artefact.
struct Writer {
    /// The path to what expansions use.
    expansion: String,
    /// Whether each kernel has another that reports.
    reporting: bool,
}

impl Writer {
    fn module(&self, output: &Output, instances: &[Made]) -> String {
        let Self { expansion, .. } = self;
        let generic = !output.module.generics.is_empty();
        let mut source = self.constants(instances);
        let mut names = Vec::new();
        let (mut listed, mut wide) = (Vec::new(), Vec::new());
        for (number, made) in instances.iter().enumerate() {
            // Beside one with narrower indices.
            let second = made.instance.index.is_wide() && has_both(&output.instances);
            let name = match (generic, second) {
                (true, _) => made.kernel.name.to_uppercase(),
                (false, false) => KERNEL.to_owned(),
                (false, true) => WIDE_KERNEL.to_owned(),
            };
            self.push_kernel(&mut source, number, made, &name);
            let values = made.instance.values.iter().map(|value| match value {
                ir::GenericValue::Type(scalar) => format!("{expansion}::GenericValue::Type({:?})", scalar.rust_name()),
                ir::GenericValue::Const(literal) => {
                    let value = match literal {
                        ir::Literal::I32(value) => i64::from(*value),
                        other => i64::from(other.bits() as u32),
                    };
                    format!("{expansion}::GenericValue::Const({value})")
                }
            });
            let values: Vec<_> = values.collect();
            let list = if second { &mut wide } else { &mut listed };
            list.push(format!("{expansion}::Instance {{ values: &[{}], kernel: &{name} }}", values.join(",")));
            names.push(format!("&{name}"));
        }
        if let Some(first) = instances.first() {
            source += "static IR: &[u8] = ";
            literals::push_bytes(&mut source, &first.kernel.ir);
            source.push(';');
        }
        let kernels: Vec<_> = instances.iter().map(|made| &made.kernel).collect();
        source += &params::structs(&kernels, expansion);
        source += &format!(
            "/// Every compiled instance.
pub static KERNELS: &[&{expansion}::artefact::Kernel] = &[{}];",
            names.join(",")
        );
        if generic {
            for (name, list) in [(INSTANCES, listed), (WIDE_INSTANCES, wide)] {
                if !list.is_empty() {
                    let list = list.join(",");
                    source += &format!("#[doc(hidden)] pub static {name}: &[{expansion}::Instance] = &[{list}];");
                }
            }
        }
        source
    }

    /// The instances that report, and what the others know them by. They are there where the author's crate is built with debug assertions, as what `debug_assert!` does is.
    fn reporting(&self, instances: &[Made]) -> String {
        let Self { expansion, .. } = self;
        let mut items = "use super::IR;".to_owned();
        let mut names = String::new();
        for (number, made) in instances.iter().enumerate() {
            self.push_kernel(&mut items, number, made, &format!("KERNEL_{number}"));
            if let Some(Printed { text, .. }) = &made.cpu {
                items += &format!("const CPU_{number}: {expansion}::artefact::CpuFunction = {text};");
            }
            names += &format!(
                "#[cfg(debug_assertions)] const REPORTING_{number}: ::core::option::Option<&{expansion}::artefact::Kernel> = \
                 ::core::option::Option::Some(&reporting::KERNEL_{number});
                 #[cfg(not(debug_assertions))] const REPORTING_{number}: ::core::option::Option<&{expansion}::artefact::Kernel> = \
                 ::core::option::Option::None;"
            );
        }
        format!("#[cfg(debug_assertions)] mod reporting {{ {items} }} {names}")
    }

    /// An instance: the code of its variants and its description.
    fn push_kernel(&self, source: &mut String, number: usize, made: &Made, name: &str) {
        let Self { expansion, .. } = self;
        let mut position = 0;
        while position < made.codes.len() {
            if self.push_shared(source, number, made, position) {
                position += 2;
            } else {
                self.push_code(source, number, made, position);
                position += 1;
            }
        }
        let kernel = self.kernel(&made.kernel, number, made.cpu.is_some());
        *source +=
            &format!("/// `{}`.\npub static {name}: {expansion}::artefact::Kernel = {kernel};", made.kernel.name);
    }

    /// The code of a variant.
    fn push_code(&self, source: &mut String, number: usize, made: &Made, position: usize) {
        let Self { expansion, .. } = self;
        let (before, after) = match &made.kernel.variants[position].code {
            Code::Text(_) => (format!("const CODE_{number}_{position}: &str = "), ";"),
            // Byte strings cost rustc a sixth of what lists of numbers do.
            Code::Spirv(words) => {
                let words_type = format!("{expansion}::Words");
                let size = words.len();
                (format!("static CODE_{number}_{position}: {words_type}<{size}> = {words_type}(*"), ");")
            }
        };
        source.extend([before.as_str(), &made.codes[position], after]);
    }

    /// The texts of a variant and of the next one, if they are much the same; else nothing.
    fn push_shared(&self, source: &mut String, number: usize, made: &Made, position: usize) -> bool {
        let Self { expansion, .. } = self;
        let next = position + 1;
        let (Some(variants), Some(codes)) =
            (made.kernel.variants.get(position..=next), made.codes.get(position..=next))
        else {
            return false;
        };
        let ([Variant { code: Code::Text(first), .. }, Variant { code: Code::Text(second), .. }], [one, other]) =
            (variants, codes)
        else {
            return false;
        };
        let (one, other) = (literals::inside(one), literals::inside(other));
        let Some([begin, end]) = shared::ends(one, other) else { return false };
        let parts = format!("PART_{number}_{position}");
        let (head, tail) = (&one[..begin], &one[one.len() - end..]);
        source.extend(["const ", &parts, "_0: &str = \"", head, "\"; const ", &parts, "_1: &str = \"", tail, "\";"]);
        for (position, literal, text) in [(position, one, first), (next, other, second)] {
            let (code, size) = (format!("{number}_{position}"), text.len());
            let between = &literal[begin..literal.len() - end];
            *source += &format!(
                "static JOINED_{code}: {expansion}::Joined<{size}> = {expansion}::Joined::new(&[{parts}_0, \"{between}\", {parts}_1]);
                 const CODE_{code}: &str = JOINED_{code}.text();"
            );
        }
        true
    }

    /// The struct that a launch is specialised with.
    fn constants(&self, instances: &[Made]) -> String {
        let Self { expansion, .. } = self;
        let Some(first) = instances.first().filter(|made| !made.kernel.constants.is_empty()) else {
            return String::new();
        };
        let (mut fields, mut defaults, mut values) = (String::new(), String::new(), String::new());
        for Constant { name, scalar, value, low, high, multiple } in first.kernel.constants.iter() {
            // It may be a word of Rust's.
            let field = format!("r#{}", name.to_lowercase());
            let multiple = if *multiple > 1 { format!(", a multiple of {multiple}") } else { String::new() };
            let (ty, default) = match scalar {
                ParamScalar::Bool => ("bool", (*value != 0).to_string()),
                ParamScalar::I32 => ("i32", value.to_string()),
                ParamScalar::Index => ("usize", value.to_string()),
                // The others are none.
                ParamScalar::U32 | ParamScalar::F32 | ParamScalar::I64 | ParamScalar::U64 | ParamScalar::F64 => {
                    ("u32", value.to_string())
                }
            };
            fields += &format!("/// `{name}`: from {low} to {high}{multiple}.\npub {field}: {ty},");
            defaults += &format!("{field}: {default},");
            // What fits no `i64` is in no range.
            values += &format!("({name:?}, ::core::convert::TryFrom::try_from(self.{field}).unwrap_or(i64::MAX)),");
        }
        format!(
            "/// The values of the kernel's specialisation constants, for `Launch::specialise`; their usual values by default.
             #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
             pub struct Constants {{ {fields} }}
             impl ::core::default::Default for Constants {{
                 fn default() -> Self {{ Self {{ {defaults} }} }}
             }}
             impl {expansion}::Constants for Constants {{
                 fn values(&self) -> ::std::vec::Vec<(&'static str, i64)> {{ ::std::vec![{values}] }}
             }}"
        )
    }

    fn kernel(&self, kernel: &Kernel, number: usize, cpu: bool) -> String {
        let artefact = format!("{}::artefact", self.expansion);
        let constants = kernel.constants.iter().map(|constant| {
            let Constant { name, scalar, value, low, high, multiple } = constant;
            let name = text(name);
            format!(
                "{artefact}::Constant {{ name: {name}, scalar: {artefact}::ParamScalar::{scalar:?}, value: {value}, low: {low}, \
                 high: {high}, multiple: {multiple} }}"
            )
        });
        let variants = kernel.variants.iter().enumerate();
        let (mut instance, mut hash) = (String::new(), String::new());
        literals::push_bytes(&mut instance, &kernel.instance);
        literals::push_bytes(&mut hash, &kernel.hash);
        format!(
            "{artefact}::Kernel {{
                 name: {name}, doc: {doc}, bindings: {bindings},
                 params: {artefact}::Params {{ size: {size}, fields: {fields} }},
                 constants: {constants}, workgroup_size: {workgroup_size:?}, subgroup_size: {subgroup_size},
                 workgroup_bytes: {workgroup_bytes}, no_robustness: {no_robustness},
                 index: {artefact}::IndexWidth::{index:?},
                 grid: {artefact}::GridKind::{grid:?}, variants: {variants}, cpu: {cpu}, sites: {sites}, reporting: {reporting},
                 ir: ::std::borrow::Cow::Borrowed(IR), instance: ::std::borrow::Cow::Borrowed({instance}), hash: *{hash},
             }}",
            name = text(&kernel.name),
            doc = text(&kernel.doc),
            bindings = list(kernel.bindings.iter().map(|binding| self.binding(binding))),
            size = kernel.params.size,
            fields = list(kernel.params.fields.iter().map(|field| self.field(field))),
            constants = list(constants),
            workgroup_size = kernel.workgroup_size,
            subgroup_size = option(kernel.subgroup_size),
            workgroup_bytes = kernel.workgroup_bytes,
            no_robustness = kernel.no_robustness,
            index = kernel.index,
            grid = kernel.grid,
            variants = list(variants.map(|(position, variant)| self.variant(variant, number, position))),
            cpu = option(cpu.then(|| format!("CPU_{number}"))),
            sites = list(kernel.sites.iter().map(|site| self.site(site))),
            reporting = if self.reporting { format!("REPORTING_{number}") } else { option(None::<String>) },
        )
    }

    fn site(&self, site: &Site) -> String {
        let artefact = format!("{}::artefact", self.expansion);
        let Site { file, line, column, fails, text: pieces, values } = site;
        let pieces = list(pieces.iter().map(|piece| match piece {
            Piece::Text(piece) => format!("{artefact}::Piece::Text({})", text(piece)),
            Piece::Value(value, Format { style, alternate, zeros, width, precision }) => {
                let (width, precision) = (option(*width), option(*precision));
                format!(
                    "{artefact}::Piece::Value({value}, {artefact}::Format {{ style: {artefact}::Style::{style:?}, \
                     alternate: {alternate}, zeros: {zeros}, width: {width}, precision: {precision} }})"
                )
            }
        }));
        let values = list(values.iter().map(|SiteValue { scalar, lanes, names }| {
            let names = list(names.iter().map(|(number, name)| format!("({number}, {})", text(name))));
            format!(
                "{artefact}::SiteValue {{ scalar: {artefact}::ParamScalar::{scalar:?}, lanes: {lanes}, names: {names} }}"
            )
        }));
        let file = text(file);
        format!(
            "{artefact}::Site {{ file: {file}, line: {line}, column: {column}, fails: {fails}, text: {pieces}, \
             values: {values} }}"
        )
    }

    fn binding(&self, binding: &Binding) -> String {
        let artefact = format!("{}::artefact", self.expansion);
        let Binding { name, element, access, vector, view } = binding;
        let (name, element_name, view) = (text(name), text(&element.name), option(*view));
        let (size, align) = (element.size, element.align);
        format!(
            "{artefact}::Binding {{ name: {name}, element: {artefact}::Element {{ name: {element_name}, size: {size}, align: {align} }}, \
             access: {artefact}::Access::{access:?}, vector: {vector}, view: {view} }}"
        )
    }

    fn field(&self, field: &ParamField) -> String {
        let artefact = format!("{}::artefact", self.expansion);
        let ParamField { name, role, ty, offset } = field;
        let (name, role, scalar) = (text(name), self.role(*role), ty.scalar);
        let (count, array) = (ty.count, ty.array);
        format!(
            "{artefact}::ParamField {{ name: {name}, role: {role}, ty: {artefact}::ParamType {{ \
             scalar: {artefact}::ParamScalar::{scalar:?}, count: {count}, array: {array} }}, offset: {offset} }}"
        )
    }

    /// A role, whose `Debug` is its source: numbers in variants.
    fn role(&self, role: ParamRole) -> String {
        format!("{}::artefact::ParamRole::{role:?}", self.expansion)
    }

    fn variant(&self, variant: &Variant, number: usize, position: usize) -> String {
        let artefact = format!("{}::artefact", self.expansion);
        let Variant { target, profile, dialect, features, matrices, transport, tensor_maps, entry, code } = variant;
        let (profile, entry, features) = (text(profile), text(entry), features.0);
        let dialect = option(dialect.map(|dialect| format!("{artefact}::Dialect::{dialect:?}")));
        let matrices = list(matrices.iter().map(|need| self.matrix_need(need)));
        let tensor_maps = list(tensor_maps.iter().map(|map| self.tensor_map(map)));
        let code = match code {
            Code::Text(_) => format!("Text(::std::borrow::Cow::Borrowed(CODE_{number}_{position}))"),
            Code::Spirv(_) => format!("Spirv(::std::borrow::Cow::Borrowed(&CODE_{number}_{position}.0))"),
        };
        format!(
            "{artefact}::Variant {{ target: {artefact}::Target::{target:?}, profile: {profile}, dialect: {dialect}, \
             features: {artefact}::Features({features}), matrices: {matrices}, \
             transport: {artefact}::ParamTransport::{transport:?}, tensor_maps: {tensor_maps}, entry: {entry}, \
             code: {artefact}::Code::{code} }}"
        )
    }

    fn tensor_map(&self, map: &TensorMap) -> String {
        let artefact = format!("{}::artefact", self.expansion);
        let TensorMap { binding, rows, width } = map;
        let width = list(width.iter().map(|term| match term {
            Term::Literal(value) => format!("{artefact}::Term::Literal({value})"),
            Term::Parameter(role) => format!("{artefact}::Term::Parameter({})", self.role(*role)),
            Term::Binary(operator) => format!("{artefact}::Term::Binary({artefact}::BinaryOperator::{operator:?})"),
            Term::Select => format!("{artefact}::Term::Select"),
        }));
        format!("{artefact}::TensorMap {{ binding: {binding}, rows: {rows}, width: {width} }}")
    }

    fn matrix_need(&self, need: &MatrixNeed) -> String {
        let artefact = format!("{}::artefact", self.expansion);
        match need {
            MatrixNeed::Product(MatrixProduct { rows, columns, depth, input, accumulator }) => format!(
                "{artefact}::MatrixNeed::Product({artefact}::MatrixProduct {{ rows: {rows}, columns: {columns}, depth: {depth}, \
                 input: {artefact}::MatrixScalar::{input:?}, accumulator: {artefact}::MatrixScalar::{accumulator:?} }})"
            ),
            MatrixNeed::Teams => format!("{artefact}::MatrixNeed::Teams"),
            MatrixNeed::Alone { role, scalar, rows, columns } => format!(
                "{artefact}::MatrixNeed::Alone {{ role: {artefact}::MatrixRole::{role:?}, \
                 scalar: {artefact}::MatrixScalar::{scalar:?}, rows: {rows}, columns: {columns} }}"
            ),
        }
    }
}
