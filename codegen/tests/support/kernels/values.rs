//! What one invocation computes: functions, parameters, control flow, integers, constants.

use trefoil_codegen::ir::builder::{FunctionBuilder, ModuleBuilder, element, variable};
use trefoil_codegen::ir::{
    BinaryOperator as B, Builtin, CallArgument, Case, Enum, ExpressionKind, LogicalOperator, MathFunction as M, Module,
    Place, Root, Scalar, StatementKind, Type, UnaryOperator,
};

use super::{for_each, load, store};

/// Elementwise, with a function, a guarded buffer and a parameter.
pub fn scaled_gelu(local: &str) -> Module {
    let mut module = ModuleBuilder::new("scaled_gelu", [256, 1, 1]);
    module.module().doc = " y = gelu(x * scale), element by element.".to_owned();
    let float = module.scalar(Scalar::F32);
    let x = module.shared("x", float);
    let y = module.mutable("y", float);
    let scale = module.param("scale", float);
    let mut gelu = module.function("gelu");
    let argument = gelu.argument("x", float);
    gelu.result(float);
    let x_value = gelu.get_argument(argument);
    let half = gelu.f32(0.5);
    let left = gelu.binary(B::Multiply, half, x_value);
    let (one, x_value, inner) = (gelu.f32(1.0), gelu.get_argument(argument), gelu.f32(0.797_884_6));
    let inner = gelu.binary(B::Multiply, x_value, inner);
    let inner = gelu.math(M::Tanh, vec![inner]);
    let right = gelu.binary(B::Add, one, inner);
    let value = gelu.binary(B::Multiply, left, right);
    gelu.return_value(Some(value));
    let gelu = gelu.finish();
    let mut body = module.entry();
    for_each(&mut body, y, local, |body, i| {
        let value = load(body, x, i);
        let scale = body.param(scale);
        let value = body.binary(B::Multiply, value, scale);
        let value = body.call(gelu, vec![value], Type::Scalar(Scalar::F32));
        store(body, y, i, value);
    });
    body.finish_entry();
    module.build()
}

/// Every kind of parameter.
pub(super) fn parameters() -> Module {
    let mut module = ModuleBuilder::new("parameters", [64, 1, 1]);
    let float = module.scalar(Scalar::F32);
    let word = module.scalar(Scalar::U32);
    let signed = module.scalar(Scalar::I32);
    let boolean = module.scalar(Scalar::Bool);
    let three = module.vector(3, Scalar::F32);
    let two = module.vector(2, Scalar::U32);
    let dims = module.array(word, 6);
    let flags = module.array(boolean, 3);
    let activation = Enum {
        name: "Activation".to_owned(),
        variants: vec![("None".to_owned(), 0), ("Relu".to_owned(), 1), ("Tanh".to_owned(), 7)],
    };
    let activation = module.module().enums.add(activation);
    let activation = module.module().intern(Type::Enum(activation));
    let y = module.mutable("y", float);
    let bias = module.param("bias", float);
    let direction = module.param("direction", three);
    let shift = module.param("shift", signed);
    let pair = module.param("pair", two);
    let dims = module.param("dims", dims);
    let enabled = module.param("enabled", boolean);
    let flags = module.param("flags", flags);
    let act = module.param("act", activation);
    let mut body = module.entry();
    for_each(&mut body, y, "i", |body, i| {
        let (a, b) = (body.param(direction), body.param(direction));
        let dot = body.math(M::Dot, vec![a, b]);
        let bias = body.param(bias);
        let value = body.binary(B::Add, dot, bias);
        let shift = body.param(shift);
        let shift = body.convert(shift, Scalar::F32);
        let value = body.binary(B::Subtract, value, shift);
        let pair = body.param(pair);
        let first = body.lane(pair, 1);
        let first = body.convert(first, Scalar::F32);
        let value = body.binary(B::Multiply, value, first);
        let value = body.variable("value", float, Some(value));
        let (base, index) = (body.param(dims), body.local(i));
        let extent = body.expression(ExpressionKind::Element { base, index }, Type::Scalar(Scalar::U32));
        let base = body.param(dims);
        let last = body.expression(ExpressionKind::Member { base, index: 5 }, Type::Scalar(Scalar::U32));
        let extent = body.binary(B::Add, extent, last);
        let extent = body.convert(extent, Scalar::F32);
        let base = body.param(flags);
        let flag = body.expression(ExpressionKind::Member { base, index: 1 }, Type::Scalar(Scalar::Bool));
        let enabled = body.param(enabled);
        let both = body.logical(LogicalOperator::And, enabled, flag);
        body.if_then(both, |body| {
            let old = body.load(variable(value));
            let sum = body.binary(B::Add, old, extent);
            body.store(variable(value), sum);
        });
        let relu = body.nested(|body| {
            let (old, zero) = (body.load(variable(value)), body.f32(0.0));
            let new = body.math(M::Max, vec![old, zero]);
            body.store(variable(value), new);
        });
        let tanh = body.nested(|body| {
            let old = body.load(variable(value));
            let new = body.math(M::Tanh, vec![old]);
            body.store(variable(value), new);
        });
        let act = body.param(act);
        body.switch(act, vec![Case { values: vec![1], body: relu }, Case { values: vec![7], body: tanh }], vec![]);
        let all = body.param(dims);
        let all = body.bind("all", all);
        let (base, index) = (body.local(all), body.local(i));
        let one = body.expression(ExpressionKind::Element { base, index }, Type::Scalar(Scalar::U32));
        let one = body.convert(one, Scalar::F32);
        let value = body.load(variable(value));
        let value = body.binary(B::Add, value, one);
        store(body, y, i, value);
    });
    body.finish_entry();
    module.build()
}

/// Control flow, and references to locals.
pub(super) fn control() -> Module {
    let mut module = ModuleBuilder::new("control", [64, 1, 1]);
    let word = module.scalar(Scalar::U32);
    let signed = module.scalar(Scalar::I32);
    let index_type = module.scalar(Scalar::Index);
    let x = module.shared("x", word);
    let y = module.mutable("y", word);
    let mut halve = module.function("halve");
    halve.module();
    let argument = halve.argument("value", word);
    let step = halve.argument("amount", word);
    let place = Place { root: Root::Argument(argument), path: vec![], guarded: false };
    let (old, amount) = (halve.load(place.clone()), halve.get_argument(step));
    let new = halve.binary(B::ShiftRight, old, amount);
    halve.store(place, new);
    let halve = halve.finish();
    module.module().functions[halve].arguments[0].by_reference = true;
    let mut twice = module.function("twice");
    let argument = twice.argument("value", word);
    let two = twice.u32(2);
    let arguments = vec![CallArgument::Reference(Root::Argument(argument)), CallArgument::Value(two)];
    let call = twice.expression(ExpressionKind::Call { function: halve, arguments }, Type::Scalar(Scalar::U32));
    twice.statement(StatementKind::Evaluate(call));
    let twice = twice.finish();
    module.module().functions[twice].arguments[0].by_reference = true;
    let mut search = module.function("search");
    search.result(word);
    search.argument("limit", word);
    let zero = search.u32(1);
    let found = search.variable("found", word, Some(zero));
    search.endless_loop(|body| {
        let (old, two) = (body.load(variable(found)), body.u32(2));
        let new = body.binary(B::Multiply, old, two);
        body.store(variable(found), new);
        let (found_now, limit) = (body.load(variable(found)), body.get_argument(0));
        let over = body.binary(B::Greater, found_now, limit);
        body.if_then(over, |body| {
            let value = body.load(variable(found));
            body.return_value(Some(value));
        });
    });
    let search = search.finish();

    let mut body = module.entry();
    let index = body.builtin(Builtin::GlobalIndex);
    let i = body.bind("i", index);
    let (index, length) = (body.local(i), body.length(y));
    let beyond = body.binary(B::GreaterEqual, index, length);
    body.if_then(beyond, |body| body.return_value(None));
    let value = load(&mut body, x, i);
    let value = body.variable("value", word, Some(value));
    let (now, thousand) = (body.load(variable(value)), body.u32(1000));
    let condition = body.binary(B::Greater, now, thousand);
    body.while_loop(condition, |body| {
        let arguments = vec![CallArgument::Reference(Root::Local(value))];
        let call = body.expression(ExpressionKind::Call { function: twice, arguments }, Type::Scalar(Scalar::U32));
        body.statement(StatementKind::Evaluate(call));
    });
    // A choice that leaves the loop around it, and one that does not.
    let (start, end, step) = (body.index(0), body.length(x), body.builtin(Builtin::GroupCount));
    let k = body.new_local("k", index_type, false);
    let inner = body.nested(|body| {
        let leave = body.nested(|body| body.statement(StatementKind::Break));
        let skip = body.nested(|body| body.statement(StatementKind::Continue));
        let (element_value, three) = (load(body, x, k), body.u32(3));
        let selector = body.binary(B::And, element_value, three);
        body.switch(
            selector,
            vec![Case { values: vec![0, 1], body: leave }, Case { values: vec![2], body: skip }],
            vec![],
        );
        let (old, one) = (body.load(variable(value)), body.u32(1));
        let new = body.binary(B::Add, old, one);
        body.store(variable(value), new);
    });
    body.statement(StatementKind::For { local: k, start, end, step, body: inner, unroll: false });
    let (start, end, step) = (body.i32(-8), body.i32(8), body.i32(4));
    let k = body.new_local("k", signed, false);
    let inner = body.nested(|body| {
        let selector = body.local(k);
        let up = body.nested(|body| {
            let (old, one) = (body.load(variable(value)), body.u32(1));
            let new = body.binary(B::Add, old, one);
            body.store(variable(value), new);
        });
        let leave = body.nested(|body| body.statement(StatementKind::Continue));
        body.switch(selector, vec![Case { values: vec![0xffff_fff8], body: up }], leave);
        let (now, zero) = (body.load(variable(value)), body.u32(0));
        let is_zero = body.binary(B::Equal, now, zero);
        body.if_else(
            is_zero,
            |body| body.statement(StatementKind::Break),
            |body| {
                let (now, one) = (body.load(variable(value)), body.u32(1));
                let is_one = body.binary(B::Equal, now, one);
                body.if_else(
                    is_one,
                    |body| body.statement(StatementKind::Continue),
                    |body| {
                        let seven = body.u32(7);
                        body.store(variable(value), seven);
                    },
                );
            },
        );
    });
    body.statement(StatementKind::For { local: k, start, end, step, body: inner, unroll: false });
    let limit = body.load(variable(value));
    let found = body.call(search, vec![limit], Type::Scalar(Scalar::U32));
    let found = body.bind("found", found);
    let value = body.local(found);
    store(&mut body, y, i, value);
    body.finish_entry();
    module.build()
}

/// Integers and bits.
pub(super) fn integers() -> Module {
    let mut module = ModuleBuilder::new("integers", [64, 1, 1]);
    let signed = module.scalar(Scalar::I32);
    let word = module.scalar(Scalar::U32);
    let x = module.shared("x", signed);
    let y = module.mutable("y", signed);
    let bits = module.mutable("bits", word);
    let mut body = module.entry();
    for_each(&mut body, y, "i", |body, i| {
        let a = load(body, x, i);
        let a = body.bind("a", a);
        let get = |body: &mut FunctionBuilder<'_>| body.local(a);
        let mut all = get(body);
        for operator in [B::Add, B::Subtract, B::Multiply, B::And, B::Or, B::Xor] {
            let right = get(body);
            all = body.binary(operator, all, right);
        }
        for operator in [B::Divide, B::Remainder] {
            let seven = body.i32(-7);
            all = body.binary(operator, all, seven);
        }
        for operator in [B::ShiftLeft, B::ShiftRight] {
            let five = body.u32(5);
            all = body.binary(operator, all, five);
        }
        let least = body.i32(i32::MIN);
        all = body.binary(B::Add, all, least);
        all = body.unary(UnaryOperator::Negate, all);
        all = body.unary(UnaryOperator::Not, all);
        all = body.math(M::Abs, vec![all]);
        all = body.math(M::Signum, vec![all]);
        let (low, high) = (body.i32(-5), body.i32(5));
        all = body.math(M::Clamp, vec![all, low, high]);
        store(body, y, i, all);
        let mut count = body.u32(0);
        for function in [M::CountOnes, M::LeadingZeros, M::TrailingZeros] {
            let argument = get(body);
            let one = body.math(function, vec![argument]);
            count = body.binary(B::Add, count, one);
        }
        let raw = get(body);
        let raw = body.bitcast(raw, Scalar::F32);
        let raw = body.convert(raw, Scalar::U32);
        count = body.binary(B::Xor, count, raw);
        let (left, right) = (get(body), get(body));
        let less = body.binary(B::Less, left, right);
        let zero = body.i32(0);
        let left = get(body);
        let positive = body.binary(B::Greater, left, zero);
        let both = body.binary(B::Xor, less, positive);
        let both = body.convert(both, Scalar::U32);
        count = body.binary(B::Or, count, both);
        store(body, bits, i, count);
    });
    body.finish_entry();
    module.build()
}

/// Constants that languages are particular about.
pub(super) fn constants() -> Module {
    let mut module = ModuleBuilder::new("constants", [64, 1, 1]);
    let float = module.scalar(Scalar::F32);
    let word = module.scalar(Scalar::U32);
    let y = module.mutable("y", float);
    let z = module.mutable("z", word);
    let mut body = module.entry();
    let values = [
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MAX,
        f32::MIN_POSITIVE,
        1e-45,
        -0.0,
        0.1,
        16_777_216.0,
        1e20,
        -1.0,
    ];
    let constant = |position: usize| move |body: &mut FunctionBuilder<'_>| body.index(position as u32);
    for (position, value) in values.into_iter().enumerate() {
        let at = constant(position)(&mut body);
        let value = body.f32(value);
        body.store(element(Root::Binding(y), at), value);
    }
    // Computed at compile time, these are errors in WGSL.
    let (one, zero) = (body.f32(1.0), body.f32(0.0));
    let infinite = body.binary(B::Divide, one, zero);
    let at = body.index(20);
    body.store(element(Root::Binding(y), at), infinite);
    let (a, b) = (body.f32(f32::MAX), body.f32(f32::MAX));
    let large = body.binary(B::Multiply, a, b);
    let large = body.unary(UnaryOperator::Negate, large);
    let at = body.index(21);
    body.store(element(Root::Binding(y), at), large);
    let minus = body.f32(-1.0);
    let root = body.math(M::Sqrt, vec![minus]);
    let at = body.index(22);
    body.store(element(Root::Binding(y), at), root);
    let bits = body.u32(0x7fc0_0000);
    let nan = body.bitcast(bits, Scalar::F32);
    let at = body.index(23);
    body.store(element(Root::Binding(y), at), nan);
    let (a, b) = (body.f32(1.5), body.f32(2.0));
    let fine = body.binary(B::Multiply, a, b);
    let at = body.index(24);
    body.store(element(Root::Binding(y), at), fine);
    let (a, b) = (body.u32(0), body.u32(1));
    let wrapped = body.binary(B::Subtract, a, b);
    let at = body.index(0);
    body.store(element(Root::Binding(z), at), wrapped);
    let (a, b) = (body.i32(i32::MAX), body.i32(1));
    let wrapped = body.binary(B::Add, a, b);
    let wrapped = body.bitcast(wrapped, Scalar::U32);
    let at = body.index(1);
    body.store(element(Root::Binding(z), at), wrapped);
    let large = body.f32(1e30);
    let large = body.convert(large, Scalar::U32);
    let at = body.index(2);
    body.store(element(Root::Binding(z), at), large);
    let not = body.u32(5);
    let not = body.unary(UnaryOperator::Not, not);
    let at = body.index(3);
    body.store(element(Root::Binding(z), at), not);
    body.finish_entry();
    module.build()
}
