//! Loads and stores of matrices that may not be there: the question is asked before, and what is loaded is zero otherwise.
//!
//! The answer is the subgroup's, like the offset and the stride, so that its invocations stay together.

use std::collections::HashMap;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::builder::{FunctionBuilder, variable};
use crate::ir::rewrite::{Copy, Rewrite, RewriteAll, rewrite_all};
use crate::ir::{
    CallArgument, Expression, ExpressionKind, Function, Handle, Literal, Local, Matrix, MatrixOperation, MatrixOrder,
    Module, Place, Projection, Root, Scalar, Span, Statement, StatementKind, Type,
};
use crate::matrices::is_there;
use crate::names::FunctionNames;

/// Asks where the verifier did not prove it.
///
/// # Errors
/// An operation is none of those that the verifier accepts.
pub fn guard(module: &mut Module) -> Result<(), Diagnostics> {
    if !module.types.iter().any(|(_, ty)| matches!(ty, Type::Matrix(_))) {
        return Ok(());
    }
    let names = FunctionNames::new(module.functions.iter().map(|(_, function)| function));
    let mut pass = Guard { module, names, known: HashMap::new() };
    rewrite_all(&mut pass)?;
    Ok(())
}

struct Guard<'a> {
    module: &'a mut Module,
    names: FunctionNames,
    known: HashMap<(Matrix, Root, MatrixOrder), Handle<Function>>,
}

impl Guard<'_> {
    /// The function that tells whether a matrix is there, made when first wanted.
    fn question(&mut self, matrix: &Matrix, root: Root, order: MatrixOrder) -> Result<Handle<Function>, String> {
        let key = (matrix.clone(), root, order);
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let held = match root {
            Root::Binding(binding) => self.module.bindings[binding as usize].name.clone(),
            Root::Workgroup(variable) => self.module.workgroup[variable].name.clone(),
            Root::Local(_) | Root::Argument(_) => return Err("a matrix in no memory".to_owned()),
        };
        let name = self.names.fresh(&format!("{held}_holds"));
        let index = self.module.intern(Type::Scalar(self.module.index.scalar()));
        let bool = self.module.intern(Type::Scalar(Scalar::Bool));
        let mut body = FunctionBuilder::new(self.module, &name);
        body.argument("offset", index);
        body.argument("stride", index);
        body.result(bool);
        let there = is_there(&mut body, matrix, root, order, |body| (body.get_argument(0), body.get_argument(1)))?;
        body.return_value(Some(there));
        let made = body.finish();
        self.known.insert(key, made);
        Ok(made)
    }

    /// A value that is read again where it is wanted.
    fn keep(
        &mut self,
        copy: &mut Copy<'_>,
        value: Handle<Expression>,
        name: &str,
        out: &mut Vec<Statement>,
    ) -> Handle<Local> {
        let Expression { ty, span, .. } = copy.new.expressions[value];
        let local = copy.new.locals.add(Local { name: name.to_owned(), ty, mutable: false, span });
        out.push(Statement { kind: StatementKind::Let { local, value: Some(value) }, span });
        local
    }
}

impl RewriteAll for Guard<'_> {
    fn module(&mut self) -> &mut Module {
        self.module
    }
}

impl Rewrite for Guard<'_> {
    fn statement(
        &mut self,
        copy: &mut Copy<'_>,
        statement: &Statement,
        out: &mut Vec<Statement>,
    ) -> Result<(), Diagnostic> {
        let StatementKind::Matrix {
            result,
            operation:
                operation @ (MatrixOperation::Load { place: Place { guarded: true, .. }, .. }
                | MatrixOperation::Store { place: Place { guarded: true, .. }, .. }),
        } = &statement.kind
        else {
            return copy.statement(self, statement, out);
        };
        let span = statement.span;
        let failed = |message: &str| Diagnostic::new(span, message);
        let (place, stride, order, ty) = match (operation, result) {
            (MatrixOperation::Load { place, stride, order }, Some(local)) => {
                (place, *stride, *order, copy.old.locals[*local].ty)
            }
            (MatrixOperation::Store { place, stride, order, value }, None) => {
                (place, *stride, *order, copy.old.expressions[*value].ty)
            }
            _ => return Err(failed("an operation on matrices has the wrong operands")),
        };
        let (Type::Matrix(matrix), [Projection::Index(offset)]) =
            (self.module.types[ty].clone(), place.path.as_slice())
        else {
            return Err(failed("a matrix in memory has one offset"));
        };
        let question = self.question(&matrix, place.root, order).map_err(|message| failed(&message))?;
        let offset = self.expression(copy, *offset)?;
        let offset = self.keep(copy, offset, "offset", out);
        let stride = self.expression(copy, stride)?;
        let stride = self.keep(copy, stride, "stride", out);
        let index = self.module.intern(Type::Scalar(self.module.index.scalar()));
        let bool = self.module.intern(Type::Scalar(Scalar::Bool));
        let read = |copy: &mut Copy<'_>, local| copy.add(ExpressionKind::Local(local), index, span);
        let arguments = [offset, stride].map(|local| CallArgument::Value(read(copy, local))).to_vec();
        let condition = copy.add(ExpressionKind::Call { function: question, arguments }, bool, span);
        let at = Place { root: place.root, path: vec![Projection::Index(read(copy, offset))], guarded: false };
        let step = read(copy, stride);
        let push = |out: &mut Vec<Statement>, kind| out.push(Statement { kind, span });
        let mut accept = Vec::new();
        if let MatrixOperation::Store { value, .. } = operation {
            let value = self.expression(copy, *value)?;
            let operation = MatrixOperation::Store { place: at, stride: step, order, value };
            push(&mut accept, StatementKind::Matrix { result: None, operation });
            push(out, StatementKind::If { condition, accept, reject: Vec::new(), constant: false });
            return Ok(());
        }
        let Some(result) = result else { return Err(failed("a matrix is loaded for nothing")) };
        let name = copy.old.locals[*result].name.clone();
        let local = |copy: &mut Copy<'_>, mutable| copy.new.locals.add(Local { name: name.clone(), ty, mutable, span });
        let (held, loaded) = (local(copy, true), local(copy, false));
        let zero = zero(self.module, copy, &matrix, ty, span).ok_or_else(|| failed("a matrix of no numbers"))?;
        push(out, StatementKind::Let { local: held, value: Some(zero) });
        let operation = MatrixOperation::Load { place: at, stride: step, order };
        push(&mut accept, StatementKind::Matrix { result: Some(loaded), operation });
        let value = copy.add(ExpressionKind::Local(loaded), ty, span);
        push(&mut accept, StatementKind::Store { place: variable(held), value });
        push(out, StatementKind::If { condition, accept, reject: Vec::new(), constant: false });
        let value = copy.add(ExpressionKind::Load(variable(held)), ty, span);
        let local = copy.declare(self, *result)?;
        push(out, StatementKind::Let { local, value: Some(value) });
        Ok(())
    }
}

fn zero(
    module: &mut Module,
    copy: &mut Copy<'_>,
    matrix: &Matrix,
    ty: Handle<Type>,
    span: Span,
) -> Option<Handle<Expression>> {
    let zero = Literal::zero(matrix.scalar)?;
    let scalar = module.intern(Type::Scalar(matrix.scalar));
    let value = copy.add(ExpressionKind::Literal(zero), scalar, span);
    Some(copy.add(ExpressionKind::Splat(value), ty, span))
}
