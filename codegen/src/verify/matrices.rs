//! Operations on matrices: what their operands must be, and which products they need.

use crate::ir::{
    BindingKind, Expression, Function, Handle, Local, Matrix, MatrixOperation, MatrixOrder, MatrixProduct, MatrixRole,
    MatrixScalar, Module, Place, Projection, Root, Scalar, StatementKind, Type, statements,
};

use super::types::name;
#[cfg(any(feature = "wgsl", feature = "spirv", feature = "cuda"))]
use crate::ir::MatrixNeed;

/// Checks the operands of an operation, and the type of the local that gets its result.
pub fn result(
    module: &Module,
    function: &Function,
    result: Option<Handle<Local>>,
    operation: &MatrixOperation,
) -> Result<(), String> {
    let of = |value: Handle<Expression>| &module.types[function.expressions[value].ty];
    let stated = result.map(|local| &module.types[function.locals[local].ty]);
    let word = |value: Handle<Expression>, what: &str| match of(value) {
        ty if *ty == Type::Scalar(module.index.scalar()) => Ok(()),
        ty => Err(format!("the {what} of a matrix is a usize, not {}", name(module, ty))),
    };
    match operation {
        MatrixOperation::Load { place, stride, order } => {
            let Some(Type::Matrix(matrix)) = stated else { return Err("a load gives a matrix".to_owned()) };
            word(offset(place)?, "offset")?;
            word(*stride, "stride")?;
            memory(module, place, matrix, *order)
        }
        MatrixOperation::Store { place, stride, order, value } => {
            let Type::Matrix(matrix) = of(*value) else {
                return Err(format!("a matrix is stored, not {}", name(module, of(*value))));
            };
            if matrix.role != MatrixRole::Accumulator {
                return Err(format!("an `Accumulator` is stored, not {}", name(module, of(*value))));
            }
            if let Root::Binding(binding) = place.root
                && module.bindings[binding as usize].kind == BindingKind::Shared
            {
                let name = &module.bindings[binding as usize].name;
                return Err(format!("`{name}` is a shared slice, and cannot be written; declare it as `&mut`"));
            }
            word(offset(place)?, "offset")?;
            word(*stride, "stride")?;
            memory(module, place, matrix, *order)
        }
        MatrixOperation::MultiplyAdd { a, b, c } => {
            let sides = [*a, *b, *c].map(of);
            let [Type::Matrix(a), Type::Matrix(b), Type::Matrix(c)] = sides else {
                return Err("`multiply_add` takes matrices".to_owned());
            };
            if product(a, b, c).is_none() {
                let [a, b, c] = sides.map(|ty| name(module, ty));
                return Err(format!("`multiply_add` does not go with {a}, {b} and {c}"));
            }
            if stated == Some(sides[2]) {
                Ok(())
            } else {
                Err("a product has the type of what it is added to".to_owned())
            }
        }
    }
}

/// The index of the first element.
pub fn offset(place: &Place) -> Result<Handle<Expression>, String> {
    match place.path.as_slice() {
        [Projection::Index(offset)] => Ok(*offset),
        _ => Err("a matrix lies in a buffer or workgroup array as a whole".to_owned()),
    }
}

/// The type of the elements of the memory that a matrix lies in.
pub fn element<'m>(module: &'m Module, place: &Place) -> Option<&'m Type> {
    match place.root {
        Root::Binding(binding) => Some(&module.types[module.bindings.get(binding as usize)?.element]),
        Root::Workgroup(variable) => Some(&module.types[module.workgroup[variable].element]),
        Root::Local(_) | Root::Argument(_) => None,
    }
}

/// How many scalars of a matrix an element of memory holds: 1, or those in 16 bytes.
pub fn scalars_of_element(element: &Type, scalar: Scalar) -> Option<u32> {
    match element {
        Type::Scalar(held) if *held == scalar => Some(1),
        Type::Vector { lanes: 4, scalar: Scalar::U32 } => Some(16 / scalar.bytes()?),
        _ => None,
    }
}

fn memory(module: &Module, place: &Place, matrix: &Matrix, order: MatrixOrder) -> Result<(), String> {
    let atomic = match place.root {
        Root::Binding(binding) => module.bindings[binding as usize].kind == BindingKind::Atomic,
        Root::Workgroup(variable) => module.workgroup[variable].atomic,
        Root::Local(_) | Root::Argument(_) => true,
    };
    let whole = name(module, &Type::Matrix(matrix.clone()));
    let Some(element) = element(module, place).filter(|_| !atomic) else {
        return Err(format!("{whole} lies in a slice or a workgroup array that holds no atomics"));
    };
    let scalar = matrix.scalar.rust_name();
    let Some(count) = scalars_of_element(element, matrix.scalar) else {
        let held = name(module, element);
        return Err(format!("{whole} lies in memory of {scalar}, or of Vec4<u32> as its bits, not of {held}"));
    };
    let [_, length] = matrix.lines(order);
    if length % count != 0 {
        let what = if order == MatrixOrder::Rows { "row" } else { "column" };
        return Err(format!(
            "a {what} of {whole} is {length} {scalar}, which fill no whole Vec4<u32>: use memory of {scalar}"
        ));
    }
    Ok(())
}

/// The product of matrices of these types, if there is one.
pub fn product(a: &Matrix, b: &Matrix, c: &Matrix) -> Option<MatrixProduct> {
    let [rows, depth] = a.shape();
    let [other_depth, columns] = b.shape();
    let roles = [a.role, b.role, c.role] == [MatrixRole::A, MatrixRole::B, MatrixRole::Accumulator];
    let fits = roles && depth == other_depth && c.shape() == [rows, columns] && a.scalar == b.scalar;
    // A sum of products of `bf16` is kept in `f32` on every device.
    let fits = fits && (c.scalar == Scalar::F32 || a.scalar == c.scalar);
    fits.then_some(MatrixProduct {
        rows,
        columns,
        depth,
        input: MatrixScalar::from_scalar(a.scalar)?,
        accumulator: MatrixScalar::from_scalar(c.scalar)?,
    })
}

/// What a module wants of a device that has matrices: its products, and the matrices that are in none of them, each once.
#[cfg(any(feature = "wgsl", feature = "spirv", feature = "cuda"))]
pub fn wanted(module: &Module) -> Vec<MatrixNeed> {
    let mut products = Vec::new();
    let mut others: Vec<&Matrix> = Vec::new();
    for function in super::functions(module) {
        let of = |value: Handle<Expression>| &module.types[function.expressions[value].ty];
        statements(&function.body, &mut |statement| {
            if let StatementKind::Tile(operation) = &statement.kind {
                products.extend(super::tiles::product(module, operation));
            }
            let StatementKind::Matrix { result, operation } = &statement.kind else { return };
            let held = match operation {
                MatrixOperation::MultiplyAdd { a, b, c } => {
                    if let [Type::Matrix(a), Type::Matrix(b), Type::Matrix(c)] = [*a, *b, *c].map(of) {
                        products.extend(product(a, b, c));
                    }
                    None
                }
                MatrixOperation::Load { .. } => result.map(|local| &module.types[function.locals[local].ty]),
                MatrixOperation::Store { value, .. } => Some(of(*value)),
            };
            if let Some(Type::Matrix(matrix)) = held {
                others.push(matrix);
            }
        });
    }
    products.sort_unstable();
    products.dedup();
    others.retain(|matrix| !products.iter().any(|product| product.has(matrix)));
    let mut needs: Vec<MatrixNeed> = products.into_iter().map(MatrixNeed::Product).collect();
    if module.workgroup.iter().any(|(_, variable)| variable.tile.is_some()) {
        needs.push(MatrixNeed::Teams);
    }
    for matrix in others {
        let [rows, columns] = matrix.shape();
        let Some(scalar) = MatrixScalar::from_scalar(matrix.scalar) else { continue };
        let need = MatrixNeed::Alone { role: matrix.role, scalar, rows, columns };
        if !needs.contains(&need) {
            needs.push(need);
        }
    }
    needs
}

/// For each binding, whether a matrix lies in it: its lines begin at multiples of 16 bytes.
pub fn bindings(module: &Module) -> Vec<bool> {
    let mut held = vec![false; module.bindings.len()];
    roots(module, &mut |root| {
        if let Root::Binding(binding) = root {
            held[binding as usize] = true;
        }
    });
    held
}

/// The same of workgroup variables.
#[cfg(feature = "lower")]
pub fn workgroup(module: &Module) -> Vec<bool> {
    let mut held = vec![false; module.workgroup.len()];
    roots(module, &mut |root| {
        if let Root::Workgroup(variable) = root {
            held[variable.index()] = true;
        }
    });
    held
}

fn roots(module: &Module, visit: &mut dyn FnMut(Root)) {
    for function in super::functions(module) {
        statements(&function.body, &mut |statement| {
            if let StatementKind::Matrix {
                operation: MatrixOperation::Load { place, .. } | MatrixOperation::Store { place, .. },
                ..
            } = &statement.kind
            {
                visit(place.root);
            }
        });
    }
}
