//! Random control flow, followed on the host.

use super::*;

/// A random program over one number, `h`, and a count of rounds that ends every loop.
enum Step {
    Mix(u32),
    If(u32, Vec<Step>, Vec<Step>),
    For(u32, Vec<Step>),
    While(u32, Vec<Step>),
    Loop(Vec<Step>),
    Switch(Vec<Vec<Step>>, Vec<Step>),
    Break,
    Continue,
    Return,
}

const MOST_ROUNDS: u32 = 60;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(limit)) as u32
    }

    fn steps(&mut self, depth: u32, in_loop: bool) -> Vec<Step> {
        (0..self.below(4)).map(|_| self.step(depth, in_loop)).collect()
    }

    fn step(&mut self, depth: u32, in_loop: bool) -> Step {
        let kind = self.below(if depth == 0 { 4 } else { 9 });
        match kind {
            1 if in_loop => Step::Break,
            2 if in_loop => Step::Continue,
            3 if self.below(3) == 0 => Step::Return,
            0..=3 => Step::Mix(self.below(1000) + 1),
            4 | 5 => Step::If(self.below(8), self.steps(depth - 1, in_loop), self.steps(depth - 1, in_loop)),
            6 => Step::For(self.below(4), self.steps(depth - 1, true)),
            7 if self.below(2) == 0 => Step::While(self.below(8), self.steps(depth - 1, true)),
            7 => Step::Loop(self.steps(depth - 1, true)),
            _ => Step::Switch(
                (0..self.below(3) + 1).map(|_| self.steps(depth - 1, in_loop)).collect(),
                self.steps(depth - 1, in_loop),
            ),
        }
    }
}

#[derive(PartialEq)]
enum Flow {
    On,
    Break,
    Continue,
    Return,
}

fn mix(h: u32, with: u32) -> u32 {
    (h ^ with).wrapping_mul(2_654_435_761).wrapping_add(with)
}

/// Runs a program on the host.
fn follow(steps: &[Step], h: &mut u32, rounds: &mut u32) -> Flow {
    for step in steps {
        // Whether the loop goes on after a round of its body.
        let round = |body: &[Step], h: &mut u32, rounds: &mut u32| {
            *rounds += 1;
            if *rounds > MOST_ROUNDS { Flow::Break } else { follow(body, h, rounds) }
        };
        let flow = match step {
            Step::Mix(with) => {
                *h = mix(*h, *with);
                Flow::On
            }
            Step::If(bit, accept, reject) => follow(if *h >> bit & 1 == 1 { accept } else { reject }, h, rounds),
            Step::For(count, body) => {
                let mut flow = Flow::On;
                for index in 0..*count {
                    *h = mix(*h, index);
                    flow = round(body, h, rounds);
                    if matches!(flow, Flow::Break | Flow::Return) {
                        break;
                    }
                }
                if flow == Flow::Return { flow } else { Flow::On }
            }
            Step::While(_, body) | Step::Loop(body) => loop {
                if let Step::While(bit, _) = step
                    && *h >> bit & 1 == 0
                {
                    break Flow::On;
                }
                match round(body, h, rounds) {
                    Flow::Break => break Flow::On,
                    Flow::Return => break Flow::Return,
                    Flow::On | Flow::Continue => {}
                }
            },
            Step::Switch(cases, default) => {
                let case = cases.get((*h & 3) as usize).unwrap_or(default);
                follow(case, h, rounds)
            }
            Step::Break => Flow::Break,
            Step::Continue => Flow::Continue,
            Step::Return => Flow::Return,
        };
        if flow != Flow::On {
            return flow;
        }
    }
    Flow::On
}

/// Writes a program as IR.
fn write_steps(
    body: &mut FunctionBuilder<'_>,
    steps: &[Step],
    h: Handle<trefoil_codegen::ir::Local>,
    rounds: Handle<trefoil_codegen::ir::Local>,
) {
    use trefoil_codegen::ir::StatementKind as Statement;
    let mix = |body: &mut FunctionBuilder<'_>, with: Value, again: Value| {
        let now = body.load(variable(h));
        let mixed = body.binary(Op::Xor, now, with);
        let factor = body.u32(2_654_435_761);
        let mixed = body.binary(Op::Multiply, mixed, factor);
        let mixed = body.binary(Op::Add, mixed, again);
        body.store(variable(h), mixed);
    };
    let bit = |body: &mut FunctionBuilder<'_>, bit: u32| {
        let (now, by) = (body.load(variable(h)), body.u32(bit));
        let shifted = body.binary(Op::ShiftRight, now, by);
        let one = body.u32(1);
        let low = body.binary(Op::And, shifted, one);
        let one = body.u32(1);
        body.binary(Op::Equal, low, one)
    };
    let round = |body: &mut FunctionBuilder<'_>, steps: &[Step]| {
        let (now, one) = (body.load(variable(rounds)), body.u32(1));
        let next = body.binary(Op::Add, now, one);
        body.store(variable(rounds), next);
        let (now, most) = (body.load(variable(rounds)), body.u32(MOST_ROUNDS));
        let enough = body.binary(Op::Greater, now, most);
        body.if_then(enough, |body| body.statement(Statement::Break));
        write_steps(body, steps, h, rounds);
    };
    for step in steps {
        match step {
            Step::Mix(with) => {
                let (with, again) = (body.u32(*with), body.u32(*with));
                mix(body, with, again);
            }
            Step::If(number, accept, reject) => {
                let condition = bit(body, *number);
                body.if_else(
                    condition,
                    |body| write_steps(body, accept, h, rounds),
                    |body| write_steps(body, reject, h, rounds),
                );
            }
            Step::For(count, steps) => {
                let (start, end) = (body.u32(0), body.u32(*count));
                body.for_range("index", start, end, |body, index| {
                    let (with, again) = (body.local(index), body.local(index));
                    mix(body, with, again);
                    round(body, steps);
                });
            }
            Step::While(number, steps) => {
                let condition = bit(body, *number);
                body.while_loop(condition, |body| round(body, steps));
            }
            Step::Loop(steps) => body.endless_loop(|body| round(body, steps)),
            Step::Switch(cases, default) => {
                let (now, three) = (body.load(variable(h)), body.u32(3));
                let selector = body.binary(Op::And, now, three);
                let cases = cases
                    .iter()
                    .enumerate()
                    .map(|(value, steps)| Case {
                        values: vec![value as u32],
                        body: body.nested(|body| write_steps(body, steps, h, rounds)),
                    })
                    .collect();
                let default = body.nested(|body| write_steps(body, default, h, rounds));
                body.switch(selector, cases, default);
            }
            Step::Break => body.statement(Statement::Break),
            Step::Continue => body.statement(Statement::Continue),
            Step::Return => {
                let value = body.load(variable(h));
                body.return_value(Some(value));
            }
        }
    }
}

#[test]
fn random_control_flow() {
    for seed in 0..40 {
        let mut random = Random(seed * 7919 + 12345);
        let steps: Vec<Step> = (0..6).map(|_| random.step(4, false)).collect();
        let mut module = ModuleBuilder::new(&format!("random_{seed}"), [32, 1, 1]);
        let word = module.scalar(Scalar::U32);
        let y = module.mutable("y", word);
        let mut function = module.function("follow");
        let seed_argument = function.argument("seed", word);
        function.result(word);
        let first = function.get_argument(seed_argument);
        let h = function.variable("h", word, Some(first));
        let zero = function.u32(0);
        let rounds = function.variable("rounds", word, Some(zero));
        write_steps(&mut function, &steps, h, rounds);
        let value = function.load(variable(h));
        function.return_value(Some(value));
        let function = function.finish();
        let mut body = module.entry();
        let i = global(&mut body);
        let index = body.local(i);
        let value = read(&mut body, Root::Binding(y), index);
        let value = body.call(function, vec![value], Type::Scalar(Scalar::U32));
        let value = body.bind("value", value);
        let (index, value) = (body.local(i), body.local(value));
        write(&mut body, Root::Binding(y), index, value);
        body.finish_entry();
        let module = module.build();
        let start = |i: u32| mix(i, 77);
        let buffers = [words((0..64).map(start))];
        let run = Run { groups: [2, 1, 1], buffers: &buffers, params: &[], views: &[] };
        let Some(got) = self::run(&module, Features::NONE, &run) else { return };
        let expected: Vec<u32> = (0..64)
            .map(|i| {
                let (mut h, mut rounds) = (start(i), 0);
                follow(&steps, &mut h, &mut rounds);
                h
            })
            .collect();
        assert_eq!(as_words(&got[0]), expected, "seed {seed}");
    }
}
