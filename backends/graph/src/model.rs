//! Models: params held once, shared by every executable and thread.
//!
//! A [`Model`] is a handle; clones are the same model. Its params come from safetensors files, which are mapped and never read as a whole, from such a file in memory, or from
//! slices. The first executable on a device that reads a param makes the device's copy, which all others share. Params may be set
//! before or after compiling.

mod save;

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use memmap2::Mmap;
use safetensors::Dtype;
use safetensors::tensor::Metadata;
use tracing::{debug_span, info_span};
use trefoil_dsl::device::{Device, Memory, MemoryRange};
use trefoil_dsl::support::check::same_memory;

use crate::compile::cache::KernelCache;
use crate::data::{Data, to_f64};
use crate::error::{Error, Result, at, names};
use crate::op::HostTensor;
use crate::types::{ElementType, TensorType};
use save::LARGEST_HEADER;

/// Params by name, and what executables share beside them.
#[derive(Clone, Debug, Default)]
pub struct Model {
    shared: Arc<Shared>,
}

/// What a model says of one of its params ([`Model::params`]).
///
/// ```
/// use trefoil_graph::{ElementType, Model};
///
/// let model = Model::new();
/// model.set("w", &[2, 3], &[0f32; 6])?;
/// for param in model.params()? {
///     assert_eq!((param.name.as_str(), param.element), ("w", Ok(ElementType::F32)));
///     assert_eq!((param.shape.as_slice(), param.bytes), (&[2, 3][..], 24));
/// }
/// # Ok::<(), trefoil_graph::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelParam {
    /// Its name.
    pub name: String,
    /// Its element type; or what a file calls one that graphs do not know, in lower case.
    pub element: Result<ElementType, String>,
    /// Its extents, outermost first.
    pub shape: Vec<usize>,
    /// How many bytes its elements take on a device; bools are words there.
    pub bytes: u64,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// How often values did not reach a device, or left it: who knows that a param was there looks again after each.
    losses: AtomicU64,
    kernels: KernelCache,
}

#[derive(Debug, Default)]
struct State {
    params: BTreeMap<String, Param>,
    /// By device and param.
    copies: BTreeMap<(u64, String), DeviceCopy>,
}

#[derive(Clone, Debug)]
struct Param {
    /// An element type, or the name of one that graphs do not know.
    element: Result<ElementType, String>,
    shape: Vec<usize>,
    bytes: Bytes,
}

#[derive(Clone, Debug)]
enum Bytes {
    Mapped(Arc<Mmap>, Range<usize>),
    Owned(Arc<[u8]>),
}

#[derive(Clone, Debug)]
struct DeviceCopy {
    device: Device,
    memory: Arc<dyn Memory>,
    ty: TensorType,
    filled: bool,
}

impl Bytes {
    fn as_slice(&self) -> &[u8] {
        match self {
            // Ranges were checked against the file when it was opened.
            Self::Mapped(map, range) => map.get(range.clone()).unwrap_or(&[]),
            Self::Owned(bytes) => bytes,
        }
    }
}

impl DeviceCopy {
    /// Whether somebody reads it: an executable, or one that is being made. What others have left, such as a compilation that failed, binds nobody.
    fn is_held(&self) -> bool {
        Arc::strong_count(&self.memory) > 1
    }
}

impl State {
    /// That there is no param of that name.
    fn unknown(&self, name: &str) -> Error {
        Error::Unknown { what: "param", name: name.to_owned(), known: names(self.params.keys().map(String::as_str)) }
    }
}

/// The rows of all parts, one after the other.
fn joined(name: &str, parts: &[(&String, &Param)]) -> Result<Param> {
    let wrong =
        |given: String, expected: String| Error::Shape { what: "param", name: name.to_owned(), given, expected };
    let Some((first_name, first)) = parts.first() else {
        return Err(wrong("joined of nothing".to_owned(), "one param at least".to_owned()));
    };
    let mut shape = first.shape.clone();
    let Some(rows) = shape.first_mut() else {
        return Err(wrong(format!("joined of `{first_name}`, which has no axes"), "an axis to join along".to_owned()));
    };
    *rows = 0;
    let mut bytes = Vec::new();
    for (part_name, part) in parts {
        let alike = part.element == first.element && part.shape.len() == shape.len() && part.shape[1..] == shape[1..];
        if !alike {
            let given = format!("joined of `{part_name}`, which is {}", part.describe());
            return Err(wrong(
                given,
                format!("all but the first extent as of `{first_name}`, which is {}", first.describe()),
            ));
        }
        let Some(rows) = shape[0].checked_add(part.shape[0]) else {
            let given = format!("joined of `{part_name}`, which is {}, behind {} rows", part.describe(), shape[0]);
            return Err(wrong(given, format!("{} rows at most", usize::MAX)));
        };
        shape[0] = rows;
        bytes.extend_from_slice(part.bytes.as_slice());
    }
    Ok(Param { element: first.element.clone(), shape, bytes: Bytes::Owned(bytes.into()) })
}

impl Param {
    fn describe(&self) -> String {
        let element = match &self.element {
            Ok(element) => element.name(),
            Err(name) => name,
        };
        format!("{element}{:?}", self.shape)
    }

    /// Checks that this is what a graph declares.
    fn check(&self, name: &str, ty: &TensorType) -> Result<()> {
        if self.element.as_ref() != Ok(&ty.element) {
            return Err(Error::ElementType {
                what: "param",
                name: name.to_owned(),
                given: self.element.as_ref().map_or_else(Clone::clone, |element| element.to_string()),
                expected: ty.element,
            });
        }
        let same = self.shape.len() == ty.rank()
            && self
                .shape
                .iter()
                .zip(&ty.shape)
                .all(|(given, expected)| i64::try_from(*given).is_ok_and(|n| expected.is(n)));
        if same {
            return Ok(());
        }
        Err(Error::Shape { what: "param", name: name.to_owned(), given: self.describe(), expected: ty.to_string() })
    }
}

/// Maps a file into memory.
fn map(path: &Path) -> std::io::Result<Mmap> {
    let file = File::open(path)?;
    // SAFETY: what lies behind a shared slice must not change, and nothing in Rust or in the system sees to that for a file: it is relied on that nobody writes to the file or cuts it while the map is there, which
    // `Model::from_safetensors`, the only caller, asks of its own. Nothing is left to that but the values of elements: the header is parsed from a copy, and ranges are checked against the map's length, which stays.
    unsafe { Mmap::map(&file) }
}

/// The length of a safetensors file's header, and what it says; else what is wrong with the file, with the tensor at which it breaks off.
///
/// It is copied before anything looks at it: what is parsed stays what it was found to be, whatever becomes of the file.
fn header(file: &[u8]) -> Result<(usize, Metadata), String> {
    let cut = || format!("its {} bytes end within the header: it is truncated", file.len());
    let (length, rest) = file.split_first_chunk().ok_or_else(cut)?;
    let length = u64::from_le_bytes(*length);
    let Some(length) = usize::try_from(length).ok().filter(|length| *length <= LARGEST_HEADER) else {
        return Err(format!("its header would take {length} bytes; safetensors allow {LARGEST_HEADER}"));
    };
    let header = rest.get(..length).ok_or_else(cut)?.to_vec();
    let metadata: Metadata = serde_json::from_slice(&header).map_err(|error| match error.is_data() {
        true => format!("its header is not of safetensors: {error}"),
        false => format!("invalid JSON in header: {error}"),
    })?;
    let data = rest.len() - length;
    if metadata.data_len() == data { Ok((length, metadata)) } else { Err(broken_off(&metadata, file.len(), data)) }
}

/// What is wrong with a file of so many bytes, so many of them behind the header, of which its tensors take fewer or more.
fn broken_off(metadata: &Metadata, file: usize, data: usize) -> String {
    let tensors = metadata.tensors();
    let cut = tensors.iter().filter(|(_, info)| info.data_offsets.1 > data);
    match cut.min_by_key(|(_, info)| info.data_offsets) {
        Some((name, info)) => {
            let end = (file - data).saturating_add(info.data_offsets.1);
            format!("tensor `{name}` ends at byte {end}, but the file has {file}: it is truncated")
        }
        None => "it goes on after its last tensor".to_owned(),
    }
}

/// The element type that a file's type is, or the name of one that graphs do not know.
fn element_type(dtype: Dtype) -> Result<ElementType, String> {
    let name = format!("{dtype:?}").to_lowercase();
    ElementType::ALL.into_iter().find(|element| element.name() == name).ok_or(name)
}

/// What a safetensors file is read from.
#[derive(Clone, Copy)]
enum Source<'a> {
    Mapped(&'a Arc<Mmap>),
    Memory(&'a [u8]),
}

impl Source<'_> {
    fn file(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Memory(bytes) => bytes,
        }
    }

    /// A tensor's bytes. Bools are bytes there and words here, so that theirs are read at once.
    fn bytes_of(&self, range: Range<usize>, element: &Result<ElementType, String>) -> Bytes {
        let bytes = self.file().get(range.clone()).unwrap_or(&[]);
        match self {
            _ if *element == Ok(ElementType::Bool) => {
                Bytes::Owned(bytes.iter().flat_map(|byte| u32::from(*byte != 0).to_le_bytes()).collect())
            }
            Self::Mapped(map) => Bytes::Mapped(Arc::clone(map), range),
            Self::Memory(_) => Bytes::Owned(bytes.into()),
        }
    }
}

impl Model {
    /// A model without params.
    pub fn new() -> Self {
        Self::default()
    }

    /// A model of the params of one or more safetensors files. The files are mapped: nothing is read until a device wants it.
    ///
    /// Nothing may write to the files or make them shorter while the model is there, or a clone of it: the compiler takes what is mapped for what does not change, so that it is undefined what a program does that reads a param while another
    /// program writes to it. Most likely what was written becomes a part of the params; and where it cuts a file, the system ends this program (`SIGBUS` on Unix) when it reads what was
    /// cut off, which no library can answer with an error. Put a new file in the place of the old one (write it under another name, then rename it), or read it yourself and use [`Model::from_safetensors_bytes`].
    ///
    /// # Errors
    /// A file cannot be opened, is truncated, or is not safetensors; or a name stands in two files.
    pub fn from_safetensors<P: AsRef<Path>>(paths: &[P]) -> Result<Self> {
        let model = Self::new();
        for path in paths {
            model.add_safetensors(path.as_ref())?;
        }
        Ok(model)
    }

    /// A model of the params of one safetensors file that is in memory, as `include_bytes!` or a download leaves it. They are copied.
    ///
    /// ```
    /// use trefoil_graph::Model;
    ///
    /// let header = br#"{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  "#;
    /// let (length, values) = ((header.len() as u64).to_le_bytes(), [1f32, 2.0].map(f32::to_le_bytes).concat());
    /// let model = Model::from_safetensors_bytes(&[&length[..], &header[..], &values[..]].concat())?;
    /// assert_eq!(model.values("w")?.values, [1.0, 2.0]);
    /// # Ok::<(), trefoil_graph::Error>(())
    /// ```
    ///
    /// # Errors
    /// The bytes are truncated, or are not safetensors.
    pub fn from_safetensors_bytes(bytes: &[u8]) -> Result<Self> {
        let model = Self::new();
        model.add(Source::Memory(bytes), |reason| Error::File { path: "safetensors in memory".to_owned(), reason })?;
        Ok(model)
    }

    fn add_safetensors(&self, path: &Path) -> Result<()> {
        let _load = info_span!("load", path = %path.display()).entered();
        let wrong = |reason: String| Error::File { path: path.display().to_string(), reason };
        let map = Arc::new(map(path).map_err(|error| wrong(error.to_string()))?);
        self.add(Source::Mapped(&map), wrong)
    }

    fn add(&self, source: Source<'_>, wrong: impl Fn(String) -> Error) -> Result<()> {
        let (header, metadata) = header(source.file()).map_err(&wrong)?;
        let data = header + size_of::<u64>();
        let mut state = self.lock()?;
        for (name, info) in metadata.tensors() {
            let range = data + info.data_offsets.0..data + info.data_offsets.1;
            let element = element_type(info.dtype);
            let bytes = source.bytes_of(range, &element);
            let param = Param { element, shape: info.shape.clone(), bytes };
            if state.params.insert(name.clone(), param).is_some() {
                return Err(wrong(format!("tensor `{name}` is in another file too")));
            }
        }
        Ok(())
    }

    /// Gives a param, or gives it anew: then devices that hold it get the new values before their next run.
    ///
    /// # Errors
    /// The number of values is not what the shape takes; the graph of an executable that is there declares the param otherwise; or a device failed: then executables on that device answer that the param is not given, until it is.
    pub fn set<'a>(&self, name: &str, shape: &[usize], values: impl Into<Data<'a>>) -> Result<()> {
        let data = values.into();
        let expected = shape.iter().try_fold(1u64, |product, extent| product.checked_mul(*extent as u64));
        let param =
            Param { element: Ok(data.element), shape: shape.to_vec(), bytes: Bytes::Owned(data.bytes[..].into()) };
        if expected != Some(data.len()) {
            return Err(Error::Length {
                what: "param",
                name: name.to_owned(),
                given: data.len(),
                expected: expected.unwrap_or(u64::MAX),
                ty: param.describe(),
            });
        }
        self.give(name, param)
    }

    /// Gives a param as [`Model::set`] does, with the rows of others, in their order, as they are now: their first axes are laid end to end. Of the weights of queries, keys and values it makes one for
    /// [`Graph::linear_split`](crate::Graph::linear_split), which one kernel reads where three would wait for each other's ends. The others stay; devices hold of them what graphs read.
    ///
    /// ```
    /// use trefoil_graph::Model;
    ///
    /// let model = Model::new();
    /// model.set("query", &[1, 2], &[1f32, 2.0])?;
    /// model.set("key", &[2, 2], &[3f32, 4.0, 5.0, 6.0])?;
    /// model.join("packed", &["query", "key"])?;
    /// assert_eq!(model.values("packed")?.shape, [3, 2]);
    /// # Ok::<(), trefoil_graph::Error>(())
    /// ```
    ///
    /// # Errors
    /// There are no others or not all of them, one has no axes, they differ in more than their first extent, or they have more rows than there are numbers; or as [`Model::set`].
    pub fn join(&self, name: &str, parts: &[&str]) -> Result<()> {
        let param = {
            let state = self.lock()?;
            let parts = parts.iter().map(|part| state.params.get_key_value(*part).ok_or_else(|| state.unknown(part)));
            joined(name, &parts.collect::<Result<Vec<_>>>()?)?
        };
        self.give(name, param)
    }

    fn give(&self, name: &str, param: Param) -> Result<()> {
        let mut state = self.lock()?;
        // What nobody holds keeps no param from another type.
        let fits = |copy: &DeviceCopy| param.check(name, &copy.ty).is_ok();
        state.copies.retain(|(_, known), copy| known != name || copy.is_held() || fits(copy));
        for ((_, known), copy) in &state.copies {
            if known == name {
                param.check(name, &copy.ty)?;
            }
        }
        let mut outcome = Ok(());
        for ((_, known), copy) in &mut state.copies {
            if known == name
                && let Err(error) = fill(name, copy, &param)
            {
                // A part of the values may be there, beside those before.
                copy.filled = false;
                self.shared.losses.fetch_add(1, Ordering::Release);
                outcome = outcome.and(Err(error));
            }
        }
        state.params.insert(name.to_owned(), param);
        outcome
    }

    /// Its params, in the order of their names.
    ///
    /// # Errors
    /// Another thread panicked while it changed the model.
    pub fn params(&self) -> Result<Vec<ModelParam>> {
        let state = self.lock()?;
        let params = state.params.iter().map(|(name, param)| ModelParam {
            name: name.clone(),
            element: param.element.clone(),
            shape: param.shape.clone(),
            bytes: param.bytes.as_slice().len() as u64,
        });
        Ok(params.collect())
    }

    /// The names of its params.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        Ok(self.lock()?.params.keys().cloned().collect())
    }

    /// The values of a param, for references.
    ///
    /// # Errors
    /// There is no such param, or graphs do not know its element type.
    pub fn values(&self, name: &str) -> Result<HostTensor> {
        let state = self.lock()?;
        let param = state.params.get(name).ok_or_else(|| state.unknown(name))?;
        match &param.element {
            Ok(element) => {
                Ok(HostTensor { shape: param.shape.clone(), values: to_f64(*element, param.bytes.as_slice()) })
            }
            Err(given) => Err(Error::ElementType {
                what: "param",
                name: name.to_owned(),
                given: given.clone(),
                expected: ElementType::F32,
            }),
        }
    }

    /// The device's copy of a param, made if it is the first, and whether its values are there.
    pub(crate) fn on_device(&self, device: &Device, name: &str, ty: &TensorType) -> Result<(Arc<dyn Memory>, bool)> {
        let Some(bytes) = ty.bytes().constant().and_then(|bytes| u64::try_from(bytes).ok()) else {
            return Err(Error::Symbolic { what: "param", name: name.to_owned(), ty: ty.to_string() });
        };
        let mut state = self.lock()?;
        let param = state.params.get(name).cloned();
        if let Some(param) = &param {
            param.check(name, ty)?;
        }
        let key = (device.id(), name.to_owned());
        if let Some(copy) = state.copies.get(&key) {
            if copy.ty == *ty {
                return Ok((copy.memory.clone(), copy.filled));
            }
            if copy.is_held() {
                let (given, expected) = (ty.to_string(), copy.ty.to_string());
                return Err(Error::Shape { what: "param", name: name.to_owned(), given, expected });
            }
            state.copies.remove(&key);
        }
        let memory = device.backend().allocate(bytes, name).map_err(at("param", name))?;
        let mut copy = DeviceCopy { device: device.clone(), memory, ty: ty.clone(), filled: false };
        if let Some(param) = &param {
            fill(name, &mut copy, param)?;
        }
        let answer = (copy.memory.clone(), copy.filled);
        state.copies.insert(key, copy);
        Ok(answer)
    }

    /// Whether a param's values are on a device, in the memory that an executable reads.
    pub(crate) fn is_filled(&self, device: &Device, name: &str, memory: &Arc<dyn Memory>) -> Result<bool> {
        let state = self.lock()?;
        let copy = state.copies.get(&(device.id(), name.to_owned()));
        Ok(copy.is_some_and(|copy| copy.filled && same_memory(&copy.memory, memory)))
    }

    /// Lets go of a device's copies of the params: of one that was lost, or is no longer wanted. They are freed once no executable holds them. Executables that do answer from then on that their params are not
    /// given, since new values would not reach them; one that is compiled later brings the params to the device again.
    ///
    /// # Errors
    /// Another thread panicked while it changed the model.
    pub fn release(&self, device: &Device) -> Result<()> {
        self.lock()?.copies.retain(|(known, _), _| *known != device.id());
        self.shared.losses.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// How often values did not reach a device, or left it.
    pub(crate) fn losses(&self) -> u64 {
        self.shared.losses.load(Ordering::Acquire)
    }

    /// Kernels that graphs generated, by structure.
    pub fn kernels(&self) -> &KernelCache {
        &self.shared.kernels
    }

    fn lock(&self) -> Result<MutexGuard<'_, State>> {
        self.shared.state.lock().map_err(|_| Error::Poisoned)
    }
}

fn fill(name: &str, copy: &mut DeviceCopy, param: &Param) -> Result<()> {
    let _upload = debug_span!("upload", param = name).entered();
    let data = param.bytes.as_slice();
    let range = MemoryRange { memory: copy.memory.clone(), offset: 0, bytes: data.len() as u64 };
    copy.device.backend().write(&range, data).map_err(at("param", name))?;
    copy.filled = true;
    Ok(())
}
