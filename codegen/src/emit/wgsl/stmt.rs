//! Statements and places: the dialect's part of the shared printer.

use crate::artefact::{ParamField, ParamRole};
use crate::emit::EmitError;
use crate::emit::text::{AtomicCall, AtomicForm, Code, Dialect, Index, Lvalue, Position, Printer, Resources, infix};
use crate::ir::{
    AtomicFunction, BinaryOperator, Literal, MathFunction, Order, Root, Scalar, Scope, SubgroupFunction,
    SubgroupOperator, Type, UnaryOperator,
};
use crate::target::{Feature, Target};

use super::{Wgsl, expr, types};

type Result<T> = std::result::Result<T, EmitError>;
type P<'a> = Printer<'a, Wgsl>;

/// An index with the start of the bound range added, in units of `unit` elements.
fn with_offset(p: &P<'_>, root: Root, unit: u32, index: Code) -> Result<Code> {
    let Root::Binding(binding) = root else {
        return Ok(index);
    };
    let unit = unit * p.lowered.module.bindings[binding as usize].packed;
    let mut offset = p.param_word(ParamRole::Offset(binding))?;
    if unit > 1 {
        offset = infix(BinaryOperator::Divide, offset, Code::atom(format!("{unit}u")));
    }
    Ok(infix(BinaryOperator::Add, offset, index))
}

fn number(value: u32) -> Code {
    Code::atom(format!("{value}u"))
}

/// Words become an `f64` by way of an integer.
fn wants_integers(p: &P<'_>, scalar: Scalar) -> Result<()> {
    if scalar != Scalar::F64 || p.lowered.profile.features.has(Feature::Int64) {
        return Ok(());
    }
    Err(p.error("WGSL lays out Vec3<f64>, and what holds one, otherwise than the host, and puts it together from words, which wants `Feature::Int64` too: write `requires(Float64, Int64)`, or use Vec2, Vec4 or f64"))
}

impl Dialect for Wgsl {
    const TARGET: Target = Target::Wgsl;
    const LOOP: &'static str = "loop {";

    fn reserved(name: &str, position: Position) -> bool {
        match position {
            Position::Global => types::hides_anything(name),
            // A function of such a name would be meant in every `var<storage, read>`.
            Position::Entry => types::hides(name) || types::is_enumerant(name),
            Position::Local => types::hides(name),
            Position::Field => types::is_keyword(name),
        }
    }

    fn is_helper_name(name: &str) -> bool {
        types::is_helper_name(name)
    }

    fn type_name(p: &mut P<'_>, ty: &Type) -> Result<String> {
        types::type_name(p, ty)
    }

    fn literal(p: &mut P<'_>, literal: Literal, opaque: bool) -> Result<Code> {
        types::literal(p, literal, opaque)
    }

    fn zero(p: &mut P<'_>, ty: &Type) -> Result<Code> {
        expr::zero(p, ty)
    }

    fn compose(p: &mut P<'_>, ty: &Type, parts: Vec<Code>) -> Result<Code> {
        expr::construct(p, ty, parts)
    }

    fn splat(p: &mut P<'_>, ty: &Type, value: Code) -> Result<Code> {
        expr::splat(p, ty, value)
    }

    fn unary(_: &mut P<'_>, operator: UnaryOperator, ty: &Type, value: Code) -> Result<Code> {
        Ok(expr::unary(operator, ty, value))
    }

    fn binary(
        p: &mut P<'_>,
        operator: BinaryOperator,
        ty: &Type,
        left: Code,
        right: Code,
        is_same: bool,
    ) -> Result<Code> {
        expr::binary(p, operator, ty, left, right, is_same)
    }

    fn math(p: &mut P<'_>, function: MathFunction, ty: &Type, arguments: Vec<Code>) -> Result<Code> {
        expr::math(p, function, ty, arguments)
    }

    fn select(p: &mut P<'_>, ty: &Type, _: &Type, condition: Code, accept: Code, reject: Code) -> Result<Code> {
        expr::select(p, ty, condition, accept, reject)
    }

    fn convert(p: &mut P<'_>, from: &Type, to: &Type, value: Code) -> Result<Code> {
        // naga extends by the target's sign, the language by the source's.
        let value = match (from.scalar(), to.scalar()) {
            (Some(source), Some(target))
                if source.is_integer() && target.is_integer() && source.bits() < target.bits() =>
            {
                let own = if source.is_signed() { Scalar::I64 } else { Scalar::U64 };
                if own == target { value } else { expr::construct(p, &to.with_scalar(own), vec![value])? }
            }
            _ => value,
        };
        expr::construct(p, to, vec![value])
    }

    fn bitcast(p: &mut P<'_>, _: &Type, to: &Type, value: Code) -> Result<Code> {
        Ok(Code::call(&format!("bitcast<{}>", types::type_name(p, to)?), [value]))
    }

    fn part(p: &mut P<'_>, ty: &Type, base: Code, index: Code) -> Result<Code> {
        expr::part(p, ty, base, index)
    }

    fn swizzle(_: &mut P<'_>, _: &Type, _: &Type, base: Code, lanes: &[u8]) -> Result<Code> {
        Ok(expr::swizzle(base, lanes))
    }

    fn param_array(p: &mut P<'_>, field: &ParamField) -> Result<Code> {
        let parts: Vec<Code> = (0..field.ty.count).map(|part| expr::param_part(p, field, part)).collect();
        let scalar = types::scalar_name(Self::param_scalar(field.ty.scalar));
        Ok(Code::call(&format!("array<{scalar}, {}>", field.ty.count), parts))
    }

    fn param_part(p: &mut P<'_>, field: &ParamField, part: u32) -> Result<Code> {
        Ok(expr::param_part(p, field, part))
    }

    fn param_element(p: &mut P<'_>, field: &ParamField, index: Code) -> Result<Code> {
        expr::param_element(p, field, Self::param_scalar(field.ty.scalar), index)
    }

    fn dereference(name: &str) -> Code {
        Code { text: format!("*{name}"), level: crate::emit::text::Level::Unary }
    }

    fn reference(name: &str, forwarded: bool) -> Code {
        Code::atom(if forwarded { name.to_owned() } else { format!("&{name}") })
    }

    fn declared_lanes(p: &P<'_>, root: Root) -> u32 {
        let scalar = matches!(p.element_type(root), Some(Type::Scalar(_)));
        match root {
            _ if !scalar || p.is_atomic(root) => 1,
            Root::Binding(binding) => p.lowered.info.vector[binding as usize].max(1),
            Root::Workgroup(variable) => p.lowered.info.workgroup_vector[variable.index()].max(1),
            Root::Local(_) | Root::Argument(_) => 1,
        }
    }

    fn declared_words(p: &P<'_>, root: Root) -> bool {
        match root {
            Root::Binding(binding) => !types::same_layout(p, p.lowered.module.bindings[binding as usize].element),
            Root::Workgroup(_) | Root::Local(_) | Root::Argument(_) => false,
        }
    }

    fn clamped_read(
        p: &mut P<'_>,
        root: Root,
        ty: &Type,
        index: &Code,
        (inside, condition): (&str, &str),
    ) -> Result<Option<Vec<String>>> {
        let Root::Binding(binding) = root else { return Ok(None) };
        let lanes = u32::from(ty.lanes().unwrap_or(0));
        // What is bound may be as small as 16 bytes.
        let bytes = lanes * ty.scalar().and_then(Scalar::bytes).unwrap_or(4);
        if lanes != Self::declared_lanes(p, root) || bytes > 16 {
            return Ok(None);
        }
        let at = with_offset(p, root, lanes, index.clone())?;
        let at = Code::call("select", [number(0), at, Code::atom(inside)]);
        let value = Code::atom(p.bindings[binding as usize].clone()).index(at);
        let zero = expr::zero(p, ty)?;
        let value = expr::select(p, ty, Code::atom(inside), value, zero)?;
        Ok(Some(vec![format!("let {inside} = {condition};"), format!("return {};", value.text)]))
    }

    fn from_words(p: &mut P<'_>, scalar: Scalar, low: Code, high: Code) -> Result<Code> {
        wants_integers(p, scalar)?;
        let word = format!("(u64({}) | (u64({}) << 32u))", low.text, high.text);
        Ok(Code::atom(if scalar == Scalar::U64 { word } else { format!("bitcast<{}>{word}", scalar.rust_name()) }))
    }

    fn to_words(p: &mut P<'_>, scalar: Scalar, value: Code) -> Result<[Code; 2]> {
        wants_integers(p, scalar)?;
        let word = if scalar == Scalar::U64 { value.argument() } else { format!("bitcast<u64>({})", value.argument()) };
        Ok([Code::atom(format!("u32({word})")), Code::atom(format!("u32({word} >> 32u)"))])
    }

    fn bound_index(p: &P<'_>, root: Root, index: Code) -> Result<Code> {
        with_offset(p, root, 1, index)
    }

    fn element(p: &mut P<'_>, root: Root, Index { whole: index, .. }: Index) -> Result<Code> {
        let lanes = Self::declared_lanes(p, root);
        let name = match root {
            Root::Binding(binding) => p.bindings[binding as usize].clone(),
            Root::Workgroup(variable) => p.workgroup[variable.index()].clone(),
            Root::Local(_) | Root::Argument(_) => return Err(p.error("a local is taken for a buffer")),
        };
        let at = with_offset(p, root, 1, index.clone())?;
        if lanes == 1 {
            return Ok(Code::atom(name).index(at));
        }
        // The offset is a multiple of the lanes, so the lane depends on the index alone.
        let vector = infix(BinaryOperator::Divide, at, number(lanes));
        Ok(Code::atom(name).index(vector).index(infix(BinaryOperator::Remainder, index, number(lanes))))
    }

    fn vector_element(p: &mut P<'_>, root: Root, scalar: Scalar, lanes: u8, index: Index) -> Result<Lvalue> {
        let index = index.whole;
        let declared = Self::declared_lanes(p, root);
        let lanes = u32::from(lanes);
        if declared == lanes {
            let name = match root {
                Root::Binding(binding) => p.bindings[binding as usize].clone(),
                Root::Workgroup(variable) => p.workgroup[variable.index()].clone(),
                Root::Local(_) | Root::Argument(_) => return Err(p.error("a local is taken for a buffer")),
            };
            return Ok(Lvalue::Plain(Code::atom(name).index(with_offset(p, root, lanes, index)?)));
        }
        let mut parts = Vec::new();
        for lane in 0..lanes {
            let first = infix(BinaryOperator::Multiply, index.clone(), number(lanes));
            let at = if lane == 0 { first } else { infix(BinaryOperator::Add, first, number(lane)) };
            parts.push(Self::element(p, root, Index { whole: at, apart: None })?);
        }
        Ok(Lvalue::Parts(parts, Type::vector(lanes as u8, scalar)))
    }

    /// Lanes of 64 bits of an invocation's own variables are chosen, as those of values are; in memory others write the other lanes.
    fn lane_place(p: &mut P<'_>, root: Root, vector: &Type, base: Code, index: Code) -> Result<Lvalue> {
        let own = matches!(root, Root::Local(_) | Root::Argument(_));
        if own && vector.scalar().is_some_and(Scalar::is_wide) {
            let helper = expr::with_lane(p, vector)?;
            let write = format!("{} = {helper}({}, {}, ", base.text, base.text, index.clone().argument());
            return Ok(Lvalue::Calls { read: expr::part(p, vector, base, index)?, write });
        }
        Ok(Lvalue::Plain(base.index(index)))
    }

    fn atomic_load(place: Code, _: Scalar) -> Code {
        Code::atom(format!("atomicLoad(&{})", place.text))
    }

    fn atomic_store(place: Code, _: Scalar, value: Code) -> String {
        format!("atomicStore(&{}, {});", place.text, value.argument())
    }

    fn fence(p: &mut P<'_>, scope: Scope) -> Result<String> {
        Err(p.error(format!("WGSL has no `{}`", scope.fence())))
    }

    fn atomic(p: &mut P<'_>, place: Code, scalar: Scalar, call: AtomicCall) -> Result<AtomicForm> {
        let AtomicCall { function, ordering, value, compare, .. } = call;
        if ordering.order != Order::Relaxed {
            return Err(p.error("WGSL's atomics are relaxed"));
        }
        let pointer = format!("&{}", place.text);
        let name = match function {
            AtomicFunction::Load => return Ok(AtomicForm::Value(Self::atomic_load(place, scalar))),
            AtomicFunction::Store => {
                let value = value.ok_or_else(|| p.error("an atomic store has no value"))?;
                return Ok(AtomicForm::Statement(format!("atomicStore({pointer}, {})", value.argument())));
            }
            AtomicFunction::Add => "atomicAdd",
            AtomicFunction::Subtract => "atomicSub",
            AtomicFunction::Min => "atomicMin",
            AtomicFunction::Max => "atomicMax",
            AtomicFunction::And => "atomicAnd",
            AtomicFunction::Or => "atomicOr",
            AtomicFunction::Xor => "atomicXor",
            AtomicFunction::Exchange => "atomicExchange",
            AtomicFunction::CompareExchange => {
                let (Some(value), Some(compare)) = (value, compare) else {
                    return Err(p.error("an atomic comparison has no operands"));
                };
                // WGSL's own may fail although the values are equal.
                return Ok(AtomicForm::Body(vec![
                    "loop {".to_owned(),
                    format!("    let result = atomicCompareExchangeWeak({pointer}, {}, {});", compare.text, value.text),
                    format!("    if (result.exchanged || result.old_value != {}) {{", compare.text),
                    "        return result.old_value;".to_owned(),
                    "    }".to_owned(),
                    "}".to_owned(),
                ]));
            }
        };
        let value = value.ok_or_else(|| p.error(format!("`{name}` has no value")))?;
        Ok(AtomicForm::Value(Code::atom(format!("{name}({pointer}, {})", value.argument()))))
    }

    fn declare_value(_: &mut P<'_>, name: &str, _: &Type, value: Code) -> Result<String> {
        Ok(format!("let {name} = {}", value.text))
    }

    fn declare_variable(p: &mut P<'_>, name: &str, ty: &Type, value: Option<Code>) -> Result<String> {
        Ok(match value {
            Some(value) => format!("var {name} = {}", value.text),
            None => format!("var {name}: {}", types::type_name(p, ty)?),
        })
    }

    fn case(values: &[String]) -> String {
        format!("case {}: {{", values.join(", "))
    }

    fn default_case() -> &'static str {
        "default: {"
    }

    fn end_of_case() -> Option<&'static str> {
        None
    }

    fn barrier(p: &mut P<'_>) -> Result<Vec<String>> {
        let mut lines = vec!["workgroupBarrier();".to_owned()];
        if p.orders_buffers() {
            lines.push("storageBarrier();".to_owned());
        }
        Ok(lines)
    }

    fn uniform_load(_: &mut P<'_>, place: Code) -> Option<Code> {
        Some(Code::atom(format!("workgroupUniformLoad(&{})", place.text)))
    }

    fn subgroup(
        p: &mut P<'_>,
        function: SubgroupFunction,
        _: &Type,
        value: Code,
        lane: Option<Code>,
        literal_lane: bool,
    ) -> Result<Code> {
        let name = match function {
            SubgroupFunction::Reduce(operator) => match operator {
                SubgroupOperator::Add => "subgroupAdd",
                SubgroupOperator::Multiply => "subgroupMul",
                SubgroupOperator::Min => "subgroupMin",
                SubgroupOperator::Max => "subgroupMax",
                SubgroupOperator::And => "subgroupAnd",
                SubgroupOperator::Or => "subgroupOr",
                SubgroupOperator::Xor => "subgroupXor",
            },
            SubgroupFunction::InclusiveScan(SubgroupOperator::Add) => "subgroupInclusiveAdd",
            SubgroupFunction::InclusiveScan(SubgroupOperator::Multiply) => "subgroupInclusiveMul",
            SubgroupFunction::ExclusiveScan(SubgroupOperator::Add) => "subgroupExclusiveAdd",
            SubgroupFunction::ExclusiveScan(SubgroupOperator::Multiply) => "subgroupExclusiveMul",
            SubgroupFunction::InclusiveScan(_) | SubgroupFunction::ExclusiveScan(_) => {
                return Err(p.error(format!("lowering has left `{}`", function.name())));
            }
            // The lane of a broadcast must be a constant in WGSL.
            SubgroupFunction::Broadcast if literal_lane => "subgroupBroadcast",
            SubgroupFunction::Broadcast | SubgroupFunction::Shuffle => "subgroupShuffle",
            SubgroupFunction::ShuffleXor => "subgroupShuffleXor",
            SubgroupFunction::ShuffleUp => "subgroupShuffleUp",
            SubgroupFunction::ShuffleDown => "subgroupShuffleDown",
            SubgroupFunction::Ballot => "subgroupBallot",
            SubgroupFunction::Any => "subgroupAny",
            SubgroupFunction::All => "subgroupAll",
        };
        if function.takes_lane() != lane.is_some() {
            return Err(p.error(format!("`{name}` has the wrong number of operands")));
        }
        Ok(Code::call(name, [value].into_iter().chain(lane)))
    }

    /// What is computed with a variable is no constant, of which an overflow would be an error when the pipeline is made.
    fn read_constant(name: &str) -> Option<String> {
        Some(format!("let {name} = {name};"))
    }

    fn function(
        p: &mut P<'_>,
        name: &str,
        arguments: &[(String, Type, bool)],
        resources: &Resources,
        result: Option<&Type>,
    ) -> Result<String> {
        let mut parameters: Vec<String> = resources
            .builtins()
            .map(|(builtin, name)| format!("{name}: {}", if builtin.is_vector() { "vec3<u32>" } else { "u32" }))
            .collect();
        for (name, ty, by_reference) in arguments {
            let ty = types::type_name(p, ty)?;
            parameters.push(if *by_reference {
                format!("{name}: ptr<function, {ty}>")
            } else {
                format!("{name}: {ty}")
            });
        }
        let result = match result {
            Some(ty) => format!(" -> {}", types::type_name(p, ty)?),
            None => String::new(),
        };
        Ok(format!("fn {name}({}){result} {{", parameters.join(", ")))
    }

    fn pass(_: &P<'_>, resources: &Resources) -> Vec<Code> {
        resources.builtins().map(|(_, name)| Code::atom(name)).collect()
    }
}
