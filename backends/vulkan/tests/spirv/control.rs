//! Control flow and calls.

use super::*;

#[test]
fn control_flow() {
    // collatz-like, with break, continue and early return in loops, switches and choices.
    let mut module = ModuleBuilder::new("control", [32, 1, 1]);
    let word = module.scalar(Scalar::U32);
    let y = module.mutable("y", word);
    let mut helper = module.function("classify");
    let n = helper.argument("n", word);
    helper.result(word);
    let selector = helper.get_argument(n);
    let seven = helper.u32(7);
    let selector = helper.binary(Op::Remainder, selector, seven);
    let one = helper.nested(|body| {
        let value = body.u32(11);
        body.return_value(Some(value));
    });
    let two = helper.nested(|body| {
        body.endless_loop(|body| {
            let value = body.u32(22);
            body.return_value(Some(value));
        });
    });
    let default = helper.nested(|body| {
        let value = body.get_argument(n);
        let value = body.convert(value, Scalar::U32);
        body.return_value(Some(value));
    });
    let cases = vec![Case { values: vec![1, 4], body: one }, Case { values: vec![2], body: two }];
    helper.switch(selector, cases, default);
    let classify = helper.finish();

    let mut body = module.entry();
    let i = global(&mut body);
    let index = body.local(i);
    let beyond = body.length(y);
    let beyond = body.binary(Op::GreaterEqual, index, beyond);
    body.if_then(beyond, |body| body.return_value(None));
    let zero = body.u32(0);
    let sum = body.variable("sum", word, Some(zero));
    let (start, end) = (body.index(0), body.local(i));
    body.for_range("j", start, end, |body, j| {
        let value = body.local(j);
        let three = body.index(3);
        let rest = body.binary(Op::Remainder, value, three);
        let zero = body.index(0);
        let skip = body.binary(Op::Equal, rest, zero);
        body.if_then(skip, |body| body.statement(trefoil_codegen::ir::StatementKind::Continue));
        let value = body.local(j);
        let limit = body.index(20);
        let stop = body.binary(Op::Greater, value, limit);
        // A break out of a switch in a loop.
        let selector = body.convert(stop, Scalar::U32);
        let leave = body.nested(|body| body.statement(trefoil_codegen::ir::StatementKind::Break));
        body.switch(selector, vec![Case { values: vec![1], body: leave }], Vec::new());
        let count = body.u32(0);
        let k = body.variable("k", word, Some(count));
        let (now, most) = (body.load(variable(k)), body.local(j));
        let most = body.convert(most, Scalar::U32);
        let more = body.binary(Op::Less, now, most);
        body.while_loop(more, |body| {
            let (now, one) = (body.load(variable(k)), body.u32(1));
            let next = body.binary(Op::Add, now, one);
            body.store(variable(k), next);
            let (now, five) = (body.load(variable(k)), body.u32(5));
            let enough = body.binary(Op::Greater, now, five);
            body.if_else(
                enough,
                |body| body.statement(trefoil_codegen::ir::StatementKind::Break),
                |body| {
                    let (sum_now, one) = (body.load(variable(sum)), body.u32(1));
                    let next = body.binary(Op::Add, sum_now, one);
                    body.store(variable(sum), next);
                },
            );
        });
    });
    let argument = body.local(i);
    let argument = body.convert(argument, Scalar::U32);
    let class = body.call(classify, vec![argument], Type::Scalar(Scalar::U32));
    let class = body.bind("class", class);
    let (total, class) = (body.load(variable(sum)), body.local(class));
    let thousand = body.u32(1000);
    let class = body.binary(Op::Multiply, class, thousand);
    let total = body.binary(Op::Add, total, class);
    // `i > 10 && y[i - 10] > 0` must not depend on what it reads when it need not.
    let (index, ten) = (body.local(i), body.index(10));
    let left = body.binary(Op::Greater, index, ten);
    let index = body.local(i);
    let read_back = read(&mut body, Root::Binding(y), index);
    let seven = body.u32(7);
    let right = body.binary(Op::Equal, read_back, seven);
    let both = body.logical(LogicalOperator::And, left, right);
    let extra = body.convert(both, Scalar::U32);
    let total = body.binary(Op::Add, total, extra);
    let index = body.local(i);
    write(&mut body, Root::Binding(y), index, total);
    body.finish_entry();
    let module = module.build();

    let buffers = [words((0..77).map(|_| 7))];
    let run = Run { groups: [3, 1, 1], buffers: &buffers, params: &[], views: &[] };
    let Some(got) = self::run(&module, Features::NONE, &run) else { return };
    let expected: Vec<u32> = (0..77u32)
        .map(|i| {
            let mut sum = 0;
            for j in 0..i {
                if j % 3 == 0 {
                    continue;
                }
                if j > 20 {
                    break;
                }
                sum += j.min(5);
            }
            let class = match i % 7 {
                1 | 4 => 11,
                2 => 22,
                _ => i,
            };
            sum + class * 1000 + u32::from(i > 10)
        })
        .collect();
    assert_eq!(as_words(&got[0]), expected);
}

#[test]
fn ranges_do_not_wrap() {
    let mut module = ModuleBuilder::new("ranges", [1, 1, 1]);
    let (word, int) = (module.scalar(Scalar::U32), module.scalar(Scalar::I32));
    let y = module.mutable("y", word);
    let (end, step, low) = (module.param("end", word), module.param("step", word), module.param("low", int));
    let mut body = module.entry();
    let zero = body.u32(0);
    let count = body.variable("count", word, Some(zero));
    let bump = |body: &mut FunctionBuilder<'_>| {
        let (now, one) = (body.load(variable(count)), body.u32(1));
        let next = body.binary(Op::Add, now, one);
        body.store(variable(count), next);
    };
    let ten = body.u32(10);
    let (start, stop) = (body.param(end), body.param(end));
    let start = body.binary(Op::Subtract, start, ten);
    let by = body.param(step);
    let local = body.new_local("j", word, false);
    let inner = body.nested(bump);
    body.statement(trefoil_codegen::ir::StatementKind::For {
        local,
        start,
        end: stop,
        step: by,
        body: inner,
        unroll: false,
    });
    let (start, stop, by) = (body.param(low), body.i32(i32::MAX), body.i32(0x6000_0000));
    let local = body.new_local("k", int, false);
    let inner = body.nested(bump);
    body.statement(trefoil_codegen::ir::StatementKind::For {
        local,
        start,
        end: stop,
        step: by,
        body: inner,
        unroll: false,
    });
    let (index, value) = (body.index(0), body.load(variable(count)));
    write(&mut body, Root::Binding(y), index, value);
    body.finish_entry();
    let module = module.build();
    // From u32::MAX - 10 by 7: two rounds; by 0 is by 1: ten. From i32::MIN by 0x60000000: three; from 0: two.
    for (step, low, rounds) in [(7u32, i32::MIN, 2 + 3), (0, 0, 10 + 2), (1, i32::MAX, 10)] {
        let params = [vec![u32::MAX], vec![step], vec![low.cast_unsigned()]];
        let buffers = [words([0])];
        let run = Run { groups: [1, 1, 1], buffers: &buffers, params: &params, views: &[] };
        let Some(got) = self::run(&module, Features::NONE, &run) else { return };
        assert_eq!(as_words(&got[0]), [rounds], "step {step} low {low}");
    }
}

#[test]
fn functions_with_references() {
    let mut module = ModuleBuilder::new("swaps", [8, 1, 1]);
    let word = module.scalar(Scalar::U32);
    let y = module.mutable("y", word);
    let reference = |name: &str| Argument { name: name.to_owned(), ty: Handle::from_index(0), by_reference: true };
    assert_eq!(word, Handle::from_index(0));
    let mut swap = module.function("swap");
    swap.argument("a", word);
    swap.argument("b", word);
    let from = |argument| Place { root: Root::Argument(argument), path: Vec::new(), guarded: false };
    let old = swap.load(from(0));
    let old = swap.bind("old", old);
    let other = swap.load(from(1));
    swap.store(from(0), other);
    let value = swap.local(old);
    swap.store(from(1), value);
    let swap = swap.finish();
    module.module().functions[swap].arguments = vec![reference("a"), reference("b")];
    // Hands its own references on.
    let mut again = module.function("swap_if");
    again.argument("a", word);
    again.argument("b", word);
    let (left, right) = (again.load(from(0)), again.load(from(1)));
    let order = again.binary(Op::GreaterEqual, left, right);
    again.if_then(order, |body| body.return_value(None));
    let references = vec![CallArgument::Reference(Root::Argument(0)), CallArgument::Reference(Root::Argument(1))];
    let call = ExpressionKind::Call { function: swap, arguments: references };
    let call = again.expression(call, Type::Scalar(Scalar::U32));
    again.statement(trefoil_codegen::ir::StatementKind::Evaluate(call));
    let again = again.finish();
    module.module().functions[again].arguments = vec![reference("a"), reference("b")];
    let mut body = module.entry();
    let i = global(&mut body);
    let first = body.local(i);
    let first = body.convert(first, Scalar::U32);
    let a = body.variable("a", word, Some(first));
    let index = body.local(i);
    let second = read(&mut body, Root::Binding(y), index);
    let b = body.variable("b", word, Some(second));
    let references = vec![CallArgument::Reference(Root::Local(a)), CallArgument::Reference(Root::Local(b))];
    let call = ExpressionKind::Call { function: again, arguments: references };
    let call = body.expression(call, Type::Scalar(Scalar::U32));
    body.statement(trefoil_codegen::ir::StatementKind::Evaluate(call));
    let (a, b, thousand) = (body.load(variable(a)), body.load(variable(b)), body.u32(1000));
    let high = body.binary(Op::Multiply, a, thousand);
    let both = body.binary(Op::Add, high, b);
    let index = body.local(i);
    write(&mut body, Root::Binding(y), index, both);
    body.finish_entry();
    let module = module.build();
    let buffers = [words((0..20).map(|i| 10 + i % 3))];
    let run = Run { groups: [3, 1, 1], buffers: &buffers, params: &[], views: &[] };
    let Some(got) = self::run(&module, Features::NONE, &run) else { return };
    let expected: Vec<u32> = (0..20u32)
        .map(|i| {
            let (a, b) = (i, 10 + i % 3);
            a.max(b) * 1000 + a.min(b)
        })
        .collect();
    assert_eq!(as_words(&got[0]), expected);
}
