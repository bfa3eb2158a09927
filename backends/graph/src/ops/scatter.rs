//! Scatters: updates that go to slots of a tensor which indices tell (`places`). What stands in a slot is set, by its last update (`set`), or joined with all of them (`join`).
//!
//! Where nobody reads `x` afterwards the result takes over its memory: nothing is copied, and what has no update is not touched.
//!
//! Every form becomes one: `x` is `[lines, .., columns]`, with the axes that indices name in the middle, and `updates` are `[lines, count, columns]`; where strides can say that, nothing is copied.

mod join;
mod places;
mod set;

pub use self::join::Join;
pub use self::places::{LastUpdates, Named};
pub use self::set::ScatterSet;
use super::support::{expect_element, expect_one_of, expect_shape, shape_error};
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{Ineligible, OpError, Request, Slot};
use crate::types::{ElementType, TensorType};

/// What an update does to the element at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Update {
    /// It replaces it; of several the last one does.
    Set,
    /// It is added; integers wrap.
    Add,
    /// It is multiplied with it; integers wrap.
    Mul,
    /// The larger stays, or a NaN.
    Max,
    /// The smaller stays, or a NaN.
    Min,
}

impl Update {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Set, Self::Add, Self::Mul, Self::Max, Self::Min];

    /// The name of the op.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Set => "scatter_set",
            Self::Add => "scatter_add",
            Self::Mul => "scatter_mul",
            Self::Max => "scatter_max",
            Self::Min => "scatter_min",
        }
    }

    /// Whether it takes elements of a type: bools can be set alone.
    pub fn takes(self, element: ElementType) -> bool {
        self == Self::Set || element != ElementType::Bool
    }
}

/// Where the result goes, which may take over the memory of x if nobody wants to see that any more.
fn result(request: &Request<'_>, in_place: bool) -> Result<Slot, Ineligible> {
    match request.inputs.first().and_then(|x| x.kept.as_ref()) {
        _ if !in_place => Ok(Slot::Output(0)),
        Some(reason) => Err(Ineligible::Other(format!("what it writes over must stay: {reason}"))),
        None => Ok(Slot::Over { output: 0, input: 0 }),
    }
}

/// Where updates go, with the operands as the ops want them.
struct Operands {
    /// `[lines, .., columns]`
    x: Vec<Dim>,
    /// How many updates there are.
    count: Dim,
    indices: Tensor,
    named: Named,
}

fn product(extents: &[Dim]) -> Dim {
    extents.iter().cloned().product()
}

fn refused(update: Update, error: OpError) -> GraphError {
    GraphError::Op { op: update.name().to_owned(), error }
}

#[trefoil_graph_macros::eager]
impl Graph {
    /// `x` with updates at positions of an axis, whole slices at a time: the inverse of [`Graph::gather`], whose result has the shape that `updates` have. For an index at `i`
    /// `x[.., indices[i], ..] = update(x[.., indices[i], ..], updates[.., i, ..])`; an index out of range, a negative one too, changes nothing.
    ///
    /// Any number of updates may go to one place. Of those that set the last one stays; floats of up to 32 bits are joined in `f32` and rounded once. Sums of `f32` may differ in their last bits from run to
    /// run unless [`crate::Options::deterministic`] says otherwise; everything else comes out the same every time.
    ///
    /// ```
    /// use trefoil_graph::ops::scatter::Update;
    /// use trefoil_graph::{ElementType, Graph};
    /// let mut g = Graph::new();
    /// // The gradient of an embedding: rows of tokens, added up.
    /// let table = g.input("table", ElementType::F32, [1000, 64])?;
    /// let tokens = g.input("tokens", ElementType::I64, [8, 128])?;
    /// let rows = g.input("rows", ElementType::F32, [8, 128, 64])?;
    /// let sums = g.scatter(table, tokens, rows, 0, Update::Add)?;
    /// assert_eq!(g.type_of(sums)?.to_string(), "f32[1000, 64]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// There is no such axis, the shapes do not fit, the elements of `x` and of the updates differ or are bools that are not set, or the indices are not integers.
    pub fn scatter(
        &mut self,
        x: Tensor,
        indices: Tensor,
        updates: Tensor,
        axis: isize,
        update: Update,
    ) -> Result<Tensor, GraphError> {
        let at = self.axes(update.name(), x, &[axis])?[0];
        let (ty, ours) = (self.operand("scatter", x)?.clone(), self.operand("scatter", indices)?.shape.clone());
        let mut wanted = ty.shape.clone();
        wanted.splice(at..=at, ours.iter().cloned());
        self.fits(update, &ty, updates, &wanted)?;
        let indices = self.unsqueeze(indices, -1)?;
        let x_shape = vec![product(&ty.shape[..at]), ty.shape[at].clone(), product(&ty.shape[at + 1..])];
        self.scattered(
            update,
            x,
            updates,
            Operands { x: x_shape, count: product(&ours), indices, named: Named::Coordinates },
        )
    }

    /// `x` with `updates` added at positions of an axis, `y[.., indices[i], ..] += updates[.., i, ..]`: [`Graph::scatter`] with [`Update::Add`].
    ///
    /// # Errors
    /// As [`Graph::scatter`].
    pub fn index_add(
        &mut self,
        x: Tensor,
        axis: isize,
        indices: Tensor,
        updates: Tensor,
    ) -> Result<Tensor, GraphError> {
        self.scatter(x, indices, updates, axis, Update::Add)
    }

    /// `x` with each update at its own coordinates, but for `axis`, where its index says: the inverse of [`Graph::gather_elements`]. Otherwise as [`Graph::scatter`].
    ///
    /// # Errors
    /// There is no such axis, indices and updates differ in shape or have another rank or, along another axis, a larger extent than `x`, which may have eight axes; or as for [`Graph::scatter`].
    pub fn scatter_elements(
        &mut self,
        x: Tensor,
        indices: Tensor,
        updates: Tensor,
        axis: isize,
        update: Update,
    ) -> Result<Tensor, GraphError> {
        let at = self.axes(update.name(), x, &[axis])?[0];
        let (ty, of_indices) =
            (self.operand("scatter_elements", x)?.clone(), self.operand("scatter_elements", indices)?.clone());
        let fits = |axis: usize| {
            let room = &ty.shape[axis] - &of_indices.shape[axis];
            axis == at || room.bounds().0 >= 0
        };
        if of_indices.rank() != ty.rank() || !(0..ty.rank()).all(fits) {
            let expected = format!("no larger extents than {ty} has, but along axis {at}");
            return Err(refused(update, shape_error("indices", &of_indices, expected)));
        }
        self.fits(update, &ty, updates, &of_indices.shape)?;
        let mut x_shape = vec![Dim::from(1i64); ty.rank() + 2];
        x_shape[1..=ty.rank()].clone_from_slice(&ty.shape);
        let count = of_indices.elements();
        self.scattered(update, x, updates, Operands { x: x_shape, count, indices, named: Named::Along(at) })
    }

    /// `x` with parts updated: the last axis of `indices` holds coordinates along the first axes of `x`, and `updates` have what is left of `x` for each of them: the inverse of
    /// [`Graph::gather_nd`]. Otherwise as [`Graph::scatter`].
    ///
    /// # Errors
    /// The extent of the last axis of the indices is not a number from 1 to the rank of `x`, or more than eight; or as for [`Graph::scatter`].
    pub fn scatter_nd(
        &mut self,
        x: Tensor,
        indices: Tensor,
        updates: Tensor,
        update: Update,
    ) -> Result<Tensor, GraphError> {
        let (ty, of_indices) = (self.operand("scatter_nd", x)?.clone(), self.operand("scatter_nd", indices)?.clone());
        let depth = of_indices.shape.last().and_then(Dim::constant).and_then(|depth| usize::try_from(depth).ok());
        let Some(depth) = depth.filter(|depth| (1..=ty.rank()).contains(depth)) else {
            let expected = format!("a last axis of fixed extent, from 1 to the number of axes of {ty}");
            return Err(refused(update, shape_error("indices", &of_indices, expected)));
        };
        let before = &of_indices.shape[..of_indices.rank() - 1];
        let wanted: Vec<Dim> = before.iter().chain(&ty.shape[depth..]).cloned().collect();
        self.fits(update, &ty, updates, &wanted)?;
        let mut x_shape = vec![Dim::from(1i64)];
        x_shape.extend(ty.shape[..depth].iter().cloned());
        x_shape.push(product(&ty.shape[depth..]));
        self.scattered(
            update,
            x,
            updates,
            Operands { x: x_shape, count: product(before), indices, named: Named::Coordinates },
        )
    }

    /// Checks elements, and that the updates have a shape.
    fn fits(&self, update: Update, x: &TensorType, updates: Tensor, wanted: &[Dim]) -> Result<(), GraphError> {
        let updates = self.operand(update.name(), updates)?;
        expect_one_of("x", x, |element| update.takes(element)).map_err(|error| refused(update, error))?;
        expect_element("updates", updates, x.element).map_err(|error| refused(update, error))?;
        expect_shape("updates", updates, wanted).map_err(|error| refused(update, error))
    }

    fn scattered(
        &mut self,
        update: Update,
        x: Tensor,
        updates: Tensor,
        operands: Operands,
    ) -> Result<Tensor, GraphError> {
        let Operands { x: extents, count, mut indices, named } = operands;
        let of_indices = self.operand(update.name(), indices)?.element;
        if of_indices.is_integer() && of_indices.bytes() < 4 {
            indices = self.cast(indices, ElementType::I32)?;
        }
        let TensorType { element, shape } = self.operand(update.name(), x)?.clone();
        let [first, slots @ .., last] = &*extents else { return Ok(x) };
        let (lines, columns) = (first.clone(), last.clone());
        let updates = self.reshape(updates, vec![lines.clone(), count, columns.clone()])?;
        if update == Update::Set {
            let found = self.add_one(LastUpdates { extents: slots.to_vec(), named }, &[indices])?;
            let found = self.reshape(found, vec![product(slots)])?;
            let flat = self.reshape(x, vec![lines, product(slots), columns])?;
            let y = self.add_one(ScatterSet, &[flat, updates, found])?;
            return self.reshape(y, shape);
        }
        // Narrow integers are joined in words: what wraps there is cut off in the end.
        let wide = element.widened();
        let (mut x, mut updates) = (self.reshape(x, extents)?, updates);
        if wide != element {
            (x, updates) = (self.cast(x, wide)?, self.cast(updates, wide)?);
        }
        let mut y = self.add_one(Join { update, named, element: wide }, &[x, indices, updates])?;
        if wide != element {
            y = self.cast(y, element)?;
        }
        self.reshape(y, shape)
    }
}
