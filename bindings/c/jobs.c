/* Submits a sector to be proved, tells how far it is while it waits for the proof, and cancels what takes too long.
 *
 *   jobs C1.json SECTOR_ID MINER PARAMETER_FOLDER [SECONDS]
 *
 * SECONDS is how long the proof may take; without it there is no end.
 *
 * Build: cc jobs.c $(pkg-config --cflags --libs sealc2)
 * Exit code 0: the proof is on stdout, in hex; 1: refused, failed or cancelled; 2: usage. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sealc2.h>

static char text[4096];
static sealc2_error err = {.size = sizeof err, .text = text, .text_cap = sizeof text};

static int failed(const char *what, sealc2_status status) {
    fprintf(stderr, "%s: %s: %s\n", what, sealc2_status_name(status), text);
    return 1;
}

static uint8_t *read_all(const char *path, size_t *len) {
    FILE *in = fopen(path, "rb");
    if (in == NULL)
        return NULL;
    uint8_t *data = NULL;
    long size = -1;
    if (fseek(in, 0, SEEK_END) == 0 && (size = ftell(in)) >= 0 && fseek(in, 0, SEEK_SET) == 0)
        data = malloc((size_t)size + 1);
    if (data != NULL && fread(data, 1, (size_t)size, in) != (size_t)size) {
        free(data);
        data = NULL;
    }
    fclose(in);
    *len = (size_t)size;
    return data;
}

/* A prover id is the miner's actor number as unsigned LEB128, zero-filled. */
static void prover_id(uint64_t miner, uint8_t out[32]) {
    memset(out, 0, 32);
    for (int i = 0; miner != 0; i++, miner >>= 7)
        out[i] = (uint8_t)((miner & 0x7F) | (miner > 0x7F ? 0x80 : 0));
}

static void show(sealc2_job job) {
    static const char *const states[] = {"queued", "running", "done", "failed", "cancelled"};
    sealc2_job_info info = {.size = sizeof info};
    if (sealc2_job_progress(job, &info, &err) == SEALC2_OK)
        fprintf(stderr, "%s: %s, %.1f%%, %" PRIu32 " of %" PRIu32 " partitions, %.1f s\n", info.id, states[info.state], 100 * info.done,
                info.delivered, info.partitions, (double)info.running_ns / 1e9);
}

int main(int argc, char **argv) {
    if (argc < 5 || argc > 6) {
        fprintf(stderr, "usage: jobs C1.json SECTOR_ID MINER PARAMETER_FOLDER [SECONDS]\n");
        return 2;
    }
    size_t c1_len;
    uint8_t *c1 = read_all(argv[1], &c1_len);
    if (c1 == NULL) {
        perror(argv[1]);
        return 1;
    }
    sealc2_engine engine;
    sealc2_status status = sealc2_open(NULL, &engine, &err);
    if (status != SEALC2_OK)
        return failed("open", status);

    /* The job's name: whoever submits the same again under it gets this job, and not a second one. A sector whose proof is there may
     * need another, when it gets a new seed: that is what .replace is for. */
    char id[SEALC2_JOB_ID_BYTES];
    snprintf(id, sizeof id, "porep-%s-%s", argv[3], argv[2]);
    sealc2_prove_request request = {
        .size = sizeof request,
        .c1 = c1,
        .c1_len = c1_len,
        .sector_id = strtoull(argv[2], NULL, 10),
        .params_dir = argv[4],
        .dev_params = SEALC2_DEV_PARAMS_ALLOW, /* an example: in earnest, leave this out */
    };
    prover_id(strtoull(argv[3], NULL, 10), request.prover_id);
    sealc2_submit_options options = {.size = sizeof options, .id = id, .priority = SEALC2_CLASS_POREP, .replace = 1, .room_ms = 60000};
    sealc2_job job;
    status = sealc2_submit(engine, &request, &options, &job, &err);
    free(c1); /* the library has its copy */
    if (status != SEALC2_OK)
        return failed("submit", status);

    uint64_t patience_ms = argc == 6 ? 1000 * strtoull(argv[5], NULL, 10) : SEALC2_FOREVER;
    uint8_t proof[126 * SEALC2_PROOF_BYTES]; /* no kind has more partitions */
    size_t proof_len;
    for (;;) {
        uint64_t wait_ms = patience_ms < 1000 ? patience_ms : 1000;
        status = sealc2_wait(job, wait_ms, proof, sizeof proof, &proof_len, &err);
        if (status != SEALC2_TIMEOUT)
            break;
        show(job);
        if (patience_ms != SEALC2_FOREVER && (patience_ms -= wait_ms) == 0) {
            /* Asked for, and not there yet: the job ends at its next stage border, and the wait then says so. */
            sealc2_cancel(job, NULL);
            patience_ms = SEALC2_FOREVER;
        }
    }
    if (status != SEALC2_OK) {
        failed("wait", status);
    } else {
        for (size_t i = 0; i < proof_len; i++)
            printf("%02x", proof[i]);
        printf("\n");
    }
    sealc2_job_close(job, NULL);
    sealc2_close(engine, NULL);
    return status != SEALC2_OK;
}
