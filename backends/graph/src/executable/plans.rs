//! Plans for given values of symbols, beside the one that serves them all.
//!
//! An executable runs at all extents, with kernels chosen and memory planned for the largest. A plan for given values is an executable of the same graph in which these values stand for their symbols, so that kernels are chosen for
//! them. Weights are the model's and held once; states are the same memory, so that a run of one plan finds what the run of another left. Activations are each plan's own.

use std::sync::{Arc, Mutex};

use super::{Executable, Outputs};
use crate::data::Data;
use crate::dim::{Extents, Symbol};
use crate::error::{Error, Result, names};
use crate::types::TensorType;

/// An executable with plans of its own for the values of some symbols that came last, up to a number of plans.
///
/// ```
/// use trefoil_graph::{Dim, ElementType, Executable, Extents, Graph, Model, Options, Plans, Symbol};
/// let rows = Symbol::new("rows", 1, 512)?;
/// let mut g = Graph::new();
/// let x = g.input("x", ElementType::F32, [Dim::from(&rows), Dim::from(2)])?;
/// let y = g.neg(x)?;
/// g.output("y", y)?;
/// # let device = trefoil_cpu::open(&Default::default())?;
/// let general = Executable::compile(&g, &Model::new(), &device, &Options::default())?;
/// let plans = Plans::new(general, &[&rows], 8);
/// let extents = Extents::with([(&rows, 3)])?;
/// // The first run with three rows makes a plan for three, which the others use.
/// for _ in 0..2 {
///     let outputs = plans.run(&[("x", (&[1f32; 6]).into())], &extents)?;
///     assert_eq!(outputs.get::<f32>("y")?, [-1.0; 6]);
/// }
/// let statistics = plans.statistics()?;
/// assert_eq!((statistics.made, statistics.found, statistics.kept), (1, 1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Plans {
    general: Executable,
    symbols: Vec<Symbol>,
    most: usize,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The values that a plan is for, and the plan; those that were used last come last.
    plans: Vec<(Extents, Arc<Executable>)>,
    made: u64,
    found: u64,
}

/// What became of plans so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlansStatistics {
    /// Plans that were made.
    pub made: u64,
    /// Calls that found theirs.
    pub found: u64,
    /// Plans that are kept now.
    pub kept: usize,
}

impl Executable {
    /// A plan of the same graph for given values of some of its symbols; the others stay as they are. It shares the model's weights, and the states: what a run of either leaves in them, the next run of either finds. Its runs take extents with the same values, and ids of this executable's
    /// inputs and outputs. A seed that is not given runs on over both.
    ///
    /// # Errors
    /// As [`Executable::compile`]; or this is a plan for another value of a symbol, or the graph lacks one.
    pub fn specialise(&self, extents: &Extents) -> Result<Self> {
        let parts = &self.parts;
        let mut values = self.bindings().clone();
        for (symbol, expected) in self.bindings().iter() {
            if let Some(given) = extents.get(symbol).filter(|given| *given != expected) {
                return Err(Error::Bound { symbol: symbol.name().to_owned(), given: given.to_string(), expected });
            }
        }
        self.expect_symbols(extents.iter().map(|(symbol, _)| symbol))?;
        values.extend(extents);
        Self::make(parts.graph.bound(&values), &self.model, &self.device, &parts.options, Some(self))
    }

    /// The values for which the plan was made; none in an executable that serves all.
    pub fn bindings(&self) -> &Extents {
        self.parts.graph.bindings()
    }

    /// The values of the symbols by which these inputs have these shapes, for programs that know their tensors' shapes and not the graph's symbols: those symbols that are an extent of an input as they stand, and
    /// those for whose values the plan was made.
    ///
    /// # Errors
    /// An input is unknown or of another rank, an extent is not what the graph says, two extents give a symbol two values, or a value is outside of its symbol's bounds.
    pub fn extents_of(&self, shapes: &[(&str, &[usize])]) -> Result<Extents> {
        let wrong = |name: &str, shape: &[usize], ty: &TensorType| Error::Shape {
            what: "input",
            name: name.to_owned(),
            given: format!("{}{shape:?}", ty.element),
            expected: ty.to_string(),
        };
        let mut extents = self.bindings().clone();
        for (name, shape) in shapes {
            let (_, ty, _) = self.input_at(self.input_index((*name).into())?);
            if shape.len() != ty.rank() {
                return Err(wrong(name, shape, ty));
            }
            for (extent, given) in ty.shape.iter().zip(*shape) {
                let given = i64::try_from(*given).map_err(|_| wrong(name, shape, ty))?;
                if let Some(symbol) = extent.symbol() {
                    if extents.get(symbol).is_some_and(|known| known != given) {
                        return Err(wrong(name, shape, ty));
                    }
                    extents.set(symbol, given)?;
                }
            }
        }
        // What is computed from symbols must come out as given.
        for (name, shape) in shapes {
            let (_, ty, _) = self.input_at(self.input_index((*name).into())?);
            for (extent, given) in ty.shape.iter().zip(*shape) {
                let expected = extent.eval(&extents)?;
                if i64::try_from(*given) != Ok(expected) {
                    return Err(wrong(name, shape, ty));
                }
            }
        }
        Ok(extents)
    }

    /// The symbols whose values its runs look up. Programs that keep one set of values for several executables give each run what [`Extents::only`] takes of these.
    pub fn symbols(&self) -> impl Iterator<Item = &Symbol> {
        let bound = self.bindings().iter().map(|(symbol, _)| symbol);
        bound.chain(self.parts.symbols.iter().filter(move |symbol| self.bindings().get(symbol).is_none()))
    }

    /// Whether a symbol is one of the graph's; one of one value is that number wherever it stands.
    fn has(&self, symbol: &Symbol) -> bool {
        let (least, most) = symbol.bounds();
        least == most || self.parts.known.contains(symbol)
    }

    /// Checks that symbols are the graph's: a value of another, such as of one whose name is mistyped, would do nothing.
    fn expect_symbols<'s>(&self, symbols: impl IntoIterator<Item = &'s Symbol>) -> Result<()> {
        let Some(stranger) = symbols.into_iter().find(|symbol| !self.has(symbol)) else { return Ok(()) };
        let described = |symbol: &Symbol| {
            let (least, most) = symbol.bounds();
            format!("{} ({least} to {most})", symbol.name())
        };
        let known: Vec<_> = self.symbols().map(described).collect();
        let (name, known) = (described(stranger), names(known.iter().map(String::as_str)));
        Err(Error::Unknown { what: "symbol", name, known })
    }

    /// Checks that a run is of the values for which the plan was made, that it has no values for symbols that the graph lacks, and that no tensor has a negative extent in it.
    pub(super) fn check_bound(&self, extents: &Extents) -> Result<()> {
        for (symbol, expected) in self.bindings().iter() {
            let given = extents.get(symbol);
            if given != Some(expected) {
                let given = given.map_or_else(|| "not given".to_owned(), |given| given.to_string());
                return Err(Error::Bound { symbol: symbol.name().to_owned(), given, expected });
            }
        }
        self.expect_symbols(extents.iter().map(|(symbol, _)| symbol))?;
        self.words.expect_extents(extents)
    }
}

impl Plans {
    /// Keeps up to `most` plans of an executable, for values of these symbols, all of which are its graph's. Symbols that change with every run, such as a position in a cache, had better not be among them: pipelines that were made for a plan stay as long as the device is open, and kernels as long as the model, also when the plan goes.
    pub fn new(general: Executable, symbols: &[&Symbol], most: usize) -> Self {
        let symbols = symbols.iter().map(|symbol| (*symbol).clone()).collect();
        Self { general, symbols, most, known: Mutex::default() }
    }

    /// The executable that serves all values.
    pub fn general(&self) -> &Executable {
        &self.general
    }

    /// The plan for these extents: a new one, if it is not among those that are kept, in the place of the one that was used longest ago. Where the device has no memory for it, others go that were used longest ago. Making one takes as long as compiling does, while which other calls wait;
    /// programs that know what comes ask for it up front.
    ///
    /// # Errors
    /// As [`Executable::specialise`]; or the graph lacks one of the symbols that plans are for; or another thread panicked while it made one.
    pub fn at(&self, extents: &Extents) -> Result<Arc<Executable>> {
        self.general.expect_symbols(&self.symbols)?;
        let values = extents.only(&self.symbols);
        let mut known = self.known.lock().map_err(|_| Error::Poisoned)?;
        if let Some(place) = known.plans.iter().position(|(others, _)| *others == values) {
            known.found += 1;
            known.plans[place..].rotate_left(1);
            return known.plans.last().map(|(_, plan)| plan.clone()).ok_or(Error::Poisoned);
        }
        // Others go when the new one is there, or where it needs their memory.
        let plan = loop {
            match self.general.specialise(&values) {
                Err(error) if error.is_out_of_memory() && !known.plans.is_empty() => drop(known.plans.remove(0)),
                made => break Arc::new(made?),
            }
        };
        while known.plans.len() >= self.most.max(1) {
            known.plans.remove(0);
        }
        known.made += 1;
        if self.most > 0 {
            known.plans.push((values, plan.clone()));
        }
        Ok(plan)
    }

    /// [`Executable::run`] of the plan for these extents.
    ///
    /// # Errors
    /// As [`Plans::at`] and as there.
    pub fn run(&self, inputs: &[(&str, Data<'_>)], extents: &Extents) -> Result<Outputs> {
        self.at(extents)?.run(inputs, extents)
    }

    /// What became of plans so far.
    ///
    /// # Errors
    /// Another thread panicked while it made one.
    pub fn statistics(&self) -> Result<PlansStatistics> {
        let known = self.known.lock().map_err(|_| Error::Poisoned)?;
        Ok(PlansStatistics { made: known.made, found: known.found, kept: known.plans.len() })
    }
}
