//! The spans of compiling and running. It is the one test of its program: what a thread without a subscriber meets first, `tracing` takes for something that nobody wants.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use trefoil_graph::{ElementType, Executable, Extents, Graph, Model, Options};

/// The names of spans that were entered.
#[derive(Default)]
struct Spans {
    next: AtomicU64,
    names: Mutex<Vec<&'static str>>,
}

/// [`Spans`] as a subscriber of one thread.
struct Collector(Arc<Spans>);

impl Subscriber for Collector {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.0.names.lock().unwrap().push(span.metadata().name());
        Id::from_u64(self.0.next.fetch_add(1, Ordering::Relaxed) + 1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn stages_and_runs_are_spans() {
    let spans = Arc::<Spans>::default();
    tracing::subscriber::with_default(Collector(spans.clone()), || {
        let mut g = Graph::new();
        let x = g.input("x", ElementType::F32, [3]).unwrap();
        let w = g.param("w", ElementType::F32, [3]).unwrap();
        let y = g.add(x, w).unwrap();
        g.output("y", y).unwrap();
        let model = Model::new();
        model.set("w", &[3], &[1f32, 2.0, 3.0]).unwrap();
        let device = trefoil_cpu::open(&Default::default()).unwrap();
        let executable = Executable::compile(&g, &model, &device, &Options::default()).unwrap();
        executable.run(&[("x", (&[1f32, 2.0, 3.0]).into())], &Extents::new()).unwrap();
        executable.profile(&Extents::new()).unwrap();
    });
    let names = spans.names.lock().unwrap().clone();
    let stages =
        ["compile", "legalise", "choose", "fuse", "steps", "plan", "schedule", "memory", "upload", "kernels", "prove"];
    assert_eq!(names[..stages.len()], stages);
    assert_eq!(names[stages.len()..], ["record", "run", "profile"]);
}
