//! Submitted jobs, what proofs take, and what an engine tells of itself.

use std::ffi::c_char;
use std::ptr::null;
use std::sync::Arc;
use std::time::Duration;

use sealc2_sys as sys;

use crate::{
    call, randomness, request_of, text_c, text_of, Engine, Error, Job, JobHandle, Kind, ParamSource, Proof, Result, Sector, PROOF_BYTES,
};

/// How urgent a submitted job is: one of a higher class goes before those of lower ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Class {
    #[default]
    PoRep,
    Snap,
    WindowPoSt,
    WinningPoSt,
}

impl Class {
    fn of(number: u32) -> Class {
        match number {
            sys::CLASS_SNAP => Class::Snap,
            sys::CLASS_WINDOW_POST => Class::WindowPoSt,
            sys::CLASS_WINNING_POST => Class::WinningPoSt,
            _ => Class::PoRep,
        }
    }
}

/// How far a submitted job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// Nothing of it has run.
    Queued,
    /// Being parsed, admitted or proved.
    Running,
    /// Its proof is there.
    Done,
    Failed,
    Cancelled,
}

/// What a submission may have beyond a sector.
#[derive(Clone, Copy, Default)]
pub struct SubmitOptions<'a> {
    /// The job's name in the engine, at most 127 bytes without control characters; empty: one is made. The same name with the same
    /// content is the same job, while it is under way and once it is done; with other content it is refused.
    pub id: &'a str,
    /// Other content may have the name of a job that is done, whose result is forgotten then.
    pub replace: bool,
    pub class: Class,
    /// The job is cancelled when so much time is over.
    pub deadline: Option<Duration>,
    /// How long to wait for room in the queue, else [`Kind::Timeout`]. [`Duration::MAX`] is for ever.
    pub room: Duration,
    /// By which another thread can end that wait; then nothing is submitted.
    pub call: Option<&'a Job>,
    /// As in [`crate::Options`].
    pub statement: Option<&'a [u8]>,
    /// As in [`crate::Options`].
    pub circuit_proofs: bool,
    /// As in [`crate::Options`].
    pub randomness: Option<(&'a [[u8; 32]], &'a [[u8; 32]])>,
}

/// A submitted job at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct JobProgress {
    pub id: String,
    pub state: State,
    pub class: Class,
    /// 0: not known yet.
    pub partitions: u32,
    /// Partitions whose proofs are there.
    pub delivered: u32,
    /// The stage that ended last; empty before the first.
    pub stage: String,
    /// Its partition; `None`: it was one of the whole job.
    pub partition: Option<u32>,
    /// What the job failed with.
    pub failure: Option<Kind>,
    /// Share of the whole job, 0 to 1.
    pub done: f64,
    /// From submission to the first stage, or until now.
    pub queued: Duration,
    /// From there to the end, or until now.
    pub running: Duration,
}

/// What a proof takes, by the plans of its devices, and the engine's budget.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Requirements {
    pub partitions: u32,
    pub threads: u32,
    /// Reserved for the whole job; the C1 output's own size comes on top.
    pub host_bytes: u64,
    /// On all devices.
    pub device_bytes: u64,
    /// Of it, what jobs of one plan have together: parameters, and what they compute in.
    pub shared_bytes: u64,
    /// Partitions that the first device proves together.
    pub batch: u32,
    /// Batches that it has under way at once.
    pub ahead: u32,
    pub devices: u32,
    pub host_limit: u64,
    pub device_limit: u64,
    pub threads_limit: u32,
}

/// In what form the timeline is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimelineFormat {
    /// cuzk's `TIMELINE,<ms>,<event>,<job>,<detail>` lines.
    Text = sys::TIMELINE_TEXT as isize,
    /// A JSON object a line and stage.
    Json = sys::TIMELINE_JSON as isize,
    /// A document for chrome://tracing or Perfetto.
    Chrome = sys::TIMELINE_CHROME as isize,
}

/// A submitted job. Clones are the same one. Dropping it lets the job go on; its result then stays under its id.
#[derive(Clone)]
pub struct Submitted(Arc<JobHandle>);

impl Submitted {
    /// The proof, when it is there; any number of times, also after the engine is gone. Errors are what the job failed with, and
    /// [`Kind::Timeout`] when the time is over and it goes on; `None` waits for ever.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Proof> {
        let milliseconds = timeout.map_or(sys::FOREVER, milliseconds);
        let mut proof = vec![0; 128 * PROOF_BYTES];
        let mut len = 0;
        loop {
            // SAFETY: room for as many bytes as are said.
            let result =
                call(|err| unsafe { (self.0.library.wait)(self.0.handle, milliseconds, proof.as_mut_ptr(), proof.len(), &mut len, err) });
            if result.is_err() && len > proof.len() {
                proof.resize(len, 0);
                continue;
            }
            result?;
            proof.truncate(len);
            return Ok(Proof(proof));
        }
    }

    /// How far the job is.
    pub fn progress(&self) -> Result<JobProgress> {
        let mut info = sys::JobInfo::default();
        // SAFETY: a place for the answer, with its size.
        call(|err| unsafe { (self.0.library.job_progress)(self.0.handle, &mut info, err) })?;
        Ok(JobProgress {
            id: text_of(&info.id),
            state: match info.state {
                sys::JOB_QUEUED => State::Queued,
                sys::JOB_RUNNING => State::Running,
                sys::JOB_DONE => State::Done,
                sys::JOB_CANCELLED => State::Cancelled,
                _ => State::Failed,
            },
            class: Class::of(info.priority),
            partitions: info.partitions,
            delivered: info.delivered,
            stage: text_of(&info.stage),
            partition: u32::try_from(info.partition).ok(),
            failure: (info.status != sys::OK).then(|| Kind::of(info.status)),
            done: info.done,
            queued: Duration::from_nanos(info.queued_ns),
            running: Duration::from_nanos(info.running_ns),
        })
    }

    /// Ends the job at its next stage border, for all who wait for it. Does not block. One that has ended stays as it is.
    pub fn cancel(&self) -> Result<()> {
        // SAFETY: a handle that is open as long as self.
        call(|err| unsafe { (self.0.library.cancel)(self.0.handle, err) })
    }
}

/// A time for C, rounded up; what is longer than C can say is for ever.
fn milliseconds(time: Duration) -> u64 {
    time.as_nanos().div_ceil(1_000_000).try_into().unwrap_or(sys::FOREVER)
}

impl Engine {
    /// Submits a sector to be proved, and returns what can be waited for. A damaged statement, another sector, and what the budget can
    /// never hold are refused here; nothing is borrowed any longer.
    pub fn submit(&self, sector: &Sector<'_>, params: &ParamSource, options: SubmitOptions<'_>) -> Result<Submitted> {
        let folder = params.folder_c()?;
        let id = text_c("id", options.id)?;
        let (r, s) = randomness(options.randomness)?;
        let request = sys::ProveRequest {
            circuit_proofs: options.circuit_proofs.into(),
            ..request_of(sector, options.statement, params, folder.as_deref(), (r, s))
        };
        let how = sys::SubmitOptions {
            id: id.as_ptr(),
            priority: options.class as u32,
            replace: options.replace.into(),
            // 0 is none for C.
            deadline_ms: options.deadline.map_or(0, |d| milliseconds(d).max(1)),
            room_ms: milliseconds(options.room),
            call: options.call.map_or(0, |j| j.0.handle),
            ..sys::SubmitOptions::default()
        };
        let mut handle = 0;
        // SAFETY: all that the request points to outlives the call.
        call(|err| unsafe { (self.library.submit)(self.handle, &request, &how, &mut handle, err) })?;
        Ok(Submitted(Arc::new(JobHandle { library: self.library, handle })))
    }

    /// What a proof of a sector size ("32GiB") takes on one of the engine's devices ("cpu", "cuda:0"), or on all of them together.
    /// [`Kind::NoMemory`], with both numbers, where it can never fit.
    pub fn requirements(&self, shape: &str, device: Option<&str>) -> Result<Requirements> {
        let (shape, device) = (text_c("shape", shape)?, device.map(|d| text_c("device", d)).transpose()?);
        let mut n = sys::Needs::default();
        // SAFETY: texts that outlive the call, and a place for the answer with its size.
        call(|err| unsafe {
            (self.library.requirements)(self.handle, shape.as_ptr(), device.as_ref().map_or(null(), |d| d.as_ptr()), &mut n, err)
        })?;
        Ok(Requirements {
            partitions: n.partitions,
            threads: n.threads,
            host_bytes: n.host_bytes,
            device_bytes: n.device_bytes,
            shared_bytes: n.shared_bytes,
            batch: n.batch,
            ahead: n.ahead,
            devices: n.devices,
            host_limit: n.host_limit,
            device_limit: n.device_limit,
            threads_limit: n.threads_limit,
        })
    }

    /// Loads what proofs of a sector size need before the first of them: circuit, key, and the points onto devices that keep
    /// them. Blocks as long as the file takes to read; the job cancels it.
    pub fn preload(&self, shape: &str, params: &ParamSource, job: Option<&Job>) -> Result<()> {
        let (shape, folder) = (text_c("shape", shape)?, params.folder_c()?);
        let folder = folder.as_ref().map_or(null(), |f| f.as_ptr());
        // SAFETY: texts that outlive the call.
        call(|err| unsafe {
            (self.library.preload)(self.handle, shape.as_ptr(), folder, params.development_c(), job.map_or(0, |j| j.0.handle), err)
        })
    }

    /// Gives back what is kept of a sector size's parameters and is not in use, on devices too.
    pub fn evict(&self, shape: &str, params: &ParamSource) -> Result<()> {
        let (shape, folder) = (text_c("shape", shape)?, params.folder_c()?);
        // SAFETY: texts that outlive the call.
        call(|err| unsafe { (self.library.evict)(self.handle, shape.as_ptr(), folder.as_ref().map_or(null(), |f| f.as_ptr()), err) })
    }

    /// Gives back all device memory and files that no proof uses, for other programs.
    pub fn idle_release(&self) -> Result<()> {
        // SAFETY: any thread may call it.
        call(|err| unsafe { (self.library.idle_release)(self.handle, err) })
    }

    /// The engine's state in Prometheus's text format.
    pub fn metrics(&self) -> Result<String> {
        // SAFETY: room for as many bytes as are said.
        text(|to, cap, len, err| unsafe { (self.library.metrics)(self.handle, to, cap, len, err) })
    }

    /// The latest 4096 stages of all jobs.
    pub fn timeline(&self, format: TimelineFormat) -> Result<String> {
        // SAFETY: room for as many bytes as are said.
        text(|to, cap, len, err| unsafe { (self.library.timeline)(self.handle, format as u32, to, cap, len, err) })
    }
}

/// A text whose length the library tells.
fn text(read: impl Fn(*mut c_char, usize, &mut usize, *mut sys::Error) -> sys::Status) -> Result<String> {
    let mut room = vec![0u8; 1 << 16];
    let mut len = 0;
    loop {
        let result = call(|err| read(room.as_mut_ptr().cast(), room.len(), &mut len, err));
        if result.is_err() && len >= room.len() {
            room.resize(len + (1 << 16), 0); // it may grow meanwhile
            continue;
        }
        result?;
        room.truncate(len);
        return String::from_utf8(room).map_err(|e| Error { kind: Kind::Internal, text: e.to_string() });
    }
}
