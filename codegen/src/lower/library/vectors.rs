//! Functions of vectors as a whole. Those that overflow on the way do so on every target.

/// Name and text of every function.
pub const SOURCES: &[(&str, &str)] = &[
    ("length", "fn length(v: f32) -> one_f32 { sqrt(dot(v, v)) }"),
    (
        "distance",
        "fn distance(a: f32, b: f32) -> one_f32 {
            let apart = a - b;
            sqrt(dot(apart, apart))
        }",
    ),
    ("normalize", "fn normalize(v: f32) -> f32 { v * spread(inverse_sqrt(dot(v, v))) }"),
    ("cross", "fn cross(a: f32, b: f32) -> f32 { yzx(a) * zxy(b) - zxy(a) * yzx(b) }"),
    ("reflect", "fn reflect(v: f32, n: f32) -> f32 { v - n * spread(2.0 * dot(n, v)) }"),
];
