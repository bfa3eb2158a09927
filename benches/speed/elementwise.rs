//! Every function of elements, and casts and choices: bound by memory, but where a formula is long.

use trefoil::graph::ElementType;
use trefoil::graph::ops::map::Function;

use crate::cases::Case;
use crate::measure::Scale;

/// Elements on a GPU.
const ELEMENTS: i64 = 64 << 20;

/// The cases for elements of a type, in sizes that a device can do in reasonable time.
pub fn all(scale: Scale, element: ElementType) -> Vec<Case> {
    let count = match scale {
        Scale::Gpu => ELEMENTS,
        Scale::Cpu => ELEMENTS / 16,
        Scale::Software => ELEMENTS / 64,
    };
    let size = element.bytes() as i64;
    let case = |about: &str, inputs: &[&'static str], bytes: i64, build| Case {
        name: format!("map {about} {element} {} Mi", count >> 20),
        inputs: inputs.iter().map(|name| (*name, vec![count])).collect(),
        build,
        bytes: (count * bytes).unsigned_abs(),
        flops: None,
    };
    let mut cases = Vec::new();
    for function in Function::all().filter(|function| function.takes(element)) {
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
        if to != element {
            let build = Box::new(move |g: &mut trefoil::graph::Graph, inputs: &[trefoil::graph::Tensor]| {
                let result = g.cast(inputs[0], to)?;
                g.output("result", result)
            });
            cases.push(case(&format!("cast to {to}"), &["x"], size + to.bytes() as i64, build));
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
