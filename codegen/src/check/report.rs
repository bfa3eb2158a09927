//! What a checked run finds, as data and in words.

use std::collections::HashMap;
use std::fmt;

/// An invocation of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The position of its workgroup in the grid.
    pub workgroup: [u32; 3],
    /// Its position in the workgroup.
    pub local: [u32; 3],
}

/// Where something was written: `file:line:column`, or the file alone for code that nobody wrote.
pub type Location = String;

/// What kind of memory a name is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// A slice or view of the kernel's signature.
    Buffer,
    /// Workgroup memory.
    Workgroup,
    /// A variable of an invocation.
    Private,
}

/// A variable or buffer, by its author's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What it is.
    pub kind: MemoryKind,
    /// The author's name for it.
    pub name: String,
}

/// One of the two accesses that race.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Who.
    pub invocation: Invocation,
    /// Where it was written.
    pub at: Location,
    /// Whether it writes.
    pub writes: bool,
}

/// Something that a kernel did and should not have done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// Two invocations accessed the same element, one of them to write, and nothing orders the one before the other.
    Race {
        /// In which memory.
        memory: Memory,
        /// Which element.
        element: u64,
        /// The access that ran first here.
        first: Access,
        /// The other.
        second: Access,
    },
    /// An access by an index past the end: a read gave zero, or a write was dropped.
    PastEnd {
        /// Of which memory.
        memory: Memory,
        /// The index.
        index: u64,
        /// How many elements there are.
        length: u64,
        /// Who, and where.
        access: Access,
    },
    /// A read of what was never written.
    Uninitialised {
        /// Of which memory.
        memory: Memory,
        /// Which element.
        element: u64,
        /// Who, and where.
        access: Access,
    },
    /// An access of what an asynchronous copy was still to write, or a write to what one was still to read, which nobody had waited for.
    CopyUnderWay {
        /// Of which memory.
        memory: Memory,
        /// Which element.
        element: u64,
        /// Who, and where.
        access: Access,
        /// Whose copy it is, where it was begun, and whether it is to write there.
        copy: Access,
    },
    /// A barrier or an operation of subgroups that some invocations of a workgroup got to and others did not.
    Divergent {
        /// What: `barrier`, or the operation's name.
        operation: String,
        /// How many got there.
        arrived: u32,
        /// How many there are.
        of: u32,
        /// One that did not.
        missing: Invocation,
        /// Where.
        at: Location,
    },
    /// An integer operation whose result has more bits than its type.
    Overflow {
        /// The operation, with its operands.
        operation: String,
        /// The type.
        ty: &'static str,
        /// Who.
        invocation: Invocation,
        /// Where.
        at: Location,
    },
    /// An integer divided by zero.
    DivisionByZero {
        /// The operation, with its operands.
        operation: String,
        /// Who.
        invocation: Invocation,
        /// Where.
        at: Location,
    },
    /// An operation on numbers that gave none.
    NotANumber {
        /// The operation, with its operands.
        operation: String,
        /// Who.
        invocation: Invocation,
        /// Where.
        at: Location,
    },
    /// What the kernel asserts does not hold.
    Assertion {
        /// The message.
        message: String,
        /// Who.
        invocation: Invocation,
        /// Where.
        at: Location,
    },
    /// A loop that was run so often that it was given up. Nothing after it was run.
    Endless {
        /// How often.
        rounds: u64,
        /// An invocation that was still in it.
        invocation: Invocation,
        /// Where.
        at: Location,
    },
}

/// A finding with how often the same thing happened at the same place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The first time.
    pub finding: Finding,
    /// How often, the first time included.
    pub times: u64,
}

/// A line that an invocation printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    /// The line.
    pub line: String,
    /// Who.
    pub invocation: Invocation,
    /// Where.
    pub at: Location,
}

/// What one checked run of a kernel found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The kernel's instance.
    pub kernel: String,
    /// What was found, in the order of the first times.
    pub findings: Vec<Found>,
    /// The lines that the kernel printed, by workgroups.
    pub printed: Vec<Printed>,
    /// Whether the run was given up, because there were too many findings or a loop did not end.
    pub stopped: bool,
    /// How much was done: for every invocation of a workgroup a word for each scalar of an expression, one for each statement and each round of a loop, and one for an element that a copy moves. It is the same on every machine; a word takes 1 to 2 ns where words are added and multiplied, and functions take longer.
    pub work: u64,
}

impl Report {
    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.findings.len() {
            0 => write!(f, "kernel `{}`: nothing found", self.kernel)?,
            1 => write!(f, "kernel `{}`: 1 finding", self.kernel)?,
            count => write!(f, "kernel `{}`: {count} findings", self.kernel)?,
        }
        for Found { finding, times } in &self.findings {
            write!(f, "\n  {finding}")?;
            if *times > 1 {
                write!(f, " ({times} times)")?;
            }
        }
        if self.stopped {
            write!(f, "\n  the run was given up here")?;
        }
        for Printed { line, invocation, at } in &self.printed {
            write!(f, "\n  {at}: {invocation} prints: {line}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workgroup, local } = self;
        write!(f, "invocation {} of workgroup {}", axes(*local), axes(*workgroup))
    }
}

/// A position, without the axes along which nothing lies.
fn axes([x, y, z]: [u32; 3]) -> String {
    match (y, z) {
        (0, 0) => x.to_string(),
        _ => format!("({x}, {y}, {z})"),
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            MemoryKind::Buffer => "buffer",
            MemoryKind::Workgroup => "workgroup memory",
            MemoryKind::Private => "variable",
        };
        write!(f, "{kind} `{}`", self.name)
    }
}

impl Access {
    const fn verb(&self) -> &'static str {
        if self.writes { "writes" } else { "reads" }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Race { memory, element, first, second } => write!(
                f,
                "{}: race on element {element} of {memory}: {} {} it, and {} {} it at {}, with nothing between that orders the two",
                second.at,
                second.invocation,
                second.verb(),
                first.invocation,
                first.verb(),
                first.at,
            ),
            Self::PastEnd { memory, index, length, access } => write!(
                f,
                "{}: {} {} element {index} of {memory}, which has {length}: {}",
                access.at,
                access.invocation,
                access.verb(),
                if access.writes { "the write is dropped" } else { "the value is zero" },
            ),
            Self::Uninitialised { memory, element, access } => write!(
                f,
                "{}: {} reads element {element} of {memory}, which nobody has written before",
                access.at, access.invocation
            ),
            Self::CopyUnderWay { memory, element, access, copy } => write!(
                f,
                "{}: {} {} element {element} of {memory} while a copy {} it is under way, which {} began at {} and has not waited for",
                access.at,
                access.invocation,
                access.verb(),
                if copy.writes { "to" } else { "from" },
                copy.invocation,
                copy.at,
            ),
            Self::Divergent { operation, arrived, of, missing, at } => {
                write!(f, "{at}: {arrived} of {of} invocations get to this `{operation}`; {missing} does not")
            }
            Self::Overflow { operation, ty, invocation, at } => {
                write!(f, "{at}: {operation} does not fit into {ty}, in {invocation}")
            }
            Self::DivisionByZero { operation, invocation, at } => {
                write!(f, "{at}: {operation} divides by zero, in {invocation}: the result is 0")
            }
            Self::NotANumber { operation, invocation, at } => {
                write!(f, "{at}: {operation} is not a number, in {invocation}")
            }
            Self::Assertion { message, invocation, at } => write!(f, "{at}: {message}, in {invocation}"),
            Self::Endless { rounds, invocation, at } => {
                write!(f, "{at}: this loop has not ended after {rounds} rounds, in {invocation}")
            }
        }
    }
}

/// What is wrong with numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Wrong {
    DivisionByZero,
    Overflow,
    NotANumber,
}

/// What a finding is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Race,
    CopyUnderWay,
    PastEnd { writes: bool },
    Uninitialised,
    Divergent,
    Number(Wrong),
    Assertion,
    Endless,
}

/// What makes two findings the same: the kind, and the places where they were written.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Same {
    pub(super) kind: Kind,
    pub(super) span: u32,
    pub(super) other: u32,
    pub(super) memory: u32,
}

/// Findings while a run goes on.
pub(super) struct Findings {
    known: HashMap<Same, usize>,
    pub(super) found: Vec<Found>,
    most: usize,
}

impl Findings {
    pub(super) fn new(most: usize) -> Self {
        Self { known: HashMap::new(), found: Vec::new(), most }
    }

    /// Counts a finding, which is made if it is the first of its like; gives whether there are as many now as are wanted.
    pub(super) fn add(&mut self, same: Same, finding: impl FnOnce() -> Finding) -> bool {
        match self.known.get(&same) {
            Some(known) => self.found[*known].times += 1,
            None => {
                self.known.insert(same, self.found.len());
                self.found.push(Found { finding: finding(), times: 1 });
            }
        }
        self.found.len() >= self.most
    }
}
