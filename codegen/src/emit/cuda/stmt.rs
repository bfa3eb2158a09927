//! Statements and places: the dialect's part of the shared printer.

use crate::artefact::ParamField;
use crate::emit::EmitError;
use crate::emit::text::{
    AtomicCall, AtomicForm, Code, Dialect, Index, Level, Lvalue, Position, Printer, Resources, Side, word_value,
};
use crate::ir::{
    AtomicFunction, BinaryOperator, IndexWidth, Literal, MathFunction, Matrix, MatrixOrder, Module, Order, Root,
    Scalar, Scope, SubgroupFunction, SubgroupOperator, Type, UnaryOperator,
};
use crate::target::Target;
use crate::tensor_map::TensorMap;

use super::{Cuda, asynchronous, bulk, expr, given, matrix, module, ordered, tile, types, volatile};

type Result<T> = std::result::Result<T, EmitError>;
type P<'a> = Printer<'a, Cuda>;

/// What `pointer` points at, at an index.
///
/// Of a sum that is in range, value and number are told apart: as a signed number the value is the difference of two indices, whatever wrapped, and so the place is the same.
fn element_of(p: &mut P<'_>, root: Root, pointer: Code, index: Index) -> Code {
    if volatile::is_volatile(p, root) {
        return volatile::read(p, pointer, index.whole, "true");
    }
    match index.apart {
        Some((value, number)) if p.lowered.module.index == IndexWidth::Bits32 => {
            p.prelude("in_a_register", || {
                "// `x`, of which the compiler knows nothing more.\n__device__ __forceinline__ int in_a_register(uint x) {\n    asm(\"\" : \"+r\"(x));\n    \
                 return int(x);\n}\n"
                    .to_owned()
            });
            Code::atom(format!("({} + in_a_register({}))[{}]", pointer.text, value.argument(), number.text))
        }
        _ => pointer.index(index.whole),
    }
}

/// A pointer to the vectors of a buffer or workgroup variable of scalars.
fn vectors(p: &mut P<'_>, root: Root, scalar: Scalar, lanes: u8) -> Result<Code> {
    let vector = types::type_name(p, &Type::vector(lanes, scalar))?;
    let constant = match root {
        Root::Binding(binding) if !p.lowered.info.access[binding as usize].writes() => "const ",
        _ => "",
    };
    Ok(Code::atom(format!("reinterpret_cast<{constant}{vector}*>({})", name(p, root)?)))
}

/// The lanes of a warp that exist.
const FULL: &str = "0xffffffffu";

impl Dialect for Cuda {
    const TARGET: Target = Target::Cuda;
    const LOOP: &'static str = "while (true) {";
    const UNROLL: Option<&'static str> = Some("#pragma unroll");
    // Compilers make one sum of what differs by a number otherwise, and keep an address in a register for each, or compute it again and again.
    const TELLS_APART: bool = true;

    fn reserved(name: &str, position: Position) -> bool {
        match position {
            Position::Entry | Position::Global => types::reserved(name, true),
            // A local hides what the text calls; a field hides nothing, but is no keyword either.
            Position::Local | Position::Field => types::reserved(name, false),
        }
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

    fn unary(p: &mut P<'_>, operator: UnaryOperator, ty: &Type, value: Code) -> Result<Code> {
        expr::unary(p, operator, ty, value)
    }

    fn binary(
        p: &mut P<'_>,
        operator: BinaryOperator,
        ty: &Type,
        left: Code,
        right: Code,
        _is_same: bool,
    ) -> Result<Code> {
        expr::binary(p, operator, ty, left, right)
    }

    fn math(p: &mut P<'_>, function: MathFunction, ty: &Type, arguments: Vec<Code>) -> Result<Code> {
        expr::math(p, function, ty, arguments)
    }

    fn select(
        p: &mut P<'_>,
        ty: &Type,
        condition_ty: &Type,
        condition: Code,
        accept: Code,
        reject: Code,
    ) -> Result<Code> {
        expr::select(p, ty, condition_ty, condition, accept, reject)
    }

    fn convert(p: &mut P<'_>, from: &Type, to: &Type, value: Code) -> Result<Code> {
        expr::convert(p, from, to, value)
    }

    fn bitcast(p: &mut P<'_>, _: &Type, to: &Type, value: Code) -> Result<Code> {
        expr::bitcast(p, to, value)
    }

    fn part(p: &mut P<'_>, ty: &Type, base: Code, index: Code) -> Result<Code> {
        expr::part(p, ty, base, index)
    }

    fn swizzle(p: &mut P<'_>, from: &Type, to: &Type, base: Code, lanes: &[u8]) -> Result<Code> {
        expr::swizzle(p, from, to, base, lanes)
    }

    fn param_array(p: &mut P<'_>, field: &ParamField) -> Result<Code> {
        if field.ty.scalar == crate::artefact::ParamScalar::Bool {
            let parts = (0..field.ty.count).map(|part| Self::param_part(p, field, part)).collect::<Result<Vec<_>>>()?;
            types::array_prelude(p);
            let parts: Vec<String> = parts.into_iter().map(Code::argument).collect();
            return Ok(Code::atom(format!("Array<bool, {}>{{{}}}", field.ty.count, parts.join(", "))));
        }
        Ok(Code::atom(format!("params.{}", p.param_name(field))))
    }

    fn param_part(p: &mut P<'_>, field: &ParamField, part: u32) -> Result<Code> {
        let word = Code::atom(format!("params.{}[{part}]", p.param_name(field)));
        Ok(word_value(field, word))
    }

    fn param_element(p: &mut P<'_>, field: &ParamField, index: Code) -> Result<Code> {
        expr::array_at(p);
        let array = Code::atom(format!("params.{}", p.param_name(field)));
        Ok(word_value(field, Code::call("array_at", [array, index])))
    }

    fn hides_first_param(module: &Module) -> bool {
        given::puts_together(module)
    }

    fn given(p: &mut P<'_>, value: Code) -> Code {
        given::read(p, value)
    }

    fn matrix_parts(p: &P<'_>, matrix: &Matrix) -> Result<u32> {
        matrix::parts(p, matrix)
    }

    fn matrix_load(
        p: &mut P<'_>,
        matrix: &Matrix,
        root: Root,
        offset: Code,
        stride: Code,
        order: MatrixOrder,
    ) -> Result<Code> {
        let memory = Code::atom(name(p, root)?);
        matrix::load(p, matrix, (root, memory), offset, stride, order)
    }

    fn matrix_store(
        p: &mut P<'_>,
        matrix: &Matrix,
        root: Root,
        offset: Code,
        stride: Code,
        order: MatrixOrder,
        value: Code,
    ) -> Result<String> {
        let memory = Code::atom(name(p, root)?);
        matrix::store(p, matrix, (root, memory), [offset, stride, value], order)
    }

    fn matrix_multiply_add(p: &mut P<'_>, types: [&Matrix; 3], values: [Code; 3]) -> Result<Code> {
        matrix::multiply_add(p, types, values)
    }

    fn multiply_tiles(
        p: &mut P<'_>,
        ty: &Type,
        sums: Code,
        sides: [Side<'_>; 2],
        numbers: [Code; 3],
    ) -> Result<String> {
        tile::multiply(p, ty, sums, sides, numbers)
    }

    fn bulk_copy(
        p: &mut P<'_>,
        to: Side<'_>,
        map: &TensorMap,
        numbers: [Code; 3],
        otherwise: Code,
    ) -> Result<Vec<String>> {
        bulk::copy(p, &to, map, numbers, &otherwise)
    }

    fn finish_products(p: &mut P<'_>, sums: Vec<Code>) -> Result<Vec<String>> {
        Ok(tile::finish(p, sums))
    }

    fn dereference(name: &str) -> Code {
        Code::atom(name)
    }

    fn reference(name: &str, _: bool) -> Code {
        Code::atom(name)
    }

    fn declared_lanes(_: &P<'_>, _: Root) -> u32 {
        // Vectors are read through a cast of the pointer, whatever their width.
        0
    }

    fn element(p: &mut P<'_>, root: Root, index: Index) -> Result<Code> {
        let pointer = Code::atom(name(p, root)?);
        Ok(element_of(p, root, pointer, index))
    }

    fn vector_element(p: &mut P<'_>, root: Root, scalar: Scalar, lanes: u8, index: Index) -> Result<Lvalue> {
        let pointer = vectors(p, root, scalar, lanes)?;
        Ok(Lvalue::Plain(element_of(p, root, pointer, index)))
    }

    fn clamped_read(
        p: &mut P<'_>,
        root: Root,
        ty: &Type,
        index: &Code,
        (_, condition): (&str, &str),
    ) -> Result<Option<Vec<String>>> {
        if !volatile::is_volatile(p, root) {
            return Ok(None);
        }
        let pointer = match (ty.lanes(), ty.scalar()) {
            (Some(lanes), Some(scalar)) if p.element_type(root).is_some_and(|element| element != ty) => {
                vectors(p, root, scalar, lanes)?
            }
            _ => Code::atom(name(p, root)?),
        };
        Ok(Some(vec![format!("return {};", volatile::read(p, pointer, index.clone(), condition).text)]))
    }

    fn lane_place(p: &mut P<'_>, root: Root, vector: &Type, base: Code, index: Code) -> Result<Lvalue> {
        // What lies in memory has an address, unlike what may be in registers.
        if let (Root::Workgroup(_), Some(scalar)) = (root, vector.scalar().filter(|scalar| *scalar != Scalar::Bool)) {
            let text = format!("reinterpret_cast<{}*>(&{})[{}]", types::scalar_name(scalar), base.text, index.text);
            return Ok(Lvalue::Plain(Code::atom(text)));
        }
        expr::lane_write(p, vector)?;
        let read = expr::lane_read(p, vector, base.clone(), index.clone())?;
        let write = format!("set_lane({}, {}, ", base.text, index.argument());
        Ok(Lvalue::Calls { read, write })
    }

    fn atomic_load(place: Code, scalar: Scalar) -> Code {
        Code { text: format!("*(volatile const {}*)&{}", types::scalar_name(scalar), place.text), level: Level::Unary }
    }

    fn atomic_store(place: Code, scalar: Scalar, value: Code) -> String {
        format!("*(volatile {}*)&{} = {};", types::scalar_name(scalar), place.text, value.text)
    }

    fn copy_async(
        p: &mut P<'_>,
        to: Code,
        from: Code,
        pieces: (u32, u32),
        left: Option<(Code, Code)>,
    ) -> Result<String> {
        Ok(asynchronous::copy(p, &to, &from, pieces, left))
    }

    fn async_commit(p: &mut P<'_>) -> Result<String> {
        Ok(asynchronous::commit(p))
    }

    fn async_wait(p: &mut P<'_>, pending: u32) -> Result<String> {
        Ok(asynchronous::wait(p, pending))
    }

    fn fence(_: &mut P<'_>, scope: Scope) -> Result<String> {
        Ok(ordered::fence(scope))
    }

    fn atomic(p: &mut P<'_>, place: Code, scalar: Scalar, call: AtomicCall) -> Result<AtomicForm> {
        // CUDA C's own functions take 64 bits without a sign alone.
        if call.ordering.order != Order::Relaxed || scalar.is_wide() {
            return ordered::atomic(p, &place, scalar, call);
        }
        let AtomicCall { function, ordering, value, compare, .. } = call;
        let pointer = Code::atom(format!("&{}", place.text));
        let name = match function {
            AtomicFunction::Load => return Ok(AtomicForm::Value(Self::atomic_load(place, scalar))),
            AtomicFunction::Store => {
                let value = value.ok_or_else(|| p.error("an atomic store has no value"))?;
                let line = Self::atomic_store(place, scalar, value);
                return Ok(AtomicForm::Statement(line.trim_end_matches(';').to_owned()));
            }
            AtomicFunction::Add | AtomicFunction::Subtract => "atomicAdd",
            AtomicFunction::Min => "atomicMin",
            AtomicFunction::Max => "atomicMax",
            AtomicFunction::And => "atomicAnd",
            AtomicFunction::Or => "atomicOr",
            AtomicFunction::Xor => "atomicXor",
            AtomicFunction::Exchange => "atomicExch",
            AtomicFunction::CompareExchange => "atomicCAS",
        };
        let mut value = value.ok_or_else(|| p.error(format!("`{name}` has no value")))?;
        if function == AtomicFunction::Subtract {
            // NVIDIA's own `atomicSub` negates as if nothing were the least number: of `x & i32::MIN` nothing would be subtracted.
            let ty = types::scalar_name(scalar);
            value = Code::atom(format!("{ty}(0u - uint({}))", value.text));
        }
        let operands = [pointer].into_iter().chain(compare).chain([value]);
        let reach = if ordering.scope == Scope::Workgroup { "_block" } else { "" };
        Ok(AtomicForm::Value(Code::call(&format!("{name}{reach}"), operands)))
    }

    fn declare_value(p: &mut P<'_>, name: &str, ty: &Type, value: Code) -> Result<String> {
        Ok(format!("const {} {name} = {}", types::type_name(p, ty)?, value.text))
    }

    fn declare_variable(p: &mut P<'_>, name: &str, ty: &Type, value: Option<Code>) -> Result<String> {
        let ty = types::type_name(p, ty)?;
        Ok(match value {
            Some(value) => format!("{ty} {name} = {}", value.text),
            None => format!("{ty} {name}"),
        })
    }

    fn case(values: &[String]) -> String {
        let labels: Vec<String> = values.iter().map(|value| format!("case {value}:")).collect();
        format!("{} {{", labels.join(" "))
    }

    fn default_case() -> &'static str {
        "default: {"
    }

    fn end_of_case() -> Option<&'static str> {
        Some("break;")
    }

    fn barrier(_: &mut P<'_>) -> Result<Vec<String>> {
        Ok(vec!["__syncthreads();".to_owned()])
    }

    fn uniform_load(_: &mut P<'_>, _: Code) -> Option<Code> {
        None
    }

    fn subgroup(
        p: &mut P<'_>,
        function: SubgroupFunction,
        ty: &Type,
        value: Code,
        lane: Option<Code>,
        _: bool,
    ) -> Result<Code> {
        if function.takes_lane() != lane.is_some() {
            return Err(p.error("a subgroup operation has the wrong number of operands"));
        }
        let name = match function {
            SubgroupFunction::Broadcast => SubgroupFunction::Shuffle.name(),
            function => function.name(),
        };
        if function.takes_bool() {
            let mask = mask(p);
            return Ok(match function {
                SubgroupFunction::Any => {
                    Code { text: format!("__any_sync({mask}, {}) != 0", value.argument()), level: Level::Compare }
                }
                SubgroupFunction::All => {
                    Code { text: format!("__all_sync({mask}, {}) != 0", value.argument()), level: Level::Compare }
                }
                _ => {
                    let words = types::type_name(p, &Type::vector(4, Scalar::U32))?;
                    p.prelude(name, || {
                        format!(
                            "__device__ __forceinline__ {words} {name}(bool x) {{\n    \
                             return {words}{{__ballot_sync({mask}, x), 0u, 0u, 0u}};\n}}\n"
                        )
                    });
                    Code::call(name, [value])
                }
            });
        }
        if let Type::Vector { scalar, .. } = ty {
            let part = Type::Scalar(*scalar);
            let index = Type::Scalar(Scalar::U32);
            let types: Vec<&Type> = if lane.is_some() { vec![ty, &index] } else { vec![ty] };
            expr::lanewise(p, name, &types, ty, |p, mut operands| {
                let lane = if function.takes_lane() { operands.pop() } else { None };
                Self::subgroup(p, function, &part, operands.remove(0), lane, false)
            })?;
            return Ok(Code::call(name, [value].into_iter().chain(lane)));
        }
        if function.takes_lane() {
            let shuffle = match function {
                SubgroupFunction::ShuffleXor => "__shfl_xor_sync",
                SubgroupFunction::ShuffleUp => "__shfl_up_sync",
                SubgroupFunction::ShuffleDown => "__shfl_down_sync",
                _ => "__shfl_sync",
            };
            let mask = mask(p);
            p.prelude(name, || {
                format!(
                    "template <typename T> __device__ __forceinline__ T {name}(T x, uint lane) {{\n    \
                     return {shuffle}({mask}, x, int(lane));\n}}\n"
                )
            });
            return Ok(Code::call(name, [value].into_iter().chain(lane)));
        }
        let SubgroupFunction::Reduce(operator) = function else {
            return Err(p.error(format!("lowering has left `{name}`")));
        };
        let part = types::type_name(p, ty)?;
        let (left, right) = (Code::atom("x"), Code::atom("other"));
        let sum = match operator.of_two() {
            Ok(operator) => expr::binary(p, operator, ty, left, right)?,
            Err(function) => expr::math(p, function, ty, vec![left, right])?,
        };
        let mask = mask(p);
        // The compiler's own, of integers; there is none for products.
        let native = ty.scalar() != Some(Scalar::F32) && operator != SubgroupOperator::Multiply;
        let native = native.then(|| name.replace("subgroup", "__reduce"));
        p.prelude(&format!("{name} {part}"), || reduction(name, &part, &sum.text, native, &mask));
        Ok(Code::call(name, [value]))
    }

    fn function(
        p: &mut P<'_>,
        name: &str,
        arguments: &[(String, Type, bool)],
        resources: &Resources,
        result: Option<&Type>,
    ) -> Result<String> {
        let mut parameters = module::surroundings(p, resources)?;
        for (name, ty, by_reference) in arguments {
            let ty = types::type_name(p, ty)?;
            parameters.push(format!("{ty}{} {name}", if *by_reference { "&" } else { "" }));
        }
        let result = match result {
            Some(ty) => types::type_name(p, ty)?,
            None => "void".to_owned(),
        };
        Ok(format!("static __device__ __forceinline__ {result} {name}({}) {{", parameters.join(", ")))
    }

    fn pass(p: &P<'_>, resources: &Resources) -> Vec<Code> {
        let buffers = resources.bindings.iter().map(|binding| Code::atom(p.bindings[*binding as usize].clone()));
        let workgroup = resources.workgroup.iter().map(|variable| Code::atom(p.workgroup[*variable].clone()));
        let params = resources.params.then(|| Code::atom("params"));
        let builtins = resources.builtins().map(|(_, name)| Code::atom(name));
        buffers.chain(workgroup).chain(params).chain(builtins).collect()
    }
}

/// The name of a buffer or workgroup variable.
fn name(p: &P<'_>, root: Root) -> Result<String> {
    match root {
        Root::Binding(binding) => Ok(p.bindings[binding as usize].clone()),
        Root::Workgroup(variable) => Ok(p.workgroup[variable.index()].clone()),
        Root::Local(_) | Root::Argument(_) => Err(p.error("a local is taken for a buffer")),
    }
}

/// The expression for the lanes of the warp that exist: all, but in a last warp that is not full.
fn mask(p: &mut P<'_>) -> String {
    let [x, y, z] = p.lowered.info.workgroup_size;
    let invocations = x * y * z;
    if invocations.is_multiple_of(32) {
        return FULL.to_owned();
    }
    p.prelude("subgroup_mask", || {
        let (full, rest) = (invocations / 32, invocations % 32);
        let index = format!("(threadIdx.x + {x}u * (threadIdx.y + {y}u * threadIdx.z))");
        format!(
            "// The lanes of the subgroup that exist.\n__device__ __forceinline__ uint subgroup_mask() {{\n    \
             return {index} / 32u == {full}u ? {:#x}u : {FULL};\n}}\n",
            (1u32 << rest) - 1
        )
    });
    "subgroup_mask()".to_owned()
}

/// A reduction over the warp, by the compiler's own `word` where there is one and the device has it. In a warp that is not full, lanes that do not exist are left out.
fn reduction(name: &str, part: &str, sum: &str, word: Option<String>, mask: &str) -> String {
    let lanes = if mask == FULL {
        format!(
            "    for (int offset = 16; offset > 0; offset /= 2) {{\n        \
             const {part} other = __shfl_xor_sync({mask}, x, offset);\n        x = {sum};\n    }}\n    return x;\n"
        )
    } else {
        format!(
            "    const uint mask = {mask};\n    \
             uint here;\n    asm(\"mov.u32 %0, %%laneid;\" : \"=r\"(here));\n    \
             for (uint offset = 16u; offset > 0u; offset /= 2u) {{\n        \
             const {part} other = __shfl_down_sync(mask, x, offset);\n        \
             if (here + offset < uint(__popc(mask))) {{\n            x = {sum};\n        }}\n    }}\n    \
             return __shfl_sync(mask, x, 0);\n"
        )
    };
    let body = match word {
        Some(word) => {
            format!("#if __CUDA_ARCH__ >= 800\n    return {word}_sync({mask}, x);\n#else\n{lanes}#endif\n")
        }
        None => lanes,
    };
    format!("__device__ __forceinline__ {part} {name}({part} x) {{\n{body}}}\n")
}
