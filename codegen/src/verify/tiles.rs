//! Tiles: what their variables and operations must be, and which products they need.

use crate::ir::{
    Expression, Function, Handle, Matrix, MatrixRole, Module, Place, Root, Scalar, Size, Tile, TileOperation, Type,
    WorkgroupVariable,
};
#[cfg(any(feature = "wgsl", feature = "spirv", feature = "cuda"))]
use crate::ir::{MatrixProduct, MatrixScalar};

use super::types::name;

/// Rows, columns and depth of the products that a product of tiles is made of.
const STEP: u32 = 16;

/// The type of the accumulators that a product of tiles is added to.
fn sum() -> Matrix {
    let side = || Size::Literal(STEP);
    Matrix { role: MatrixRole::Accumulator, scalar: Scalar::F32, rows: side(), columns: side() }
}

/// What is wrong with a tile variable.
pub fn variable(module: &Module, variable: &WorkgroupVariable) -> Result<(), String> {
    let Some(tile) = &variable.tile else { return Ok(()) };
    let (name, unit) = (&variable.name, Tile::UNIT);
    if module.index.is_wide() {
        return Err(format!(
            "tiles are filled by indices of 32 bits: a kernel with the tile `{name}` has no `index = 64`"
        ));
    }
    if !MatrixRole::A.scalars().contains(&tile.scalar) {
        let holds: Vec<_> = MatrixRole::A.scalars().iter().map(|scalar| scalar.rust_name()).collect();
        return Err(format!("the tile `{name}` holds {}, not {}", holds.join(" or "), tile.scalar.rust_name()));
    }
    let [rows, columns] = tile.shape();
    if [rows, columns].into_iter().any(|side| side == 0 || side % unit != 0) {
        return Err(format!("a tile has multiples of {unit} rows and columns, and `{name}` is {rows} by {columns}"));
    }
    if variable.exact.is_some() {
        return Err(format!(
            "how many stages the tile `{name}` has is known while building: no specialisation constant"
        ));
    }
    Ok(())
}

/// How many accumulators a product is added to.
pub fn sums(module: &Module, function: &Function, place: &Place) -> Option<u32> {
    let ty = match place.root {
        Root::Local(local) => function.locals.get(local).filter(|local| local.mutable)?.ty,
        Root::Argument(argument) => {
            function.arguments.get(argument as usize).filter(|argument| argument.by_reference)?.ty
        }
        Root::Binding(_) | Root::Workgroup(_) => return None,
    };
    match &module.types[ty] {
        Type::Array { element, length } if place.path.is_empty() => {
            (module.types[*element] == Type::Matrix(sum())).then(|| length.literal()).flatten()
        }
        _ => None,
    }
}

/// Checks the operands of an operation.
pub fn operation(module: &Module, function: &Function, operation: &TileOperation) -> Result<(), String> {
    let tile = |handle: Handle<WorkgroupVariable>| {
        let known = module.workgroup.get(handle).and_then(|variable| variable.tile.as_ref());
        known.ok_or_else(|| format!("`{}` is for tiles: `workgroup_tile::<f16, 64, 64>(1)`", operation.name()))
    };
    let index = |value: &Handle<Expression>, what: &str| match &module.types[function.expressions[*value].ty] {
        Type::Scalar(Scalar::Index) => Ok(()),
        ty => Err(format!("the {what} of `{}` is a usize, not {}", operation.name(), name(module, ty))),
    };
    match operation {
        TileOperation::Copy { tile: to, stage, from, row, column, width } => {
            tile(*to)?;
            for (value, what) in [(stage, "stage"), (row, "row"), (column, "column"), (width, "width")] {
                index(value, what)?;
            }
            let Root::Binding(binding) = *from else {
                return Err("`copy_tile_async` reads from a buffer".to_owned());
            };
            let held = &module.types[module.bindings[binding as usize].element];
            if *held != Type::vector(4, Scalar::U32) {
                let held = name(module, held);
                return Err(format!("`copy_tile_async` reads the bits of a matrix, as `&[Vec4<u32>]`, not {held}"));
            }
            Ok(())
        }
        TileOperation::Multiply { sums: place, a, rows, b, columns, stage } => {
            for (value, what) in [(rows, "rows"), (columns, "columns"), (stage, "stage")] {
                index(value, what)?;
            }
            let (left, right) = (tile(*a)?, tile(*b)?);
            let ([_, depth], [other, width]) = (left.shape(), right.shape());
            if depth != other || left.scalar != right.scalar {
                let shown = |tile: &Tile| {
                    let [rows, columns] = tile.shape();
                    format!("{rows} by {columns} {}", tile.scalar.rust_name())
                };
                return Err(format!(
                    "`multiply_tiles` takes a right side with as many rows as the left has columns, not tiles of {} and {}",
                    shown(left),
                    shown(right)
                ));
            }
            let Some(count) = sums(module, function, place) else {
                return Err(format!(
                    "`multiply_tiles` adds to a variable of `[{}; N]`",
                    name(module, &Type::Matrix(sum()))
                ));
            };
            let across = STEP * count;
            if !across.is_multiple_of(Tile::UNIT) || count > Tile::MOST_SUMS || width % across != 0 {
                return Err(format!(
                    "`multiply_tiles` adds to 4, 8, 12 or 16 accumulators whose columns divide the right side's: {count} of them have {across}, the tile has {width}"
                ));
            }
            let invocations = module.workgroup_size.iter().map(|size| size.literal().unwrap_or(1)).product::<u32>();
            if invocations % Tile::TEAM != 0 {
                return Err(format!(
                    "`multiply_tiles` is done by teams of four subgroups, {} invocations where subgroups have 32: the workgroup has {invocations}",
                    Tile::TEAM
                ));
            }
            Ok(())
        }
        TileOperation::BulkCopy { .. } | TileOperation::Finish { .. } => {
            Err(format!("`{}` is in a form that lowering alone makes", operation.name()))
        }
    }
}

/// The product that a product of tiles is made of.
#[cfg(any(feature = "wgsl", feature = "spirv", feature = "cuda"))]
pub fn product(module: &Module, operation: &TileOperation) -> Option<MatrixProduct> {
    let TileOperation::Multiply { a, .. } = operation else { return None };
    let tile = module.workgroup[*a].tile.as_ref()?;
    Some(MatrixProduct {
        rows: STEP,
        columns: STEP,
        depth: STEP,
        input: MatrixScalar::from_scalar(tile.scalar)?,
        accumulator: MatrixScalar::F32,
    })
}
