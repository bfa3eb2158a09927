//! Sorts of pairs, against the host's stable sort.

use trefoil::kernels::sort::tile::TILE;
use trefoil_example_kernels::radix_sort::sort_pairs;
use trefoil_example_kernels::workload::words;

use crate::common::{Subject, devices};
use crate::held::{Held, large, repeat};

const LENGTHS: [usize; 14] =
    [0, 1, 2, 3, 255, 256, 257, 1021, TILE - 1, TILE, TILE + 1, 2 * TILE - 1, 4 * TILE + 5, 40_009];

fn check(subject: &Subject, keys: &[u32], about: &str) {
    let about = format!("{} {about} on {}", keys.len(), subject.name);
    let device = &subject.device;
    let values: Vec<u32> = (0..keys.len() as u32).collect();
    let (there, values_there) = (Held::new(device, keys), Held::new(device, &values));
    let (mut keys_out, mut values_out) = (Held::output(device, keys.len()), Held::output(device, keys.len()));
    let launches =
        sort_pairs(device, there.slice(), values_there.slice(), keys_out.slice_mut(), values_out.slice_mut()).unwrap();
    device.run_all(launches).unwrap();
    let mut order = values;
    order.sort_by_key(|i| keys[*i as usize]);
    assert!(values_out.read(&about) == order, "values of {about}");
    assert!(keys_out.read(&about).iter().eq(order.iter().map(|i| &keys[*i as usize])), "keys of {about}");
    assert!(there.read(&about) == keys, "{about}: the input changed");
}

#[test]
fn sorts() {
    for subject in devices() {
        for length in LENGTHS {
            check(&subject, &words(length, 3), "words");
        }
        let of = |f: fn(u32) -> u32| (0..2 * TILE as u32 + 77).map(f).collect::<Vec<_>>();
        check(&subject, &of(|_| 7), "equal keys");
        check(&subject, &of(|_| u32::MAX), "keys like those that fill up a tile");
        check(&subject, &of(|i| i), "keys in order");
        check(&subject, &of(|i| u32::MAX - i), "keys in opposite order");
        check(&subject, &of(|i| ((i % 3) << 30) | (i / 7 % 5)), "keys of few values");
        check(&subject, &words(large(&subject), 4), "words");
    }
}

#[test]
fn pairs_are_the_same_each_time() {
    for subject in devices() {
        let device = &subject.device;
        let keys: Vec<u32> = words(10_007, 5).iter().map(|word| word % 1000).collect();
        let keys = Held::new(device, &keys);
        let values = Held::new(device, &words(10_007, 6));
        let (mut keys_out, mut values_out) = (Held::output(device, 10_007), Held::<u32>::output(device, 10_007));
        let launches =
            sort_pairs(device, keys.slice(), values.slice(), keys_out.slice_mut(), values_out.slice_mut()).unwrap();
        repeat(device, &launches, &values_out, &subject.name);
    }
}

#[test]
fn wrong_lengths_are_refused() {
    for subject in devices() {
        let device = &subject.device;
        let (two, three) = (Held::new(device, &[1u32; 2]), Held::new(device, &[1u32; 3]));
        let (mut keys_out, mut values_out) = (Held::output(device, 3), Held::output(device, 2));
        for (keys, values, argument) in
            [(&three, &two, "values"), (&two, &two, "keys_out"), (&three, &three, "values_out")]
        {
            let launches =
                sort_pairs(device, keys.slice(), values.slice(), keys_out.slice_mut(), values_out.slice_mut());
            let error = launches.unwrap_err().to_string();
            assert!(error.contains(&format!("argument `{argument}`")), "{error}");
        }
    }
}
