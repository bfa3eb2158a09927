//! A run over a grid: what its workgroups share, functions while they run, and what is told of them.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::asynchronous::Copies;
use super::lanes::Lanes;
use super::memory::{Against, Memory, Now, Touch, who};
use super::report::{Access, Finding, Findings, Invocation, Kind, Memory as Named, MemoryKind, Printed, Same};
use super::shape::Shape;
use super::{Options, Program};
use crate::ir::{Builtin, CallArgument, Function, Handle, Local, Module, Root, Scalar, Span, Type};

/// Why a run ends before its time.
pub(super) enum Stop {
    /// There are as many findings as are wanted, or a loop does not end.
    Enough,
    /// The program holds what is none of what the verifier accepts.
    Broken(String),
}

pub(super) type Run<T> = Result<T, Stop>;

/// What a call gives: its result, and what became of what it was given by reference.
pub(super) type Called = (Vec<u64>, Vec<(Root, Vec<u64>)>);

/// A function while it runs. A value is a word for each lane, for one of its scalars after the other.
pub(super) struct Frame<'m> {
    pub(super) function: &'m Function,
    pub(super) locals: Vec<Vec<u64>>,
    /// Of a local that was declared without a value, which words were not written since; empty for others.
    pub(super) unwritten: Vec<Vec<bool>>,
    pub(super) arguments: Vec<Vec<u64>>,
    pub(super) result: Vec<u64>,
    pub(super) loops: Vec<Leaving>,
}

/// Lanes that left the body of a loop.
#[derive(Default)]
pub(super) struct Leaving {
    pub(super) broken: Vec<u32>,
    pub(super) continued: Vec<u32>,
}

/// What was released through an atomic.
#[derive(Default)]
pub(super) struct Released {
    pub(super) groups: BTreeSet<u32>,
    /// The stretch in which that was done last.
    pub(super) stretch: u32,
    /// Lanes that whoever acquires it in that stretch learns of.
    pub(super) lanes: BTreeSet<u32>,
}

/// A run over a grid.
pub(super) struct Machine<'m> {
    pub(super) program: &'m Program,
    pub(super) module: &'m Module,
    pub(super) options: &'m Options,
    pub(super) shapes: &'m [Shape],
    /// Invocations of a workgroup.
    pub(super) count: usize,
    pub(super) subgroup: usize,
    pub(super) groups: [u32; 3],
    pub(super) group_count: u32,
    /// The workgroup that runs, linear.
    pub(super) group: u32,
    /// What was asked for of the builtins, for this workgroup.
    pub(super) builtins: [Vec<u64>; Builtin::ALL.len()],
    pub(super) params: Vec<Vec<u64>>,
    pub(super) lengths: Vec<u64>,
    pub(super) extents: Vec<Vec<u64>>,
    pub(super) strides: Vec<Vec<u64>>,
    pub(super) bindings: Vec<Memory>,
    pub(super) workgroup: Vec<Memory>,
    pub(super) now: Now,
    /// The first stretch of each workgroup that ran.
    starts: Vec<(u32, u32)>,
    /// The innermost place in the source that is known.
    pub(super) here: u32,
    /// The number of the operation that moves a matrix just now, from 1; 0 of none.
    operation: u32,
    /// Operations that have moved matrices so far.
    operations: u32,
    pub(super) copies: Copies,
    pub(super) released: HashMap<(Option<u32>, usize, u64), Released>,
    /// Workgroups of which the one that runs has learned by an acquire.
    pub(super) learned: BTreeSet<u32>,
    /// Pairs of lanes of which the first has learned of the second in this stretch.
    pub(super) learned_lanes: BTreeSet<(u32, u32)>,
    pub(super) findings: Findings,
    pub(super) printed: Vec<Printed>,
    /// What was done so far, as [`super::Report::work`].
    pub(super) work: u64,
    pool: Vec<Vec<u64>>,
}

impl<'m> Machine<'m> {
    pub(super) fn new(program: &'m Program, options: &'m Options, groups: [u32; 3], subgroup: u32) -> Self {
        let size = program.verified.info.workgroup_size;
        Self {
            program,
            module: &program.module,
            options,
            shapes: &program.shapes,
            count: size.iter().product::<u32>().max(1) as usize,
            subgroup: subgroup.max(1) as usize,
            groups,
            group_count: groups.iter().fold(1, |all: u32, one| all.wrapping_mul(*one)),
            group: 0,
            builtins: std::array::from_fn(|_| Vec::new()),
            params: Vec::new(),
            lengths: Vec::new(),
            extents: Vec::new(),
            strides: Vec::new(),
            bindings: Vec::new(),
            workgroup: Vec::new(),
            now: Now { stretch: 0, first: 0 },
            starts: Vec::new(),
            here: 0,
            operation: 0,
            operations: 0,
            copies: Copies::default(),
            released: HashMap::new(),
            learned: BTreeSet::new(),
            learned_lanes: BTreeSet::new(),
            findings: Findings::new(options.most_findings.max(1)),
            printed: Vec::new(),
            work: 0,
            pool: Vec::new(),
        }
    }

    /// Runs one workgroup.
    pub(super) fn workgroup(&mut self, group: u32) -> Run<()> {
        self.group = group;
        self.builtins.iter_mut().for_each(Vec::clear);
        self.now.stretch += 1;
        self.now.first = self.now.stretch;
        self.starts.push((self.now.first, group));
        self.learned.clear();
        self.learned_lanes.clear();
        self.forget_copies();
        let lanes: Lanes = Rc::new((0..self.count as u32).collect());
        let mut frame = self.frame(&self.module.entry, Vec::new());
        self.block(&mut frame, &self.module.entry.body, lanes)?;
        self.close(frame);
        Ok(())
    }

    /// A vector of so many words, which are zero.
    pub(super) fn take(&mut self, words: usize) -> Vec<u64> {
        let mut vector = self.pool.pop().unwrap_or_default();
        vector.clear();
        vector.resize(words, 0);
        vector
    }

    /// A copy of words.
    pub(super) fn copy(&mut self, words: &[u64]) -> Vec<u64> {
        let mut vector = self.pool.pop().unwrap_or_default();
        vector.clear();
        vector.extend_from_slice(words);
        vector
    }

    /// Gives a vector back.
    pub(super) fn give(&mut self, vector: Vec<u64>) {
        if vector.capacity() > 0 {
            self.pool.push(vector);
        }
    }

    fn frame(&mut self, function: &'m Function, arguments: Vec<Vec<u64>>) -> Frame<'m> {
        let locals = function.locals.len();
        let result = function.result.map_or(0, |ty| self.shapes[ty.index()].count());
        let result = self.take(result * self.count);
        Frame {
            function,
            locals: vec![Vec::new(); locals],
            unwritten: vec![Vec::new(); locals],
            arguments,
            result,
            loops: Vec::new(),
        }
    }

    fn close(&mut self, frame: Frame<'m>) {
        for words in frame.locals.into_iter().chain(frame.arguments) {
            self.give(words);
        }
    }

    pub(super) fn shape(&self, ty: Handle<Type>) -> &'m Shape {
        &self.shapes[ty.index()]
    }

    /// The scalar of a scalar or vector type, and of an enum.
    pub(super) fn scalar(&self, ty: Handle<Type>) -> Scalar {
        self.shape(ty).scalars.first().copied().unwrap_or(Scalar::U32)
    }

    /// The place to tell of for something written there.
    pub(super) const fn at(&self, span: Span) -> u32 {
        if span.0 == 0 { self.here } else { span.0 }
    }

    pub(super) fn declare(&mut self, frame: &mut Frame<'m>, local: Handle<Local>, words: Vec<u64>) {
        let old = std::mem::replace(&mut frame.locals[local.index()], words);
        frame.unwritten[local.index()] = Vec::new();
        self.give(old);
    }

    /// Runs a function; gives its result, and what became of what it was given by reference.
    pub(super) fn call(
        &mut self,
        frame: &Frame<'m>,
        function: Handle<Function>,
        arguments: &'m [CallArgument],
        lanes: &Lanes,
        span: Span,
    ) -> Run<Called> {
        let mut given = Vec::with_capacity(arguments.len());
        for argument in arguments {
            given.push(match argument {
                CallArgument::Value(value) => self.value(frame, *value, lanes)?,
                CallArgument::Reference(Root::Local(local)) => self.copy(&frame.locals[local.index()]),
                CallArgument::Reference(Root::Argument(index)) => self.copy(&frame.arguments[*index as usize]),
                CallArgument::Reference(_) => return Err(Stop::Broken("memory is passed by reference".to_owned())),
            });
        }
        let callee = &self.module.functions[function];
        let (outer, operation) = (self.here, self.operation);
        self.here = self.at(span);
        if self.program.moves_matrix[function.index()] {
            self.operations = (self.operations + 1) % who::OPERATIONS;
            self.operation = self.operations + 1;
        }
        let mut inner = self.frame(callee, given);
        self.block(&mut inner, &callee.body, lanes.clone())?;
        (self.here, self.operation) = (outer, operation);
        let mut changed = Vec::new();
        for (index, argument) in arguments.iter().enumerate() {
            if let CallArgument::Reference(root) = argument {
                changed.push((*root, std::mem::take(&mut inner.arguments[index])));
            }
        }
        let result = std::mem::take(&mut inner.result);
        self.close(inner);
        Ok((result, changed))
    }

    /// Notes a finding; the run ends with the last that is wanted.
    pub(super) fn found(&mut self, same: Same, finding: impl FnOnce() -> Finding) -> Run<()> {
        if self.findings.add(same, finding) { Err(Stop::Enough) } else { Ok(()) }
    }

    /// Who accesses memory where that lane does.
    pub(super) const fn who(&self, lane: u32) -> u32 {
        who::of(lane, self.operation)
    }

    /// The invocation of a lane of the workgroup that runs.
    pub(super) fn invocation(&self, lane: u32) -> Invocation {
        self.invocation_of(lane, self.group)
    }

    fn invocation_of(&self, lane: u32, group: u32) -> Invocation {
        let split = |index: u32, [x, y, _]: [u32; 3]| {
            let (x, y) = (x.max(1), y.max(1));
            [index % x, index / x % y, index / x / y]
        };
        Invocation {
            workgroup: split(group, self.groups),
            local: split(lane, self.program.verified.info.workgroup_size),
        }
    }

    /// The workgroup in whose run a stretch was.
    fn group_of(&self, stretch: u32) -> u32 {
        let after = self.starts.partition_point(|(start, _)| *start <= stretch);
        after.checked_sub(1).and_then(|index| self.starts.get(index)).map_or(self.group, |(_, group)| *group)
    }

    /// A variable by its author's name.
    pub(super) fn named(&self, frame: &Frame<'m>, root: Root) -> Named {
        let (kind, name) = match root {
            Root::Binding(binding) => (MemoryKind::Buffer, &self.module.bindings[binding as usize].name),
            Root::Workgroup(variable) => (MemoryKind::Workgroup, &self.module.workgroup[variable].name),
            Root::Local(local) => (MemoryKind::Private, &frame.function.locals[local].name),
            Root::Argument(index) => (MemoryKind::Private, &frame.function.arguments[index as usize].name),
        };
        Named { kind, name: name.clone() }
    }

    /// A number for a variable, by which findings are told apart.
    pub(super) fn number(root: Root) -> u32 {
        match root {
            Root::Binding(binding) => 4 * binding,
            Root::Workgroup(variable) => 4 * variable.index() as u32 + 1,
            Root::Local(local) => 4 * local.index() as u32 + 2,
            Root::Argument(index) => 4 * index + 3,
        }
    }

    pub(super) fn access(&self, lane: u32, span: u32, writes: bool) -> Access {
        Access { invocation: self.invocation(lane), at: self.module.locations.describe(Span(span)), writes }
    }

    /// Tells of what stands against an access, unless an order of atomics explains it.
    pub(super) fn conflict(
        &mut self,
        frame: &Frame<'m>,
        root: Root,
        element: u64,
        (lane, span, writes): (u32, u32, bool),
        against: Against,
    ) -> Run<()> {
        let (touch, wrote, kind) = match against {
            Against::Race(touch, wrote) => (touch, wrote, Kind::Race),
            Against::Copy(touch, wrote) => (touch, wrote, Kind::CopyUnderWay),
        };
        let earlier_group = if kind == Kind::CopyUnderWay { self.group } else { self.group_of(touch.stretch) };
        let explained = if earlier_group == self.group {
            kind == Kind::Race && self.learned_lanes.contains(&(lane, who::lane(touch.lane)))
        } else {
            self.learned.contains(&earlier_group)
        };
        if explained || !self.options.races {
            return Ok(());
        }
        let same = Same { kind, span, other: touch.span, memory: Self::number(root) };
        let memory = self.named(frame, root);
        let second = self.access(lane, span, writes);
        let first = self.earlier(touch, earlier_group, wrote);
        self.found(same, || match against {
            Against::Race(..) => Finding::Race { memory, element, first, second },
            Against::Copy(..) => Finding::CopyUnderWay { memory, element, access: second, copy: first },
        })
    }

    fn earlier(&self, touch: Touch, group: u32, writes: bool) -> Access {
        Access {
            invocation: self.invocation_of(who::lane(touch.lane), group),
            at: self.module.locations.describe(Span(touch.span)),
            writes,
        }
    }
}
