//! Kernels made ready, in memory: each is built once a device, in parallel with the others of the same call.
//!
//! All kernels of a call are tried, also after a failure, so that what could be built is there for the next call. Nothing is locked while a kernel
//! is built: two threads that want the same kernel at once may both build it, and the first to finish is kept.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use trefoil_codegen::artefact::{Kernel, ParamTransport};

use super::state::lock;
use super::threads::side_by_side;
use crate::device::Pipeline;
use crate::error::Result;

/// What tells the pipelines of most devices apart.
pub type Key = ([u8; 16], String, ParamTransport);

/// The [`Key`] of a kernel.
pub fn key(kernel: &Kernel, transport: ParamTransport) -> Key {
    (kernel.hash, kernel.name.to_string(), transport)
}

/// The pipelines of type `P` that a device has made, by what tells them apart.
#[derive(Debug)]
pub struct PipelineCache<P, K = Key>(Mutex<HashMap<K, Arc<P>>>);

impl<P, K> Default for PipelineCache<P, K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<P: Pipeline, K: Clone + Eq + Hash + Send + Sync> PipelineCache<P, K> {
    /// A pipeline for each kernel, in their order; those that are not there yet are made by `build`.
    ///
    /// # Errors
    /// That of the first kernel that could not be built.
    pub fn load(
        &self,
        kernels: &[Arc<Kernel>],
        key: impl Fn(&Kernel) -> K,
        build: impl Fn(&Arc<Kernel>) -> Result<P> + Sync,
    ) -> Result<Vec<Arc<dyn Pipeline>>> {
        let mut positions = HashMap::new();
        let mut distinct = Vec::new();
        let which: Vec<usize> = kernels
            .iter()
            .map(|kernel| {
                let key = key(kernel);
                *positions.entry(key.clone()).or_insert_with(|| {
                    distinct.push((key, kernel));
                    distinct.len() - 1
                })
            })
            .collect();
        let mut made: Vec<Option<Result<Arc<P>>>> = {
            let known = lock(&self.0);
            distinct.iter().map(|(key, _)| known.get(key).cloned().map(Ok)).collect()
        };
        let missing: Vec<_> =
            distinct.iter().zip(&made).filter(|(_, known)| known.is_none()).map(|(new, _)| new).collect();
        // Callers hold locks, so that none of it may wait on the threads of a pool.
        let built = side_by_side(&missing, |(key, kernel)| {
            let built = Arc::new(build(kernel)?);
            let kept = lock(&self.0).entry(key.clone()).or_insert_with(|| built.clone()).clone();
            // Where another thread was faster, `built` goes here, when nothing is locked: a device may wait as a pipeline of its goes.
            Ok(kept)
        });
        for (place, built) in made.iter_mut().filter(|known| known.is_none()).zip(built) {
            *place = Some(built);
        }
        let made: Vec<Arc<P>> = made.into_iter().flatten().collect::<Result<_>>()?;
        Ok(which.into_iter().map(|position| made[position].clone() as Arc<dyn Pipeline>).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::any::Any;
    use std::sync::Weak;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use trefoil_codegen::artefact::{GridKind, IndexWidth, Params};

    use super::*;
    use crate::error::Error;

    #[derive(Debug)]
    struct Made(Arc<Kernel>);

    impl Pipeline for Made {
        fn kernel(&self) -> &Arc<Kernel> {
            &self.0
        }
        fn as_any(&self) -> &dyn Any {
            self
        }
        fn device(&self) -> u64 {
            1
        }
    }

    fn kernel(name: &str, hash: u8) -> Arc<Kernel> {
        Arc::new(Kernel {
            name: name.to_owned().into(),
            doc: "".into(),
            bindings: Vec::new().into(),
            params: Params { size: 0, fields: Vec::new().into() },
            constants: Vec::new().into(),
            workgroup_size: [1, 1, 1],
            subgroup_size: None,
            workgroup_bytes: 0,
            no_robustness: false,
            index: IndexWidth::Bits32,
            grid: GridKind::Linear,
            variants: Vec::new().into(),
            cpu: None,
            sites: Vec::new().into(),
            reporting: None,
            ir: Vec::new().into(),
            instance: Vec::new().into(),
            hash: [hash; 16],
        })
    }

    /// Builds all but kernels called `broken...`, and counts what it is asked for.
    #[derive(Default)]
    struct Device {
        cache: PipelineCache<Made>,
        asked: AtomicUsize,
    }

    impl Device {
        fn load(&self, kernels: &[Arc<Kernel>], transport: ParamTransport) -> Result<Vec<Arc<dyn Pipeline>>> {
            let build = |kernel: &Arc<Kernel>| {
                self.asked.fetch_add(1, Ordering::Relaxed);
                if kernel.name.starts_with("broken") {
                    let (kernel, device) = (kernel.name.to_string(), "test".to_owned());
                    return Err(Error::Build { kernel, device, message: String::new() });
                }
                Ok(Made(kernel.clone()))
            };
            self.cache.load(kernels, |kernel| key(kernel, transport), build)
        }

        fn asked(&self) -> usize {
            self.asked.swap(0, Ordering::Relaxed)
        }
    }

    #[test]
    fn pipelines_come_in_the_order_of_the_kernels_and_are_built_once() {
        let device = Device::default();
        // Two kernels of one hash differ by name, and two of one name by hash.
        let kernels = [kernel("b", 1), kernel("a", 1), kernel("b", 1), kernel("a", 2)];
        let made = device.load(&kernels, ParamTransport::Value).unwrap();
        let found: Vec<_> = made.iter().map(|made| (made.kernel().name.to_string(), made.kernel().hash[0])).collect();
        assert_eq!(found, [("b".to_owned(), 1), ("a".to_owned(), 1), ("b".to_owned(), 1), ("a".to_owned(), 2)]);
        assert!(Arc::ptr_eq(&made[0], &made[2]));
        assert_eq!(device.asked(), 3);
        let again = device.load(&kernels[1..2], ParamTransport::Value).unwrap();
        assert!(Arc::ptr_eq(&again[0], &made[1]));
        assert_eq!(device.asked(), 0);
        let other = device.load(&kernels[1..2], ParamTransport::Buffer).unwrap();
        assert!(!Arc::ptr_eq(&other[0], &made[1]), "a transport has its own pipeline");
        assert!(device.load(&[], ParamTransport::Value).unwrap().is_empty());
    }

    #[test]
    fn the_first_failure_is_told_and_the_rest_is_kept() {
        let device = Device::default();
        let kernels = [kernel("a", 1), kernel("broken 1", 2), kernel("b", 3), kernel("broken 2", 4)];
        match device.load(&kernels, ParamTransport::Value) {
            Err(Error::Build { kernel, .. }) => assert_eq!(kernel, "broken 1"),
            other => panic!("{other:?}"),
        }
        assert_eq!(device.asked(), 4);
        device.load(&[kernels[0].clone(), kernels[2].clone()], ParamTransport::Value).unwrap();
        assert_eq!(device.asked(), 0, "what could be built was kept");
        assert!(device.load(&kernels[1..2], ParamTransport::Value).is_err());
        assert_eq!(device.asked(), 1, "a failure is tried again");
    }

    /// A pipeline that notes, as it goes, whether its cache can be used then.
    #[derive(Debug)]
    struct Noting {
        kernel: Arc<Kernel>,
        cache: Weak<PipelineCache<Self>>,
        noted: Arc<Mutex<Vec<bool>>>,
    }

    impl Pipeline for Noting {
        fn kernel(&self) -> &Arc<Kernel> {
            &self.kernel
        }
        fn as_any(&self) -> &dyn Any {
            self
        }
        fn device(&self) -> u64 {
            1
        }
    }

    impl Drop for Noting {
        fn drop(&mut self) {
            if let Some(cache) = self.cache.upgrade() {
                lock(&self.noted).push(cache.0.try_lock().is_ok());
            }
        }
    }

    #[test]
    fn a_pipeline_that_another_thread_was_faster_with_goes_when_nothing_is_locked() {
        let (cache, noted) = (Arc::new(PipelineCache::<Noting>::default()), Arc::<Mutex<Vec<bool>>>::default());
        let make = |kernel: &Arc<Kernel>| Noting {
            kernel: kernel.clone(),
            cache: Arc::downgrade(&cache),
            noted: noted.clone(),
        };
        let of = |kernel: &Kernel| key(kernel, ParamTransport::Value);
        let kernels = [kernel("a", 1)];
        // While one is built, another is built and kept.
        let made = cache.load(&kernels, of, |kernel| {
            cache.load(&kernels, of, |kernel| Ok(make(kernel)))?;
            Ok(make(kernel))
        });
        let kept = cache.load(&kernels, of, |_| panic!("it is there")).unwrap();
        assert!(Arc::ptr_eq(&made.unwrap()[0], &kept[0]));
        assert_eq!(*lock(&noted), [true]);
    }
}
