//! Every case of a device by its name, so that names can be asked for before anything is measured.

use trefoil::Device;
use trefoil::graph::ElementType;
use trefoil_example_kernels::workload;

use crate::cases::{self, Case};
use crate::figure::Figure;
use crate::measure::{self, Scale};
use crate::{Outcome, attention, eager, elementwise, floors, kernels, minilm, products, runs};

/// What measures a case of such a name.
type Measure<'d> = Box<dyn Fn(&str) -> Outcome<Vec<Figure>> + 'd>;

/// A case with what measures it on the device that it is listed for.
pub struct Entry<'d> {
    /// Its name with its sizes, in which filters are looked for.
    pub name: String,
    /// Whether it prints the time of each of its steps, if that is asked for.
    pub has_steps: bool,
    measure: Measure<'d>,
}

impl<'d> Entry<'d> {
    fn new(name: String, measure: impl Fn(&str) -> Outcome<Vec<Figure>> + 'd) -> Self {
        Self { name, has_steps: false, measure: Box::new(measure) }
    }

    fn of_one(name: String, measure: impl Fn(&str) -> Outcome<Figure> + 'd) -> Self {
        Self::new(name, move |name| Ok(vec![measure(name)?]))
    }

    fn of_graph(device: &'d Device, case: Case, element: ElementType, scale: Scale) -> Self {
        Self::new(case.name.clone(), move |_| measure::graph(device, &case, element, scale))
    }

    /// Measures it.
    pub fn measure(&self) -> Outcome<Vec<Figure>> {
        (self.measure)(&self.name)
    }
}

/// All cases of a device, in the order in which they run; the model's tell of their steps if they shall.
pub fn all(device: &Device, scale: Scale, steps: bool) -> Vec<Entry<'_>> {
    let of_graph = |case: Case, element| Entry::of_graph(device, case, element, scale);
    let mut entries: Vec<Entry<'_>> =
        cases::all(scale).into_iter().map(|case| of_graph(case, cases::ELEMENT)).collect();
    for element in [ElementType::F32, ElementType::F16, ElementType::BF16] {
        let of_numbers = elementwise::all(scale, element).into_iter().chain(products::all(scale, element));
        entries.extend(of_numbers.chain(attention::all(scale, element)).map(|case| of_graph(case, element)));
    }
    entries.push(Entry::of_one(eager::name(), move |_| eager::measure(device)));
    for (name, count) in runs::all() {
        entries.push(Entry::of_one(name, move |name| runs::measure(device, name, count)));
    }
    for (name, shared) in runs::beside() {
        entries.push(Entry::of_one(name, move |name| runs::measure_beside(device, name, shared)));
    }
    entries.push(Entry::new(floors::name(), move |_| Ok(floors::measure(device)?.into_iter().collect())));
    for (name, make) in workload::of(device) {
        let name = format!("kernel {name}");
        entries.push(Entry::of_one(name, move |name| kernels::measure(device, name, make, scale)));
    }
    for &(name, bounds) in cases::minilm(scale) {
        let entry = Entry::new(name.to_owned(), move |name| Ok(minilm::measure(device, name, bounds, steps)?.into()));
        entries.push(Entry { has_steps: true, ..entry });
    }
    entries
}
