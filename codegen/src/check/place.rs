//! Places: which scalars of a variable an access means, and reading and writing them.

use super::lanes::Lanes;
use super::machine::{Frame, Machine, Run, Stop};
use super::memory::Against;
use super::report::{Finding, Kind, Same};
use crate::ir::{Expression, Handle, Place, Projection, Root, Type};

/// The first scalar of a place that is past the end of something on its way.
const OUTSIDE: u64 = u64::MAX;

/// Which scalars a place means: the first for each lane, and how many.
struct Spot {
    first: Vec<u64>,
    count: usize,
}

/// What is wrong with an access of a scalar.
enum Wrong {
    Unwritten,
    Against(Against),
}

/// What an index goes into.
struct Into {
    length: u64,
    /// Scalars of an element.
    each: usize,
}

impl<'m> Machine<'m> {
    /// The type and the extent of what an index at that point of a path goes into.
    fn inside(&self, ty: Handle<Type>) -> Run<(Into, Handle<Type>)> {
        match &self.module.types[ty] {
            Type::Array { element, length } => {
                let into =
                    Into { length: u64::from(length.literal().unwrap_or(0)), each: self.shape(*element).count() };
                Ok((into, *element))
            }
            Type::Vector { lanes, .. } => Ok((Into { length: u64::from(*lanes), each: 1 }, ty)),
            _ => Err(Stop::Broken("an index into what has no elements".to_owned())),
        }
    }

    fn locate(&mut self, frame: &Frame<'m>, place: &'m Place, lanes: &Lanes, (span, writes): (u32, bool)) -> Run<Spot> {
        let mut first = self.take(self.count);
        let mut path = place.path.iter();
        let (mut ty, mut count) = match place.root {
            Root::Local(local) => {
                let ty = frame.function.locals[local].ty;
                (ty, self.shape(ty).count())
            }
            Root::Argument(index) => {
                let ty = frame.function.arguments[index as usize].ty;
                (ty, self.shape(ty).count())
            }
            Root::Binding(_) | Root::Workgroup(_) => {
                let (ty, into) = match place.root {
                    Root::Binding(binding) => {
                        let memory = &self.bindings[binding as usize];
                        let ty = self.module.bindings[binding as usize].element;
                        (ty, Into { length: memory.length, each: memory.each })
                    }
                    Root::Workgroup(variable) => {
                        let memory = &self.workgroup[variable.index()];
                        let ty = self.module.workgroup[variable].element;
                        (ty, Into { length: memory.length, each: memory.each })
                    }
                    _ => return Err(Stop::Broken("a place in no memory".to_owned())),
                };
                let Some(step) = path.next() else {
                    return Err(Stop::Broken("memory is accessed as a whole".to_owned()));
                };
                let count = self.step(frame, place.root, &into, step, &mut first, lanes, (span, writes))?;
                (ty, count)
            }
        };
        for step in path {
            if let Projection::Member(number) = step {
                let number = *number as usize;
                let (before, inner) = self.member(ty, number)?;
                lanes.iter().for_each(|lane| {
                    let at = &mut first[*lane as usize];
                    *at = if *at == OUTSIDE { OUTSIDE } else { *at + before as u64 };
                });
                (ty, count) = inner.map_or((ty, 1), |inner| (inner, self.shape(inner).count()));
                continue;
            }
            let (into, element) = self.inside(ty)?;
            count = self.step(frame, place.root, &into, step, &mut first, lanes, (span, writes))?;
            ty = element;
        }
        Ok(Spot { first, count })
    }

    /// The scalars before a part that is known by number, and the part's type, which of a vector's lanes is its scalar.
    pub(super) fn member(&self, ty: Handle<Type>, number: usize) -> Run<(usize, Option<Handle<Type>>)> {
        match &self.module.types[ty] {
            Type::Struct(handle) => {
                let fields = &self.module.structs[*handle].fields;
                let Some((_, inner)) = fields.get(number) else {
                    return Err(Stop::Broken("a field that the struct lacks".to_owned()));
                };
                let before = fields[..number].iter().map(|(_, field)| self.shape(*field).count()).sum();
                Ok((before, Some(*inner)))
            }
            Type::Array { element, .. } => Ok((number * self.shape(*element).count(), Some(*element))),
            Type::Vector { .. } => Ok((number, None)),
            _ => Err(Stop::Broken("a part of what has none".to_owned())),
        }
    }

    /// Goes into an element; gives how many scalars it has.
    #[expect(clippy::too_many_arguments, reason = "they are what an access is")]
    fn step(
        &mut self,
        frame: &Frame<'m>,
        root: Root,
        into: &Into,
        step: &'m Projection,
        first: &mut [u64],
        lanes: &Lanes,
        (span, writes): (u32, bool),
    ) -> Run<usize> {
        let (index, wide) = match step {
            Projection::Index(index) => (*index, 1),
            Projection::Vector { index, lanes } => (*index, u64::from(*lanes)),
            Projection::Member(_) => return Err(Stop::Broken("a part where an element is wanted".to_owned())),
        };
        let words = self.value(frame, index, lanes)?;
        let mut outside = None;
        for lane in lanes.iter() {
            let (at, index) = (&mut first[*lane as usize], words[*lane as usize]);
            let end = index.checked_add(1).and_then(|end| end.checked_mul(wide));
            if end.is_none_or(|end| end > into.length) {
                outside.get_or_insert(*lane);
                *at = OUTSIDE;
            } else if *at != OUTSIDE {
                *at += index * wide * into.each as u64;
            }
        }
        if outside.is_some() {
            for lane in lanes.iter() {
                let index = words[*lane as usize];
                let last = index.saturating_add(1).saturating_mul(wide) - 1;
                if last >= into.length {
                    self.past_end(frame, root, (last, into.length), *lane, (span, writes))?;
                }
            }
        }
        self.give(words);
        Ok(into.each * wide as usize)
    }

    /// Tells of an index past the end.
    pub(super) fn past_end(
        &mut self,
        frame: &Frame<'m>,
        root: Root,
        (index, length): (u64, u64),
        lane: u32,
        (span, writes): (u32, bool),
    ) -> Run<()> {
        let wanted = if writes { self.options.writes_past_end } else { self.options.reads_past_end };
        if !wanted {
            return Ok(());
        }
        let same = Same { kind: Kind::PastEnd { writes }, span, other: 0, memory: Self::number(root) };
        let (memory, access) = (self.named(frame, root), self.access(lane, span, writes));
        self.found(same, || Finding::PastEnd { memory, index, length, access })
    }

    /// What a place holds.
    pub(super) fn load(&mut self, frame: &Frame<'m>, place: &'m Place, lanes: &Lanes, span: u32) -> Run<Vec<u64>> {
        let n = self.count;
        if let (Root::Local(_) | Root::Argument(_), true) = (place.root, place.path.is_empty()) {
            let words = self.variable(frame, place.root)?;
            let words = self.copy(words);
            self.unwritten(
                frame,
                place.root,
                |unwritten, lane| (0..unwritten.len() / n).find(|part| unwritten[part * n + lane]),
                lanes,
                span,
            )?;
            return Ok(words);
        }
        let Spot { first, count } = self.locate(frame, place, lanes, (span, false))?;
        let mut out = self.take(count * n);
        let mut wrong = Vec::new();
        let (now, uninitialised, operation) = (self.now, self.options.uninitialised, self.who(0));
        match place.root {
            Root::Local(_) | Root::Argument(_) => {
                let words = self.variable(frame, place.root)?;
                for lane in lanes.iter().map(|lane| *lane as usize) {
                    if first[lane] != OUTSIDE {
                        for part in 0..count {
                            out[part * n + lane] = words[(first[lane] as usize + part) * n + lane];
                        }
                    }
                }
                self.unwritten(
                    frame,
                    place.root,
                    |unwritten, lane| {
                        let at = first[lane] as usize;
                        (first[lane] != OUTSIDE).then(|| (at..at + count).find(|part| unwritten[part * n + lane]))?
                    },
                    lanes,
                    span,
                )?;
            }
            root @ (Root::Binding(_) | Root::Workgroup(_)) => {
                let memory = match root {
                    Root::Workgroup(variable) => &mut self.workgroup[variable.index()],
                    _ => &mut self.bindings[Self::number(root) as usize / 4],
                };
                for lane in lanes.iter().copied() {
                    let at = first[lane as usize];
                    if at == OUTSIDE {
                        continue;
                    }
                    for part in 0..count {
                        let at = at as usize + part;
                        out[part * n + lane as usize] = memory.words[at];
                        let Some(cell) = memory.cells.get_mut(at) else { continue };
                        let unwritten = !memory.shared && !cell.is_written(now);
                        if unwritten && uninitialised {
                            wrong.push((lane, at, Wrong::Unwritten));
                        }
                        // What nobody wrote yet may be written beside this read.
                        if !memory.atomic
                            && let Some(against) = cell.read(now, operation | lane, span, memory.shared)
                        {
                            wrong.push((lane, at, Wrong::Against(against)));
                        }
                    }
                }
                let each = memory.each.max(1);
                self.tell(frame, root, wrong, each, (span, false))?;
            }
        }
        self.give(first);
        Ok(out)
    }

    fn tell(
        &mut self,
        frame: &Frame<'m>,
        root: Root,
        wrong: Vec<(u32, usize, Wrong)>,
        each: usize,
        (span, writes): (u32, bool),
    ) -> Run<()> {
        for (lane, at, wrong) in wrong {
            let element = (at / each) as u64;
            match wrong {
                Wrong::Against(against) => self.conflict(frame, root, element, (lane, span, writes), against)?,
                Wrong::Unwritten => self.uninitialised(frame, root, element, lane, span)?,
            }
        }
        Ok(())
    }

    pub(super) fn uninitialised(
        &mut self,
        frame: &Frame<'m>,
        root: Root,
        element: u64,
        lane: u32,
        span: u32,
    ) -> Run<()> {
        let same = Same { kind: Kind::Uninitialised, span, other: 0, memory: Self::number(root) };
        let (memory, access) = (self.named(frame, root), self.access(lane, span, false));
        self.found(same, || Finding::Uninitialised { memory, element, access })
    }

    fn variable<'f>(&self, frame: &'f Frame<'m>, root: Root) -> Run<&'f [u64]> {
        match root {
            Root::Local(local) => Ok(&frame.locals[local.index()]),
            Root::Argument(index) => Ok(&frame.arguments[index as usize]),
            _ => Err(Stop::Broken("memory where a variable is wanted".to_owned())),
        }
    }

    /// Tells of lanes that read what a local was never given.
    fn unwritten(
        &mut self,
        frame: &Frame<'m>,
        root: Root,
        first: impl Fn(&[bool], usize) -> Option<usize>,
        lanes: &Lanes,
        span: u32,
    ) -> Run<()> {
        let Root::Local(local) = root else { return Ok(()) };
        let unwritten = &frame.unwritten[local.index()];
        if unwritten.is_empty() {
            return Ok(());
        }
        for lane in lanes.iter() {
            if let Some(part) = first(unwritten, *lane as usize) {
                self.uninitialised(frame, root, part as u64, *lane, span)?;
            }
        }
        Ok(())
    }

    /// Writes to a place.
    pub(super) fn store(
        &mut self,
        frame: &mut Frame<'m>,
        place: &'m Place,
        words: &[u64],
        lanes: &Lanes,
        span: u32,
    ) -> Run<()> {
        let n = self.count;
        let Spot { first, count } = self.locate(frame, place, lanes, (span, true))?;
        let inside = |lane: &&u32| first[**lane as usize] != OUTSIDE;
        match place.root {
            root @ (Root::Local(_) | Root::Argument(_)) => {
                let to = match root {
                    Root::Local(local) => &mut frame.locals[local.index()],
                    _ => &mut frame.arguments[Self::number(root) as usize / 4],
                };
                for lane in lanes.iter().filter(inside).map(|lane| *lane as usize) {
                    for part in 0..count {
                        to[(first[lane] as usize + part) * n + lane] = words[part * n + lane];
                    }
                }
                if let Root::Local(local) = root
                    && let unwritten = &mut frame.unwritten[local.index()]
                    && !unwritten.is_empty()
                {
                    for lane in lanes.iter().filter(inside).map(|lane| *lane as usize) {
                        (0..count).for_each(|part| unwritten[(first[lane] as usize + part) * n + lane] = false);
                    }
                }
            }
            root @ (Root::Binding(_) | Root::Workgroup(_)) => {
                let (now, operation) = (self.now, self.who(0));
                let mut wrong = Vec::new();
                let copied = match root {
                    Root::Binding(binding) => Some(binding).filter(|binding| self.copies.reads(*binding)),
                    _ => None,
                };
                let memory = match root {
                    Root::Workgroup(variable) => &mut self.workgroup[variable.index()],
                    _ => &mut self.bindings[Self::number(root) as usize / 4],
                };
                for lane in lanes.iter().filter(inside).copied() {
                    for part in 0..count {
                        let at = first[lane as usize] as usize + part;
                        memory.words[at] = words[part * n + lane as usize];
                        let reader = copied.and_then(|binding| self.copies.reader(binding, at));
                        // Whatever a copy reads, the write is noted.
                        if let Some(cell) = memory.cells.get_mut(at)
                            && let Some(against) = reader.or(cell.write(now, operation | lane, span, memory.shared))
                        {
                            wrong.push((lane, at, Wrong::Against(against)));
                        }
                    }
                }
                let each = memory.each.max(1);
                self.tell(frame, root, wrong, each, (span, true))?;
            }
        }
        self.give(first);
        Ok(())
    }

    /// The first scalar of an element for each lane, and how many scalars it has, for what treats memory in a way of its own; `None` past an end.
    pub(super) fn element(
        &mut self,
        frame: &Frame<'m>,
        place: &'m Place,
        lanes: &Lanes,
        access: (u32, bool),
    ) -> Run<(Vec<Option<usize>>, usize)> {
        let Spot { first, count } = self.locate(frame, place, lanes, access)?;
        let elements = first.iter().map(|first| (*first != OUTSIDE).then_some(*first as usize)).collect();
        self.give(first);
        Ok((elements, count))
    }

    /// The index of a place that is an element of memory.
    pub(super) fn index_of(place: &Place) -> Run<Handle<Expression>> {
        match place.path.as_slice() {
            [Projection::Index(index)] => Ok(*index),
            _ => Err(Stop::Broken("a copy of something else than elements".to_owned())),
        }
    }
}
