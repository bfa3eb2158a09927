//! Pooling and resizing.

use trefoil_graph::ops::pull::pool::{Pooling, Window};
use trefoil_graph::ops::pull::resize::{Alignment, Interpolation, Nearest, ResizeAxis};
use trefoil_graph::ops::pull::sample::{GridSample, Outside, Sampling};
use trefoil_graph::{Dim, ElementType, Tensor};

use super::slides::{Axis, axes};
use super::{Import, Imported, Importer, Unsupported, dims};
use crate::cases::Node;

/// By ONNX's names.
pub(super) const IMPORTS: &[(&str, Import)] = &[
    ("MaxPool", max_pool),
    ("AveragePool", |i, n| {
        let counts = i.int(n, "count_include_pad", 0) != 0;
        pool(i, n, if counts { Pooling::MeanWithPadding } else { Pooling::Mean })
    }),
    ("LpPool", |i, n| {
        let power = i.int(n, "p", 2) as f32;
        pool(i, n, Pooling::Norm(power))
    }),
    ("GlobalMaxPool", |i, n| global(i, n, Pooling::Max)),
    ("GlobalAveragePool", |i, n| global(i, n, Pooling::Mean)),
    ("GlobalLpPool", |i, n| {
        let power = i.int(n, "p", 2) as f32;
        global(i, n, Pooling::Norm(power))
    }),
    ("Resize", resize),
    ("Upsample", resize),
    ("GridSample", |i, n| {
        let (x, grid) = (i.input(n, 0)?, i.input(n, 1)?);
        let sampling = match i.string(n, "mode", "linear") {
            "nearest" => Sampling::Nearest,
            "linear" | "bilinear" => Sampling::Linear,
            "cubic" | "bicubic" => Sampling::Cubic,
            mode => return Err(i.refuse(n, format!("mode `{mode}`"))),
        };
        let outside = match i.string(n, "padding_mode", "zeros") {
            "zeros" => Outside::Zeros,
            "border" => Outside::Border,
            "reflection" => Outside::Reflection,
            mode => return Err(i.refuse(n, format!("padding_mode `{mode}`"))),
        };
        let align_corners = i.int(n, "align_corners", 0) != 0;
        Ok(vec![i.graph.grid_sample(x, grid, GridSample { sampling, outside, align_corners })?])
    }),
];

/// What the attributes say of the windows.
fn windows(importer: &Importer<'_>, node: &Node, x: Tensor) -> Result<Vec<Window>, Unsupported> {
    let extents = importer.extents(x)?;
    let sizes = importer.ints(node, "kernel_shape").ok_or_else(|| importer.refuse(node, "no kernel_shape"))?;
    let ceil = importer.int(node, "ceil_mode", 0) != 0;
    let window = |axis: Axis| Window {
        size: Dim::from(axis.size),
        stride: Dim::from(axis.stride),
        dilation: Dim::from(axis.dilation),
        padding: axis.padding.map(Dim::from),
        ceil,
    };
    Ok(axes(importer, node, &extents, &sizes)?.into_iter().map(window).collect())
}

fn pool(importer: &mut Importer<'_>, node: &Node, pooling: Pooling) -> Imported {
    let x = importer.input(node, 0)?;
    let windows = windows(importer, node, x)?;
    Ok(vec![importer.graph.pool(x, pooling, &windows)?])
}

/// One window over all but batch and channels.
fn global(importer: &mut Importer<'_>, node: &Node, pooling: Pooling) -> Imported {
    let x = importer.input(node, 0)?;
    let windows: Vec<Window> = importer.extents(x)?.iter().skip(2).map(|extent| Window::new(*extent)).collect();
    Ok(vec![importer.graph.pool(x, pooling, &windows)?])
}

/// Its second output is where in all of `x` each element stands.
fn max_pool(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let mut outputs = pool(importer, node, Pooling::Max)?;
    if node.outputs.len() < 2 {
        return Ok(outputs);
    }
    let x = importer.input(node, 0)?;
    let (extents, windows) = (importer.extents(x)?, windows(importer, node, x)?);
    let lead = extents.len() - windows.len();
    let (planes, spatial) = (extents[..lead].iter().product::<usize>(), &extents[lead..]);
    let mut place = importer.graph.pool(x, Pooling::PlaceOfMax, &windows)?;
    if importer.int(node, "storage_order", 0) != 0 {
        place = first_axis_fastest(importer, place, spatial)?;
    }
    let plane: usize = spatial.iter().product();
    let mut shape = dims(&extents[..lead]);
    shape.extend(spatial.iter().map(|_| Dim::from(1i64)));
    let start = importer.graph.arange(0.0, plane as f64, planes, ElementType::U32)?;
    let start = importer.graph.reshape(start, shape)?;
    let whole = importer.graph.add(place, start)?;
    outputs.push(importer.graph.cast(whole, ElementType::I64)?);
    Ok(outputs)
}

/// Numbers of positions, counted with the last axis fastest, as numbers with the first axis fastest.
fn first_axis_fastest(importer: &mut Importer<'_>, place: Tensor, extents: &[usize]) -> Result<Tensor, Unsupported> {
    let graph = &mut importer.graph;
    let (mut inner, mut sum) = (extents.iter().product::<usize>(), None);
    let mut outer = 1usize;
    for extent in extents {
        inner /= extent.max(&1);
        let [by, of, times] = [inner, *extent, outer].map(|number| graph.scalar(number as u32, ElementType::U32));
        let along = graph.div(place, by?)?;
        let along = graph.rem(along, of?)?;
        let part = graph.mul(along, times?)?;
        sum = Some(match sum {
            Some(sum) => graph.add(sum, part)?,
            None => part,
        });
        outer *= extent;
    }
    Ok(sum.unwrap_or(place))
}

/// A number as a fraction of small numbers, by its continued fraction.
fn fraction(value: f64) -> [i64; 2] {
    let ([mut before, mut last], mut rest) = ([[0i64, 1], [1, 0]], value);
    for _ in 0..12 {
        let whole = rest.floor();
        let next = [0, 1].map(|part: usize| whole as i64 * last[part] + before[part]);
        if next[1] > 4096 {
            break;
        }
        (before, last) = (last, next);
        // As near as a float of 32 bits can tell.
        if (last[0] as f64 / last[1] as f64 - value).abs() <= 1e-7 * value.abs() {
            break;
        }
        rest = 1.0 / (rest - whole);
    }
    last
}

fn resize(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let x = importer.input(node, 0)?;
    let extents = importer.extents(x)?;
    let rank = extents.len();
    if importer.int(node, "antialias", 0) != 0 {
        return Err(importer.refuse(node, "antialias"));
    }
    // Before version 11 scales stood where the region is now, and positions were as `asymmetric` has them.
    let old = node.op == "Upsample" || importer.opset < 11;
    let axes = importer.ints(node, "axes").unwrap_or_else(|| (0..rank as i64).collect());
    let axes: Vec<usize> =
        axes.iter().map(|at| usize::try_from(if *at < 0 { at + rank as i64 } else { *at }).unwrap_or(0)).collect();
    let floats = |position: usize| -> Result<Option<Vec<f64>>, Unsupported> {
        match importer.optional(node, position)? {
            Some(tensor) => Ok(Some(importer.values_of(tensor)?).filter(|values| !values.is_empty())),
            None => Ok(None),
        }
    };
    let scales = floats(if old { 1 } else { 2 })?;
    let sizes = if old { None } else { importer.numbers(node, 3)? };
    let region = if old { None } else { floats(1)? };
    let mut shape = extents.clone();
    let mut ratios = vec![[1i64, 1]; rank];
    match (scales, sizes) {
        (Some(scales), _) => {
            for (at, scale) in axes.iter().zip(scales) {
                ratios[*at] = fraction(scale);
                shape[*at] = (extents[*at] as f64 * scale).floor() as usize;
            }
        }
        (None, Some(sizes)) => {
            for (at, size) in axes.iter().zip(&sizes) {
                (ratios[*at], shape[*at]) = ([*size, extents[*at] as i64], *size as usize);
            }
            let policy = importer.string(node, "keep_aspect_ratio_policy", "stretch");
            if policy != "stretch" {
                let value = |ratio: &[i64; 2]| ratio[0] as f64 / ratio[1] as f64;
                let all = axes.iter().map(|at| ratios[*at]);
                let least = policy == "not_larger";
                let one = all.reduce(|a, b| if (value(&b) < value(&a)) == least { b } else { a }).unwrap_or([1, 1]);
                for at in &axes {
                    ratios[*at] = one;
                    shape[*at] = (extents[*at] as f64 * value(&one)).round() as usize;
                }
            }
        }
        (None, None) => return Err(importer.refuse(node, "neither scales nor sizes")),
    }
    let mode = importer.string(node, "mode", "nearest");
    let default = if old { "asymmetric" } else { "half_pixel" };
    let transformation = importer.string(node, "coordinate_transformation_mode", default);
    let first = axes.iter().copied().filter(|at| shape[*at] != extents[*at] || ratios[*at][0] != ratios[*at][1]).min();
    let first = first.unwrap_or(rank);
    let mut outside: Vec<(usize, Vec<u32>)> = Vec::new();
    let mut resized = Vec::new();
    for at in first..rank {
        let (from, to, [up, down]) = (extents[at] as i64, shape[at] as i64, ratios[at]);
        let [step, start, over] = match transformation {
            "half_pixel" => [2 * down, down - up, 2 * up],
            "pytorch_half_pixel" if to == 1 => [0, 0, 1],
            "pytorch_half_pixel" => [2 * down, down - up, 2 * up],
            "half_pixel_symmetric" => [2 * down, from * up - to * down + down - up, 2 * up],
            "asymmetric" => [down, 0, up],
            "align_corners" if to == 1 => [0, 0, 1],
            "align_corners" => [(from - 1) * down, 0, from * up - down],
            "tf_crop_and_resize" => {
                let place = axes.iter().position(|axis| *axis == at);
                let ends =
                    place.zip(region.as_ref()).map(|(place, region)| (region[place], region[place + axes.len()]));
                let (low, high) = ends.unwrap_or((0.0, 1.0));
                let ([low, low_over], [high, high_over]) = (fraction(low), fraction(high));
                let gaps = (to - 1).max(1);
                let over = low_over * high_over * gaps;
                let (low, high) = (low * high_over, high * low_over);
                let fraction = match to {
                    1 => [0, (low + high) * (from - 1), 2 * over],
                    _ => [(high - low) * (from - 1), low * gaps * (from - 1), over],
                };
                let [step, start, over] = fraction;
                let within = (0..to).map(|i| u32::from(i * step + start < 0 || i * step + start > (from - 1) * over));
                outside.push((at, within.collect()));
                fraction
            }
            other => return Err(importer.refuse(node, format!("coordinate_transformation_mode `{other}`"))),
        };
        let [step, start, over] = [step, start, over]
            .map(|number| i32::try_from(number).map_err(|_| importer.refuse(node, "a scale of many digits")));
        let alignment = Alignment::At { step: step?, start: start?, over: over? };
        resized.push(ResizeAxis { extent: Dim::from(to), alignment });
    }
    let interpolation = match mode {
        "nearest" => {
            let default = if old { "floor" } else { "round_prefer_floor" };
            Interpolation::Nearest(match importer.string(node, "nearest_mode", default) {
                "round_prefer_floor" => Nearest::PreferLower,
                "round_prefer_ceil" => Nearest::PreferUpper,
                "floor" => Nearest::Lower,
                _ => Nearest::Upper,
            })
        }
        "linear" | "bilinear" => Interpolation::Linear,
        "cubic" => {
            let within = importer.int(node, "exclude_outside", 0) != 0;
            Interpolation::Cubic { a: importer.float(node, "cubic_coeff_a", -0.75), within }
        }
        other => return Err(importer.refuse(node, format!("mode `{other}`"))),
    };
    let mut y = importer.graph.resize(x, &resized, interpolation)?;
    // What lies outside of `x` is a value of its own.
    let value = importer.float(node, "extrapolation_value", 0.0);
    for (at, places) in outside.into_iter().filter(|(_, places)| places.contains(&1)) {
        let mut shape = vec![1; rank];
        shape[at] = places.len();
        let mask = importer.constant(ElementType::Bool, &shape, bytemuck::cast_slice(&places))?;
        let element = importer.ty(y)?.element;
        let value = importer.graph.scalar(value, element)?;
        y = importer.graph.where_(mask, value, y)?;
    }
    Ok(vec![y])
}
