//! Regions of maps within the kernels of reductions, softmax, norms and gathers: the same results as beside them, of awkward shapes, several types, broadcast and strided operands; fewer steps and bytes; and where they must stay
//! outside.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::collections::BTreeSet;

use common::cases::Case;
use common::{Values, compare, computes, devices, is_no_kernel, tolerance};
use trefoil_codegen::target::Profile;
use trefoil_dsl::device::{Device, DeviceKind};
use trefoil_graph::compile::fuse::attach::{AGAIN, Merge, Side};
use trefoil_graph::compile::fuse::beside;
use trefoil_graph::ops::rope::{Pairs, Rope};
use trefoil_graph::ops::{AttentionLayout, NormOperands};
use trefoil_graph::{Dim, ElementType, Executable, Extents, Graph, IntoKernels, Model, Options, Symbol, Tensor};

/// Regions go into kernels wherever they can, and the CPU has its kernels do the work. Those that go into none stay apart, so that they can be counted.
fn everywhere(graph: &Graph) -> Options {
    let ways = graph.nodes().iter().flat_map(|node| node.op.kind().ways());
    let forbid = ways.filter(|way| is_no_kernel(way)).chain([beside::NAME]).map(str::to_owned).collect();
    Options { into_kernels: IntoKernels::Everywhere, forbid, ..Options::default() }
}

/// The same with regions outside.
fn outside(graph: &Graph) -> Options {
    let mut options = everywhere(graph);
    options.forbid.extend(Side::ALL.map(|side| side.name().to_owned()));
    options
}

fn compile(graph: &Graph, device: &Device, options: &Options) -> Executable {
    Executable::compile(graph, &Model::new(), device, options)
        .unwrap_or_else(|error| panic!("on {}: {error}", device.properties().name))
}

/// How many regions went into kernels.
fn merged(merges: &[Merge]) -> usize {
    merges.iter().filter(|merge| merge.refused.is_none()).count()
}

/// Runs a case with regions in its kernels and outside; `regions` of them go into them, each a step less. Gives the executable that has them inside.
fn both(case: &Case, device: &Device, tolerance: f64, regions: usize) -> Executable {
    let inputs: Vec<_> = case.inputs.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
    let apart = compile(&case.graph, device, &outside(&case.graph));
    let together = compile(&case.graph, device, &everywhere(&case.graph));
    for executable in [&apart, &together] {
        compare(&case.graph, executable, &inputs, &Extents::new(), tolerance);
    }
    let (apart, told) = (apart.explain(), together.explain());
    assert_eq!(merged(&told.merges), regions, "on {}\n{told}", device.properties().name);
    assert_eq!(told.steps.len() + regions, apart.steps.len(), "{told}\n{apart}");
    assert!(
        merged(&apart.merges) == 0 && apart.merges.iter().all(|merge| merge.refused.as_deref() == Some("forbidden"))
    );
    if regions > 0 {
        let moved = |explained: &trefoil_graph::explain::Explanation| -> u64 {
            explained.steps.iter().flat_map(|step| &step.uses).map(|used| used.bytes).sum()
        };
        assert!(moved(&told) < moved(&apart), "{told}\n{apart}");
        assert!(told.fused_away.len() > apart.fused_away.len(), "{told}");
    }
    together
}

/// What sums of so many rounded elements may be off by.
fn of_sums(element: ElementType) -> f64 {
    tolerance(element).max(1e-4)
}

#[test]
fn maps_before_and_behind_reductions() {
    for device in devices() {
        for element in [ElementType::F32, ElementType::F16, ElementType::I32, ElementType::F64] {
            if !computes(&device, element) {
                continue;
            }
            for (extents, axes) in [
                (&[3usize, 7][..], &[-1isize][..]),
                (&[5, 64], &[0]),
                (&[2, 3, 8], &[0, 2]),
                (&[70_001], &[0]),
                (&[12, 32], &[0, 1]),
                (&[1, 1], &[1]),
            ] {
                let mut case = Case::default();
                let (x, other) = (case.input("x", element, extents), case.input("other", element, extents));
                let y = case.graph.mul(x, other).unwrap();
                let y = case.graph.maximum(y, x).unwrap();
                let most = case.graph.max_over(y, axes, false).unwrap();
                let most = case.graph.add(most, most).unwrap();
                case.output("most", most);
                both(&case, &device, of_sums(element), 2);
            }
        }
    }
}

#[test]
fn sums_of_exponentials_and_their_logarithms() {
    for device in devices() {
        for element in [ElementType::F32, ElementType::BF16] {
            for extents in [&[9usize, 33][..], &[4, 1024], &[2, 3, 20]] {
                let mut case = Case::default();
                let x = case.input("x", element, extents);
                let mut row = extents.to_vec();
                *row.last_mut().unwrap() = 1;
                let most = case.input("most", element, &row);
                let y = case.graph.sub(x, most).unwrap();
                let y = case.graph.exp(y).unwrap();
                let mean = case.graph.mean(y, &[-1], true).unwrap();
                let mean = case.graph.log(mean).unwrap();
                let mean = case.graph.add(mean, most).unwrap();
                case.output("mean", mean);
                both(&case, &device, 2.0 * of_sums(element), 2);
            }
        }
    }
}

#[test]
fn casts_before_and_behind() {
    for device in devices() {
        for extents in [[3usize, 5], [4, 64]] {
            let mut case = Case::default();
            let x = case.input("x", ElementType::F16, &extents);
            let y = case.graph.cast(x, ElementType::F32).unwrap();
            let y = case.graph.softmax(y, -1).unwrap();
            let y = case.graph.cast(y, ElementType::F16).unwrap();
            case.output("softmax", y);
            let bytes = case.input("bytes", ElementType::U8, &extents);
            let sum = case.graph.sum(bytes, &[-1], false).unwrap();
            case.output("sum", sum);
            let flags = case.input("flags", ElementType::Bool, &extents);
            let flags = case.graph.logical_not(flags).unwrap();
            let any = case.graph.all(flags, &[0], false).unwrap();
            let any = case.graph.logical_not(any).unwrap();
            case.output("any", any);
            both(&case, &device, tolerance(ElementType::F16), 6);
        }
    }
}

#[test]
fn scaled_and_shifted_rows_of_softmax() {
    for device in devices() {
        for element in [ElementType::F32, ElementType::F16] {
            for extents in [&[3usize, 7][..], &[2, 4, 32], &[2, 20_000]] {
                let mut case = Case::default();
                let x = case.input("x", element, extents);
                let (last, first) = (*extents.last().unwrap(), extents[0]);
                let scale = case.input("scale", element, &[last]);
                let mut column = vec![1; extents.len()];
                column[0] = first;
                let shift = case.input("shift", element, &column);
                let y = case.graph.mul(x, scale).unwrap();
                let y = case.graph.add(y, shift).unwrap();
                let y = case.graph.softmax(y, -1).unwrap();
                let y = case.graph.mul(y, scale).unwrap();
                let y = case.graph.abs(y).unwrap();
                case.output("y", y);
                both(&case, &device, 2.0 * tolerance(element), 2);
            }
        }
    }
}

#[test]
fn norms_with_residuals_sums_and_vectors() {
    for device in devices() {
        for element in [ElementType::F32, ElementType::BF16] {
            for extents in [&[3usize, 7][..], &[2, 3, 768]] {
                let mut case = Case::default();
                let x = case.input("x", element, extents);
                let last = *extents.last().unwrap();
                let [scale, bias, gamma, beta] =
                    ["scale", "bias", "gamma", "beta"].map(|name| case.input(name, element, &[last]));
                // With a scale and a bias before, this takes the places of the residual and the bias that are not there.
                let y = case.graph.mul(x, scale).unwrap();
                let y = case.graph.add(y, bias).unwrap();
                let operands = NormOperands { gamma: Some(gamma), beta: Some(beta), ..NormOperands::default() };
                let y = case.graph.layer_norm(y, &[-1], 1e-3, operands).unwrap();
                case.output("layer", y);
                // The sum leaves as it is, and the result goes through a function.
                let skipped = case.input("skipped", element, extents);
                let doubled = case.graph.add(x, x).unwrap();
                let operands = NormOperands { residual: Some(skipped), gamma: Some(gamma), ..NormOperands::default() };
                let (y, sum) = case.graph.rms_norm_and_sum(doubled, &[-1], 1e-3, operands).unwrap();
                let y = case.graph.relu(y).unwrap();
                case.output("rms", y);
                case.output("sum", sum);
                both(&case, &device, 4.0 * tolerance(element), 3);
            }
        }
    }
}

#[test]
fn strided_operands_are_read_where_they_lie() {
    for device in devices() {
        for extents in [[6usize, 10], [8, 16]] {
            let mut case = Case::default();
            let x = case.input("x", ElementType::F32, &extents);
            let turned = case.turned("turned", ElementType::F32, &extents);
            let y = case.graph.add(x, turned).unwrap();
            let sum = case.graph.sum(y, &[-1], false).unwrap();
            case.output("sum", sum);
            let z = case.graph.sub(turned, x).unwrap();
            let z = case.graph.softmax(z, 0).unwrap();
            let z = case.graph.mul(z, turned).unwrap();
            case.output("softmax", z);
            both(&case, &device, 1e-5, 3);
        }
    }
}

/// A kernel that asks for the length of a table is told how long the region is, not what it reads the beginning of.
#[test]
fn the_length_is_that_of_the_region() {
    for device in devices() {
        let mut case = Case::default();
        let x = case.input("x", ElementType::F32, &[1, 2, 6, 8]);
        // Two of these rows are beyond the ten that are there.
        let positions = case.given("positions", Values::U32(vec![0, 9, 10, 19, 3, 12]), &[6]);
        let tables = ["cosines", "sines"].map(|name| {
            let table = case.input(name, ElementType::F32, &[20, 4]);
            let begun = case.graph.narrow(table, 0, 0, 10).unwrap();
            case.graph.abs(begun).unwrap()
        });
        let op = Rope { layout: AttentionLayout::Bhsd, pairs: Pairs::Halves, turned: 8 };
        let y = case.graph.rope(x, tables[0], tables[1], Some(positions), op).unwrap();
        case.output("y", y);
        both_of(&case, &device);
    }
}

#[test]
fn what_others_read_stays_in_memory() {
    for device in devices() {
        let mut case = Case::default();
        let x = case.input("x", ElementType::F32, &[4, 12]);
        // Read by two.
        let y = case.graph.exp(x).unwrap();
        let sum = case.graph.sum(y, &[-1], true).unwrap();
        let share = case.graph.div(y, sum).unwrap();
        case.output("share", share);
        // Given out.
        let z = case.graph.tanh(x).unwrap();
        case.output("tanh", z);
        let most = case.graph.max_over(z, &[0], false).unwrap();
        case.output("most", most);
        let told = both(&case, &device, 1e-5, 0).explain();
        let reasons: BTreeSet<&str> = told.merges.iter().filter_map(|merge| merge.refused.as_deref()).collect();
        assert!(reasons.contains("others read what it makes"), "{told}");

        // A result that others read too is written beside what is made of it.
        let mut case = Case::default();
        let x = case.input("x", ElementType::F32, &[5, 9]);
        let sum = case.graph.sum(x, &[-1], false).unwrap();
        let root = case.graph.abs(sum).unwrap();
        let root = case.graph.sqrt(root).unwrap();
        case.output("sum", sum);
        case.output("root", root);
        let inputs: Vec<_> = case.inputs.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
        let executable = compile(&case.graph, &device, &everywhere(&case.graph));
        compare(&case.graph, &executable, &inputs, &Extents::new(), 1e-5);
        let told = executable.explain();
        assert_eq!((told.steps.len(), merged(&told.merges)), (1, 1), "{told}");
        assert_eq!(
            told.steps[0].uses.iter().filter(|used| used.written && used.tensor != "scratch 0 of sum").count(),
            3
        );
    }
}

#[test]
fn no_kernel_binds_more_than_the_device_allows() {
    for device in devices() {
        let mut case = Case::default();
        let mut sum = case.input("first", ElementType::F32, &[3, 8]);
        for number in 0..6 {
            let other = case.input(&format!("other{number}"), ElementType::F32, &[3, 8]);
            sum = case.graph.add(sum, other).unwrap();
        }
        let y = case.graph.softmax(sum, -1).unwrap();
        case.output("softmax", y);
        // Seven buffers and the result are all that there may be.
        both(&case, &device, 1e-5, 1);
        let one = case.input("one", ElementType::F32, &[3, 8]);
        let two = case.input("two", ElementType::F32, &[3, 8]);
        let z = case.graph.mul(y, one).unwrap();
        let z = case.graph.mul(z, two).unwrap();
        case.output("scaled", z);
        let told = both_of(&case, &device);
        let portable = Profile::portable(device.kind().target()).max_storage_buffers;
        let most = usize::try_from(device.properties().limits.max_storage_buffers.min(portable)).unwrap();
        assert!(told.steps.iter().all(|step| step.uses.len() <= most), "{told}");
        // All of it binds nine.
        if device.kind() != DeviceKind::Cpu && most < 9 {
            let reason = told.merges.iter().filter_map(|merge| merge.refused.as_deref());
            assert!(reason.into_iter().any(|reason| reason.contains("buffers")), "{told}");
        }
    }
}

/// Runs a case with regions in its kernels wherever they can be, and tells what it does.
fn both_of(case: &Case, device: &Device) -> trefoil_graph::explain::Explanation {
    let inputs: Vec<_> = case.inputs.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
    let executable = compile(&case.graph, device, &everywhere(&case.graph));
    compare(&case.graph, &executable, &inputs, &Extents::new(), 1e-5);
    executable.explain()
}

#[test]
fn what_a_run_decides_reaches_the_regions() {
    let (rows, columns) = (Symbol::new("rows", 0, 40).unwrap(), Symbol::new("columns", 1, 90).unwrap());
    let mut graph = Graph::new();
    let shape = vec![Dim::from(&rows), Dim::from(&columns)];
    let x = graph.input("x", ElementType::F32, shape.clone()).unwrap();
    let scale = graph.input("scale", ElementType::F32, vec![Dim::from(&columns)]).unwrap();
    let y = graph.mul(x, scale).unwrap();
    let y = graph.exp(y).unwrap();
    let sums = graph.sum(y, &[-1], false).unwrap();
    let sums = graph.sqrt(sums).unwrap();
    graph.output("sums", sums).unwrap();
    let z = graph.sub(x, scale).unwrap();
    let z = graph.log_softmax(z, -1).unwrap();
    let z = graph.mul(z, scale).unwrap();
    graph.output("softmax", z).unwrap();
    for device in devices() {
        let executable = compile(&graph, &device, &everywhere(&graph));
        assert_eq!(merged(&executable.explain().merges), 4, "{}", executable.explain());
        for (m, n) in [(40, 90), (0, 5), (3, 1), (17, 64), (40, 89)] {
            let values = |count, seed| Values::of(ElementType::F32, count, seed, 1.5);
            let mut extents = Extents::new();
            extents.set(&rows, m).unwrap();
            extents.set(&columns, n).unwrap();
            let inputs = [("x", values((m * n) as usize, 3)), ("scale", values(n as usize, 4))];
            compare(&graph, &executable, &inputs, &extents, 1e-4);
        }
    }
}

#[test]
fn what_does_not_pay_stays_outside() {
    for device in devices().into_iter().filter(|device| device.kind() != DeviceKind::Cpu) {
        let told = |maps: usize, columns: usize, others: usize| {
            let mut graph = Graph::new();
            let shape = [Dim::from(4usize), Dim::from(columns)];
            let mut x = graph.input("x", ElementType::F32, shape.clone()).unwrap();
            for number in 0..others {
                let other = graph.input(&format!("other{number}"), ElementType::F32, shape.clone()).unwrap();
                x = graph.add(x, other).unwrap();
            }
            for _ in 0..maps {
                x = graph.sin(x).unwrap();
            }
            let y = graph.softmax(x, -1).unwrap();
            graph.output("y", y).unwrap();
            let merges = compile(&graph, &device, &Options::default()).explain().merges;
            assert_eq!(merges.len(), 1, "{merges:?}");
            merges[0].refused.clone()
        };
        // Rows that are held are read once, others twice.
        assert_eq!(told(AGAIN + 1, 64, 0), None);
        assert!(told(AGAIN + 1, 63, 0).unwrap().contains("computed again"));
        assert_eq!(told(2, 63, 1), None);
        assert_eq!(told(2, 64, 4), None);
        assert!(told(2, 63, 4).unwrap().contains("would be read"));
    }
    // The CPU's kernels are compiled.
    let cpu = devices().into_iter().find(|device| device.kind() == DeviceKind::Cpu).unwrap();
    let mut case = Case::default();
    let x = case.input("x", ElementType::F32, &[4, 12]);
    let y = case.graph.exp(x).unwrap();
    let y = case.graph.sum(y, &[0], false).unwrap();
    case.output("y", y);
    let told = compile(&case.graph, &cpu, &Options::default()).explain();
    assert_eq!((merged(&told.merges), told.steps.len() > 1), (0, true), "{told}");
}

#[test]
fn equal_structures_share_a_kernel() {
    for device in devices() {
        let model = Model::new();
        let mut counts = Vec::new();
        for rows in [3usize, 5, 9] {
            let mut graph = Graph::new();
            let x = graph.input("x", ElementType::F32, [rows, 12]).unwrap();
            let y = graph.exp(x).unwrap();
            let y = graph.sum(y, &[-1], false).unwrap();
            let y = graph.log(y).unwrap();
            graph.output("y", y).unwrap();
            Executable::compile(&graph, &model, &device, &everywhere(&graph)).unwrap();
            counts.push(model.kernels().count().unwrap());
        }
        assert_eq!(counts, [1, 1, 1]);
    }
}

/// Indices within an axis, and one that is no place.
fn indices(case: &mut Case, name: &str, count: usize, extent: usize) -> Tensor {
    let mut values: Vec<i32> = (0..count).map(|i| (i * 5 % extent) as i32).collect();
    if let Some(last) = values.last_mut() {
        *last = extent as i32;
    }
    case.given(name, Values::I32(values), &[count])
}

#[test]
fn maps_before_and_behind_gathers() {
    use ElementType::{BF16, Bool, F16, F32, F64, I32, I64, U8};
    for device in devices() {
        for element in [F32, F16, BF16, F64, I32, I64, U8] {
            if !computes(&device, element) {
                continue;
            }
            // Runs of every width, gathers along the first, a middle and the last axis, and an empty one.
            for (extents, axis, count) in [
                (&[5usize, 8][..], 0, 3),
                (&[5, 7], 0, 4),
                (&[3, 6], 0, 2),
                (&[2, 5, 12], 1, 4),
                (&[4, 9], 1, 6),
                (&[5, 128], 0, 5),
                (&[5, 8], 0, 0),
            ] {
                let mut case = Case::default();
                let x = case.input("x", element, extents);
                let last = case.input("last", element, &extents[extents.len() - 1..]);
                let at = indices(&mut case, "at", count, extents[axis]);
                // What is gathered is computed where it is read; a place that is none stays 0.
                let y = case.graph.mul(x, last).unwrap();
                let y = case.graph.add(y, x).unwrap();
                let y = case.graph.gather(y, at, axis as isize).unwrap();
                // And what comes of it goes on, with a result of another type.
                let z = case.graph.add(y, y).unwrap();
                let z = case.graph.eq(z, y).unwrap();
                case.output("z", z);
                let executable = both(&case, &device, tolerance(element), 2);
                let told = executable.explain();
                assert!(told.steps[0].story.contains("before it"), "{told}");
                assert!(told.steps[0].story.contains("behind it"), "{told}");
            }
        }
        let mut case = Case::default();
        let (x, other) = (case.input("x", Bool, &[6, 4]), case.input("other", Bool, &[6, 4]));
        let at = indices(&mut case, "at", 4, 6);
        let y = case.graph.logical_and(x, other).unwrap();
        let y = case.graph.gather(y, at, 0).unwrap();
        let y = case.graph.logical_not(y).unwrap();
        case.output("y", y);
        both(&case, &device, 0.0, 2);
    }
}

#[test]
fn pulls_that_move_take_maps_too() {
    for device in devices() {
        let mut case = Case::default();
        let x = case.input("x", ElementType::F32, &[4, 6]);
        let y = case.graph.exp(x).unwrap();
        let elements = Values::I32((0..24).map(|i| i * 7 % 6).collect());
        let at = case.given("at", elements, &[4, 6]);
        let y = case.graph.gather_elements(y, at, 1).unwrap();
        let y = case.graph.relu(y).unwrap();
        case.output("elements", y);
        // Indices may be computed where they are read.
        let rows = indices(&mut case, "rows", 3, 4);
        let two = case.given("two", Values::I32(vec![1, 0, -1]), &[3]);
        let rows = case.graph.add(rows, two).unwrap();
        let z = case.graph.gather(x, rows, 0).unwrap();
        case.output("rows", z);
        both(&case, &device, 1e-5, 3);
    }
}

#[test]
fn gathers_pay_where_fewer_bytes_move() {
    for device in devices().into_iter().filter(|device| device.kind() != DeviceKind::Cpu) {
        let told = |rows: usize, count: usize, others: usize| {
            let mut case = Case::default();
            let mut x = case.input("x", ElementType::F32, &[rows, 64]);
            for number in 0..others {
                let other = case.input(&format!("other{number}"), ElementType::F32, &[rows, 64]);
                x = case.graph.add(x, other).unwrap();
            }
            x = case.graph.sin(x).unwrap();
            let at = indices(&mut case, "at", count, rows);
            let y = case.graph.gather(x, at, 0).unwrap();
            case.output("y", y);
            let merges = compile(&case.graph, &device, &Options::default()).explain().merges;
            assert_eq!(merges.len(), 1, "{merges:?}");
            merges[0].refused.clone()
        };
        assert_eq!(told(64, 16, 2), None);
        assert_eq!(told(16, 16, 0), None);
        // Rows are read eight times each.
        assert!(told(16, 128, 1).unwrap().contains("would be read"));
        assert!(told(16, 16 * 32, 0).unwrap().contains("computed again"));
    }
}

#[test]
fn gathers_of_every_extent() {
    let (rows, count) = (Symbol::new("rows", 1, 30).unwrap(), Symbol::new("count", 0, 20).unwrap());
    let mut graph = Graph::new();
    let x = graph.input("x", ElementType::F32, vec![Dim::from(&rows), Dim::from(12usize)]).unwrap();
    let at = graph.input("at", ElementType::I32, vec![Dim::from(&count)]).unwrap();
    let y = graph.exp(x).unwrap();
    let y = graph.gather(y, at, 0).unwrap();
    let y = graph.tanh(y).unwrap();
    graph.output("y", y).unwrap();
    for device in devices() {
        let executable = compile(&graph, &device, &everywhere(&graph));
        assert_eq!(merged(&executable.explain().merges), 2, "{}", executable.explain());
        for (m, n) in [(30i64, 20i64), (1, 0), (7, 13), (29, 1)] {
            let mut extents = Extents::new();
            extents.set(&rows, m).unwrap();
            extents.set(&count, n).unwrap();
            let x = Values::of(ElementType::F32, (m * 12) as usize, 3, 1.5);
            let at = Values::I32((0..n).map(|i| (i * 11 % (m + 1)) as i32).collect());
            compare(&graph, &executable, &[("x", x), ("at", at)], &extents, 1e-5);
        }
    }
}
