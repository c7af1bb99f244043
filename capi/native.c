/* The functions of sealc2.h, in its order: each refuses or enters Go. */
#include <string.h>

#include "_cgo_export.h"
#include "bridge.h"

static sealc2_status refuse(const char *why, sealc2_error *err) {
    sealc2_put_error(err, (sealc2_in_bytes)why, strlen(why), NULL);
    return sealc2_is_forked() ? SEALC2_FORKED : SEALC2_CALLER;
}

/* enter calls Go unless the call must be refused. */
#define enter(blocks, call)                       \
    do {                                          \
        const char *why = sealc2_refusal(blocks); \
        if (why != NULL)                          \
            return refuse(why, err);              \
        return (sealc2_status)(call);             \
    } while (0)

const char *sealc2_version(void) { return SEALC2_VERSION; }

const char *sealc2_status_name(int32_t status) {
    static const char *const names[] = {
        "ok",        "caller",    "input",     "unsatisfied", "params",     "unsupported", "no device",
        "no memory", "cancelled", "timeout",   "self check",  "forked",     "internal",
    };
    if (status < 0 || (size_t)status >= sizeof names / sizeof names[0])
        return "unknown";
    return names[status];
}

sealc2_status sealc2_open(const sealc2_config *config, sealc2_engine *engine, sealc2_error *err) {
    enter(1, sealc2go_open(config, engine, err));
}

sealc2_status sealc2_close(sealc2_engine engine, sealc2_error *err) { enter(1, sealc2go_close(engine, err)); }

sealc2_status sealc2_job_open(sealc2_job *job, sealc2_error *err) { enter(1, sealc2go_job_open(job, err)); }

sealc2_status sealc2_cancel(sealc2_job job, sealc2_error *err) { enter(0, sealc2go_cancel(job, err)); }

sealc2_status sealc2_job_close(sealc2_job job, sealc2_error *err) { enter(1, sealc2go_job_close(job, err)); }

sealc2_status sealc2_prove(sealc2_engine engine, const sealc2_prove_request *request, uint8_t *proof, size_t proof_cap,
                           size_t *proof_len, sealc2_error *err) {
    enter(1, sealc2go_prove(engine, request, proof, proof_cap, proof_len, err));
}

sealc2_status sealc2_prove_assignments(sealc2_engine engine, const sealc2_assignments_request *request, uint8_t *proof,
                                       size_t proof_cap, size_t *proof_len, sealc2_error *err) {
    enter(1, sealc2go_prove_assignments(engine, request, proof, proof_cap, proof_len, err));
}

sealc2_status sealc2_submit(sealc2_engine engine, const sealc2_prove_request *request, const sealc2_submit_options *options,
                            sealc2_job *job, sealc2_error *err) {
    enter(1, sealc2go_submit(engine, request, options, job, err));
}

sealc2_status sealc2_wait(sealc2_job job, uint64_t timeout_ms, uint8_t *proof, size_t proof_cap, size_t *proof_len,
                          sealc2_error *err) {
    enter(1, sealc2go_wait(job, timeout_ms, proof, proof_cap, proof_len, err));
}

sealc2_status sealc2_job_progress(sealc2_job job, sealc2_job_info *info, sealc2_error *err) {
    enter(1, sealc2go_job_progress(job, info, err));
}

sealc2_status sealc2_requirements(sealc2_engine engine, const char *shape, const char *device, sealc2_needs *needs,
                                  sealc2_error *err) {
    enter(1, sealc2go_requirements(engine, shape, device, needs, err));
}

sealc2_status sealc2_preload(sealc2_engine engine, const char *shape, const char *params_dir, uint32_t dev_params,
                             sealc2_job job, sealc2_error *err) {
    enter(1, sealc2go_preload(engine, shape, params_dir, dev_params, job, err));
}

sealc2_status sealc2_evict(sealc2_engine engine, const char *shape, const char *params_dir, sealc2_error *err) {
    enter(1, sealc2go_evict(engine, shape, params_dir, err));
}

sealc2_status sealc2_idle_release(sealc2_engine engine, sealc2_error *err) {
    enter(1, sealc2go_idle_release(engine, err));
}

sealc2_status sealc2_metrics(sealc2_engine engine, char *text, size_t text_cap, size_t *text_len, sealc2_error *err) {
    enter(1, sealc2go_metrics(engine, text, text_cap, text_len, err));
}

sealc2_status sealc2_timeline(sealc2_engine engine, uint32_t format, char *text, size_t text_cap, size_t *text_len,
                              sealc2_error *err) {
    enter(1, sealc2go_timeline(engine, format, text, text_cap, text_len, err));
}

sealc2_status sealc2_read_c1(sealc2_engine engine, const sealc2_c1_request *request, sealc2_c1_info *info,
                             uint8_t *inputs, size_t inputs_cap, sealc2_error *err) {
    enter(1, sealc2go_read_c1(engine, request, info, inputs, inputs_cap, err));
}

sealc2_status sealc2_circuit_digest(sealc2_engine engine, const char *shape, sealc2_job job, sealc2_circuit *circuit,
                                    uint8_t *chunks, size_t chunks_cap, sealc2_error *err) {
    enter(1, sealc2go_circuit_digest(engine, shape, job, circuit, chunks, chunks_cap, err));
}

sealc2_status sealc2_verify(sealc2_engine engine, const sealc2_verify_request *request, int32_t *verified,
                            sealc2_error *err) {
    enter(1, sealc2go_verify(engine, request, verified, err));
}

sealc2_status sealc2_last_stages(sealc2_engine engine, sealc2_stage *stages, size_t stage_size, size_t capacity,
                                 size_t *count, sealc2_error *err) {
    enter(1, sealc2go_last_stages(engine, stages, stage_size, capacity, count, err));
}

sealc2_status sealc2_shutdown(sealc2_error *err) { enter(1, sealc2go_shutdown(err)); }
