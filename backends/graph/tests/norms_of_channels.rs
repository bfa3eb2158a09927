//! Norms whose vectors go along channels, on every device, against their definition: of groups, instances, channels and batches.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use common::cases::Case;
use common::{Values, compare, devices, numbers};
use trefoil_graph::ops::{BatchMoments, NormOperands};
use trefoil_graph::{ElementType, Executable, Extents, Graph, Model, Options, Symbol};

/// What a norm of groups of channels is, by its definition.
fn by_groups(x: &[f32], [batch, channels, rest]: [usize; 3], groups: usize, gamma: &[f32], beta: &[f32]) -> Vec<f64> {
    let each = channels / groups * rest;
    let mut y = Vec::new();
    for group in 0..batch * groups {
        let row: Vec<f64> = x[group * each..(group + 1) * each].iter().map(|x| f64::from(*x)).collect();
        let mean = row.iter().sum::<f64>() / each as f64;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / each as f64;
        y.extend(row.iter().enumerate().map(|(at, x)| {
            let channel = (group * each + at) / rest % channels;
            (x - mean) / (variance + 1e-3).sqrt() * f64::from(gamma[channel]) + f64::from(beta[channel])
        }));
    }
    y
}

#[test]
fn norms_of_channels() {
    for [batch, channels, high, wide] in [[2, 6, 4, 8], [3, 6, 5, 7], [1, 12, 1, 1], [2, 6, 3, 4], [0, 6, 2, 2]] {
        let mut case = Case::default();
        let extents = [batch, channels, high, wide];
        let values = numbers(extents.iter().product(), 3, 2.0);
        let (scale, shift) = (numbers(channels, 4, 1.0), numbers(channels, 5, 1.0));
        let x = case.given("x", Values::F32(values.clone()), &extents);
        let gamma = case.given("gamma", Values::F32(scale.clone()), &[channels]);
        let beta = case.given("beta", Values::F32(shift.clone()), &[channels]);
        let mut expected = Vec::new();
        for groups in [1, 2, 3, 6] {
            let y = case.graph.group_norm(x, groups, 1e-3, Some(gamma), Some(beta)).unwrap();
            case.output(&format!("{groups} groups"), y);
            let y = by_groups(&values, [batch, channels, high * wide], groups, &scale, &shift);
            expected.push((format!("{groups} groups"), y));
        }
        let y = case.graph.instance_norm(x, 1e-3, Some(gamma), Some(beta)).unwrap();
        case.output("instances", y);
        let y = by_groups(&values, [batch, channels, high * wide], channels, &scale, &shift);
        expected.push(("instances".to_owned(), y));
        let y = case.graph.layer_norm_2d(x, 1e-3, Some(gamma), Some(beta)).unwrap();
        case.output("channels", y);
        // As a layer norm of what has channels last.
        let last = case.graph.transpose(x, &[0, 2, 3, 1]).unwrap();
        let operands = NormOperands { gamma: Some(gamma), beta: Some(beta), ..NormOperands::default() };
        let y = case.graph.layer_norm(last, &[-1], 1e-3, operands).unwrap();
        let y = case.graph.transpose(y, &[0, 3, 1, 2]).unwrap();
        case.output("channels last", y);
        let positive: Vec<f32> = numbers(channels, 6, 1.0).iter().map(|x| x.abs() + 0.1).collect();
        let variance = case.given("variance", Values::F32(positive.clone()), &[channels]);
        let moments = BatchMoments { mean: beta, variance };
        let y = case.graph.batch_norm(x, moments, 1e-3, Some(gamma), Some(beta)).unwrap();
        case.output("batch", y);
        let y = values.iter().enumerate().map(|(at, x)| {
            let of = |vector: &[f32]| f64::from(vector[at / (high * wide) % channels]);
            (f64::from(*x) - of(&shift)) / (of(&positive) + 1e-3).sqrt() * of(&scale) + of(&shift)
        });
        expected.push(("batch".to_owned(), y.collect()));
        for device in devices() {
            println!("{extents:?} on {}", device.properties().name);
            let executable = case.check(&device, 2e-4);
            let data: Vec<_> = case.inputs.iter().map(|(name, values)| (name.as_str(), values.data())).collect();
            let outputs = executable.run(&data, &Extents::new()).unwrap();
            let close = |name: &str, expected: &[f64]| {
                let given = outputs.host(name).unwrap();
                assert_eq!(given.shape, extents, "{name}");
                for (given, expected) in given.values.iter().zip(expected) {
                    assert!((given - expected).abs() < 2e-4 * expected.abs().max(1.0), "{name}: {given}, {expected}");
                }
            };
            for (name, expected) in &expected {
                close(name, expected);
            }
            close("channels last", &outputs.host("channels").unwrap().values);
        }
    }
}

/// Groups of as many channels as each run wants, in multiples of the groups.
#[test]
fn as_many_channels_as_each_run_wants() {
    let channels = Symbol::with_multiple("channels", 2, 12, 2).unwrap();
    let mut graph = Graph::new();
    let x = graph.input("x", ElementType::F32, (2, &channels, 3, 4)).unwrap();
    let [gamma, beta] = ["gamma", "beta"].map(|name| graph.input(name, ElementType::F32, [&channels]).unwrap());
    let y = graph.group_norm(x, 2, 1e-3, Some(gamma), Some(beta)).unwrap();
    assert_eq!(graph.type_of(y).unwrap(), graph.type_of(x).unwrap());
    graph.output("y", y).unwrap();
    for device in devices() {
        let executable = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap();
        for count in [2usize, 12, 6] {
            println!("{count} channels on {}", device.properties().name);
            let extents = Extents::with([(&channels, count as i64)]).unwrap();
            let (x, gamma, beta) = (numbers(24 * count, 3, 2.0), numbers(count, 4, 1.0), numbers(count, 5, 1.0));
            let inputs = [("x", x), ("gamma", gamma), ("beta", beta)].map(|(name, x)| (name, Values::F32(x)));
            compare(&graph, &executable, &inputs, &extents, 2e-4);
        }
    }
}
