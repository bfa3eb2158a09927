//! Matrices where there are none: on the CPU and in the evaluator the first lane of a subgroup holds all of a matrix in an array, and does plain loops. The other
//! lanes have arrays that nobody looks at.
//!
//! The sides of a product are held in `f32`, which has every value of theirs, so that a product converts nothing; an accumulator is held as what it
//! is. Each operation is a call of a small function. Whether a matrix is there ([`is_there`]) is asked on every target in the same way.

use std::collections::HashMap;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::builder::{FunctionBuilder, element, variable};
use crate::ir::rewrite::{Copy, Rewrite, RewriteAll, rewrite_all};
use crate::ir::{
    Arena, BinaryOperator as B, Builtin, CallArgument, Expression, ExpressionKind, Function, Handle, Literal,
    LogicalOperator, Matrix, MatrixOperation, MatrixOrder, MatrixRole, Module, Place, Projection, Root, Scalar,
    Statement, StatementKind, Type,
};
use crate::names::FunctionNames;
use crate::verify::{matrix_element, matrix_offset, scalars_of_element};

type Value = Handle<Expression>;

/// Puts arrays and loops in the place of matrices.
///
/// # Errors
/// An operation is none of those that the verifier accepts.
pub(crate) fn spell_out(module: &mut Module) -> Result<Option<&'static str>, Diagnostics> {
    let any = module.types.iter().any(|(_, ty)| matches!(ty, Type::Matrix(_)));
    with_transfers(module).map(|_| any.then_some("matrices in the first lane of a subgroup"))
}

/// [`spell_out`]; gives the names of the functions that load and store matrices: what they access is the whole subgroup's, though its first lane does it.
///
/// # Errors
/// As there.
pub(crate) fn with_transfers(module: &mut Module) -> Result<Vec<String>, Diagnostics> {
    if !module.types.iter().any(|(_, ty)| matches!(ty, Type::Matrix(_))) {
        return Ok(Vec::new());
    }
    let old_types = module.types.clone();
    let mut types = HashMap::new();
    for (handle, _) in old_types.iter() {
        held(module, handle, &mut types);
    }
    let names = FunctionNames::new(module.functions.iter().map(|(_, function)| function));
    let mut pass = Spell { module, old_types, types, names, known: HashMap::new() };
    rewrite_all(&mut pass)?;
    let transfers = pass.known.iter().filter(|(wanted, _)| matches!(wanted, Wanted::Load(..) | Wanted::Store(..)));
    let transfers: Vec<_> = transfers.map(|(_, function)| *function).collect();
    Ok(transfers.into_iter().map(|function| module.functions[function].name.clone()).collect())
}

/// The type that holds values of a type.
fn held(module: &mut Module, ty: Handle<Type>, known: &mut HashMap<Handle<Type>, Handle<Type>>) -> Handle<Type> {
    if let Some(known) = known.get(&ty) {
        return *known;
    }
    let new = match module.types[ty].clone() {
        Type::Matrix(matrix) => array(module, &matrix),
        Type::Array { element, length } => {
            let element = held(module, element, known);
            module.intern(Type::Array { element, length })
        }
        _ => ty,
    };
    known.insert(ty, new);
    new
}

/// What an element of a matrix is held as.
const fn scalar_of(matrix: &Matrix) -> Scalar {
    match matrix.role {
        MatrixRole::A | MatrixRole::B => Scalar::F32,
        MatrixRole::Accumulator => matrix.scalar,
    }
}

fn array(module: &mut Module, matrix: &Matrix) -> Handle<Type> {
    let [rows, columns] = matrix.shape();
    let element = module.intern(Type::Scalar(scalar_of(matrix)));
    module.intern(Type::Array { element, length: crate::ir::Size::Literal(rows * columns) })
}

/// An operation that is a function of its own.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Wanted {
    Load(Matrix, Root, MatrixOrder, bool),
    Store(Matrix, Root, MatrixOrder, bool),
    Product(Matrix, Matrix, Matrix),
    Convert(Matrix, Matrix),
}

struct Spell<'a> {
    module: &'a mut Module,
    old_types: Arena<Type>,
    types: HashMap<Handle<Type>, Handle<Type>>,
    names: FunctionNames,
    known: HashMap<Wanted, Handle<Function>>,
}

impl Spell<'_> {
    fn matrix(&self, ty: Handle<Type>) -> Option<&Matrix> {
        match &self.old_types[ty] {
            Type::Matrix(matrix) => Some(matrix),
            _ => None,
        }
    }

    /// The function that does that, made when first wanted.
    fn helper(&mut self, wanted: &Wanted) -> Result<Handle<Function>, String> {
        if let Some(known) = self.known.get(wanted) {
            return Ok(*known);
        }
        let name = self.names.fresh(match wanted {
            Wanted::Load(..) => "load_matrix",
            Wanted::Store(..) => "store_matrix",
            Wanted::Product(..) => "multiply_add",
            Wanted::Convert(..) => "convert_matrix",
        });
        let made = match wanted {
            Wanted::Load(matrix, root, order, guarded) => {
                self.transfer(&name, matrix, (*root, *order, *guarded), false)?
            }
            Wanted::Store(matrix, root, order, guarded) => {
                self.transfer(&name, matrix, (*root, *order, *guarded), true)?
            }
            Wanted::Product(a, b, c) => self.product(&name, [a, b, c]),
            Wanted::Convert(from, to) => self.convert(&name, from, to),
        };
        self.known.insert(wanted.clone(), made);
        Ok(made)
    }

    /// A load, or a store.
    fn transfer(
        &mut self,
        name: &str,
        matrix: &Matrix,
        (root, order, guarded): (Root, MatrixOrder, bool),
        stores: bool,
    ) -> Result<Handle<Function>, String> {
        let place = Place { root, path: Vec::new(), guarded };
        let held = matrix_element(self.module, &place).cloned().ok_or("a matrix in no memory")?;
        let count = scalars_of_element(&held, matrix.scalar).ok_or("a matrix in memory of something else")?;
        let ty = array(self.module, matrix);
        let index = self.module.intern(Type::Scalar(self.module.index.scalar()));
        let mut body = FunctionBuilder::new(self.module, name);
        body.argument("offset", index);
        body.argument("stride", index);
        let whole = if stores {
            body.argument("matrix", ty);
            let given = body.get_argument(2);
            body.variable("parts", ty, Some(given))
        } else {
            body.result(ty);
            let zero = Literal::zero(scalar_of(matrix)).ok_or("a matrix of no numbers")?;
            let zero = body.literal(zero);
            let zero = body.expression_of(ExpressionKind::Splat(zero), ty);
            body.variable("parts", ty, Some(zero))
        };
        let (lane, first) = (body.builtin(Builtin::SubgroupLane), body.index(0));
        let mut here = body.binary(B::Equal, lane, first);
        if guarded {
            let there = is_there(&mut body, matrix, root, order, |body| (body.get_argument(0), body.get_argument(1)))?;
            here = body.logical(LogicalOperator::And, here, there);
        }
        let [lines, length] = matrix.lines(order);
        let [_, columns] = matrix.shape();
        // The place of an element among the parts.
        let part = |body: &mut FunctionBuilder<'_>, line: Value, along: Value| {
            let (row, column) = match order {
                MatrixOrder::Rows => (line, along),
                MatrixOrder::Columns => (along, line),
            };
            let columns = body.index(columns);
            let row = body.binary(B::Multiply, row, columns);
            let index = body.binary(B::Add, row, column);
            Place { root: Root::Local(whole), path: vec![Projection::Index(index)], guarded: false }
        };
        body.if_then(here, |body| {
            let (start, end) = (body.index(0), body.index(lines));
            body.for_range("line", start, end, |body, line| {
                let (start, end) = (body.index(0), body.index(length / count));
                body.for_range("group", start, end, |body, group| {
                    let at = |body: &mut FunctionBuilder<'_>| {
                        let (line, stride) = (body.local(line), body.get_argument(1));
                        let line = body.binary(B::Multiply, line, stride);
                        let (offset, group) = (body.get_argument(0), body.local(group));
                        let start = body.binary(B::Add, offset, line);
                        let index = body.binary(B::Add, start, group);
                        Place { guarded: false, ..element(root, index) }
                    };
                    if count == 1 {
                        let (line, along) = (body.local(line), body.local(group));
                        let part = part(body, line, along);
                        let place = at(body);
                        if stores {
                            let value = body.load(part);
                            body.store(place, value);
                        } else {
                            let value = body.load(place);
                            let value = converted(body, value, scalar_of(matrix));
                            body.store(part, value);
                        }
                        return;
                    }
                    let along = |body: &mut FunctionBuilder<'_>, number: u32| {
                        let (group, count) = (body.local(group), body.index(count));
                        let first = body.binary(B::Multiply, group, count);
                        let number = body.index(number);
                        body.binary(B::Add, first, number)
                    };
                    let per_word = count / 4;
                    let mut words = Vec::new();
                    for word in 0..4 {
                        let bits = (!stores).then(|| {
                            let place = at(body);
                            let whole = body.load(place);
                            let bits = body.lane(whole, word);
                            body.bind("bits", bits)
                        });
                        let mut together: Option<Value> = None;
                        for number in 0..per_word {
                            let line = body.local(line);
                            let along = along(body, word * per_word + number);
                            let part = part(body, line, along);
                            if let Some(bits) = bits {
                                let bits = body.local(bits);
                                let value = from_bits(body, bits, matrix.scalar, number);
                                let value = converted(body, value, scalar_of(matrix));
                                body.store(part, value);
                            } else {
                                let value = body.load(part);
                                let bits = to_bits(body, value, matrix.scalar, number);
                                together = Some(match together {
                                    Some(others) => body.binary(B::Or, others, bits),
                                    None => bits,
                                });
                            }
                        }
                        words.extend(together);
                    }
                    if stores {
                        let value = body.compose(words);
                        let place = at(body);
                        body.store(place, value);
                    }
                });
            });
        });
        if !stores {
            let whole = body.load(variable(whole));
            body.return_value(Some(whole));
        }
        Ok(body.finish())
    }

    /// A product: a row of `a` times a column of `b`, for each element.
    fn product(&mut self, name: &str, sides: [&Matrix; 3]) -> Handle<Function> {
        let types = sides.map(|matrix| array(self.module, matrix));
        let ([rows, depth], [_, columns]) = (sides[0].shape(), sides[1].shape());
        let float = self.module.intern(Type::Scalar(Scalar::F32));
        let mut body = FunctionBuilder::new(self.module, name);
        for (name, ty) in ["a", "b", "c"].into_iter().zip(types) {
            body.argument(name, ty);
        }
        body.result(types[2]);
        let given = body.get_argument(2);
        let whole = body.variable("sum", types[2], Some(given));
        let part = |root: Root, index: Value| Place { root, path: vec![Projection::Index(index)], guarded: false };
        let product = |body: &mut FunctionBuilder<'_>, first: Value, second: Value| {
            let (a, b) = (body.get_argument(0), body.get_argument(1));
            let scalar = Type::Scalar(Scalar::F32);
            let left = body.expression(ExpressionKind::Element { base: a, index: first }, scalar.clone());
            let right = body.expression(ExpressionKind::Element { base: b, index: second }, scalar);
            body.binary(B::Multiply, left, right)
        };
        let at = |body: &mut FunctionBuilder<'_>, line: Handle<crate::ir::Local>, width: u32, along| {
            let (line, width, along) = (body.local(line), body.index(width), body.local(along));
            let first = body.binary(B::Multiply, line, width);
            body.binary(B::Add, first, along)
        };
        let (lane, first) = (body.builtin(Builtin::SubgroupLane), body.index(0));
        let here = body.binary(B::Equal, lane, first);
        body.if_then(here, |body| {
            let (start, end) = (body.index(0), body.index(rows));
            body.for_range("i", start, end, |body, i| {
                let (start, end) = (body.index(0), body.index(columns));
                body.for_range("j", start, end, |body, j| {
                    let index = at(body, i, columns, j);
                    let value = body.load(part(Root::Local(whole), index));
                    let value = converted(body, value, Scalar::F32);
                    let dot = body.variable("dot", float, Some(value));
                    let (start, end) = (body.index(0), body.index(depth));
                    body.for_range("k", start, end, |body, k| {
                        let (left, right) = (at(body, i, depth, k), at(body, k, columns, j));
                        let value = product(body, left, right);
                        let sum = body.load(variable(dot));
                        let sum = body.binary(B::Add, sum, value);
                        body.store(variable(dot), sum);
                    });
                    let value = body.load(variable(dot));
                    let value = converted(body, value, scalar_of(sides[2]));
                    let index = at(body, i, columns, j);
                    body.store(part(Root::Local(whole), index), value);
                });
            });
        });
        let whole = body.load(variable(whole));
        body.return_value(Some(whole));
        body.finish()
    }

    /// Each element as that of another type.
    fn convert(&mut self, name: &str, from: &Matrix, to: &Matrix) -> Handle<Function> {
        let (source, target) = (array(self.module, from), array(self.module, to));
        let [rows, columns] = from.shape();
        let (own, scalar) = (scalar_of(from), scalar_of(to));
        let mut body = FunctionBuilder::new(self.module, name);
        body.argument("matrix", source);
        body.result(target);
        let whole = body.variable("parts", target, None);
        let (start, end) = (body.index(0), body.index(rows * columns));
        body.for_range("part", start, end, |body, counter| {
            let (base, index) = (body.get_argument(0), body.local(counter));
            let value = body.expression(ExpressionKind::Element { base, index }, Type::Scalar(own));
            let value = converted(body, value, scalar);
            let index = body.local(counter);
            body.store(Place { root: Root::Local(whole), path: vec![Projection::Index(index)], guarded: false }, value);
        });
        let whole = body.load(variable(whole));
        body.return_value(Some(whole));
        body.finish()
    }
}

/// A value as one of another scalar, if it is not.
fn converted(body: &mut FunctionBuilder<'_>, value: Value, scalar: Scalar) -> Value {
    if body.type_of(value).scalar() == Some(scalar) { value } else { body.convert(value, scalar) }
}

/// Part `number` of a word, as a value of the scalar.
fn from_bits(body: &mut FunctionBuilder<'_>, bits: Value, scalar: Scalar, number: u32) -> Value {
    if !scalar.is_narrow() {
        return body.bitcast(bits, scalar);
    }
    let (shift, mask) = (body.u32(number * scalar.bits()), body.u32(0xffff));
    let bits = body.binary(B::ShiftRight, bits, shift);
    let bits = body.binary(B::And, bits, mask);
    let bits = body.convert(bits, Scalar::U16);
    body.bitcast(bits, scalar)
}

/// A value of the scalar as part `number` of a word whose other bits are zero.
fn to_bits(body: &mut FunctionBuilder<'_>, value: Value, scalar: Scalar, number: u32) -> Value {
    if !scalar.is_narrow() {
        return body.bitcast(value, Scalar::U32);
    }
    let bits = body.bitcast(value, Scalar::U16);
    let bits = body.convert(bits, Scalar::U32);
    let shift = body.u32(number * scalar.bits());
    body.binary(B::ShiftLeft, bits, shift)
}

/// Whether all of a matrix lies in its memory, with lines where they may begin; `given` gives offset and stride anew each time. Nothing wraps: what
/// is subtracted was found to be smaller.
pub(crate) fn is_there(
    body: &mut FunctionBuilder<'_>,
    matrix: &Matrix,
    root: Root,
    order: MatrixOrder,
    given: impl Fn(&mut FunctionBuilder<'_>) -> (Value, Value),
) -> Result<Value, String> {
    let place = Place { root, path: Vec::new(), guarded: true };
    let held = matrix_element(body.module(), &place).cloned().ok_or("a matrix in no memory")?;
    let count = scalars_of_element(&held, matrix.scalar).ok_or("a matrix in memory of something else")?;
    let [lines, length] = matrix.lines(order);
    let width = length / count;
    let end = |body: &mut FunctionBuilder<'_>| match root {
        Root::Workgroup(variable) => {
            let variable = &body.module().workgroup[variable];
            let exact = variable.exact.clone().unwrap_or_else(|| variable.length.clone());
            body.size(&exact)
        }
        Root::Binding(binding) => body.length(binding),
        Root::Local(_) | Root::Argument(_) => body.index(0),
    };
    let (width_value, whole) = (body.index(width), end(body));
    let mut there = body.binary(B::LessEqual, width_value, whole);
    let and =
        |body: &mut FunctionBuilder<'_>, left: Value, right: Value| body.logical(LogicalOperator::And, left, right);
    let begins = |body: &mut FunctionBuilder<'_>| {
        let (whole, width) = (end(body), body.index(width));
        body.binary(B::Subtract, whole, width)
    };
    let (offset, last) = (given(body).0, begins(body));
    let inside = body.binary(B::LessEqual, offset, last);
    there = and(body, there, inside);
    if lines > 1 {
        let (last, offset) = (begins(body), given(body).0);
        let rest = body.binary(B::Subtract, last, offset);
        let steps = body.index(lines - 1);
        let most = body.binary(B::Divide, rest, steps);
        let stride = given(body).1;
        let inside = body.binary(B::LessEqual, stride, most);
        there = and(body, there, inside);
    }
    let unit = if count == 1 { matrix.alignment(order) } else { 1 };
    if unit > 1 {
        let (offset, stride) = given(body);
        let both = body.binary(B::Or, offset, stride);
        let mask = body.index(unit - 1);
        let rest = body.binary(B::And, both, mask);
        let zero = body.index(0);
        let aligned = body.binary(B::Equal, rest, zero);
        there = and(body, there, aligned);
    }
    Ok(there)
}

impl RewriteAll for Spell<'_> {
    fn module(&mut self) -> &mut Module {
        self.module
    }
}

impl Rewrite for Spell<'_> {
    fn ty(&mut self, ty: Handle<Type>) -> Result<Handle<Type>, Diagnostic> {
        Ok(self.types.get(&ty).copied().unwrap_or(ty))
    }

    fn expression(&mut self, copy: &mut Copy<'_>, handle: Value) -> Result<Value, Diagnostic> {
        let Expression { kind, ty, span } = &copy.old.expressions[handle];
        let (ty, span) = (*ty, *span);
        match kind {
            // The first lane holds all, and no other lane does anything.
            ExpressionKind::MatrixLength(of) => {
                let [rows, columns] = self.matrix(*of).map_or([0, 0], Matrix::shape);
                let (index, bool) =
                    (self.module.intern(Type::Scalar(Scalar::Index)), self.module.intern(Type::Scalar(Scalar::Bool)));
                let number = |copy: &mut Copy<'_>, number: u32| {
                    copy.add(ExpressionKind::Literal(Literal::Index(number)), index, span)
                };
                let left = copy.add(ExpressionKind::Builtin(Builtin::SubgroupLane), index, span);
                let right = number(copy, 0);
                let kind = ExpressionKind::Binary { operator: B::Equal, left, right };
                let condition = copy.add(kind, bool, span);
                let (accept, reject) = (number(copy, rows * columns), number(copy, 0));
                Ok(copy.add(ExpressionKind::Select { condition, accept, reject }, index, span))
            }
            ExpressionKind::Splat(value) if self.matrix(ty).is_some() => {
                let value = *value;
                let scalar = self.matrix(ty).map_or(Scalar::F32, scalar_of);
                let from = self.old_types[copy.old.expressions[value].ty].scalar();
                let mut value = self.expression(copy, value)?;
                if from != Some(scalar) {
                    let wide = self.module.intern(Type::Scalar(scalar));
                    value = copy.add(ExpressionKind::Convert(value), wide, span);
                }
                let ty = self.ty(ty)?;
                Ok(copy.add(ExpressionKind::Splat(value), ty, span))
            }
            ExpressionKind::Convert(value) if self.matrix(ty).is_some() => {
                let value = *value;
                let from = self.matrix(copy.old.expressions[value].ty).cloned();
                let (Some(from), Some(to)) = (from, self.matrix(ty).cloned()) else {
                    return Err(Diagnostic::new(span, "a matrix is made of something else"));
                };
                let value = self.expression(copy, value)?;
                let function =
                    self.helper(&Wanted::Convert(from, to)).map_err(|message| Diagnostic::new(span, message))?;
                let ty = self.ty(ty)?;
                let arguments = vec![CallArgument::Value(value)];
                Ok(copy.add(ExpressionKind::Call { function, arguments }, ty, span))
            }
            _ => copy.expression(self, handle),
        }
    }

    fn statement(
        &mut self,
        copy: &mut Copy<'_>,
        statement: &Statement,
        out: &mut Vec<Statement>,
    ) -> Result<(), Diagnostic> {
        let StatementKind::Matrix { result, operation } = &statement.kind else {
            return copy.statement(self, statement, out);
        };
        let span = statement.span;
        let failed = |message: String| Diagnostic::new(span, message);
        let matrix = |pass: &Self, ty: Handle<Type>| {
            pass.matrix(ty).cloned().ok_or_else(|| failed("an operation on matrices has another operand".to_owned()))
        };
        let (wanted, operands) = match operation {
            MatrixOperation::Load { place, stride, order } => {
                let Some(local) = result else { return Err(failed("a matrix is loaded for nothing".to_owned())) };
                let matrix = matrix(self, copy.old.locals[*local].ty)?;
                let offset = matrix_offset(place).map_err(failed)?;
                (Wanted::Load(matrix, place.root, *order, place.guarded), vec![offset, *stride])
            }
            MatrixOperation::Store { place, stride, order, value } => {
                let matrix = matrix(self, copy.old.expressions[*value].ty)?;
                let offset = matrix_offset(place).map_err(failed)?;
                (Wanted::Store(matrix, place.root, *order, place.guarded), vec![offset, *stride, *value])
            }
            MatrixOperation::MultiplyAdd { a, b, c } => {
                let of = |value: Value| matrix(self, copy.old.expressions[value].ty);
                (Wanted::Product(of(*a)?, of(*b)?, of(*c)?), vec![*a, *b, *c])
            }
        };
        let mut arguments = Vec::new();
        for operand in operands {
            arguments.push(CallArgument::Value(self.expression(copy, operand)?));
        }
        let function = self.helper(&wanted).map_err(failed)?;
        let kind = ExpressionKind::Call { function, arguments };
        let kind = match result {
            Some(local) => {
                let ty = self.ty(copy.old.locals[*local].ty)?;
                let value = copy.add(kind, ty, span);
                StatementKind::Let { local: copy.declare(self, *local)?, value: Some(value) }
            }
            None => {
                let ty = self.module.intern(Type::Scalar(Scalar::U32));
                StatementKind::Evaluate(copy.add(kind, ty, span))
            }
        };
        out.push(Statement { kind, span });
        Ok(())
    }
}
