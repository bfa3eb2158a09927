//! The drawing of a kernel: a program is a function of its seed.
//!
//! Kernels are well typed, end, and have one meaning. Invocations write elements of their own; what they share is written behind a barrier or by operations whose order does not matter; and decisions are taken
//! on floats that are known exactly. A kernel is asked for a few things of the language, which say what it is about; the rest is left to chance. Every variable is folded into an output, so that a wrong value is seen.

mod bits;
mod data;
mod expression;
mod float;
mod functions;
mod statement;
mod together;
mod wish;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use trefoil_codegen::ir::{BinaryOperator, Scalar};

use crate::combination::{Combination, is_stored};
use crate::syntax::{
    Access, Argument, Block, Buffer, Expr, Function, Kind, Memory, Mode, Needs, Param, Place, Program, Root, Step,
    Stmt, Ty, Var, Variable,
};
use crate::value::Value;

/// The program of a seed.
pub fn draw(seed: u64) -> Program {
    let (wishes, needs) = wish::wishes(seed);
    let mut draw = Draw::new(seed, &wishes, needs);
    draw.signature();
    for _ in 0..draw.below(4) {
        draw.function();
    }
    draw.kernel(wishes);
    draw.program
}

/// A drawing under way.
struct Draw {
    rng: ChaCha8Rng,
    program: Program,
    /// Types of numbers that this kernel computes with.
    scalars: Vec<Scalar>,
    /// The one that it is about, if memory holds that.
    theme: Option<Scalar>,
    /// Variables that are known here, and whether they may be written.
    scope: Vec<(Var, bool)>,
    /// Slices that may be read here.
    slices: Vec<Memory>,
    /// What everything that is not written out is folded into: a `u32`, and an `f32` where floats may be inexact.
    hash: Var,
    sum: Option<Var>,
    /// Loops and branches around.
    depth: u32,
    /// Whether `break` and `continue` may stand here.
    breaks: bool,
    /// Whether a loop around is written out.
    unrolled: bool,
    /// What a function gives, inside of one.
    result: Option<Ty>,
}

impl Draw {
    fn new(seed: u64, wishes: &[Combination], needs: Needs) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut scalars = vec![Scalar::I32, Scalar::U32, Scalar::F32];
        for wish in wishes {
            if is_stored(wish.scalar) && !scalars.contains(&wish.scalar) {
                scalars.push(wish.scalar);
            }
        }
        // Types that every device has come together with others, too.
        let others = [Scalar::I8, Scalar::U8, Scalar::I16, Scalar::U16, Scalar::F16, Scalar::BF16];
        let others = others.into_iter().filter(|other| !scalars.contains(other)).collect::<Vec<_>>();
        scalars.extend(others.into_iter().filter(|_| rng.random_bool(0.1)));
        let theme = wishes.get(wishes.len() / 2).map(|wish| wish.scalar).filter(|scalar| is_stored(*scalar));
        let workgroup = [8, 16, 24, 32, 33, 64][rng.random_range(0..6)];
        let groups = rng.random_range(1..=3);
        let program = Program {
            needs,
            workgroup,
            groups,
            structs: Vec::new(),
            functions: Vec::new(),
            buffers: Vec::new(),
            params: Vec::new(),
            shared: Vec::new(),
            vars: Vec::new(),
            body: Vec::new(),
        };
        Self {
            rng,
            program,
            scalars,
            theme,
            scope: Vec::new(),
            slices: Vec::new(),
            hash: 0,
            sum: None,
            depth: 0,
            breaks: false,
            unrolled: false,
            result: None,
        }
    }

    fn below(&mut self, count: usize) -> usize {
        self.rng.random_range(0..count.max(1))
    }

    fn percent(&mut self, share: u32) -> bool {
        self.rng.random_range(0..100) < share
    }

    fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        let index = self.below(all.len());
        all[index].clone()
    }

    /// A new variable, which nobody knows yet.
    fn var(&mut self, ty: Ty, exact: bool) -> Var {
        self.program.vars.push(Variable { ty, exact });
        self.program.vars.len() - 1
    }

    fn scalar(&mut self) -> Scalar {
        // The types that every kernel has are not to be crowded out.
        let all = self.scalars.clone();
        if self.percent(50) { self.pick(&all[..3]) } else { self.pick(&all) }
    }

    /// A scalar or a vector.
    fn number(&mut self) -> Ty {
        let scalar = self.scalar();
        let lanes = if self.percent(25) { self.pick(&[2, 3, 4]) } else { 1 };
        Ty::lanes_of(lanes, scalar)
    }

    /// What a variable may be.
    fn any_type(&mut self) -> Ty {
        match self.below(20) {
            0 | 1 => Ty::BOOL,
            2 => Ty::INDEX,
            3 if !self.program.structs.is_empty() => Ty::Struct(self.below(self.program.structs.len())),
            4 | 5 => {
                let element = self.number();
                Ty::Array(Box::new(element), self.rng.random_range(2..=4))
            }
            _ => self.number(),
        }
    }

    /// What memory may hold.
    fn element_type(&mut self) -> Ty {
        if self.percent(20) && !self.program.structs.is_empty() {
            return Ty::Struct(self.below(self.program.structs.len()));
        }
        match self.number() {
            // Those do not start at whole words, and not every device can access them.
            Ty::Vector(3, scalar) if scalar.is_narrow() => Ty::Vector(4, scalar),
            other => other,
        }
    }

    /// What memory may hold, of the type that the kernel is about.
    fn themed_element(&mut self) -> Ty {
        let theme = self.theme;
        match theme {
            Some(scalar) if self.percent(70) => {
                let lanes = if self.percent(25) { self.pick(&[2, 4]) } else { 1 };
                Ty::lanes_of(lanes, scalar)
            }
            _ => self.element_type(),
        }
    }

    /// Structs, buffers and parameters.
    fn signature(&mut self) {
        for _ in 0..self.below(3) {
            let count = self.rng.random_range(1..=4);
            let mut fields = Vec::new();
            for _ in 0..count {
                // Fields have no types narrower than a word.
                let number = match self.number() {
                    Ty::Scalar(scalar) => Ty::Scalar(scalar.widened()),
                    Ty::Vector(lanes, scalar) => Ty::Vector(lanes, scalar.widened()),
                    other => other,
                };
                fields.push(if self.percent(15) { Ty::Array(Box::new(number), 2) } else { number });
            }
            self.program.structs.push(fields);
        }
        let mut elements = vec![Ty::U32, Ty::F32];
        if self.theme.is_some() || self.percent(60) {
            elements.push(self.themed_element());
        }
        for element in elements {
            let length = self.rng.random_range(5..=self.program.invocations() as usize + 9);
            self.buffer(Access::Read, element, length);
        }
        let mut types: Vec<Ty> = self.theme.map(Ty::Scalar).into_iter().collect();
        for _ in 0..self.below(3) {
            types.push(self.number());
        }
        for ty in types {
            let var = self.var(ty.clone(), true);
            let value = self.datum(&ty);
            self.program.params.push(Param { var, value, range: None });
            self.scope.push((var, false));
        }
        if self.percent(20) {
            let ty = self.pick(&[Ty::U32, Ty::I32, Ty::INDEX]);
            let scalar = ty.scalar().unwrap_or(Scalar::U32);
            let first = self.rng.random_range(0..=9i64);
            let value = self.rng.random_range(0..=9u64);
            let var = self.var(ty, true);
            let range = Some([first, 0, 9]);
            self.program.params.push(Param { var, value: Value::of_bits(scalar, value), range });
            self.scope.push((var, false));
        }
    }

    /// A buffer with data; one that is read may be read from here on.
    fn buffer(&mut self, access: Access, element: Ty, length: usize) -> Memory {
        let data = (0..length).map(|_| self.datum(&element)).collect();
        self.program.buffers.push(Buffer { access, element, data });
        let memory = Memory::Buffer(self.program.buffers.len() - 1);
        if access == Access::Read {
            self.slices.push(memory);
        }
        memory
    }

    /// Begins what has variables of its own: gives the statements that declare what everything is folded into.
    fn accumulators(&mut self, inexact: bool) -> Block {
        self.hash = self.var(Ty::U32, true);
        let first = Expr::u32(self.rng.random());
        let mut block = vec![Stmt::Let { var: self.hash, mutable: true, value: first }];
        self.sum = inexact.then(|| self.var(Ty::F32, false));
        if let Some(sum) = self.sum {
            block.push(Stmt::Let { var: sum, mutable: true, value: Expr::f32(0.0) });
        }
        block
    }

    fn function(&mut self) {
        let result = if self.percent(15) { self.any_type() } else { self.number() };
        let is_float = result.scalar().is_some_and(Scalar::is_float);
        let (outside, slices) = (std::mem::take(&mut self.scope), std::mem::take(&mut self.slices));
        let mut params = Vec::new();
        for _ in 0..self.rng.random_range(1..=3) {
            let mode = match self.below(10) {
                0 | 1 => Mode::Mutable,
                2 => Mode::Slice,
                _ => Mode::Value,
            };
            let ty = match mode {
                // What calls it must have such a slice.
                Mode::Slice => self.pick(&[Ty::U32, Ty::F32]),
                Mode::Mutable => self.number(),
                Mode::Value => self.any_type(),
            };
            let var = self.var(ty, mode != Mode::Mutable);
            match mode {
                Mode::Slice => self.slices.push(Memory::Parameter(var)),
                _ => self.scope.push((var, mode == Mode::Mutable)),
            }
            params.push((var, mode));
        }
        self.result = Some(result.clone());
        let mut body = self.accumulators(is_float);
        let count = self.rng.random_range(1..=4);
        body.extend(self.statements(count));
        let mut value = self.expr(&result, 3, false);
        let folded = Expr::var(self.hash, Ty::U32);
        if let Ty::Scalar(scalar) = result {
            if scalar.is_integer() {
                value = Expr::binary(BinaryOperator::Xor, value, folded.convert(scalar));
            } else if scalar.is_float() {
                let few = Expr::binary(BinaryOperator::And, folded, Expr::u32(7)).convert(Scalar::F32);
                let mut extra = few;
                if let Some(sum) = self.sum {
                    let part = Expr::binary(BinaryOperator::Multiply, Expr::var(sum, Ty::F32), Expr::f32(0.125));
                    extra = float::apart(Expr::binary(BinaryOperator::Add, extra, part));
                }
                value = float::apart(Expr::binary(BinaryOperator::Add, value, extra.convert(scalar)));
            }
        }
        self.program.functions.push(Function { params, body, result: value });
        self.scope = outside;
        self.slices = slices;
        self.result = None;
    }

    fn kernel(&mut self, wishes: Vec<Combination>) {
        let mut body = self.accumulators(true);
        let (hash, sum) = (self.hash, self.sum);
        self.scope.extend([hash].map(|var| (var, false)));
        let first = self.scope.len();
        // What is read differs between invocations, so that what is computed does.
        for memory in self.slices.clone() {
            let element = self.program.element(memory).clone();
            let var = self.var(element.clone(), true);
            let value = Expr::element(memory, Expr::new(Ty::INDEX, Kind::GlobalIndex), element);
            body.push(Stmt::Let { var, mutable: false, value });
            self.scope.push((var, false));
        }
        for wish in wishes {
            self.grant(wish, &mut body);
        }
        let count = self.rng.random_range(2..=5);
        for _ in 0..count {
            if self.percent(35) {
                self.together(&mut body);
            } else {
                let statement = self.statement();
                body.extend(statement);
            }
        }
        // A result of a type of its own, changed in part where it lies.
        let element = self.themed_element();
        let missing = if self.percent(20) { self.below(4) } else { 0 };
        let length = self.program.invocations() as usize - missing;
        let memory = self.buffer(Access::Write, element.clone(), length);
        let value = self.expr(&element, 3, false);
        let root = Root::Element(memory, Box::new(Expr::new(Ty::INDEX, Kind::GlobalIndex)));
        body.push(Stmt::Assign(Place { root: root.clone(), path: Vec::new() }, None, value));
        // Vectors of narrow numbers are written as a whole where a device has no memory of such.
        let whole = element.lanes() > 1 && element.scalar().is_some_and(Scalar::is_narrow);
        if !whole && self.percent(50) {
            let (path, ty) = self.way_into(&element);
            let value = self.expr(&ty, 2, false);
            body.push(Stmt::Assign(Place { root, path }, None, value));
        }
        let mut results: Vec<Var> = self.scope[first..].iter().map(|(var, _)| *var).collect();
        results.push(hash);
        results.extend(sum);
        self.outputs(&results, &mut body);
        self.program.body = body;
    }

    /// A way to some part of a type, and what is there.
    fn way_into(&mut self, ty: &Ty) -> (Vec<Step>, Ty) {
        let (mut path, mut ty) = (Vec::new(), ty.clone());
        while self.percent(70) {
            let step = match &ty {
                Ty::Scalar(_) => break,
                Ty::Vector(lanes, _) => Step::Member(self.below((*lanes).into())),
                Ty::Array(_, length) => {
                    let length = *length;
                    Step::Index(Box::new(self.index_below(length)))
                }
                Ty::Struct(index) => {
                    let fields = self.program.structs[*index].len();
                    Step::Member(self.below(fields))
                }
            };
            let Some(part) = self.program.part(&ty, &step) else { break };
            path.push(step);
            ty = part;
        }
        (path, ty)
    }

    /// The scalars that a value is made of.
    fn leaves(&self, value: Expr, into: &mut Vec<Expr>) {
        let parts = match &value.ty {
            Ty::Scalar(_) => return into.push(value),
            Ty::Vector(lanes, _) => usize::from(*lanes),
            Ty::Array(_, length) => *length as usize,
            Ty::Struct(index) => self.program.structs[*index].len(),
        };
        for part in 0..parts {
            let step = Step::Member(part);
            let Some(ty) = self.program.part(&value.ty, &step) else { continue };
            self.leaves(value.clone().part(step, ty), into);
        }
    }

    /// Writes variables to buffers, each scalar to an element of its own.
    fn outputs(&mut self, results: &[Var], body: &mut Block) {
        let (mut words, mut floats, mut doubles) = (Vec::new(), Vec::new(), Vec::new());
        for var in results {
            let mut leaves = Vec::new();
            self.leaves(Expr::var(*var, self.program.vars[*var].ty.clone()), &mut leaves);
            for leaf in leaves {
                let scalar = leaf.ty.scalar().unwrap_or(Scalar::U32);
                match scalar {
                    Scalar::F64 => doubles.push(leaf),
                    _ if scalar.is_float() => floats.push(leaf.convert(Scalar::F32)),
                    _ if scalar.bits() == 64 => {
                        let high = Expr::binary(BinaryOperator::ShiftRight, leaf.clone(), Expr::u32(32));
                        words.extend([leaf.convert(Scalar::U32), high.convert(Scalar::U32)]);
                    }
                    _ => words.push(leaf.convert(Scalar::U32)),
                }
            }
        }
        for (scalar, values) in [(Scalar::U32, words), (Scalar::F32, floats), (Scalar::F64, doubles)] {
            if values.is_empty() {
                continue;
            }
            let (count, all) = (values.len() as u32, self.program.invocations());
            let memory = self.buffer(Access::Write, Ty::Scalar(scalar), (count * all) as usize);
            let rows = self.percent(50);
            for (number, value) in values.into_iter().enumerate() {
                let own = Expr::new(Ty::INDEX, Kind::GlobalIndex);
                let number = Expr::index(number as u32);
                let index = if rows {
                    let row = Expr::binary(BinaryOperator::Multiply, own, Expr::index(count));
                    Expr::binary(BinaryOperator::Add, row, number)
                } else {
                    let column = Expr::binary(BinaryOperator::Multiply, number, Expr::index(all));
                    Expr::binary(BinaryOperator::Add, column, own)
                };
                let root = Root::Element(memory, Box::new(index));
                body.push(Stmt::Assign(Place { root, path: Vec::new() }, None, value));
            }
        }
    }

    /// Folds a variable into what the function gives.
    fn fold(&mut self, var: Var, body: &mut Block) {
        let mut leaves = Vec::new();
        let exact = self.program.vars[var].exact;
        self.leaves(Expr::var(var, self.program.vars[var].ty.clone()), &mut leaves);
        let hash = Place { root: Root::Var(self.hash), path: Vec::new() };
        for leaf in leaves {
            let scalar = leaf.ty.scalar().unwrap_or(Scalar::U32);
            if scalar.is_float() {
                let single = leaf.convert(Scalar::F32);
                match self.sum {
                    Some(sum) => body.push(self.added(sum, single)),
                    None if exact => {
                        let word = single.convert(Scalar::I32).convert(Scalar::U32);
                        body.push(Stmt::Assign(hash.clone(), Some(BinaryOperator::Xor), word));
                    }
                    None => {}
                }
                continue;
            }
            let word = if scalar.bits() == 64 {
                let high = Expr::binary(BinaryOperator::ShiftRight, leaf.clone(), Expr::u32(32));
                Expr::binary(BinaryOperator::Xor, leaf, high).convert(Scalar::U32)
            } else {
                leaf.convert(Scalar::U32)
            };
            let old = Expr::var(self.hash, Ty::U32);
            let moved = Expr::binary(BinaryOperator::Multiply, old, Expr::u32(0x0100_0193));
            body.push(Stmt::Assign(hash.clone(), None, Expr::binary(BinaryOperator::Add, moved, word)));
        }
    }

    /// `sum = clamp(sum * 0.5 + value, -64.0, 64.0);`
    fn added(&mut self, sum: Var, value: Expr) -> Stmt {
        let half = Expr::binary(BinaryOperator::Multiply, Expr::var(sum, Ty::F32), Expr::f32(0.5));
        let total = Expr::binary(BinaryOperator::Add, half, value);
        Stmt::Assign(Place { root: Root::Var(sum), path: Vec::new() }, None, float::clamped(total, 64.0))
    }

    /// An argument for a parameter, if there is one to be had.
    fn argument(&mut self, (param, mode): (Var, Mode), depth: u32, exact: bool) -> Option<Argument> {
        let ty = self.program.vars[param].ty.clone();
        Some(match mode {
            Mode::Value => Argument::Value(self.expr(&ty, depth, exact || self.program.vars[param].exact)),
            Mode::Slice => {
                let mut fitting = self.slices.clone();
                fitting.retain(|memory| *self.program.element(*memory) == ty);
                if fitting.is_empty() {
                    return None;
                }
                Argument::Slice(self.pick(&fitting))
            }
            Mode::Mutable => {
                let mut fitting = self.scope.clone();
                fitting.retain(|(var, mutable)| {
                    let variable = &self.program.vars[*var];
                    let float = ty.scalar().is_some_and(Scalar::is_float);
                    *mutable && variable.ty == ty && !(float && variable.exact)
                });
                if fitting.is_empty() {
                    return None;
                }
                Argument::Mutable(self.pick(&fitting).0)
            }
        })
    }
}
