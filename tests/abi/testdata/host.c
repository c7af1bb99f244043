/* A C host of libsealc2: loads it with dlopen and RTLD_NOW, and runs the case named on its command line.
 *
 *   host LIBRARY CASE [C1 FILE] [PARAMETER FOLDER] [EXPECTED PROOF IN HEX] ...
 *
 * Exit code 0 means that every check held. Each failed check is a line on stderr. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sealc2.h"
#include "sealc2_ffi.h"

#define FUNCTIONS(F)                                                                                           \
    F(sealc2_version) F(sealc2_status_name) F(sealc2_open) F(sealc2_close) F(sealc2_job_open) F(sealc2_cancel) \
    F(sealc2_job_close) F(sealc2_prove) F(sealc2_verify) F(sealc2_last_stages) F(sealc2_shutdown)              \
    F(sealc2_submit) F(sealc2_wait) F(sealc2_job_progress) F(sealc2_requirements) F(sealc2_preload)            \
    F(sealc2_evict) F(sealc2_idle_release) F(sealc2_metrics) F(sealc2_timeline) F(sealc2_circuit_digest)       \
    F(seal_commit_phase2) F(verify_seal) F(destroy_seal_commit_phase2_response)                                \
    F(destroy_seal_pre_commit_phase1_response) F(destroy_verify_seal_response)

static struct {
#define F(name) __typeof__(&name) name;
    FUNCTIONS(F)
#undef F
} lib;

static int failures;

__attribute__((format(printf, 2, 3))) static int check(int ok, const char *format, ...) {
    if (!ok) {
        va_list args;
        va_start(args, format);
        fputs("FAIL: ", stderr);
        vfprintf(stderr, format, args);
        fputc('\n', stderr);
        va_end(args);
        __atomic_add_fetch(&failures, 1, __ATOMIC_SEQ_CST);
    }
    return ok;
}

static char text[65536];
static sealc2_error error_out = {.size = sizeof error_out, .text = text, .text_cap = sizeof text};

/* The text of the last failure, empty after a success. */
static const char *said(void) { return error_out.text_len ? text : ""; }

static void expect(const char *what, sealc2_status got, sealc2_status want) {
    check(got == want, "%s: want %s, got %s: %s", what, lib.sealc2_status_name(want), lib.sealc2_status_name(got), said());
    if (want != SEALC2_OK)
        check(error_out.text_len > 0 && strlen(text) == error_out.text_len, "%s: no complete text", what);
    else
        check(error_out.text_len == 0, "%s: text after success: %s", what, text);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void load(const char *path) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!check(handle != NULL, "dlopen: %s", handle ? "" : dlerror()))
        exit(1);
#define F(name)                                                  \
    *(void **)&lib.name = dlsym(handle, #name);                  \
    if (!check(lib.name != NULL, "no symbol %s", #name)) exit(1);
    FUNCTIONS(F)
#undef F
}

typedef struct {
    uint8_t *bytes;
    size_t len, mapped;
} file;

/* Reads a file into pages of its own, so that unmap turns any later use into a fault. */
static file read_file(const char *path) {
    file out = {0};
    FILE *in = fopen(path, "rb");
    if (!check(in != NULL, "%s: %s", path, strerror(errno)))
        exit(1);
    fseek(in, 0, SEEK_END);
    out.len = (size_t)ftell(in);
    rewind(in);
    out.mapped = (out.len | 4095) + 1;
    out.bytes = mmap(NULL, out.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!check(out.bytes != MAP_FAILED && fread(out.bytes, 1, out.len, in) == out.len, "%s: cannot read", path))
        exit(1);
    fclose(in);
    return out;
}

static void unmap(file *f) {
    memset(f->bytes, 0xA5, f->mapped);
    munmap(f->bytes, f->mapped);
    f->bytes = NULL;
}

/* Ids of the sector in tests/vectors/c1/porep-2k-a. */
static const uint8_t prover_1000[32] = {0xe8, 0x07};

static sealc2_prove_request request_for(const file *c1) {
    sealc2_prove_request request = {.size = sizeof request, .c1 = c1->bytes, .c1_len = c1->len, .sector_id = 1};
    memcpy(request.prover_id, prover_1000, 32);
    return request;
}

static sealc2_engine open_engine(void) {
    sealc2_engine engine = 0;
    expect("open", lib.sealc2_open(NULL, &engine, &error_out), SEALC2_OK);
    check(engine != 0, "open: handle 0");
    return engine;
}

/* Hash at key's array of numbers in compact C1 JSON. */
static void hash_of(const file *c1, const char *key, uint8_t out[32]) {
    char pattern[64];
    snprintf(pattern, sizeof pattern, "\"%s\":[", key);
    const char *at = memmem(c1->bytes, c1->len, pattern, strlen(pattern));
    if (!check(at != NULL, "no %s in the C1", key))
        exit(1);
    at += strlen(pattern);
    for (int i = 0; i < 32; i++) {
        char *end;
        out[i] = (uint8_t)strtoul(at, &end, 10);
        at = end + 1;
    }
}

static sealc2_verify_request claim_of(const file *c1, const uint8_t *proof, size_t len) {
    sealc2_verify_request claim = {
        .size = sizeof claim, .registered_proof = 5, .sector_id = 1, .proof = proof, .proof_len = len};
    hash_of(c1, "comm_r", claim.comm_r);
    hash_of(c1, "comm_d", claim.comm_d);
    hash_of(c1, "ticket", claim.ticket);
    hash_of(c1, "seed", claim.seed);
    memcpy(claim.prover_id, prover_1000, 32);
    return claim;
}

/* ---- cases ---- */

static void case_version(void) {
    check(strcmp(lib.sealc2_version(), SEALC2_VERSION) == 0, "version %s, header %s", lib.sealc2_version(), SEALC2_VERSION);
    check(strcmp(lib.sealc2_status_name(SEALC2_SELF_CHECK), "self check") == 0, "status name");
    check(strcmp(lib.sealc2_status_name(-1), "unknown") == 0 && strcmp(lib.sealc2_status_name(13), "unknown") == 0,
          "names of numbers that are no status");
}

static void expect_failed_bytes(const char *what, Result_slice_boxed_uint8_t *r, const char *names) {
    if (!check(r != NULL, "%s: NULL result", what))
        return;
    check(r->status_code == 1, "%s: status %d", what, r->status_code);
    check(r->value.len == 0 && r->value.ptr != NULL, "%s: value of a failure is not an empty slice", what);
    check(r->error_msg.len > 0 && memmem(r->error_msg.ptr, r->error_msg.len, names, strlen(names)) != NULL,
          "%s: text \"%.*s\" does not name %s", what, (int)r->error_msg.len, (char *)r->error_msg.ptr, names);
    lib.destroy_seal_pre_commit_phase1_response(r);
}

static void expect_failed_bool(const char *what, Result_bool_t *r, const char *names) {
    if (!check(r != NULL, "%s: NULL result", what))
        return;
    check(r->status_code == 1 && !r->value, "%s: status %d, value %d", what, r->status_code, r->value);
    check(r->error_msg.len > 0 && memmem(r->error_msg.ptr, r->error_msg.len, names, strlen(names)) != NULL,
          "%s: text \"%.*s\" does not name %s", what, (int)r->error_msg.len, (char *)r->error_msg.ptr, names);
    lib.destroy_verify_seal_response(r);
}

static void case_null(void) {
    size_t len = 7;
    int32_t verified = 7;
    uint8_t proof[192];
    expect("open, no handle", lib.sealc2_open(NULL, NULL, &error_out), SEALC2_CALLER);
    check(lib.sealc2_open(NULL, NULL, NULL) == SEALC2_CALLER, "open without err");
    expect("close 0", lib.sealc2_close(0, &error_out), SEALC2_CALLER);
    expect("job_open", lib.sealc2_job_open(NULL, &error_out), SEALC2_CALLER);
    expect("cancel 0", lib.sealc2_cancel(0, &error_out), SEALC2_CALLER);
    expect("job_close 0", lib.sealc2_job_close(0, &error_out), SEALC2_CALLER);
    sealc2_engine engine = open_engine();
    expect("prove, no request", lib.sealc2_prove(engine, NULL, proof, sizeof proof, &len, &error_out), SEALC2_CALLER);
    check(len == 0, "prove: *proof_len %zu after a failure", len);
    sealc2_prove_request request = {.size = sizeof request};
    expect("prove, no C1", lib.sealc2_prove(engine, &request, proof, sizeof proof, &len, &error_out), SEALC2_CALLER);
    request.c1_len = 5;
    expect("prove, C1 NULL with length", lib.sealc2_prove(engine, &request, proof, sizeof proof, &len, &error_out), SEALC2_CALLER);
    request.c1 = (const uint8_t *)"{}";
    request.c1_len = 2;
    expect("prove, proof NULL with room", lib.sealc2_prove(engine, &request, NULL, 192, &len, &error_out), SEALC2_CALLER);
    expect("prove, no proof_len", lib.sealc2_prove(engine, &request, proof, sizeof proof, NULL, &error_out), SEALC2_INPUT);
    request.r = proof;
    expect("prove, r without s", lib.sealc2_prove(engine, &request, proof, sizeof proof, &len, &error_out), SEALC2_CALLER);
    memset(proof, 0xff, sizeof proof);
    request.s = proof;
    request.scalar_count = 1;
    expect("prove, r above the order", lib.sealc2_prove(engine, &request, proof, sizeof proof, &len, &error_out), SEALC2_CALLER);
    check(strstr(said(), "request.r[0]") != NULL, "scalar not named: %s", said());
    request = (sealc2_prove_request){.size = sizeof request, .job = 999};
    expect("prove, unknown job", lib.sealc2_prove(engine, &request, proof, sizeof proof, &len, &error_out), SEALC2_CALLER);
    request = (sealc2_prove_request){.size = sizeof request, .dev_params = 3};
    expect("prove, dev_params 3", lib.sealc2_prove(engine, &request, proof, sizeof proof, &len, &error_out), SEALC2_CALLER);
    expect("verify, no request", lib.sealc2_verify(engine, NULL, &verified, &error_out), SEALC2_CALLER);
    check(verified == 0, "verify: *verified %d after a failure", verified);
    sealc2_verify_request claim = {.size = sizeof claim};
    expect("verify, no out", lib.sealc2_verify(engine, &claim, NULL, &error_out), SEALC2_CALLER);
    expect("last_stages, no count", lib.sealc2_last_stages(engine, NULL, sizeof(sealc2_stage), 0, NULL, &error_out), SEALC2_CALLER);
    expect("last_stages, NULL with room", lib.sealc2_last_stages(engine, NULL, sizeof(sealc2_stage), 1, &len, &error_out), SEALC2_CALLER);
    expect("last_stages, none yet", lib.sealc2_last_stages(engine, NULL, sizeof(sealc2_stage), 0, &len, &error_out), SEALC2_OK);
    check(len == 0, "last_stages before a proof: %zu", len);
    expect("close", lib.sealc2_close(engine, &error_out), SEALC2_OK);
    expect("close twice", lib.sealc2_close(engine, &error_out), SEALC2_CALLER);

    slice_ref_uint8_t none = {NULL, 0}, broken = {NULL, 5}, object = {(const uint8_t *)"{}", 2};
    uint8_32_array_t id = {{0}};
    expect_failed_bytes("seal_commit_phase2, empty", lib.seal_commit_phase2(none, 1, &id), "");
    expect_failed_bytes("seal_commit_phase2, NULL with length", lib.seal_commit_phase2(broken, 1, &id), "seal_commit_phase1_output");
    expect_failed_bytes("seal_commit_phase2, no prover_id", lib.seal_commit_phase2(object, 1, NULL), "prover_id");
    const char *names[] = {"comm_r", "comm_d", "prover_id", "ticket", "seed"};
    for (int i = 0; i < 5; i++)
        expect_failed_bool("verify_seal, NULL", lib.verify_seal(5, i == 0 ? NULL : &id, i == 1 ? NULL : &id, i == 2 ? NULL : &id, i == 3 ? NULL : &id, i == 4 ? NULL : &id, 1, none), names[i]);
    expect_failed_bool("verify_seal, proof NULL with length", lib.verify_seal(5, &id, &id, &id, &id, &id, 1, broken), "proof");
    lib.destroy_seal_commit_phase2_response(NULL);
    lib.destroy_seal_pre_commit_phase1_response(NULL);
    lib.destroy_verify_seal_response(NULL);
}

static void case_sizes(void) {
    sealc2_engine engine = 0;
    struct {
        sealc2_config config;
        uint64_t later;
    } grown = {.config = {.size = sizeof grown}};
    expect("longer config, zero tail", lib.sealc2_open(&grown.config, &engine, &error_out), SEALC2_OK);
    expect("close", lib.sealc2_close(engine, &error_out), SEALC2_OK);
    grown.later = 1;
    expect("longer config, used tail", lib.sealc2_open(&grown.config, &engine, &error_out), SEALC2_CALLER);
    grown.config.size = 0;
    expect("config of size 0", lib.sealc2_open(&grown.config, &engine, &error_out), SEALC2_CALLER);
    check(strstr(said(), "config.size") != NULL, "field not named: %s", said());
    grown.config.size = SIZE_MAX;
    expect("config of huge size", lib.sealc2_open(&grown.config, &engine, &error_out), SEALC2_CALLER);
    grown.config = (sealc2_config){.size = sizeof grown.config, .threads = 1u << 20};
    expect("a million threads", lib.sealc2_open(&grown.config, &engine, &error_out), SEALC2_CALLER);
    grown.config = (sealc2_config){.size = sizeof grown.config, .device = "abacus"};
    sealc2_status status = lib.sealc2_open(&grown.config, &engine, &error_out);
    check(status == SEALC2_CALLER || status == SEALC2_NO_DEVICE, "unknown device: %s", lib.sealc2_status_name(status));
    check(strstr(said(), "abacus") != NULL, "device not named: %s", said());
    engine = open_engine();
    sealc2_prove_request request = {.size = sizeof request - 8};
    expect("short prove request", lib.sealc2_prove(engine, &request, NULL, 0, NULL, &error_out), SEALC2_CALLER);
    int32_t verified;
    sealc2_verify_request claim = {.size = sizeof claim - 8};
    expect("short verify request", lib.sealc2_verify(engine, &claim, &verified, &error_out), SEALC2_CALLER);
    size_t count;
    expect("stage_size", lib.sealc2_last_stages(engine, NULL, sizeof(sealc2_stage) - 1, 0, &count, &error_out), SEALC2_CALLER);
    char small[4] = "abc";
    sealc2_error short_error = {.size = offsetof(sealc2_error, op) - 1, .text = small, .text_cap = sizeof small, .text_len = 99};
    check(lib.sealc2_close(0, &short_error) == SEALC2_CALLER, "close 0");
    check(short_error.text_len == 99 && strcmp(small, "abc") == 0, "an error struct of the wrong size was written");
    for (size_t size = offsetof(sealc2_error, op); size < sizeof short_error; size += 4) { /* text alone */
        char room[64] = "";
        sealc2_error early = {.size = size, .text = room, .text_cap = sizeof room, .op.at = 99, .op.len = 98, .got.at = 97};
        check(lib.sealc2_close(0, &early) == SEALC2_CALLER, "close 0");
        check(early.text_len > 0 && room[0] != 0, "no text for an error struct of %zu bytes", size);
        check(early.op.at == 99 && early.op.len == 98 && early.got.at == 97, "parts written for an error struct of %zu bytes", size);
    }
    expect("close", lib.sealc2_close(engine, &error_out), SEALC2_OK);
}

static void case_error_text(void) {
    expect("close 0", lib.sealc2_close(12345, &error_out), SEALC2_CALLER);
    char whole[sizeof text];
    strcpy(whole, text);
    size_t len = error_out.text_len;
    check(strstr(whole, "12345") != NULL, "handle not named: %s", whole);
    for (size_t cap = 0; cap <= len + 2; cap++) {
        char cut[512];
        memset(cut, '#', sizeof cut);
        sealc2_error err = {.size = sizeof err, .text = cut, .text_cap = cap};
        check(lib.sealc2_close(12345, &err) == SEALC2_CALLER, "close");
        check(err.text_len == len, "cap %zu: whole length %zu, want %zu", cap, err.text_len, len);
        size_t written = cap == 0 ? 0 : (cap - 1 < len ? cap - 1 : len);
        check(memcmp(cut, whole, written) == 0, "cap %zu: text differs", cap);
        check(cap == 0 || cut[written] == 0, "cap %zu: no NUL", cap);
        check(cut[cap == 0 ? 0 : written + 1] == '#', "cap %zu: written past the end", cap);
    }
    sealc2_error no_text = {.size = sizeof no_text};
    check(lib.sealc2_close(12345, &no_text) == SEALC2_CALLER && no_text.text_len == len, "no buffer: length not given");
}

static void case_garbage(const char *c1_path) {
    sealc2_engine engine = open_engine();
    file c1 = read_file(c1_path);
    uint8_t proof[192];
    size_t len;
    uint8_t *deep = malloc(1 << 20);
    memset(deep, '[', 1 << 20);
    uint8_t noise[4096];
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)(i * 2654435761u >> 13);
    struct {
        const char *what;
        const uint8_t *bytes;
        size_t len;
    } inputs[] = {
        {"text", (const uint8_t *)"no JSON", 7},          {"null", (const uint8_t *)"null", 4},
        {"empty object", (const uint8_t *)"{}", 2},       {"noise", noise, sizeof noise},
        {"a million brackets", deep, 1 << 20},            {"half a C1", c1.bytes, c1.len / 2},
        {"a C1 without its last byte", c1.bytes, c1.len - 1},
    };
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        sealc2_prove_request request = {.size = sizeof request, .c1 = inputs[i].bytes, .c1_len = inputs[i].len, .sector_id = 1};
        memcpy(request.prover_id, prover_1000, 32);
        expect(inputs[i].what, lib.sealc2_prove(engine, &request, proof, sizeof proof, &len, &error_out), SEALC2_INPUT);
        slice_ref_uint8_t slice = {inputs[i].bytes, inputs[i].len};
        uint8_32_array_t id;
        memcpy(id.idx, prover_1000, 32);
        expect_failed_bytes(inputs[i].what, lib.seal_commit_phase2(slice, 1, &id), "");
    }
    free(deep);
    uint8_32_array_t ones;
    memset(ones.idx, 1, 32);
    slice_ref_uint8_t ones_proof = {noise, 192};
    int32_t numbers[] = {-1, 20, 1 << 30, INT32_MIN};
    for (int i = 0; i < 4; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", numbers[i]);
        expect_failed_bool("no such proof type", lib.verify_seal(numbers[i], &ones, &ones, &ones, &ones, &ones, 1, ones_proof), number);
    }
    expect("close", lib.sealc2_close(engine, &error_out), SEALC2_OK);
}

/* A call that reaches the engine and comes back, without parameters: the C1 is refused for its ids. */
static void one_call(sealc2_engine engine, const file *c1) {
    char own[4096] = "";
    sealc2_error err = {.size = sizeof err, .text = own, .text_cap = sizeof own};
    uint8_t proof[192];
    size_t len;
    sealc2_prove_request request = request_for(c1);
    request.sector_id = 2;
    sealc2_status status = lib.sealc2_prove(engine, &request, proof, sizeof proof, &len, &err);
    check(status == SEALC2_INPUT, "wrong sector id: %s: %s", lib.sealc2_status_name(status), own);
    slice_ref_uint8_t slice = {c1->bytes, c1->len};
    uint8_32_array_t id;
    memcpy(id.idx, prover_1000, 32);
    expect_failed_bytes("wrong sector id", lib.seal_commit_phase2(slice, 2, &id), "replica_id");
}

struct call {
    sealc2_engine engine;
    const file *c1;
    void (*body)(struct call *);
};

static void *run_call(void *arg) {
    struct call *c = arg;
    c->body(c);
    return NULL;
}

static void on_thread(struct call *c, size_t stack) {
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    check(pthread_attr_setstacksize(&attr, stack) == 0, "no stack of %zu bytes", stack);
    check(pthread_create(&thread, &attr, run_call, c) == 0, "no thread");
    pthread_join(thread, NULL);
}

static void body_one(struct call *c) { one_call(c->engine, c->c1); }

static int thread_count(void) {
    FILE *in = fopen("/proc/self/status", "r");
    char line[256];
    int n = -1;
    while (in && fgets(line, sizeof line, in))
        if (sscanf(line, "Threads: %d", &n) == 1)
            break;
    if (in)
        fclose(in);
    return n;
}

static void case_small_stack(const char *c1_path) {
    file c1 = read_file(c1_path);
    struct call c = {open_engine(), &c1, body_one};
    on_thread(&c, 64 << 10);
    expect("close", lib.sealc2_close(c.engine, &error_out), SEALC2_OK);
}

static void case_threads(const char *c1_path) {
    file c1 = read_file(c1_path);
    struct call c = {open_engine(), &c1, body_one};
    on_thread(&c, 64 << 10);
    int before = thread_count();
    for (int round = 0; round < 10; round++) {
        pthread_t threads[20];
        for (int i = 0; i < 20; i++)
            check(pthread_create(&threads[i], NULL, run_call, &c) == 0, "no thread");
        for (int i = 0; i < 20; i++)
            pthread_join(threads[i], NULL);
    }
    int after = thread_count();
    check(after <= before + 40, "threads grew from %d to %d over 200 short-lived callers", before, after);
    expect("close", lib.sealc2_close(c.engine, &error_out), SEALC2_OK);
}

static int child_of_fork(sealc2_engine engine, const file *c1) {
    double start = seconds();
    failures = 0;
    alarm(20); /* a hang must not outlive the test */
    sealc2_engine other = 0;
    sealc2_job job = 0;
    size_t len;
    int32_t verified;
    uint8_t proof[192];
    sealc2_prove_request request = request_for(c1);
    sealc2_verify_request claim = {.size = sizeof claim};
    expect("open in a child", lib.sealc2_open(NULL, &other, &error_out), SEALC2_FORKED);
    expect("close in a child", lib.sealc2_close(engine, &error_out), SEALC2_FORKED);
    expect("job_open in a child", lib.sealc2_job_open(&job, &error_out), SEALC2_FORKED);
    expect("cancel in a child", lib.sealc2_cancel(1, &error_out), SEALC2_FORKED);
    expect("job_close in a child", lib.sealc2_job_close(1, &error_out), SEALC2_FORKED);
    expect("prove in a child", lib.sealc2_prove(engine, &request, proof, sizeof proof, &len, &error_out), SEALC2_FORKED);
    expect("verify in a child", lib.sealc2_verify(engine, &claim, &verified, &error_out), SEALC2_FORKED);
    expect("last_stages in a child", lib.sealc2_last_stages(engine, NULL, sizeof(sealc2_stage), 0, &len, &error_out), SEALC2_FORKED);
    expect("shutdown in a child", lib.sealc2_shutdown(&error_out), SEALC2_FORKED);
    slice_ref_uint8_t slice = {c1->bytes, c1->len};
    uint8_32_array_t id = {{0}};
    expect_failed_bytes("seal_commit_phase2 in a child", lib.seal_commit_phase2(slice, 1, &id), "fork");
    expect_failed_bool("verify_seal in a child", lib.verify_seal(5, &id, &id, &id, &id, &id, 1, slice), "fork");
    case_version();
    check(seconds() - start < 1, "calls in a child took %.2f s", seconds() - start);
    return failures != 0;
}

static void wait_child(pid_t child, const char *what) {
    int status = 0;
    check(child > 0 && waitpid(child, &status, 0) == child, "%s: no child", what);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: child ended with status %#x", what, status);
}

static void case_fork(const char *c1_path) {
    file c1 = read_file(c1_path);
    pid_t child = fork(); /* before the first call */
    if (child == 0)
        _exit(child_of_fork(1, &c1));
    wait_child(child, "fork after load");
    sealc2_engine engine = open_engine();
    one_call(engine, &c1);
    child = fork();
    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0)
            _exit(child_of_fork(engine, &c1));
        wait_child(grandchild, "fork of a fork");
        _exit(child_of_fork(engine, &c1) || failures);
    }
    wait_child(child, "fork with an open engine");
    child = (pid_t)syscall(SYS_fork); /* atfork handlers do not run */
    if (child == 0)
        _exit(child_of_fork(engine, &c1));
    wait_child(child, "bare fork system call");
    one_call(engine, &c1); /* the parent goes on */
    expect("close", lib.sealc2_close(engine, &error_out), SEALC2_OK);
}

static void case_setenv(const char *c1_path) {
    file c1 = read_file(c1_path);
    sealc2_engine engine = open_engine();
    uint8_t proof[192];
    size_t len;
    const char *folders[] = {"/nowhere/first-folder", "/nowhere/second-folder", ""};
    for (int i = 0; i < 3; i++) {
        setenv("FIL_PROOFS_PARAMETER_CACHE", folders[i], 1);
        const char *want = folders[i][0] ? folders[i] : "/var/tmp/filecoin-proof-parameters";
        if (!folders[i][0] && access(want, F_OK) == 0)
            continue; /* this machine has parameters there */
        sealc2_prove_request request = request_for(&c1);
        expect(want, lib.sealc2_prove(engine, &request, proof, sizeof proof, &len, &error_out), SEALC2_PARAMS);
        check(strstr(said(), want) != NULL, "folder %s not named: %s", want, said());
        slice_ref_uint8_t slice = {c1.bytes, c1.len};
        uint8_32_array_t id;
        memcpy(id.idx, prover_1000, 32);
        expect_failed_bytes(want, lib.seal_commit_phase2(slice, 1, &id), want);
        request.params_dir = "/nowhere/argument";
        expect("params_dir", lib.sealc2_prove(engine, &request, proof, sizeof proof, &len, &error_out), SEALC2_PARAMS);
        check(strstr(said(), "/nowhere/argument") != NULL, "folder of the argument not named: %s", said());
    }
    unsetenv("FIL_PROOFS_PARAMETER_CACHE");
    setenv("RAYON_NUM_THREADS", "1", 1); /* the shared engine is opened anew, and works */
    slice_ref_uint8_t slice = {c1.bytes, c1.len};
    uint8_32_array_t id;
    memcpy(id.idx, prover_1000, 32);
    expect_failed_bytes("another thread count", lib.seal_commit_phase2(slice, 2, &id), "replica_id");
    expect("close", lib.sealc2_close(engine, &error_out), SEALC2_OK);
    expect("shutdown", lib.sealc2_shutdown(&error_out), SEALC2_OK);
    expect_failed_bytes("after shutdown", lib.seal_commit_phase2(slice, 2, &id), "replica_id");
}

/* Whatever the library kept of its inputs would be read from pages that are gone. */
static void case_freed_inputs(const char *c1_path) {
    sealc2_engine engine = open_engine();
    for (int i = 0; i < 8; i++) {
        file c1 = read_file(c1_path);
        if (i % 2 == 0) {
            one_call(engine, &c1);
        } else {
            char *folder = strdup("/nowhere/folder");
            sealc2_prove_request *request = malloc(sizeof *request);
            *request = request_for(&c1);
            request->params_dir = folder;
            uint8_t proof[192];
            size_t len;
            expect("no parameters", lib.sealc2_prove(engine, request, proof, sizeof proof, &len, &error_out), SEALC2_PARAMS);
            memset(folder, '#', strlen(folder));
            memset(request, 0xA5, sizeof *request);
            free(folder);
            free(request);
        }
        unmap(&c1);
    }
    usleep(100000);
    expect("close", lib.sealc2_close(engine, &error_out), SEALC2_OK);
}

struct heard {
    sealc2_engine engine;
    sealc2_job job;
    int stop_at, calls, partitions;
    double done;
    uint8_t proof[192];
    pthread_mutex_t busy;
};

static int32_t on_progress(void *user, const sealc2_progress *p) {
    struct heard *h = user;
    check(pthread_mutex_trylock(&h->busy) == 0, "two callbacks at a time");
    check(p->size == sizeof *p && p->stage != NULL && p->stage[0] != 0, "progress: size %zu", p->size);
    check(p->done >= 0 && p->done <= 1, "progress: done %f", p->done);
    check(p->partition >= -1 && p->partition < p->partitions, "progress: partition %d of %d", p->partition, p->partitions);
    if (h->calls++ == 0) {
        size_t count;
        sealc2_engine other;
        char own[512] = "";
        sealc2_error err = {.size = sizeof err, .text = own, .text_cap = sizeof own};
        check(lib.sealc2_close(h->engine, &err) == SEALC2_CALLER && strstr(own, "callback"), "close in a callback: %s", own);
        check(lib.sealc2_shutdown(&err) == SEALC2_CALLER, "shutdown in a callback");
        check(lib.sealc2_open(NULL, &other, &err) == SEALC2_CALLER, "open in a callback");
        check(lib.sealc2_last_stages(h->engine, NULL, sizeof(sealc2_stage), 0, &count, &err) == SEALC2_CALLER, "last_stages in a callback");
        check(lib.sealc2_cancel(0, &err) == SEALC2_CALLER && strstr(own, "callback") == NULL, "cancel in a callback: %s", own);
    }
    h->done = p->done;
    int stop = h->calls == h->stop_at;
    if (stop && h->job) {
        check(lib.sealc2_cancel(h->job, NULL) == SEALC2_OK, "cancel from a callback");
        stop = 0;
    }
    pthread_mutex_unlock(&h->busy);
    return stop;
}

static int32_t on_partition(void *user, uint32_t partition, const uint8_t proof[192]) {
    struct heard *h = user;
    check(pthread_mutex_trylock(&h->busy) == 0, "two callbacks at a time");
    check(partition == (uint32_t)h->partitions++, "partition %u out of order", partition);
    memcpy(h->proof, proof, 192);
    pthread_mutex_unlock(&h->busy);
    return 0;
}

static void *cancel_later(void *arg) {
    struct heard *h = arg;
    usleep(300000);
    check(lib.sealc2_cancel(h->job, NULL) == SEALC2_OK, "cancel from a thread");
    return NULL;
}

static void *close_later(void *arg) {
    struct heard *h = arg;
    usleep(300000);
    check(lib.sealc2_close(h->engine, NULL) == SEALC2_OK, "close from a thread");
    return NULL;
}

/* Cancelling needs a proof that takes a while, so it has parameters. */
static void case_cancel(const char *c1_path, const char *params) {
    sealc2_engine engine = open_engine();
    uint8_t proof[192];
    size_t len;
    for (int how = 0; how < 5; how++) {
        static const char *const hows[] = {"callback's answer", "cancel in a callback", "thread", "before it begins", "close"};
        file c1 = read_file(c1_path);
        sealc2_prove_request request = request_for(&c1);
        struct heard h = {.engine = engine, .busy = PTHREAD_MUTEX_INITIALIZER, .stop_at = how < 2 ? 1 : 0};
        request.params_dir = params;
        request.dev_params = SEALC2_DEV_PARAMS_ALLOW;
        request.user = &h;
        request.progress = on_progress;
        pthread_t thread;
        if (how > 0 && how < 4) {
            expect("job_open", lib.sealc2_job_open(&h.job, &error_out), SEALC2_OK);
            request.job = h.job;
        }
        if (how == 2)
            pthread_create(&thread, NULL, cancel_later, &h);
        if (how == 3)
            expect("cancel", lib.sealc2_cancel(h.job, &error_out), SEALC2_OK);
        if (how == 4)
            pthread_create(&thread, NULL, close_later, &h);
        expect(hows[how], lib.sealc2_prove(engine, &request, proof, sizeof proof, &len, &error_out), SEALC2_CANCELLED);
        unmap(&c1); /* the work must have left it */
        if (how == 2 || how == 4)
            pthread_join(thread, NULL);
        check(how != 3 || h.calls == 0, "a job cancelled before it began made progress");
        if (h.job) {
            expect("job_close", lib.sealc2_job_close(h.job, &error_out), SEALC2_OK);
            expect("job_close twice", lib.sealc2_job_close(h.job, &error_out), SEALC2_CALLER);
        }
    }
    expect("engine closed by the thread", lib.sealc2_close(engine, &error_out), SEALC2_CALLER);
}

static void from_hex(const char *hex, uint8_t *out, size_t len) {
    if (!check(strlen(hex) == 2 * len, "hex of %zu digits, want %zu", strlen(hex), 2 * len))
        exit(1);
    for (size_t i = 0; i < len; i++)
        sscanf(hex + 2 * i, "%2hhx", &out[i]);
}

/* r, s and the proof that the reference makes with them, in hex. */
static void case_prove(const char *c1_path, const char *params, const char *r_hex, const char *s_hex, const char *proof_hex) {
    sealc2_engine engine = open_engine();
    file c1 = read_file(c1_path);
    uint8_t r[32], s[32], want[192], proof[192 + 8], native[192];
    size_t len = 0;
    from_hex(r_hex, r, 32);
    from_hex(s_hex, s, 32);
    from_hex(proof_hex, want, 192);
    struct heard h = {.engine = engine, .busy = PTHREAD_MUTEX_INITIALIZER};
    sealc2_prove_request request = request_for(&c1);
    request.params_dir = params;
    request.user = &h;
    request.progress = on_progress;
    request.partition = on_partition;
    request.r = r;
    request.s = s;
    request.scalar_count = 1;

    unsetenv("SEALC2_ALLOW_DEV_PARAMS");
    expect("development parameters, not allowed", lib.sealc2_prove(engine, &request, proof, 192, &len, &error_out), SEALC2_PARAMS);
    request.dev_params = SEALC2_DEV_PARAMS_ALLOW;
    expect("room for 191 bytes", lib.sealc2_prove(engine, &request, proof, 191, &len, &error_out), SEALC2_CALLER);
    check(len == 192, "room for 191 bytes: *proof_len %zu", len);

    file changed = read_file(c1_path);
    uint8_t *at = memmem(changed.bytes, changed.len, "\"hashes\":[[", 11);
    while (at != NULL && !(at[0] == ',' && at[1] == '2' && at[4] == ','))
        at++; /* some number of three digits in a sibling of a Merkle path */
    at[1] = '1';
    request.c1 = changed.bytes;
    expect("a changed hash", lib.sealc2_prove(engine, &request, proof, 192, &len, &error_out), SEALC2_UNSATISFIED);
    check(strstr(said(), "partition 0") != NULL && strstr(said(), "row") != NULL, "place not named: %s", said());
    unmap(&changed);
    request.c1 = c1.bytes;
    h.calls = h.partitions = 0;

    memset(proof, '#', sizeof proof);
    expect("prove", lib.sealc2_prove(engine, &request, proof, sizeof proof, &len, &error_out), SEALC2_OK);
    check(len == 192 && memcmp(proof, want, 192) == 0, "the proof is not the reference's");
    check(memcmp(proof + 192, "########", 8) == 0, "written past the proof");
    check(h.partitions == 1 && memcmp(h.proof, want, 192) == 0, "partition callback: %d calls", h.partitions);
    check(h.calls > 3 && h.done == 1, "progress: %d calls, %f done at the end", h.calls, h.done);
    memcpy(native, proof, 192);

    sealc2_stage stages[64];
    size_t count = 0;
    expect("last_stages", lib.sealc2_last_stages(engine, stages, sizeof stages[0], 64, &count, &error_out), SEALC2_OK);
    check(count > 3 && count <= 64, "%zu stages", count);
    uint64_t total = 0;
    for (size_t i = 0; i < count && i < 64; i++) {
        check(memchr(stages[i].name, 0, sizeof stages[i].name) != NULL && stages[i].name[0] != 0, "stage %zu has no name", i);
        check(stages[i].partition == -1 || stages[i].partition == 0, "stage %zu of partition %" PRId64, i, stages[i].partition);
        total += stages[i].elapsed_ns;
    }
    check(total > 1000000, "stages took %" PRIu64 " ns in all", total);
    stages[1].name[0] = '#';
    expect("last_stages, room for one", lib.sealc2_last_stages(engine, stages, sizeof stages[0], 1, &count, &error_out), SEALC2_OK);
    check(count > 3 && stages[1].name[0] == '#', "more stages were written than there was room for");

    int32_t verified = 7;
    sealc2_verify_request claim = claim_of(&c1, native, 192);
    claim.params_dir = params;
    claim.dev_params = SEALC2_DEV_PARAMS_ALLOW;
    expect("verify", lib.sealc2_verify(engine, &claim, &verified, &error_out), SEALC2_OK);
    check(verified == 1, "a good proof was not verified");
    claim.seed[0] ^= 1;
    expect("verify another seed", lib.sealc2_verify(engine, &claim, &verified, &error_out), SEALC2_OK);
    check(verified == 0, "a proof of another seed was verified");
    claim.seed[0] ^= 1;
    claim.proof_len = 191;
    expect("verify 191 bytes", lib.sealc2_verify(engine, &claim, &verified, &error_out), SEALC2_INPUT);
    expect("close", lib.sealc2_close(engine, &error_out), SEALC2_OK);

    setenv("FIL_PROOFS_PARAMETER_CACHE", params, 1);
    setenv("SEALC2_ALLOW_DEV_PARAMS", "1", 1);
    slice_ref_uint8_t slice = {c1.bytes, c1.len};
    uint8_32_array_t comm_r, comm_d, prover, ticket, seed;
    memcpy(comm_r.idx, claim.comm_r, 32);
    memcpy(comm_d.idx, claim.comm_d, 32);
    memcpy(prover.idx, prover_1000, 32);
    memcpy(ticket.idx, claim.ticket, 32);
    memcpy(seed.idx, claim.seed, 32);
    Result_slice_boxed_uint8_t *made = lib.seal_commit_phase2(slice, 1, &prover);
    check(made->status_code == 0 && made->value.len == 192, "seal_commit_phase2: %d, %.*s", made->status_code, (int)made->error_msg.len, (char *)made->error_msg.ptr);
    check(made->error_msg.len == 0 && made->error_msg.ptr != NULL, "text of a success");
    check(made->value.len != 192 || memcmp(made->value.ptr, native, 192) != 0, "two proofs with random r and s are equal");
    unmap(&c1);
    slice_ref_uint8_t proof_slice = {made->value.ptr, made->value.len};
    Result_bool_t *holds = lib.verify_seal(5, &comm_r, &comm_d, &prover, &ticket, &seed, 1, proof_slice);
    check(holds->status_code == 0 && holds->value, "verify_seal: %d, %.*s", holds->status_code, (int)holds->error_msg.len, (char *)holds->error_msg.ptr);
    lib.destroy_verify_seal_response(holds);
    seed.idx[0] ^= 1;
    holds = lib.verify_seal(5, &comm_r, &comm_d, &prover, &ticket, &seed, 1, proof_slice);
    check(holds->status_code == 0 && !holds->value, "verify_seal of another seed: %d", holds->status_code);
    lib.destroy_verify_seal_response(holds);
    /* as a destructor of filcrypto does it */
    free(made->value.ptr);
    free(made);
    expect("shutdown", lib.sealc2_shutdown(&error_out), SEALC2_OK);
}

/* The non-interactive kinds end in an aggregate of their 13 proofs here, which no version makes yet. */
static void case_non_interactive(const char *c1_path) {
    sealc2_engine engine = open_engine();
    file c1 = read_file(c1_path);
    sealc2_prove_request request = {.size = sizeof request, .c1 = c1.bytes, .c1_len = c1.len, .sector_id = UINT64_MAX, .prover_id = {7}, .params_dir = "/nowhere"};
    uint8_t proof[13 * 192];
    size_t len;
    const char *named = "aggregation is not supported yet";
    expect("chain proof", lib.sealc2_prove(engine, &request, proof, sizeof proof, &len, &error_out), SEALC2_UNSUPPORTED);
    check(strstr(said(), named) != NULL, "not named: %s", said());
    request.circuit_proofs = 1;
    expect("circuit proofs", lib.sealc2_prove(engine, &request, proof, sizeof proof, &len, &error_out), SEALC2_PARAMS);
    expect("circuit proofs, room for 12", lib.sealc2_prove(engine, &request, proof, sizeof proof - 192, &len, &error_out), SEALC2_CALLER);
    check(len == sizeof proof, "room for 12: *proof_len %zu", len);
    request.circuit_proofs = 2;
    expect("circuit_proofs 2", lib.sealc2_prove(engine, &request, proof, sizeof proof, &len, &error_out), SEALC2_CALLER);
    slice_ref_uint8_t slice = {c1.bytes, c1.len}, proof_slice = {proof, sizeof proof};
    uint8_32_array_t id = {{7}}, one = {{1}};
    expect_failed_bytes("seal_commit_phase2", lib.seal_commit_phase2(slice, UINT64_MAX, &id), named);
    for (int kind = 15; kind < 20; kind++)
        expect_failed_bool("verify_seal", lib.verify_seal(kind, &one, &one, &id, &one, &one, 1, proof_slice), named);
    expect("close", lib.sealc2_close(engine, &error_out), SEALC2_OK);
}

static volatile sig_atomic_t urgent, caught;
static sigjmp_buf back;

static void on_urgent(int number, siginfo_t *info, void *context) {
    (void)number, (void)info, (void)context;
    urgent++;
}

static void on_fault(int number) {
    (void)number;
    caught++;
    siglongjmp(back, 1);
}

static void on_tick(int number) { (void)number; }

static void before_load_signals(void) {
    struct sigaction action = {.sa_sigaction = on_urgent, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    sigaction(SIGURG, &action, NULL);
    struct sigaction fault = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
    sigaction(SIGSEGV, &fault, NULL);
    struct sigaction tick = {.sa_handler = on_tick, .sa_flags = SA_ONSTACK | SA_RESTART};
    sigaction(SIGALRM, &tick, NULL);
}

static void *fault_here(void *arg) {
    (void)arg;
    if (sigsetjmp(back, 1) == 0)
        *(volatile int *)8 = 1;
    return NULL;
}

static void case_signals(const char *c1_path) {
    file c1 = read_file(c1_path);
    struct sigaction now;
    int untouched[] = {SIGINT, SIGTERM, SIGCHLD, SIGPROF, SIGHUP, SIGUSR1};
    for (size_t i = 0; i < sizeof untouched / sizeof untouched[0]; i++) {
        sigaction(untouched[i], NULL, &now); // nohup and the like have some ignored
        check(now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN, "signal %d has a handler after loading", untouched[i]);
    }
    sigaction(SIGURG, NULL, &now);
    check(now.sa_flags & SA_ONSTACK, "SIGURG is not on the alternate stack");
    check(now.sa_sigaction != on_urgent, "the library's runtime has no SIGURG handler: the chain was not needed");
    sealc2_engine engine = open_engine();
    for (int i = 0; i < 100; i++)
        raise(SIGURG);
    check(urgent >= 100, "the host's SIGURG handler ran %d times of 100", (int)urgent);
    pthread_t thread;
    pthread_create(&thread, NULL, fault_here, NULL);
    pthread_join(thread, NULL);
    check(caught == 1, "the host's SIGSEGV handler ran %d times", (int)caught);
    timer_t timer;
    struct itimerspec period = {{0, 1000000}, {0, 1000000}};
    check(timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0 && timer_settime(timer, 0, &period, NULL) == 0, "no timer");
    for (int i = 0; i < 10; i++)
        one_call(engine, &c1); /* under a signal each millisecond */
    timer_delete(timer);
    expect("close", lib.sealc2_close(engine, &error_out), SEALC2_OK);
}

static void case_unload(const char *path, const char *c1_path) {
    file c1 = read_file(c1_path);
    int before = 0;
    for (int i = 0; i < 100; i++) {
        void *handle = dlopen(path, RTLD_NOW);
        check(handle != NULL && dlclose(handle) == 0, "dlopen and dlclose");
        if (i == 0)
            before = thread_count();
    }
    check(thread_count() <= before + 2, "threads grew from %d to %d over 100 loads", before, thread_count());
    sealc2_engine engine = open_engine();
    one_call(engine, &c1);
    expect("shutdown", lib.sealc2_shutdown(&error_out), SEALC2_OK);
    expect("close after shutdown", lib.sealc2_close(engine, &error_out), SEALC2_CALLER);
    engine = open_engine();
    one_call(engine, &c1);
    expect("close", lib.sealc2_close(engine, &error_out), SEALC2_OK);
}

#include "jobs.h"

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: host LIBRARY CASE [ARGUMENT ...]\n");
        return 2;
    }
    const char *name = argv[2];
    const char *arg[5] = {"", "", "", "", ""};
    for (int i = 0; i < 5 && i + 3 < argc; i++)
        arg[i] = argv[i + 3];
    if (strcmp(name, "signals") == 0)
        before_load_signals();
    load(argv[1]);
    if (strcmp(name, "version") == 0) case_version();
    else if (strcmp(name, "null") == 0) case_null();
    else if (strcmp(name, "sizes") == 0) case_sizes();
    else if (strcmp(name, "error-text") == 0) case_error_text();
    else if (strcmp(name, "garbage") == 0) case_garbage(arg[0]);
    else if (strcmp(name, "small-stack") == 0) case_small_stack(arg[0]);
    else if (strcmp(name, "threads") == 0) case_threads(arg[0]);
    else if (strcmp(name, "fork") == 0) case_fork(arg[0]);
    else if (strcmp(name, "setenv") == 0) case_setenv(arg[0]);
    else if (strcmp(name, "freed-inputs") == 0) case_freed_inputs(arg[0]);
    else if (strcmp(name, "signals") == 0) case_signals(arg[0]);
    else if (strcmp(name, "unload") == 0) case_unload(argv[1], arg[0]);
    else if (strcmp(name, "cancel") == 0) case_cancel(arg[0], arg[1]);
    else if (strcmp(name, "non-interactive") == 0) case_non_interactive(arg[0]);
    else if (strcmp(name, "prove") == 0) case_prove(arg[0], arg[1], arg[2], arg[3], arg[4]);
    else if (strcmp(name, "jobs-null") == 0) case_jobs_null();
    else if (strcmp(name, "jobs") == 0) case_jobs(arg[0]);
    else if (strcmp(name, "jobs-prove") == 0) case_jobs_prove(arg[0], arg[1], arg[2], arg[3], arg[4]);
    else {
        fprintf(stderr, "no case %s\n", name);
        return 2;
    }
    if (failures == 0)
        puts("ok");
    return failures != 0;
}
