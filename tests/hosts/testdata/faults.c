/* A C host of a library that was built with points of fault (instrument_test.go).
 *
 *   faults LIBRARY passed WORK C1 KEYS PROOF          does the work once; the shared file then says which points were passed
 *   faults LIBRARY passed2 WORK C1 KEYS PROOF         does it twice; the file is about the second time
 *   faults LIBRARY hit WORK C1 KEYS PROOF POINT ...   does the work for each point with the point armed, so that it
 *                                                     fires once, and now and then without
 *   faults LIBRARY hit2 WORK C1 KEYS PROOF POINT ...  besides, so that it fires at each passage, and each time again without
 *   faults LIBRARY first WORK C1 KEYS PROOF POINT     arms the point for the first work of the process
 *
 * SEALC2_TEST_FAULTS names the shared file. For each point a line says what came of it; a process that ends
 * before its last line was ended by the point of the line before. */
#define _GNU_SOURCE
#include "guest.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

static volatile uint32_t *shared;

/* What a piece of work came to: a status, or for the functions without one whether they failed. */
typedef struct {
    int32_t status;
    char text[1024];
} outcome;

static outcome result;
static sealc2_error err = {.size = sizeof err, .text = result.text, .text_cap = sizeof result.text};
static sealc2_engine engine; /* stays open over all calls */

static void keep(sealc2_status status) {
    result.status = status;
    if (status == SEALC2_OK)
        result.text[0] = 0;
}

static void work_open(void) {
    sealc2_engine other = 0;
    sealc2_status got = lib.sealc2_open(NULL, &other, &err);
    if (got == SEALC2_OK)
        got = lib.sealc2_close(other, &err);
    keep(got);
}

static void work_job(void) {
    sealc2_job job = 0;
    sealc2_status got = lib.sealc2_job_open(&job, &err);
    if (got == SEALC2_OK)
        got = lib.sealc2_cancel(job, &err);
    if (got == SEALC2_OK)
        got = lib.sealc2_job_close(job, &err);
    keep(got);
}

static void work_verify(void) {
    sealc2_verify_request claim = {.size = sizeof claim, .registered_proof = 5, .dev_params = SEALC2_DEV_PARAMS_ALLOW,
                                   .sector_id = 1, .proof = sector.proof, .proof_len = 192, .params_dir = sector.keys};
    memcpy(claim.comm_r, sector.comm_r, 32);
    memcpy(claim.comm_d, sector.comm_d, 32);
    memcpy(claim.ticket, sector.ticket, 32);
    memcpy(claim.seed, sector.seed, 32);
    memcpy(claim.prover_id, prover_1000, 32);
    int32_t verified = 0;
    keep(lib.sealc2_verify(engine, &claim, &verified, &err));
    check(verified == (result.status == SEALC2_OK), "verified %d with status %d", verified, result.status);
}

static void prove(const uint8_t *c1, size_t len, uint64_t id, const char *params) {
    sealc2_prove_request request = {.size = sizeof request, .c1 = c1, .c1_len = len, .sector_id = id,
                                    .params_dir = params, .dev_params = SEALC2_DEV_PARAMS_ALLOW};
    memcpy(request.prover_id, prover_1000, 32);
    uint8_t proof[192];
    size_t written;
    keep(lib.sealc2_prove(engine, &request, proof, sizeof proof, &written, &err));
}
static void work_garbage(void) { prove((const uint8_t *)"[[[[", 4, 1, "/nowhere"); }
static void work_ids(void) { prove(sector.c1, sector.c1_len, 2, "/nowhere"); }
static void work_params(void) { prove(sector.c1, sector.c1_len, 1, "/nowhere"); }
/* With a file that holds a key and holes, up to the first point; with one that holds points, to the end. */
static void work_prove(void) { prove(sector.c1, sector.c1_len, 1, sector.keys); }

/* A job of its own each time, which fails for want of parameters; what it comes to, if it is accepted, is what the wait says. Where the caller is not
 * told of a job that goes on, it is joined by its name, so that it does not run into the next point. */
static void work_submit(void) {
    static unsigned turn;
    char name[16];
    snprintf(name, sizeof name, "%u", turn++);
    sealc2_prove_request request = {.size = sizeof request, .c1 = sector.c1, .c1_len = sector.c1_len, .sector_id = 1, .params_dir = "/nowhere"};
    memcpy(request.prover_id, prover_1000, 32);
    sealc2_submit_options options = {.size = sizeof options, .id = name};
    uint8_t proof[192];
    size_t written;
    sealc2_job job = 0;
    sealc2_status got = lib.sealc2_submit(engine, &request, &options, &job, &err);
    if (got == SEALC2_OK)
        got = lib.sealc2_wait(job, SEALC2_FOREVER, proof, sizeof proof, &written, &err);
    keep(got);
    if (job == 0 && lib.sealc2_submit(engine, &request, &options, &job, NULL) == SEALC2_OK)
        lib.sealc2_wait(job, SEALC2_FOREVER, proof, sizeof proof, &written, NULL);
    got = job != 0 ? lib.sealc2_job_close(job, &err) : SEALC2_OK;
    if (got != SEALC2_OK) { /* the point is there */
        keep(got);
        lib.sealc2_job_close(job, NULL);
    }
}

static void work_stages(void) {
    sealc2_stage stages[8];
    size_t count;
    keep(lib.sealc2_last_stages(engine, stages, sizeof stages[0], 8, &count, &err));
}

static void work_verify_ffi(void) {
    uint8_32_array_t in[5];
    memcpy(in[0].idx, sector.comm_r, 32);
    memcpy(in[1].idx, sector.comm_d, 32);
    memcpy(in[2].idx, prover_1000, 32);
    memcpy(in[3].idx, sector.ticket, 32);
    memcpy(in[4].idx, sector.seed, 32);
    slice_ref_uint8_t proof = {sector.proof, 192};
    Result_bool_t *r = lib.verify_seal(5, &in[0], &in[1], &in[2], &in[3], &in[4], 1, proof);
    check(r->value == (r->status_code == 0), "verify_seal: value %d with status %d", r->value, r->status_code);
    snprintf(result.text, sizeof result.text, "%.*s", (int)r->error_msg.len, (char *)r->error_msg.ptr);
    result.status = r->status_code == 0 ? 0 : strstr(result.text, "injected") ? SEALC2_INTERNAL : SEALC2_INPUT;
    lib.destroy_verify_seal_response(r);
}

static void work_prove_ffi(void) {
    uint8_32_array_t id = {{0}};
    memcpy(id.idx, prover_1000, 32);
    slice_ref_uint8_t c1 = {sector.c1, sector.c1_len};
    Result_slice_boxed_uint8_t *r = lib.seal_commit_phase2(c1, 99, &id);
    snprintf(result.text, sizeof result.text, "%.*s", (int)r->error_msg.len, (char *)r->error_msg.ptr);
    result.status = r->status_code == 0 ? 0 : strstr(result.text, "injected") ? SEALC2_INTERNAL : SEALC2_INPUT;
    lib.destroy_seal_commit_phase2_response(r);
}

/* Another number of threads retires the engine behind sealc2_ffi.h, in a goroutine of its own. */
static void work_retire(void) {
    static int turn;
    setenv("RAYON_NUM_THREADS", turn++ % 2 ? "1" : "2", 1);
    work_verify_ffi();
}

static void work_shutdown(void) {
    sealc2_engine other = 0;
    sealc2_status got = lib.sealc2_open(NULL, &other, &err);
    if (got == SEALC2_OK)
        got = lib.sealc2_shutdown(&err);
    keep(got);
    if (lib.sealc2_open(NULL, &engine, NULL) != SEALC2_OK)
        lib.sealc2_open(NULL, &engine, NULL); /* the point may be there */
}

static const struct {
    const char *name;
    void (*run)(void);
} works[] = {
    {"open", work_open},     {"job", work_job},       {"verify", work_verify},         {"garbage", work_garbage},     {"ids", work_ids},       {"params", work_params},
    {"submit", work_submit}, {"prove", work_prove},   {"stages", work_stages}, {"verify_seal", work_verify_ffi}, {"seal_commit_phase2", work_prove_ffi}, {"retire", work_retire}, {"shutdown", work_shutdown},
};

int main(int argc, char **argv) {
    if (argc < 7)
        return 2;
    void (*work)(void) = NULL;
    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++)
        if (strcmp(works[i].name, argv[3]) == 0)
            work = works[i].run;
    if (work == NULL)
        return 2;
    const char *path = getenv("SEALC2_TEST_FAULTS");
    struct stat info;
    int file = path ? open(path, O_RDWR) : -1;
    if (!check(file >= 0 && fstat(file, &info) == 0, "no shared file"))
        return 1;
    shared = mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    setvbuf(stdout, NULL, _IOLBF, 0);
    load(argv[1], RTLD_NOW);
    read_sector(argv[4], argv[5], argv[6]);
    setenv("FIL_PROOFS_PARAMETER_CACHE", sector.keys, 1);
    setenv("SEALC2_ALLOW_DEV_PARAMS", "1", 1);
    engine = open_engine(2);
    if (strcmp(argv[2], "first") == 0) { /* what is done once a process is on the way of the first call only */
        uint32_t point = (uint32_t)strtoul(argv[7], NULL, 10);
        printf("arm %u\n", point);
        alarm(20);
        shared[1] = 1;
        __atomic_store_n(&shared[0], point, __ATOMIC_SEQ_CST);
        work();
        __atomic_store_n(&shared[0], 0, __ATOMIC_SEQ_CST);
        outcome hit = result;
        work();
        int32_t second = result.status;
        printf("usual %d %s\n", second, result.text);
        printf("fired %u %d %s\n", shared[2], hit.status, hit.text);
        check(second != SEALC2_INTERNAL, "point %u: the call after the first: %s", point, result.text);
        work();
        check(result.status == second, "point %u: the third call: want status %d, got %d: %s", point, second, result.status, result.text);
        return finish();
    }
    memset((void *)(shared + 16), 0, (size_t)info.st_size - 64); /* loading is not the work's */
    work();
    int32_t usual = result.status;
    check(usual != SEALC2_INTERNAL, "without a fault: internal error: %s", result.text);
    printf("usual %d %s\n", usual, result.text);
    if (strncmp(argv[2], "passed", 6) == 0) {
        if (strcmp(argv[2], "passed2") == 0) {
            memset((void *)(shared + 16), 0, (size_t)info.st_size - 64);
            work();
        }
        return finish();
    }
    int threads = thread_count(), files = file_count();
    int turns = strcmp(argv[2], "hit2") == 0 ? 2 : 1;
    for (int i = 7; i < argc; i++) {
        uint32_t point = (uint32_t)strtoul(argv[i], NULL, 10);
        for (int turn = 0; turn < turns; turn++) {
            printf("arm %u\n", point);
            alarm(20);
            shared[1] = turn == 0;
            shared[2] = 0;
            __atomic_store_n(&shared[0], point, __ATOMIC_SEQ_CST);
            work();
            uint32_t fired = shared[2];
            __atomic_store_n(&shared[0], 0, __ATOMIC_SEQ_CST);
            printf("fired %u %d %s\n", fired, result.status, result.text);
            if (turns == 2 || i % 8 == 0 || i == argc - 1) {
                work();
                check(result.status == usual, "point %u: the next call: want status %d, got %d: %s", point, usual, result.status, result.text);
            }
            if (!fired)
                break;
        }
    }
    check(thread_count() <= threads + 8, "threads grew from %d to %d", threads, thread_count());
    check(file_count() <= files + 2, "files grew from %d to %d", files, file_count());
    return finish();
}
