//! Every function of elements, and casts and choices: bound by memory, but where a formula is long.

use trefoil::graph::ElementType;
use trefoil::graph::ops::map::Function;

use crate::cases::Case;
use crate::measure::Scale;

/// Elements on a GPU.
const ELEMENTS: i64 = 64 << 20;
/// What the processor is asked of other sizes too: in its caches' reach, and far beyond it.
const SIZED: [&str; 7] = ["relu", "exp", "gelu", "add", "mul", "cast to f16", "where a < b"];
const SIZES: [i64; 2] = [1 << 20, 64 << 20];

/// The cases for elements of a type, in sizes that a device can do in reasonable time.
pub fn all(scale: Scale, element: ElementType) -> Vec<Case> {
    let count = match scale {
        Scale::Gpu => ELEMENTS,
        Scale::Cpu => ELEMENTS / 16,
        Scale::Software => ELEMENTS / 64,
    };
    let mut cases = of(element, count, |_| true);
    if scale == Scale::Cpu && element == ElementType::F32 {
        cases.extend(SIZES.into_iter().flat_map(|count| of(element, count, |about| SIZED.contains(&about))));
    }
    cases
}

/// The cases of so many elements, of what is wanted.
fn of(element: ElementType, count: i64, wanted: impl Fn(&str) -> bool) -> Vec<Case> {
    let size = element.bytes() as i64;
    let case = |about: &str, inputs: &[&'static str], bytes: i64, build| Case {
        name: format!("map {about} {element} {} Mi", count >> 20),
        inputs: inputs.iter().map(|name| (*name, vec![count])).collect(),
        build,
        bytes: (count * bytes).unsigned_abs(),
        flops: None,
    };
    let mut cases = Vec::new();
    for function in Function::all().filter(|function| function.takes(element) && wanted(function.name)) {
        let result = if function.is_test { ElementType::Bool.bytes() as i64 } else { size };
        let bytes = size * function.inputs.len() as i64 + result;
        let build = Box::new(move |g: &mut trefoil::graph::Graph, inputs: &[trefoil::graph::Tensor]| {
            let attributes: Vec<f32> = function.attributes.iter().map(|attribute| attribute.samples[0]).collect();
            let result = g.elementwise(function, inputs, &attributes)?;
            g.output("result", result)
        });
        cases.push(case(function.name, function.inputs, bytes, build));
    }
    for to in [ElementType::F32, ElementType::F16, ElementType::BF16, ElementType::I32] {
        let about = format!("cast to {to}");
        if to != element && wanted(&about) {
            let build = Box::new(move |g: &mut trefoil::graph::Graph, inputs: &[trefoil::graph::Tensor]| {
                let result = g.cast(inputs[0], to)?;
                g.output("result", result)
            });
            cases.push(case(&about, &["x"], size + to.bytes() as i64, build));
        }
    }
    let build = Box::new(|g: &mut trefoil::graph::Graph, inputs: &[trefoil::graph::Tensor]| {
        let condition = g.lt(inputs[0], inputs[1])?;
        let result = g.where_(condition, inputs[0], inputs[1])?;
        g.output("result", result)
    });
    cases.push(case("where a < b", &["a", "b"], 3 * size, build));
    cases
}
