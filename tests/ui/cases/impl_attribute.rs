use trefoil_dsl::prelude::*;

#[device(method)]
struct Misspelt {
    x: f32,
}

#[device(methods)]
struct Empty {
    x: f32,
}

#[device]
struct Other {
    x: f32,
}

#[device]
impl Default for Other {
    fn default() -> Self {
        Self { x: 1.0 }
    }
}

fn main() {}
