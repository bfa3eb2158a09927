//! IR that is read from bytes holds together, or is refused: nothing that reads it looks at what is not there, or without end.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use trefoil_codegen::front::parse_source;
use trefoil_codegen::ir::{
    Expression, ExpressionKind, Handle, Module, Projection, Size, SizeOperator, Statement, StatementKind, Type,
};
use trefoil_codegen::verify::verify;

fn module() -> Module {
    let source = "#[kernel(workgroup(64))] fn k(x: &[f32], y: &mut [f32], n: u32) { let i = global_index(); if i < y.len() { y[i] = -x[i] + n as f32; } }";
    parse_source(source).unwrap().remove(0).module
}

fn is_read(change: impl FnOnce(&mut Module)) -> bool {
    let mut module = module();
    change(&mut module);
    Module::from_bytes(&module.to_bytes().unwrap()).is_ok_and(|read| read == module)
}

const FAR: usize = 1000;

#[test]
fn what_was_written_is_read() {
    assert!(is_read(|_| {}));
}

#[test]
fn what_refers_to_nothing_is_refused() {
    assert!(!is_read(|module| module.bindings[0].element = Handle::from_index(FAR)));
    assert!(!is_read(|module| module.params[0].ty = Handle::from_index(FAR)));
    assert!(!is_read(|module| module.entry.result = Some(Handle::from_index(FAR))));
    assert!(!is_read(|module| module.entry.body.push(statement(StatementKind::Evaluate(Handle::from_index(FAR))))));
    for kind in [
        ExpressionKind::Param(FAR as u32),
        ExpressionKind::Length(FAR as u32),
        ExpressionKind::Argument(0),
        ExpressionKind::GenericConstant(0),
        ExpressionKind::Local(Handle::from_index(FAR)),
        ExpressionKind::Convert(Handle::from_index(FAR)),
        ExpressionKind::Call { function: Handle::from_index(0), arguments: Vec::new() },
    ] {
        let changed = |module: &mut Module| {
            add(module, kind.clone());
        };
        assert!(!is_read(changed), "{kind:?}");
    }
}

#[test]
fn what_is_made_of_itself_is_refused() {
    assert!(!is_read(|module| {
        let own = Handle::from_index(module.types.len());
        module.types.add(Type::Array { element: own, length: Size::Literal(2) });
    }));
    assert!(!is_read(|module| {
        let own = Handle::from_index(module.entry.expressions.len());
        add(module, ExpressionKind::Splat(own));
    }));
}

#[test]
fn what_no_walk_would_end_in_is_refused() {
    // 2^100 additions of one number.
    assert!(!is_read(|module| {
        let mut value = Handle::from_index(0);
        for _ in 0..100 {
            value = add(module, ExpressionKind::Compose(vec![value, value]));
        }
    }));
    let blocks = |depth: usize| {
        move |module: &mut Module| {
            for _ in 0..depth {
                let body = std::mem::take(&mut module.entry.body);
                module.entry.body.push(statement(StatementKind::Loop { body }));
            }
        }
    };
    assert!(is_read(blocks(100)));
    assert!(!is_read(blocks(500)));
    let sizes = |depth: usize| {
        move |module: &mut Module| {
            let mut size = Size::Literal(1);
            for _ in 0..depth {
                size = Size::Binary(SizeOperator::Add, Box::new(size), Box::new(Size::Literal(1)));
            }
            module.workgroup_size[0] = size;
        }
    };
    assert!(is_read(sizes(100)));
    assert!(!is_read(sizes(500)));
}

/// An index that a function should give which gives nothing has no value, whatever its type says.
#[test]
fn what_gives_nothing_is_no_operand() {
    let source = "#[device] fn nothing(y: &mut [u32]) { y[1] = 2; } #[kernel(workgroup(64))] fn k(y: &mut [u32]) { nothing(y); y[2] = 1; }";
    let mut module = parse_source(source).unwrap().remove(0).module;
    assert!(verify(module.clone()).is_ok());
    let call = module.entry.body.iter().find_map(|statement| match statement.kind {
        StatementKind::Evaluate(call) => Some(call),
        _ => None,
    });
    let call = call.unwrap();
    module.entry.body.retain(|statement| !matches!(statement.kind, StatementKind::Evaluate(_)));
    index_by(&mut module, |module, ty| {
        module.entry.expressions[call].ty = ty;
        call
    });
    let said = verify(module).unwrap_err().to_string();
    assert!(said.contains("`nothing` gives no value: its call is a statement of its own"), "{said}");
}

/// Nor has one that is made of no parts.
#[test]
fn a_scalar_is_made_of_no_parts() {
    let mut module = module();
    index_by(&mut module, |module, ty| {
        let kind = ExpressionKind::Compose(Vec::new());
        module.entry.expressions.add(Expression { kind, ty, span: Default::default() })
    });
    let said = verify(module).unwrap_err().to_string();
    assert!(said.contains("usize is not made of parts"), "{said}");
}

/// Stores what the kernel stores at another index of the same type, which is read from bytes.
fn index_by(module: &mut Module, change: impl Fn(&mut Module, Handle<Type>) -> Handle<Expression>) {
    let mut changed = 0;
    let mut body = std::mem::take(&mut module.entry.body);
    let mut blocks = vec![&mut body];
    while let Some(block) = blocks.pop() {
        for statement in block {
            if let StatementKind::Store { place, .. } = &mut statement.kind
                && let [Projection::Index(index)] = &mut place.path[..]
            {
                let ty = module.entry.expressions[*index].ty;
                *index = change(module, ty);
                changed += 1;
            }
            blocks.extend(statement.kind.blocks_mut());
        }
    }
    module.entry.body = body;
    assert_eq!(changed, 1);
    *module = Module::from_bytes(&module.to_bytes().unwrap()).unwrap();
}

fn statement(kind: StatementKind) -> Statement {
    Statement { kind, span: Default::default() }
}

fn add(module: &mut Module, kind: ExpressionKind) -> Handle<Expression> {
    module.entry.expressions.add(Expression { kind, ty: Handle::from_index(0), span: Default::default() })
}
