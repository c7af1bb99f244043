/* sealc2.h: the native interface of libsealc2, Groth16 proofs for sealed Filecoin sectors.
 *
 * Rules that hold for every function here:
 *  - The result is a sealc2_status; everything else comes back through pointers that the caller owns.
 *    Nothing is allocated for the caller, so nothing has to be freed; handles are closed.
 *  - Handles are numbers, never pointers. 0 is no handle. A closed or invented handle is refused.
 *  - Structs start with their size: set it to sizeof, and clear the rest (designated initialisers do).
 *    Fields added by a later version read as zero when an older caller leaves them out.
 *  - Input memory is borrowed until the function returns and may be changed or freed afterwards.
 *  - Any thread may call any function, with 64 KiB of stack. Functions may run at the same time.
 *  - Environment variables are read at the call, so setenv after loading the library is seen.
 *  - In a child after fork without exec every call returns SEALC2_FORKED at once. Load after forking.
 *  - In a process that may open no more files a call may return SEALC2_NO_MEMORY besides its own errors.
 *  - The library is never unloaded: dlclose keeps it. sealc2_shutdown gives back what it holds.
 *
 * Environment (only where an argument does not say it):
 *  FIL_PROOFS_PARAMETER_CACHE            parameter folder; unset or empty: /var/tmp/filecoin-proof-parameters/
 *  FIL_PROOFS_VERIFY_PRODUCTION_PARAMS   1: hash each parameter file against the manifest, once a process
 *  SEALC2_ALLOW_DEV_PARAMS               1: accept development parameters, which prove nothing to anyone
 *  RAYON_NUM_THREADS                     CPU threads of an engine; unset or 0: the affinity mask and cgroup
 *  SEALC2_DEVICE                         device of an engine whose config names none: "cpu", "cuda", "auto", ...
 *  SEALC2_GPU_LOCK                       file lock by which programs take turns on the GPUs; 1: $TMPDIR/bellman.gpu.lock
 *  RUST_LOG                              log lines on stderr, from a level on: error, warn, info or debug, also by target,
 *                                        "sealc2=debug,warn"; the one at the latest call counts; unset: none
 */
#ifndef SEALC2_H
#define SEALC2_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this header; sealc2_version has the library's. */
#define SEALC2_VERSION "0.1.0"

/* Bytes of one partition's proof: A (48), B (96), C (48), compressed. */
#define SEALC2_PROOF_BYTES 192

/* Room for a submitted job's id, with the NUL. */
#define SEALC2_JOB_ID_BYTES 128

/* A wait without an end. */
#define SEALC2_FOREVER UINT64_MAX

/* Whose fault a failure is, and so what can be done about it. */
typedef enum sealc2_status {
    SEALC2_OK = 0,
    SEALC2_CALLER = 1,      /* an argument is wrong: NULL, length, unknown handle, contradiction */
    SEALC2_INPUT = 2,       /* the C1 output, statement or proof is malformed or mismatched */
    SEALC2_UNSATISFIED = 3, /* the vanilla proofs do not satisfy the circuit */
    SEALC2_PARAMS = 4,      /* a parameter file is missing, damaged, of another circuit, or not allowed */
    SEALC2_UNSUPPORTED = 5, /* well-formed, but nothing that this version does */
    SEALC2_NO_DEVICE = 6,   /* the device asked for cannot be used */
    SEALC2_NO_MEMORY = 7,   /* the budget can never hold what is needed */
    SEALC2_CANCELLED = 8,   /* by sealc2_cancel, a callback, a deadline, sealc2_close or sealc2_shutdown */
    SEALC2_TIMEOUT = 9,     /* a wait ended before the result was there */
    SEALC2_SELF_CHECK = 10, /* a finished proof failed verification: parameters or hardware */
    SEALC2_FORKED = 11,     /* called in a child after fork without exec */
    SEALC2_INTERNAL = 12    /* a defect of the library */
} sealc2_status;

typedef uint64_t sealc2_engine; /* an open engine */
typedef uint64_t sealc2_job;    /* names one piece of work: to cancel it, and where it was submitted to wait for it */

/* A part of an error's text. It counts in the whole text, so a part may lie behind the end of one that was cut. */
typedef struct sealc2_span {
    uint32_t at;  /* its first byte */
    uint32_t len; /* its bytes; 0: the text has no such part */
} sealc2_span;

/* Where a failed call puts its text. A NULL sealc2_error, or one with a size that is too small, gets
 * none. text is always NUL-terminated, cut at the end of a UTF-8 character if text_cap is too small.
 * A size that ends before op is accepted, and gets the text alone. */
typedef struct sealc2_error {
    size_t size;       /* in: sizeof(sealc2_error) */
    char *text;        /* in: caller's buffer, written only on failure; may be NULL */
    size_t text_cap;   /* in: its bytes, with the NUL */
    size_t text_len;   /* out: bytes of the whole text without the NUL, also when it was cut; 0 on success */
    sealc2_span op;    /* out: the operation that found it, the last one that the text names: "c1.Parse" */
    sealc2_span where; /* out: at what: file, block, index, path or argument */
    sealc2_span want;  /* out: what was expected */
    sealc2_span got;   /* out: what was found */
} sealc2_error;

/* Limits of an engine, fixed for its life. A size that ends before device_bytes, or behind it or a later field, is accepted. */
typedef struct sealc2_config {
    size_t size;         /* sizeof(sealc2_config) */
    uint64_t threads;    /* CPU threads; 0: RAYON_NUM_THREADS, then the affinity mask and cgroup limit */
    uint64_t host_bytes; /* host memory; 0: the cgroup limit or the machine's memory */
    const char *device;  /* "cpu"; "cuda": the GPU with most memory; "cuda:1": that of a number; "cuda:0,2", "cuda:all": several,
                            which share each job; "auto": a GPU where one can be used, else the CPU; NULL: SEALC2_DEVICE, then
                            "auto" */
    uint64_t device_bytes; /* memory of each GPU; 0: what is free at the start, less some headroom */
    uint64_t queue_bytes;  /* part of the host memory for the requests of submitted jobs; 0: a 32nd, at most 512 MiB */
    const char *policy;    /* interlock rule, for comparing them: "reservation", "single", "two-lock", "split"; NULL or empty:
                              "reservation", which is meant for work */
    uint32_t device_workers;    /* batches of partitions under way at once on a device (gw); 0: what the rule and the plan say */
    uint32_t partition_workers; /* host stages at once (pw); 0: two */
} sealc2_config;

/* Whether development parameters, keys that are not in the public manifest, are accepted. */
typedef enum sealc2_dev_params {
    SEALC2_DEV_PARAMS_ENV = 0,   /* if SEALC2_ALLOW_DEV_PARAMS is 1 */
    SEALC2_DEV_PARAMS_ALLOW = 1, /* accepted; each use is logged as a warning */
    SEALC2_DEV_PARAMS_REFUSE = 2
} sealc2_dev_params;

/* One finished stage; valid only during the callback. */
typedef struct sealc2_progress {
    size_t size;         /* sizeof(sealc2_progress) of the library */
    int32_t partition;   /* -1: a stage of the whole job */
    int32_t partitions;
    const char *stage;   /* "parse", "params", "expand", "evaluate", "quotient", ..., "verify" */
    uint64_t elapsed_ns; /* that stage alone */
    double done;         /* share of the whole job, 0 to 1 */
    uint64_t start_ns;   /* when it began, since the job began */
} sealc2_progress;

/* Callbacks of one sealc2_prove call. They come from threads of the library, one at a time, and never
 * after the call has returned. 0 goes on, anything else cancels the job. Inside a callback only
 * sealc2_cancel, sealc2_version and sealc2_status_name may be called; others return SEALC2_CALLER. */
typedef int32_t (*sealc2_progress_fn)(void *user, const sealc2_progress *progress);
/* A verified partition, in partition order, as soon as it is there. */
typedef int32_t (*sealc2_partition_fn)(void *user, uint32_t partition, const uint8_t proof[SEALC2_PROOF_BYTES]);

/* One sector to prove. */
typedef struct sealc2_prove_request {
    size_t size;               /* sizeof(sealc2_prove_request) */
    const uint8_t *c1;         /* C1 output: its JSON, or lotus-bench's wrapping of it */
    size_t c1_len;
    const uint8_t *statement;  /* statement file of unregistered test sizes; else NULL */
    size_t statement_len;
    uint64_t sector_id;
    uint8_t prover_id[32];     /* miner's actor number as unsigned LEB128, zero-filled */
    const char *params_dir;    /* NULL: the environment says */
    uint32_t dev_params;       /* a sealc2_dev_params */
    uint32_t circuit_proofs;   /* 0: the proof that goes on chain; 1: the partitions' proofs as they are, also
                                  for the non-interactive kinds, whose chain proof is an aggregate of them */
    const uint8_t *r;          /* for reproducible proofs in tests: a scalar a partition, 32 bytes each, */
    const uint8_t *s;          /*   little-endian, below the group order; NULL: from the system's random source */
    size_t scalar_count;       /* scalars in each of r and s; 0 if NULL */
    sealc2_job job;            /* from sealc2_job_open, to be cancelled by; or 0 */
    sealc2_progress_fn progress;   /* may be NULL */
    sealc2_partition_fn partition; /* may be NULL */
    void *user;                /* handed to both */
} sealc2_prove_request;

/* Circuits to prove whose values were made elsewhere. */
typedef struct sealc2_assignments_request {
    size_t size;               /* sizeof(sealc2_assignments_request) */
    const char *params;        /* path of the circuit's parameter file; its head is the verifying key */
    const struct sealc2_s2_prover *circuits; /* of sealc2_s2.h, with its rules; all of one shape */
    size_t count;
    const uint8_t *r;          /* a scalar a circuit, 32 bytes each, little-endian, below the group order; zero is */
    const uint8_t *s;          /*   legal; NULL: from the system's random source */
    size_t scalar_count;       /* scalars in each of r and s; 0 if NULL */
    sealc2_job job;            /* as in sealc2_prove_request */
    sealc2_progress_fn progress; /* may be NULL */
    void *user;                /* handed to it */
    uint32_t dev_params;       /* a sealc2_dev_params */
} sealc2_assignments_request;

/* How urgent a submitted job is. One of a higher class goes before those of lower ones. */
typedef enum sealc2_class {
    SEALC2_CLASS_POREP = 0, /* a sector's seal */
    SEALC2_CLASS_SNAP = 1,
    SEALC2_CLASS_WINDOW_POST = 2,
    SEALC2_CLASS_WINNING_POST = 3
} sealc2_class;

/* How a submitted job is to be treated. A size that ends before call is accepted. */
typedef struct sealc2_submit_options {
    size_t size;          /* sizeof(sealc2_submit_options) */
    const char *id;       /* its name in the engine: UTF-8 without control characters, at most 127 bytes; NULL or empty: one is made */
    uint32_t priority;    /* a sealc2_class */
    uint32_t replace;     /* 1: other content may have the id of a job that is done, whose result is forgotten then; 0: it is refused */
    uint64_t deadline_ms; /* from now on; the job is cancelled then; 0: none */
    uint64_t room_ms;     /* how long the call waits for room in the queue; 0: not at all; or SEALC2_FOREVER */
    sealc2_job call;      /* from sealc2_job_open: cancelled, it ends that wait, and nothing is submitted; or 0 */
} sealc2_submit_options;

/* How far a submitted job is. */
typedef enum sealc2_job_state {
    SEALC2_JOB_QUEUED = 0,  /* nothing of it has run */
    SEALC2_JOB_RUNNING = 1, /* being parsed, admitted or proved */
    SEALC2_JOB_DONE = 2,    /* its proof is there */
    SEALC2_JOB_FAILED = 3,
    SEALC2_JOB_CANCELLED = 4
} sealc2_job_state;

/* A submitted job at one moment. */
typedef struct sealc2_job_info {
    size_t size;                  /* in: sizeof(sealc2_job_info) */
    char id[SEALC2_JOB_ID_BYTES]; /* NUL-terminated */
    uint32_t state;               /* a sealc2_job_state */
    uint32_t priority;            /* a sealc2_class */
    uint32_t partitions;          /* 0: not known yet */
    uint32_t delivered;           /* partitions whose proofs are there */
    int32_t partition;            /* of the stage that ended last; -1: of the whole job */
    int32_t status;               /* a sealc2_status: what it ended with; SEALC2_OK until then */
    char stage[24];               /* that ended last, NUL-terminated; empty before the first */
    double done;                  /* share of the whole job, 0 to 1 */
    uint64_t queued_ns;           /* from sealc2_submit to its first stage, or until now */
    uint64_t running_ns;          /* from there to its end, or until now */
} sealc2_job_info;

/* What a proof takes, by the plans of its devices. */
typedef struct sealc2_needs {
    size_t size;           /* in: sizeof(sealc2_needs) */
    uint32_t partitions;
    uint32_t threads;      /* CPU threads that a stage keeps busy */
    uint64_t host_bytes;   /* reserved for the whole job; the C1 output's own size comes on top */
    uint64_t device_bytes; /* on all devices, shared_bytes among it */
    uint64_t shared_bytes; /* device memory that jobs of one plan have together: parameters, and what they compute in */
    uint64_t host_limit;   /* the engine's budget, into which all this must fit */
    uint64_t device_limit;
    uint32_t batch;        /* partitions that the first device proves together, */
    uint32_t ahead;        /*   and batches that it has under way at once */
    uint32_t devices;      /* that share the job */
    uint32_t threads_limit;
} sealc2_needs;

/* In what form sealc2_timeline writes. */
typedef enum sealc2_timeline_format {
    SEALC2_TIMELINE_TEXT = 0,  /* cuzk's: "TIMELINE,<ms>,<event>,<job>,<detail>" a line, events SYNTH_START, SYNTH_END, GPU_QUEUE,
                                  GPU_PICKUP, GPU_START, GPU_END */
    SEALC2_TIMELINE_JSON = 1,  /* an object a line and stage */
    SEALC2_TIMELINE_CHROME = 2 /* one document for chrome://tracing or Perfetto */
} sealc2_timeline_format;

/* A C1 output to look at. */
typedef struct sealc2_c1_request {
    size_t size;               /* sizeof(sealc2_c1_request) */
    const uint8_t *c1;         /* as in sealc2_prove_request */
    size_t c1_len;
    const uint8_t *statement;  /* as in sealc2_prove_request */
    size_t statement_len;
    uint64_t sector_id;        /* read only with a prover_id */
    const uint8_t *prover_id;  /* 32 bytes; NULL: the replica id is the C1's, else it is recomputed and compared */
} sealc2_c1_request;

/* What a C1 output claims. */
typedef struct sealc2_c1_info {
    size_t size;              /* in: sizeof(sealc2_c1_info) */
    char shape[16];           /* NUL-terminated, "2KiB" */
    int32_t registered_proof; /* its number; -1 for the unregistered test sizes */
    uint32_t partitions;
    uint32_t inputs;          /* public inputs of a partition, without the constant one */
    uint32_t challenges;      /* of a partition */
    uint8_t porep_id[32];
    uint8_t replica_id[32];
    uint8_t comm_r[32];
    uint8_t comm_d[32];
    uint8_t ticket[32];
    uint8_t seed[32];
} sealc2_c1_info;

/* Counts and digests of a circuit; [3] are those of the matrices A, B and C. */
typedef struct sealc2_circuit {
    size_t size;            /* in: sizeof(sealc2_circuit) */
    uint64_t inputs;        /* with the constant one */
    uint64_t aux;           /* private variables */
    uint64_t constraints;
    uint64_t rows;          /* with those that bellperson appends, one an input */
    uint64_t domain;        /* the power of two that holds the rows */
    uint64_t nonzero[3];    /* matrix entries */
    uint64_t max_terms[3];  /* of a row */
    uint64_t a_aux;         /* densities: how many aux occur in A, */
    uint64_t b_input;       /*   inputs in B, */
    uint64_t b_aux;         /*   aux in B */
    uint64_t sha256;        /* SHA-256 compressions */
    uint64_t poseidon;      /* Poseidon hashes */
    uint64_t chunk_rows;    /* constraints of a chunk */
    uint64_t chunks;        /* how many chunks there are */
    uint8_t digest[32];     /* over the chunks' digests */
    uint8_t a_aux_digest[32];   /* SHA-256 of the densities as bits, eight a byte, the lowest first */
    uint8_t b_input_digest[32];
    uint8_t b_aux_digest[32];
} sealc2_circuit;

/* A sector's claim as it is registered. */
typedef struct sealc2_verify_request {
    size_t size;               /* sizeof(sealc2_verify_request) */
    int32_t registered_proof;  /* number of the registered seal proof: 5 is StackedDrg2KiBV1_1, 8 is 32GiBV1_1 */
    uint32_t dev_params;       /* a sealc2_dev_params */
    uint8_t comm_r[32];
    uint8_t comm_d[32];
    uint8_t prover_id[32];
    uint8_t ticket[32];
    uint8_t seed[32];          /* interactive randomness */
    uint64_t sector_id;
    const uint8_t *proof;      /* SEALC2_PROOF_BYTES a partition */
    size_t proof_len;
    const char *params_dir;    /* NULL: the environment says */
} sealc2_verify_request;

/* Time of one stage of one partition. */
typedef struct sealc2_stage {
    char name[24];       /* NUL-terminated */
    int64_t partition;   /* -1: a stage of the whole job */
    uint64_t start_ns;   /* since the job began */
    uint64_t elapsed_ns;
} sealc2_stage;

/* The library's version, static text. Never fails, also after fork. */
const char *sealc2_version(void);

/* A status's name as in error text ("self check"), static; "unknown" for numbers that are none. */
const char *sealc2_status_name(int32_t status);

/* Opens an engine: one memory and thread budget, loaded parameters, cached circuits.
 * in       config: NULL for defaults
 * out      *engine
 * errors   CALLER, NO_DEVICE, NO_MEMORY, FORKED
 * threads  any; an engine serves any number of threads, and most processes need only one */
sealc2_status sealc2_open(const sealc2_config *config, sealc2_engine *engine, sealc2_error *err);

/* Closes an engine: cancels its calls, waits for them, gives its memory back.
 * errors   CALLER (unknown handle, or called from a callback), FORKED
 * threads  any, blocks; the handle is spent */
sealc2_status sealc2_close(sealc2_engine engine, sealc2_error *err);

/* Makes a handle by which a later sealc2_prove can be cancelled.
 * out      *job
 * errors   CALLER, FORKED
 * threads  any */
sealc2_status sealc2_job_open(sealc2_job *job, sealc2_error *err);

/* Cancels a job. The sealc2_prove that runs it returns SEALC2_CANCELLED soon, after the stage at hand;
 * one that has not begun returns it at once. A job stays cancelled. A submitted one ends likewise, for all who wait for it;
 * one that has ended stays as it is.
 * errors   CALLER (unknown handle), FORKED
 * threads  any, does not block, also from a callback */
sealc2_status sealc2_cancel(sealc2_job job, sealc2_error *err);

/* Forgets a job. A call that runs it goes on, and can no longer be cancelled by the handle. So does a submitted one, and its
 * result stays under its id.
 * errors   CALLER (unknown handle), FORKED
 * threads  any */
sealc2_status sealc2_job_close(sealc2_job job, sealc2_error *err);

/* Proves a sector. The proof has been verified against the sector's ids, ticket, seed and commitments.
 * in       request
 * out      proof[proof_cap], caller's, written on success only; *proof_len = SEALC2_PROOF_BYTES a partition,
 *          in partition order, also set when proof_cap is too small, which is found before proving starts;
 *          proof_len may be NULL
 * errors   CALLER, INPUT, UNSATISFIED, PARAMS, UNSUPPORTED, NO_DEVICE, NO_MEMORY, CANCELLED, SELF_CHECK,
 *          FORKED, INTERNAL
 * threads  any, blocks; calls on one engine share its budget, in the order of their coming but behind submitted jobs of a higher class */
sealc2_status sealc2_prove(sealc2_engine engine, const sealc2_prove_request *request, uint8_t *proof, size_t proof_cap,
                           size_t *proof_len, sealc2_error *err);

/* Proves circuits from explicit assignments. Every row is checked, and every proof is verified with the key at the
 * head of the parameter file and the given inputs.
 * in       request; its vectors are borrowed for the call
 * out      proof[proof_cap], caller's, written on success only; *proof_len = SEALC2_PROOF_BYTES a circuit, in order,
 *          also set when proof_cap is too small; proof_len may be NULL
 * errors   as sealc2_prove; INPUT for lengths and densities that do not fit the parameters
 * threads  any, blocks; as sealc2_prove */
sealc2_status sealc2_prove_assignments(sealc2_engine engine, const sealc2_assignments_request *request, uint8_t *proof,
                                       size_t proof_cap, size_t *proof_len, sealc2_error *err);

/* Submits a sector to be proved, and returns when its request is copied. What can be told beforehand is told now: a C1 output
 * whose statement is malformed or of another sector, and a proof that the budget can never hold, with both numbers. The
 * first job of a sector size records its circuit: a second or two at 32 GiB. A job that is under way or done under the same id:
 * with the same content the handle is one more of that job, which keeps its class and its deadline; with other content it is
 * SEALC2_CALLER, but for a job that is done and options->replace. The id of a job that failed or was cancelled can be used
 * again. The last 1024 jobs that ended are remembered, longest those that nobody waited for.
 * in       request: as for sealc2_prove, with job 0 and without callbacks; options: NULL for none
 * out      *job, to be closed by sealc2_job_close
 * errors   CALLER, INPUT, UNSUPPORTED, NO_MEMORY, TIMEOUT (no room in the queue), CANCELLED (closed, past the deadline, or
 *          by options->call, before there was room), FORKED, INTERNAL
 * threads  any; blocks for the copy, for room_ms, and for the circuit */
sealc2_status sealc2_submit(sealc2_engine engine, const sealc2_prove_request *request, const sealc2_submit_options *options,
                            sealc2_job *job, sealc2_error *err);

/* Waits for a submitted job, and copies its proof out: any number of times, also after sealc2_close.
 * in       job: from sealc2_submit; timeout_ms: 0 asks only; SEALC2_FOREVER
 * out      proof[proof_cap], caller's; *proof_len = SEALC2_PROOF_BYTES a partition, in partition order, also set when proof_cap is
 *          too small, which is SEALC2_CALLER; proof_len may be NULL
 * errors   what the job ended with, as sealc2_prove; TIMEOUT: it has not ended and goes on; CALLER
 * threads  any, blocks */
sealc2_status sealc2_wait(sealc2_job job, uint64_t timeout_ms, uint8_t *proof, size_t proof_cap, size_t *proof_len,
                          sealc2_error *err);

/* Tells how far a submitted job is.
 * out      *info
 * errors   CALLER, FORKED
 * threads  any */
sealc2_status sealc2_job_progress(sealc2_job job, sealc2_job_info *info, sealc2_error *err);

/* Tells what a proof of a sector size takes. The first call for a size records its circuit: a second or two at 32 GiB.
 * in       shape: "2KiB", ..., "64GiB"; device: one of the engine's, as "cpu" or "cuda:0"; NULL: all of them together
 * out      *needs, also with NO_MEMORY if a device has a plan that the budget does not hold
 * errors   CALLER, NO_MEMORY with both numbers where it can never fit, FORKED, INTERNAL
 * threads  any */
sealc2_status sealc2_requirements(sealc2_engine engine, const char *shape, const char *device, sealc2_needs *needs,
                                  sealc2_error *err);

/* Loads what proofs of a sector size need before the first of them: circuit, key, and the points onto devices that keep them.
 * in       params_dir, dev_params: as in sealc2_prove_request; job: from sealc2_job_open, to be cancelled by, or 0
 * errors   CALLER, PARAMS, NO_DEVICE, NO_MEMORY, CANCELLED, FORKED, INTERNAL
 * threads  any, blocks: as long as the file takes to read */
sealc2_status sealc2_preload(sealc2_engine engine, const char *shape, const char *params_dir, uint32_t dev_params,
                             sealc2_job job, sealc2_error *err);

/* Gives back what is kept of a sector size's parameters and is not in use, on devices too. The next proof loads it again.
 * in       params_dir: as in sealc2_prove_request
 * errors   CALLER, PARAMS (no such files), NO_DEVICE, CANCELLED, FORKED, INTERNAL
 * threads  any, blocks */
sealc2_status sealc2_evict(sealc2_engine engine, const char *shape, const char *params_dir, sealc2_error *err);

/* Gives back all device memory and files that no proof uses, for other programs. The next proofs load them again.
 * errors   CALLER, NO_DEVICE, CANCELLED, FORKED, INTERNAL
 * threads  any, blocks */
sealc2_status sealc2_idle_release(sealc2_engine engine, sealc2_error *err);

/* The engine's state in Prometheus's text format: proofs, jobs, stages, busy share, memory, the driver's calls, and what NVML says
 * of its GPUs.
 * out      text[text_cap], caller's, NUL-terminated, may be NULL with 0 to ask for the length; *text_len = its bytes without the NUL,
 *          also set when text_cap is too small, which is SEALC2_CALLER; the next call's text may be longer
 * errors   CALLER, FORKED
 * threads  any; no proof waits for it */
sealc2_status sealc2_metrics(sealc2_engine engine, char *text, size_t text_cap, size_t *text_len, sealc2_error *err);

/* The latest 4096 stages of all jobs. Times are since the engine was opened.
 * in       format: a sealc2_timeline_format
 * out      as sealc2_metrics
 * errors   CALLER, FORKED
 * threads  any */
sealc2_status sealc2_timeline(sealc2_engine engine, uint32_t format, char *text, size_t text_cap, size_t *text_len,
                              sealc2_error *err);

/* Reads a C1 output, and derives the public inputs of its proof from what it claims. Proves nothing.
 * in       request
 * out      *info; inputs[inputs_cap] bytes, caller's, may be NULL with 0: 32 bytes an input, little-endian, canonical,
 *          info->inputs of them a partition, written if there is room for all of info->partitions
 * errors   CALLER, INPUT, UNSUPPORTED, FORKED, INTERNAL
 * threads  any */
sealc2_status sealc2_read_c1(sealc2_engine engine, const sealc2_c1_request *request, sealc2_c1_info *info,
                             uint8_t *inputs, size_t inputs_cap, sealc2_error *err);

/* Counts and digests the circuit of a sector size, from the program that proofs run. Seconds for small sizes,
 * minutes for 32 GiB.
 * in       shape: "2KiB", ..., "64GiB"; job: by which it can be cancelled, or 0
 * out      *circuit; chunks[chunks_cap] bytes, caller's, may be NULL with 0: the chunks' digests, 32 bytes each,
 *          written if there is room for all of circuit->chunks
 * errors   CALLER, CANCELLED, FORKED, INTERNAL
 * threads  any, blocks */
sealc2_status sealc2_circuit_digest(sealc2_engine engine, const char *shape, sealc2_job job, sealc2_circuit *circuit,
                                    uint8_t *chunks, size_t chunks_cap, sealc2_error *err);

/* Verifies a sector's proof.
 * in       request
 * out      *verified = 1 or 0. A well-formed proof of something else is 0 and SEALC2_OK; what cannot be a
 *          proof at all (length, point encoding, zero commitments) is SEALC2_INPUT and 0
 * errors   CALLER, INPUT, PARAMS, UNSUPPORTED, FORKED, INTERNAL
 * threads  any, blocks */
sealc2_status sealc2_verify(sealc2_engine engine, const sealc2_verify_request *request, int32_t *verified, sealc2_error *err);

/* Stage times of the proof that finished last on an engine.
 * out      stages[capacity], entries of stage_size = sizeof(sealc2_stage) bytes; *count = how many there are,
 *          which may be more than were copied; 0 before the first proof
 * errors   CALLER, FORKED
 * threads  any */
sealc2_status sealc2_last_stages(sealc2_engine engine, sealc2_stage *stages, size_t stage_size, size_t capacity,
                                 size_t *count, sealc2_error *err);

/* Closes all engines, that of sealc2_ffi.h included, and forgets all jobs. The library can be used again.
 * errors   CALLER (called from a callback), FORKED
 * threads  any, blocks */
sealc2_status sealc2_shutdown(sealc2_error *err);

#ifdef __cplusplus
}
#endif

#endif
