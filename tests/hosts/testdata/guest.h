/* What the C hosts share: the library's functions, a sector with a good proof and its key, and checks.
 *
 *   PROGRAM LIBRARY CASE [C1 FILE] [FOLDER WITH THE KEY] [PROOF IN HEX]
 *
 * Exit code 0 and "ok" mean that every check held. Each failed check is a line on stderr. */
#ifndef SEALC2_TEST_GUEST_H
#define SEALC2_TEST_GUEST_H

/* No host uses all of it. */
#pragma GCC diagnostic ignored "-Wunused-function"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sealc2.h"
#include "sealc2_ffi.h"

#define FUNCTIONS(F)                                                                                           \
    F(sealc2_version) F(sealc2_status_name) F(sealc2_open) F(sealc2_close) F(sealc2_job_open) F(sealc2_cancel) \
    F(sealc2_job_close) F(sealc2_prove) F(sealc2_verify) F(sealc2_last_stages) F(sealc2_shutdown)              \
    F(sealc2_submit) F(sealc2_wait) F(sealc2_job_progress) F(sealc2_metrics) F(sealc2_timeline)                \
    F(seal_commit_phase2) F(verify_seal) F(destroy_seal_commit_phase2_response) F(destroy_verify_seal_response)

static struct {
#define F(name) __typeof__(&name) name;
    FUNCTIONS(F)
#undef F
} lib;

static int failures;

__attribute__((format(printf, 2, 3))) static int check(int ok, const char *format, ...) {
    if (!ok) {
        char line[4096];
        va_list args;
        va_start(args, format);
        vsnprintf(line, sizeof line, format, args);
        va_end(args);
        fprintf(stderr, "FAIL: %s\n", line);
        __atomic_add_fetch(&failures, 1, __ATOMIC_SEQ_CST);
    }
    return ok;
}

static void load(const char *path, int flags) {
    void *handle = dlopen(path, flags);
    if (!check(handle != NULL, "dlopen: %s", handle ? "" : dlerror()))
        exit(1);
#define F(name)                                                  \
    *(void **)&lib.name = dlsym(handle, #name);                  \
    if (!check(lib.name != NULL, "no symbol %s", #name)) exit(1);
    FUNCTIONS(F)
#undef F
}

/* The sector of tests/vectors/c1/porep-2k-a: miner 1000, sector 1. */
static struct {
    uint8_t *c1;
    size_t c1_len;
    const char *keys; /* a folder with its verifying key and no points */
    uint8_t proof[192];
    uint8_t comm_r[32], comm_d[32], ticket[32], seed[32];
} sector;

static const uint8_t prover_1000[32] = {0xe8, 0x07};

/* Hash at key's array of numbers in compact C1 JSON. */
static void hash_of(const char *key, uint8_t out[32]) {
    char pattern[64];
    snprintf(pattern, sizeof pattern, "\"%s\":[", key);
    const char *at = memmem(sector.c1, sector.c1_len, pattern, strlen(pattern));
    if (!check(at != NULL, "no %s in the C1", key))
        exit(1);
    at += strlen(pattern);
    for (int i = 0; i < 32; i++) {
        char *end;
        out[i] = (uint8_t)strtoul(at, &end, 10);
        at = end + 1;
    }
}

static void read_sector(const char *c1, const char *keys, const char *proof_hex) {
    FILE *in = fopen(c1, "rb");
    if (!check(in != NULL, "%s: %s", c1, strerror(errno)))
        exit(1);
    fseek(in, 0, SEEK_END);
    sector.c1_len = (size_t)ftell(in);
    rewind(in);
    sector.c1 = malloc(sector.c1_len + 1);
    if (!check(fread(sector.c1, 1, sector.c1_len, in) == sector.c1_len, "%s: cannot read", c1))
        exit(1);
    sector.c1[sector.c1_len] = 0;
    fclose(in);
    sector.keys = keys;
    for (size_t i = 0; i < sizeof sector.proof; i++)
        if (!check(sscanf(proof_hex + 2 * i, "%2hhx", &sector.proof[i]) == 1, "proof: no hex at byte %zu", i))
            exit(1);
    hash_of("comm_r", sector.comm_r);
    hash_of("comm_d", sector.comm_d);
    hash_of("ticket", sector.ticket);
    hash_of("seed", sector.seed);
}

static sealc2_engine open_engine(uint64_t threads) {
    char text[512] = "";
    sealc2_error err = {.size = sizeof err, .text = text, .text_cap = sizeof text};
    sealc2_config config = {.size = sizeof config, .threads = threads};
    sealc2_engine engine = 0;
    sealc2_status got = lib.sealc2_open(&config, &engine, &err);
    check(got == SEALC2_OK && engine != 0, "open: %d, %s", got, text);
    return engine;
}

static void close_engine(sealc2_engine engine) { check(lib.sealc2_close(engine, NULL) == SEALC2_OK, "close"); }

/* A status or a text other than the one wanted is a failed check. Texts are looked for in the error. */
static void expect(const char *what, sealc2_status got, sealc2_status want, const sealc2_error *err, const char *names) {
    check(got == want, "%s: want status %d, got %d: %s", what, want, got, err->text_len ? err->text : "");
    if (want != SEALC2_OK)
        check(err->text_len > 0 && strstr(err->text, names) != NULL, "%s: the text does not name %s: %s", what, names,
              err->text_len ? err->text : "");
}

/* Verifies the sector's proof, or that proof for another seed. All memory that is handed over is the heap's,
 * spoiled and freed straight after the call. */
static void verify_once(sealc2_engine engine, int good) {
    sealc2_verify_request *claim = calloc(1, sizeof *claim);
    uint8_t *proof = malloc(192);
    char *keys = strdup(sector.keys), *text = calloc(1, 1024);
    sealc2_error *err = calloc(1, sizeof *err);
    int32_t *verified = calloc(1, sizeof *verified);
    *err = (sealc2_error){.size = sizeof *err, .text = text, .text_cap = 1024};
    *claim = (sealc2_verify_request){.size = sizeof *claim,
                                     .registered_proof = 5,
                                     .dev_params = SEALC2_DEV_PARAMS_ALLOW,
                                     .sector_id = 1,
                                     .proof = memcpy(proof, sector.proof, 192),
                                     .proof_len = 192,
                                     .params_dir = keys};
    memcpy(claim->comm_r, sector.comm_r, 32);
    memcpy(claim->comm_d, sector.comm_d, 32);
    memcpy(claim->ticket, sector.ticket, 32);
    memcpy(claim->seed, sector.seed, 32);
    memcpy(claim->prover_id, prover_1000, 32);
    claim->seed[3] ^= !good;
    *verified = 7;
    expect("verify", lib.sealc2_verify(engine, claim, verified, err), SEALC2_OK, err, "");
    check(*verified == good, "verify: want %d, got %d", good, *verified);
    memset(proof, 0xA5, 192);
    memset(keys, '#', strlen(keys));
    memset(claim, 0xA5, sizeof *claim);
    memset(text, 0xA5, 1024);
    memset(err, 0xA5, sizeof *err);
    memset(verified, 0xA5, sizeof *verified);
    free(proof), free(keys), free(claim), free(text), free(err), free(verified);
}

/* Proves with a document or folder that is refused; the memory goes the same way. */
static void prove_refused(sealc2_engine engine, const uint8_t *c1, size_t len, const char *params, uint64_t sector_id,
                          sealc2_job job, sealc2_status want, const char *names) {
    sealc2_prove_request *request = calloc(1, sizeof *request);
    uint8_t *copy = malloc(len), *proof = malloc(192);
    char *folder = strdup(params), *text = calloc(1, 1024);
    sealc2_error err = {.size = sizeof err, .text = text, .text_cap = 1024};
    *request = (sealc2_prove_request){.size = sizeof *request,
                                      .c1 = memcpy(copy, c1, len),
                                      .c1_len = len,
                                      .sector_id = sector_id,
                                      .params_dir = folder,
                                      .dev_params = SEALC2_DEV_PARAMS_ALLOW,
                                      .job = job};
    memcpy(request->prover_id, prover_1000, 32);
    size_t written = 7;
    memset(proof, 0x5A, 192);
    expect(names, lib.sealc2_prove(engine, request, proof, 192, &written, &err), want, &err, names);
    for (int i = 0; i < 192; i++)
        if (!check(proof[i] == 0x5A, "%s: a refused prove wrote byte %d of the proof", names, i))
            break;
    memset(copy, 0xA5, len);
    memset(folder, '#', strlen(folder));
    memset(request, 0xA5, sizeof *request);
    memset(text, 0xA5, 1024);
    free(copy), free(folder), free(request), free(text), free(proof);
}

static void refuse_garbage(sealc2_engine engine) {
    prove_refused(engine, (const uint8_t *)"{\"vanilla_proofs\":[[[", 21, "/nowhere", 1, 0, SEALC2_INPUT, "c1.Parse");
}
static void refuse_ids(sealc2_engine engine) {
    prove_refused(engine, sector.c1, sector.c1_len, "/nowhere", 2, 0, SEALC2_INPUT, "replica_id");
}
static void refuse_params(sealc2_engine engine) {
    prove_refused(engine, sector.c1, sector.c1_len, "/nowhere/here", 1, 0, SEALC2_PARAMS, "/nowhere/here");
}

/* Submits what is refused, or what fails for want of parameters unless it is cancelled first; the memory goes the same way, before
 * the job has ended. */
static void submit_once(sealc2_engine engine, uint64_t sector_id, int cancel) {
    sealc2_prove_request *request = calloc(1, sizeof *request);
    sealc2_submit_options *options = calloc(1, sizeof *options);
    uint8_t *copy = malloc(sector.c1_len), proof[192];
    char *folder = strdup("/nowhere/here"), *text = calloc(1, 1024);
    sealc2_error err = {.size = sizeof err, .text = text, .text_cap = 1024};
    *request = (sealc2_prove_request){.size = sizeof *request,
                                      .c1 = memcpy(copy, sector.c1, sector.c1_len),
                                      .c1_len = sector.c1_len,
                                      .sector_id = sector_id,
                                      .params_dir = folder};
    memcpy(request->prover_id, prover_1000, 32);
    *options = (sealc2_submit_options){.size = sizeof *options, .priority = SEALC2_CLASS_SNAP, .deadline_ms = 600000, .room_ms = 60000};
    sealc2_job job = 7;
    expect("submit", lib.sealc2_submit(engine, request, options, &job, &err), sector_id == 1 ? SEALC2_OK : SEALC2_INPUT, &err,
           "replica_id");
    memset(copy, 0xA5, sector.c1_len);
    memset(folder, '#', strlen(folder));
    memset(request, 0xA5, sizeof *request);
    memset(options, 0xA5, sizeof *options);
    free(copy), free(folder), free(request), free(options);
    if (sector_id != 1) {
        check(job == 0, "submit: a handle of what was refused");
        free(text);
        return;
    }
    if (cancel)
        check(lib.sealc2_cancel(job, NULL) == SEALC2_OK, "cancel");
    size_t len = 7;
    sealc2_status got = lib.sealc2_wait(job, SEALC2_FOREVER, proof, sizeof proof, &len, &err);
    check(len == 0 && (got == SEALC2_PARAMS || (cancel && got == SEALC2_CANCELLED)) &&
              strstr(text, got == SEALC2_PARAMS ? "/nowhere/here" : "engine.Cancel: job ") != NULL,
          "wait: %d, %zu bytes: %s", got, len, text);
    sealc2_job_info info = {.size = sizeof info};
    check(lib.sealc2_job_progress(job, &info, &err) == SEALC2_OK && info.status == (int32_t)got && info.priority == SEALC2_CLASS_SNAP &&
              info.state == (got == SEALC2_PARAMS ? SEALC2_JOB_FAILED : SEALC2_JOB_CANCELLED),
          "progress: state %u, status %d", info.state, info.status);
    check(lib.sealc2_wait(job, 0, NULL, 0, NULL, &err) == got, "a second wait: %s", text);
    check(lib.sealc2_job_close(job, &err) == SEALC2_OK, "job_close: %s", text);
    check(lib.sealc2_metrics(engine, NULL, 0, &len, &err) == SEALC2_OK && len > 1000, "metrics: %zu bytes", len);
    check(lib.sealc2_timeline(engine, SEALC2_TIMELINE_CHROME, NULL, 0, &len, &err) == SEALC2_OK && len > 10, "timeline: %zu bytes", len);
    free(text);
}

static void verify_ffi(int good) {
    uint8_32_array_t *in = malloc(5 * sizeof *in);
    memcpy(in[0].idx, sector.comm_r, 32);
    memcpy(in[1].idx, sector.comm_d, 32);
    memcpy(in[2].idx, prover_1000, 32);
    memcpy(in[3].idx, sector.ticket, 32);
    memcpy(in[4].idx, sector.seed, 32);
    in[4].idx[9] ^= !good;
    slice_ref_uint8_t proof = {memcpy(malloc(192), sector.proof, 192), 192};
    Result_bool_t *r = lib.verify_seal(5, &in[0], &in[1], &in[2], &in[3], &in[4], 1, proof);
    check(r->status_code == 0 && r->value == good, "verify_seal: want %d, got status %d, %d, %.*s", good, r->status_code,
          r->value, (int)r->error_msg.len, (char *)r->error_msg.ptr);
    lib.destroy_verify_seal_response(r);
    memset((void *)proof.ptr, 0xA5, 192);
    memset(in, 0xA5, 5 * sizeof *in);
    free((void *)proof.ptr), free(in);
}

static void refuse_ffi(void) {
    uint8_32_array_t id = {{0}};
    memcpy(id.idx, prover_1000, 32);
    slice_ref_uint8_t c1 = {memcpy(malloc(sector.c1_len), sector.c1, sector.c1_len), sector.c1_len};
    Result_slice_boxed_uint8_t *r = lib.seal_commit_phase2(c1, 99, &id);
    check(r->status_code == 1 && memmem(r->error_msg.ptr, r->error_msg.len, "replica_id", 10) != NULL,
          "seal_commit_phase2: status %d, %.*s", r->status_code, (int)r->error_msg.len, (char *)r->error_msg.ptr);
    lib.destroy_seal_commit_phase2_response(r);
    memset((void *)c1.ptr, 0xA5, c1.len);
    free((void *)c1.ptr);
}

/* One call of each kind, all on an engine that is given. */
static void every_call(sealc2_engine engine) {
    verify_once(engine, 1);
    verify_once(engine, 0);
    refuse_garbage(engine);
    refuse_ids(engine);
    refuse_params(engine);
    submit_once(engine, 1, 0);
    submit_once(engine, 1, 1);
    submit_once(engine, 2, 0);
    verify_ffi(1);
    refuse_ffi();
    sealc2_job job = 0;
    check(lib.sealc2_job_open(&job, NULL) == SEALC2_OK, "job_open");
    check(lib.sealc2_cancel(job, NULL) == SEALC2_OK, "cancel");
    prove_refused(engine, sector.c1, sector.c1_len, "/nowhere", 1, job, SEALC2_CANCELLED, "cancel");
    check(lib.sealc2_job_close(job, NULL) == SEALC2_OK, "job_close");
    size_t count = 7;
    check(lib.sealc2_last_stages(engine, NULL, sizeof(sealc2_stage), 0, &count, NULL) == SEALC2_OK && count == 0,
          "last_stages: %zu", count);
    sealc2_engine own = open_engine(1);
    verify_once(own, 1);
    close_engine(own);
}

/* Numbers of this process in /proc. */
static int entries_of(const char *folder) {
    int n = 0;
    DIR *dir = opendir(folder);
    if (!check(dir != NULL, "%s", folder))
        return -1;
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n - 2;
}
static int thread_count(void) { return entries_of("/proc/self/task"); }
static int file_count(void) { return entries_of("/proc/self/fd") - 1; }
static long resident_kib(void) {
    char line[256];
    long kib = -1;
    FILE *in = fopen("/proc/self/status", "r");
    while (in != NULL && fgets(line, sizeof line, in) != NULL)
        if (sscanf(line, "VmRSS: %ld", &kib) == 1)
            break;
    if (in != NULL)
        fclose(in);
    check(kib > 0, "no VmRSS");
    return kib;
}

static int finish(void) {
    if (failures == 0)
        puts("ok");
    return failures != 0;
}

#endif
