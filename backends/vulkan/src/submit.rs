//! Submissions: the one queue, what it still holds for the device, transfers, lists and runs.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use ash::vk;
use trefoil_dsl::device::{Command, Memory, MemoryRange, Recording, RunIo};
use trefoil_dsl::error::Result;
use trefoil_dsl::support::check::{BINDING_MULTIPLE, same_memory};
use trefoil_dsl::support::state::{CounterCells, lock};

use crate::descriptors::Descriptors;
use crate::device::{Shared, VulkanBackend};
use crate::memory::{Direction, RawBuffer, STAGING_CHUNK, STAGING_KEPT, Staging, StagingPool, VulkanMemory};
use crate::record::{Commands, Encoder, Kept, ONCE, VulkanRecording, spilled_bytes};
use crate::unread::Unread;

/// Submissions that may be unfinished before the next one waits for the oldest; it bounds what is held for the device.
const MOST_IN_FLIGHT: usize = 64;

/// Copies of [`STAGING_CHUNK`] bytes that are on their way to the host at a time for one read or run: while the host takes one, the device makes the other.
const COPIES_AT_ONCE: usize = 2;

/// What a submission needs of its own, if it is more than a recording: a command buffer for a list or for copies before a recording, one for copies after it, and
/// descriptors.
pub(crate) struct Slot {
    pub(crate) commands: Commands,
    pub(crate) descriptors: Descriptors,
}

impl Slot {
    fn new(shared: &Arc<Shared>) -> Result<Self> {
        Ok(Self { commands: Commands::new(shared, shared.traits.family, 2)?, descriptors: Descriptors::new(shared) })
    }
}

/// A submission that the device may not have finished.
struct InFlight {
    value: u64,
    label: Arc<str>,
    slot: Option<Slot>,
    staging: Vec<Staging>,
    kept: Kept,
}

/// What the device is done with, to be dropped when no lock is held: a buffer of the program's brings an owner, which may take locks of the program's as it goes, and who holds those may be waiting for ours.
pub(crate) type Retired = Arc<Mutex<Vec<Kept>>>;

/// What is held for the device; who has its lock submits.
#[derive(Default)]
pub(crate) struct Queue {
    in_flight: VecDeque<InFlight>,
    slots: Vec<Slot>,
    staging: StagingPool,
    retired: Retired,
    unread: Unread,
}

impl Queue {
    /// An empty queue, which leaves to the caller what the device is done with.
    pub(crate) fn new(retired: Retired) -> Self {
        Self { retired, ..Self::default() }
    }

    /// Takes back what the device is done with.
    pub(crate) fn retire(&mut self, shared: &Shared) -> Result<()> {
        let Some(oldest) = self.in_flight.front() else { return Ok(()) };
        let finished = shared.finished(&oldest.label)?;
        while self.in_flight.front().is_some_and(|submission| submission.value <= finished) {
            if let Some(done) = self.in_flight.pop_front() {
                lock(&self.retired).push(done.kept);
                self.slots.extend(done.slot);
                for staging in done.staging {
                    self.staging.give(staging);
                }
            }
        }
        Ok(())
    }

    /// The last unfinished submission that may use this memory, and its name.
    fn last_use(&mut self, shared: &Shared, memory: &Arc<dyn Memory>) -> Result<Option<(u64, Arc<str>)>> {
        self.retire(shared)?;
        let last = self.in_flight.iter().rev().find(|submission| submission.kept.holds(memory));
        Ok(last.map(|last| (last.value, last.label.clone())))
    }

    /// Takes back what the device is done with, and waits for the oldest submission where there are as many as may be.
    fn make_room(&mut self, shared: &Shared) -> Result<()> {
        self.retire(shared)?;
        if self.in_flight.len() >= MOST_IN_FLIGHT
            && let Some(oldest) = self.in_flight.front()
        {
            shared.wait_for(oldest.value, &oldest.label)?;
            self.retire(shared)?;
        }
        Ok(())
    }

    /// An empty slot, for one more submission.
    pub(crate) fn slot(&mut self, shared: &Arc<Shared>) -> Result<Slot> {
        self.make_room(shared)?;
        let Some(mut slot) = self.slots.pop() else { return Slot::new(shared) };
        slot.commands.reset()?;
        slot.descriptors.reset()?;
        Ok(slot)
    }

    /// A staging buffer, to be handed to [`Queue::submit`]. Where too many bytes lie in those that are not done, it waits for the oldest.
    pub(crate) fn take_staging(&mut self, shared: &Arc<Shared>, bytes: u64, direction: Direction) -> Result<Staging> {
        loop {
            let staged = self.in_flight.iter().flat_map(|submission| &submission.staging);
            let staged: u64 = staged.map(|staging| staging.buffer.bytes).sum();
            match self.in_flight.front() {
                Some(oldest) if staged > 0 && staged + bytes > STAGING_KEPT => {
                    shared.wait_for(oldest.value, &oldest.label)?;
                    self.retire(shared)?;
                }
                _ => return self.staging.take(shared, bytes, direction),
            }
        }
    }

    /// Submits command buffers that are complete, and holds what they need until they are done.
    pub(crate) fn submit(
        &mut self,
        shared: &Shared,
        commands: &[vk::CommandBuffer],
        slot: Option<Slot>,
        staging: Vec<Staging>,
        kept: Kept,
        label: &Arc<str>,
    ) -> Result<u64> {
        self.unread.read_ahead(shared, |memory| kept.holds(memory))?;
        let value = shared.submitted.load(Ordering::Acquire) + 1;
        let signals = [shared.timeline];
        let values = [value];
        let mut timeline = vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&values);
        let info =
            vk::SubmitInfo::default().command_buffers(commands).signal_semaphores(&signals).push_next(&mut timeline);
        // Even after a failure these must not be freed while the device might use them.
        self.in_flight.push_back(InFlight { value, label: label.clone(), slot, staging, kept });
        // SAFETY: `self` is behind its lock; the command buffers are complete, and none is in use but those of recordings that were begun for that; they and all that they use are held by the entry above.
        unsafe { shared.connection.submit(&shared.device, &info, &shared.submitted, value) }
            .map_err(|error| shared.state.lost(label, error))?;
        CounterCells::add(&shared.state.counters.submissions);
        Ok(value)
    }

    /// Copies `data` to memory without the device, if the host sees that memory and nobody may be using it; says whether it did.
    fn write_direct(&mut self, shared: &Shared, to: &MemoryRange, data: &[u8]) -> Result<bool> {
        let memory = VulkanMemory::of(&to.memory, shared)?;
        let is_free = memory.buffer.is_writable() && self.in_flight.is_empty();
        if is_free {
            self.unread.read_ahead(shared, |memory| same_memory(memory, &to.memory))?;
            memory.buffer.write_host(to.offset, data)?;
        }
        Ok(is_free)
    }

    /// Submits copies of `data` to memory, through staging buffers.
    fn write_staged(&mut self, shared: &Arc<Shared>, to: &MemoryRange, data: &[u8], label: &Arc<str>) -> Result<()> {
        let memory = VulkanMemory::of(&to.memory, shared)?;
        let mut offset = to.offset;
        for chunk in data.chunks(STAGING_CHUNK as usize) {
            let mut slot = self.slot(shared)?;
            let staging = self.take_staging(shared, chunk.len() as u64, Direction::Upload)?;
            staging.buffer.write_host(0, chunk)?;
            let commands = slot.commands.buffers[0];
            let encoder = Encoder::begin(shared, commands, &mut slot.descriptors, ONCE)?;
            encoder.copy((&staging.buffer, 0), (&memory.buffer, offset), chunk.len() as u64);
            let commands = encoder.end()?;
            let kept = Kept { memory: vec![to.memory.clone()], ..Kept::default() };
            self.submit(shared, &[commands], Some(slot), vec![staging], kept, label)?;
            offset += chunk.len() as u64;
        }
        Ok(())
    }

    /// Submits copies of a range to staging buffers, and adds them to `landing`. Where too many are there, it waits for the oldest first, with the lock: what others submit then comes behind the last of them.
    fn read_staged<'d>(
        &mut self,
        shared: &Arc<Shared>,
        from: &MemoryRange,
        data: &'d mut [u8],
        label: &Arc<str>,
        landing: &mut VecDeque<Landing<'d>>,
    ) -> Result<()> {
        let memory = VulkanMemory::of(&from.memory, shared)?;
        let mut offset = from.offset;
        for chunk in data.chunks_mut(STAGING_CHUNK as usize) {
            if landing.len() >= COPIES_AT_ONCE
                && let Some(oldest) = landing.pop_front()
            {
                let (staging, landed) = oldest.land(shared, label);
                self.staging.give(staging);
                landed?;
            }
            let bytes = chunk.len() as u64;
            let mut slot = self.slot(shared)?;
            let staging = self.take_staging(shared, bytes, Direction::Download)?;
            let commands = slot.commands.buffers[0];
            let encoder = Encoder::begin(shared, commands, &mut slot.descriptors, ONCE)?;
            encoder.copy((&memory.buffer, offset), (&staging.buffer, 0), bytes);
            let commands = encoder.end()?;
            let kept = Kept { memory: vec![from.memory.clone()], ..Kept::default() };
            let value = self.submit(shared, &[commands], Some(slot), Vec::new(), kept, label)?;
            landing.push_back(Landing { value, staging, to: chunk });
            offset += bytes;
        }
        Ok(())
    }
}

/// A copy to a staging buffer, and where its bytes go. It must not go before it has landed: the device may be writing to the buffer.
struct Landing<'d> {
    /// Its submission.
    value: u64,
    staging: Staging,
    to: &'d mut [u8],
}

impl Landing<'_> {
    /// Waits for the copy and hands its bytes over; the device is done with the buffer then, also where that failed ([`Shared::wait_for`]).
    fn land(self, shared: &Shared, label: &str) -> (Staging, Result<()>) {
        let Self { value, staging, to } = self;
        let landed = shared.wait_for(value, label).and_then(|()| staging.buffer.read_host(0, to));
        (staging, landed)
    }
}

/// Where the host's side of a transfer lies: in a pinned buffer, or else in the run's staging buffer from that byte on.
type HostSide = (Option<Arc<RawBuffer>>, u64);

/// The buffer of a host side, and where in it.
fn host_side<'a>((pinned, at): &'a HostSide, staging: Option<&'a Staging>) -> Option<(&'a RawBuffer, u64)> {
    Some((pinned.as_deref().or_else(|| staging.map(|staging| &staging.buffer))?, *at))
}

/// Where the next piece starts in a staging buffer.
fn next_piece(bytes: u64) -> u64 {
    bytes.next_multiple_of(BINDING_MULTIPLE)
}

impl VulkanBackend {
    /// Copies `data` to memory, after everything submitted before.
    pub(crate) fn upload(&self, to: &MemoryRange, data: &[u8]) -> Result<()> {
        let shared = &self.shared;
        shared.state.checks().transfer(to, data.len(), "write")?;
        let memory = VulkanMemory::of(&to.memory, shared)?;
        let mut queue = lock(&self.queue);
        queue.retire(shared)?;
        if queue.write_direct(shared, to, data)? {
            return Ok(());
        }
        let label: Arc<str> = Arc::from("write");
        if let Some((pinned, at)) = shared.pinned.find(data) {
            return self.copy_pinned(queue, &pinned, to, &label, |encoder| {
                encoder.copy((&pinned, at), (&memory.buffer, to.offset), to.bytes);
            });
        }
        queue.write_staged(shared, to, data, &label)
    }

    /// Copies memory to `data`, after everything submitted before.
    pub(crate) fn download(&self, from: &MemoryRange, data: &mut [u8]) -> Result<()> {
        let shared = &self.shared;
        shared.state.checks().transfer(from, data.len(), "read")?;
        let memory = VulkanMemory::of(&from.memory, shared)?;
        if memory.buffer.is_readable(data.len()) {
            self.wait_all()?;
            return self.read_direct(from, data);
        }
        let label: Arc<str> = Arc::from("read");
        if let Some((pinned, at)) = shared.pinned.find(data) {
            return self.copy_pinned(lock(&self.queue), &pinned, from, &label, |encoder| {
                encoder.copy((&memory.buffer, from.offset), (&pinned, at), from.bytes);
            });
        }
        self.before_holding(from.bytes)?;
        let mut landing = VecDeque::new();
        // The lock is held to the last copy, so that all of them see one state.
        let submitted = lock(&self.queue).read_staged(shared, from, data, &label, &mut landing);
        let landed = self.land(landing, &label);
        submitted.and(landed)
    }

    /// Where so many bytes are read that the lock will be held while copies of them are waited for: waits for what was submitted before, while others may submit.
    fn before_holding(&self, bytes: u64) -> Result<()> {
        if bytes > COPIES_AT_ONCE as u64 * STAGING_CHUNK { self.wait_all() } else { Ok(()) }
    }

    /// Waits for copies and hands their bytes over.
    fn land(&self, landing: VecDeque<Landing<'_>>, label: &str) -> Result<()> {
        let mut result = Ok(());
        // Each of them, also where one has failed.
        for copy in landing {
            let (staging, landed) = copy.land(&self.shared, label);
            lock(&self.queue).staging.give(staging);
            result = result.and(landed);
        }
        // The copies hold the memory until they are taken back.
        result.and(lock(&self.queue).retire(&self.shared))
    }

    /// Reads what the host sees by itself. Who uses that memory is waited for: without the lock, since others submit meanwhile; and what of that is submitted in between, under it, so that nobody writes there while it is read.
    fn read_direct(&self, from: &MemoryRange, data: &mut [u8]) -> Result<()> {
        let shared = &self.shared;
        let before = lock(&self.queue).last_use(shared, &from.memory)?;
        if let Some((value, label)) = before {
            shared.wait_for(value, &label)?;
        }
        let mut queue = lock(&self.queue);
        if let Some((value, label)) = queue.last_use(shared, &from.memory)? {
            shared.wait_for(value, &label)?;
        }
        VulkanMemory::of(&from.memory, shared)?.buffer.read_host(from.offset, data)
    }

    /// Copies between a pinned buffer and memory as `fill` encodes it, and waits for it: the pinned bytes are the caller's again then.
    fn copy_pinned(
        &self,
        mut queue: MutexGuard<'_, Queue>,
        pinned: &Arc<RawBuffer>,
        range: &MemoryRange,
        label: &Arc<str>,
        fill: impl FnOnce(&Encoder<'_>),
    ) -> Result<()> {
        let shared = &self.shared;
        let mut slot = queue.slot(shared)?;
        let encoder = Encoder::begin(shared, slot.commands.buffers[0], &mut slot.descriptors, ONCE)?;
        fill(&encoder);
        let commands = encoder.end()?;
        let kept = Kept { memory: vec![range.memory.clone()], pinned: vec![pinned.clone()], ..Kept::default() };
        let value = queue.submit(shared, &[commands], Some(slot), Vec::new(), kept, label)?;
        drop(queue);
        shared.wait_for(value, label)?;
        // The submission holds the memory until it is taken back.
        lock(&self.queue).retire(shared)
    }

    /// Runs a list without waiting for it.
    pub(crate) fn submit_list(&self, list: &[Command]) -> Result<()> {
        let shared = &self.shared;
        shared.state.checks().commands(list, None)?;
        let spill = spilled_bytes(shared, list)?;
        let mut queue = lock(&self.queue);
        let mut slot = queue.slot(shared)?;
        let staging = match spill {
            0 => None,
            bytes => Some(queue.take_staging(shared, bytes, Direction::Upload)?),
        };
        let commands = slot.commands.buffers[0];
        let mut encoder = Encoder::begin(shared, commands, &mut slot.descriptors, ONCE)?
            .with(None, staging.as_ref().map(|staging| &staging.buffer));
        encoder.list(list)?;
        let commands = encoder.end()?;
        let staging = staging.into_iter().collect();
        queue.submit(shared, &[commands], Some(slot), staging, Kept::of(list), &Command::first_label(list))?;
        Ok(())
    }

    /// Waits until everything submitted is done.
    pub(crate) fn wait_all(&self) -> Result<()> {
        let (last, label) = {
            let queue = lock(&self.queue);
            match queue.in_flight.front() {
                Some(oldest) => (self.shared.submitted.load(Ordering::Acquire), oldest.label.clone()),
                None => return Ok(()),
            }
        };
        self.shared.wait_for(last, &label)?;
        lock(&self.queue).retire(&self.shared)
    }

    /// Runs a recording without run words, without waiting for it.
    pub(crate) fn submit_recording(&self, recording: &dyn Recording) -> Result<()> {
        let shared = &self.shared;
        let recording = VulkanRecording::of(recording, shared)?;
        recording.rules.expect_none(&recording.label)?;
        let recorded = &recording.recorded;
        let mut queue = lock(&self.queue);
        queue.make_room(shared)?;
        let kept = Kept { recorded: Some(recorded.clone()), ..Kept::default() };
        queue.submit(shared, &[recorded.commands.buffers[0]], None, Vec::new(), kept, &recording.label)?;
        Ok(())
    }

    /// Runs a recording: uploads, commands, downloads; and waits for it. The lock is held from the first of these to the submission of the last, so that nothing of others comes between.
    pub(crate) fn run_recording(&self, recording: &dyn Recording, io: RunIo<'_, '_>) -> Result<()> {
        let shared = &self.shared;
        let recording = VulkanRecording::of(recording, shared)?;
        let recorded = &recording.recorded;
        // Held to the end: another run would write what this one reads.
        let mut ran = lock(&recording.ran);
        shared.state.checks().io(&io, &recording.rules, *ran)?;
        let RunIo { run_words, uploads, downloads } = io;

        self.before_holding(downloads.iter().map(|(range, _)| range.bytes).fold(0, u64::saturating_add))?;
        let mut queue = lock(&self.queue);
        queue.retire(shared)?;
        // What does not fit one staging buffer goes by itself, before and after.
        let mut small_uploads = Vec::with_capacity(uploads.len());
        let mut staged = 0;
        for (range, data) in uploads {
            let pinned = shared.pinned.find(data);
            let piece = if pinned.is_some() { 0 } else { next_piece(range.bytes) };
            if staged + piece > STAGING_CHUNK {
                if !queue.write_direct(shared, range, data)? {
                    queue.write_staged(shared, range, data, &recording.label)?;
                }
            } else {
                staged += piece;
                small_uploads.push((range, *data, pinned));
            }
        }

        let mut slot = queue.slot(shared)?;
        let mut submitted = Vec::with_capacity(3);
        if let (Some(words), Some(buffer)) = (run_words, &recorded.run_words) {
            // The last run was waited for, and nothing with run words is submitted otherwise, so that the device does not look at them now.
            buffer.write_host(0, words)?;
        }
        let mut pieces = Vec::with_capacity(small_uploads.len());
        staged = 0;
        let mut kept = Kept { recorded: Some(recorded.clone()), ..Kept::default() };
        for (range, data, pinned) in small_uploads {
            let memory = VulkanMemory::of(&range.memory, shared)?;
            if !data.is_empty() && !queue.write_direct(shared, range, data)? {
                let from = match pinned {
                    Some((buffer, at)) => {
                        kept.pinned.push(buffer.clone());
                        (Some(buffer), at)
                    }
                    None => {
                        let at = staged;
                        staged += next_piece(range.bytes);
                        (None, at)
                    }
                };
                pieces.push((from, memory, range, data));
                kept.memory.push(range.memory.clone());
            }
        }
        let mut held = Vec::new();
        if !pieces.is_empty() {
            let staging = match staged {
                0 => None,
                bytes => Some(queue.take_staging(shared, bytes, Direction::Upload)?),
            };
            let commands = slot.commands.buffers[0];
            let encoder = Encoder::begin(shared, commands, &mut slot.descriptors, ONCE)?;
            for (from, memory, range, data) in &pieces {
                if let (None, Some(staging)) = (&from.0, &staging) {
                    staging.buffer.write_host(from.1, data)?;
                }
                if let Some(from) = host_side(from, staging.as_ref()) {
                    encoder.copy(from, (&memory.buffer, range.offset), range.bytes);
                }
            }
            submitted.push(encoder.end()?);
            held.extend(staging);
        }
        submitted.push(recorded.commands.buffers[0]);

        let mut taken = Vec::with_capacity(downloads.len());
        let mut large = Vec::new();
        let mut direct = Vec::new();
        staged = 0;
        for (range, data) in downloads {
            if data.is_empty() {
                continue;
            }
            if VulkanMemory::of(&range.memory, shared)?.buffer.is_readable(data.len()) {
                direct.push((range, data));
            } else if let Some((buffer, at)) = shared.pinned.find(data) {
                kept.memory.push(range.memory.clone());
                kept.pinned.push(buffer.clone());
                taken.push(((Some(buffer), at), range, data));
            } else if staged + next_piece(range.bytes) > STAGING_CHUNK {
                large.push((range, data));
            } else {
                kept.memory.push(range.memory.clone());
                let at = staged;
                staged += next_piece(range.bytes);
                taken.push(((None, at), range, data));
            }
        }
        let mut result = None;
        if !taken.is_empty() {
            if staged > 0 {
                result = Some(queue.take_staging(shared, staged, Direction::Download)?);
            }
            let commands = slot.commands.buffers[1];
            let encoder = Encoder::begin(shared, commands, &mut slot.descriptors, ONCE)?;
            for (to, range, _) in &taken {
                let memory = VulkanMemory::of(&range.memory, shared)?;
                if let Some(to) = host_side(to, result.as_ref()) {
                    encoder.copy((&memory.buffer, range.offset), to, range.bytes);
                }
            }
            submitted.push(encoder.end()?);
        }
        let value = queue.submit(shared, &submitted, Some(slot), held, kept, &recording.label)?;
        for (range, _) in &direct {
            queue.unread.add(value, &recording.label, range);
        }
        let mut landing = VecDeque::new();
        let mut copied = Ok(());
        for (range, data) in large {
            if copied.is_ok() {
                copied = queue.read_staged(shared, range, data, &recording.label, &mut landing);
            }
        }
        drop(queue);
        let waited = shared.wait_for(value, &recording.label);
        // From here on nothing of the run is under way but these; they are behind its commands.
        let landed = self.land(landing, &recording.label);
        let mut queue = lock(&self.queue);
        let ahead = queue.unread.take(value);
        waited?;
        *ran = true;
        copied.and(landed)?;
        for ((range, data), bytes) in direct.into_iter().zip(ahead) {
            match bytes {
                Some(bytes) => data.copy_from_slice(&bytes),
                None => VulkanMemory::of(&range.memory, shared)?.buffer.read_host(range.offset, data)?,
            }
        }
        drop(queue);
        if let Some(staging) = result {
            for ((pinned, at), _, data) in taken {
                if pinned.is_none() {
                    staging.buffer.read_host(at, data)?;
                }
            }
            lock(&self.queue).staging.give(staging);
        }
        Ok(())
    }
}
