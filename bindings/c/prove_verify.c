/* Proves a sector from its C1 output and verifies the proof, with nothing but sealc2.h.
 *
 *   prove_verify C1.json SECTOR_ID MINER PARAMETER_FOLDER [PROOF_FILE]
 *
 * Build: cc prove_verify.c $(pkg-config --cflags --libs sealc2)
 * Exit code 0: proved and verified; 1: refused or not verified; 2: usage. */
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
    size_t room = 0;
    *len = 0;
    for (;;) {
        if (*len == room) {
            room = room ? 2 * room : 1 << 16;
            uint8_t *grown = realloc(data, room + 1);
            if (grown == NULL)
                break;
            data = grown;
        }
        size_t n = fread(data + *len, 1, room - *len, in);
        if (n == 0) {
            int bad = ferror(in);
            fclose(in);
            if (bad)
                break;
            data[*len] = 0; /* so that it can be searched as text */
            return data;
        }
        *len += n;
    }
    free(data);
    return NULL;
}

/* A prover id is the miner's actor number as unsigned LEB128, zero-filled. */
static void prover_id(uint64_t miner, uint8_t out[32]) {
    memset(out, 0, 32);
    for (int i = 0; miner != 0; i++, miner >>= 7)
        out[i] = (uint8_t)((miner & 0x7F) | (miner > 0x7F ? 0x80 : 0));
}

/* The 32 numbers at a key of the C1's outer object; compact JSON, as every sealer writes it. */
static int find_hash(const uint8_t *c1, const char *key, uint8_t out[32]) {
    char pattern[32];
    snprintf(pattern, sizeof pattern, "\"%s\":[", key);
    const char *at = strstr((const char *)c1, pattern);
    if (at == NULL)
        return 0;
    at += strlen(pattern);
    for (int i = 0; i < 32; i++) {
        char *end;
        unsigned long byte = strtoul(at, &end, 10);
        if (end == at || byte > 255 || *end != (i < 31 ? ',' : ']'))
            return 0;
        out[i] = (uint8_t)byte;
        at = end + 1;
    }
    return 1;
}

/* The number of a registered seal proof from its name in the C1. */
static int32_t find_kind(const uint8_t *c1) {
    static const char *const sizes[] = {"2KiB", "8MiB", "512MiB", "32GiB", "64GiB"};
    static const char *const kinds[] = {"V1\"", "V1_1\"", "V1_1_Feat_SyntheticPoRep\"", "V1_2_Feat_NonInteractivePoRep\""};
    for (int32_t kind = 0; kind < 4; kind++)
        for (int32_t size = 0; size < 5; size++) {
            char pattern[80];
            snprintf(pattern, sizeof pattern, "\"registered_proof\":\"StackedDrg%s%s", sizes[size], kinds[kind]);
            if (strstr((const char *)c1, pattern) != NULL)
                return kind * 5 + size;
        }
    return -1;
}

static int32_t show(void *user, const sealc2_progress *p) {
    (void)user;
    fprintf(stderr, "%5.1f%%  partition %2d of %d  %-12s %8.3f s\n", 100 * p->done, p->partition + 1, p->partitions, p->stage,
            (double)p->elapsed_ns / 1e9);
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 5 || argc > 6) {
        fprintf(stderr, "usage: prove_verify C1.json SECTOR_ID MINER PARAMETER_FOLDER [PROOF_FILE]\n");
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

    sealc2_prove_request request = {
        .size = sizeof request,
        .c1 = c1,
        .c1_len = c1_len,
        .sector_id = strtoull(argv[2], NULL, 10),
        .params_dir = argv[4],
        .dev_params = SEALC2_DEV_PARAMS_ALLOW, /* an example: in earnest, leave this out */
        .progress = show,
    };
    prover_id(strtoull(argv[3], NULL, 10), request.prover_id);
    uint8_t proof[126 * SEALC2_PROOF_BYTES]; /* no kind has more partitions */
    size_t proof_len;
    status = sealc2_prove(engine, &request, proof, sizeof proof, &proof_len, &err);
    if (status != SEALC2_OK)
        return failed("prove", status);

    sealc2_verify_request claim = {
        .size = sizeof claim,
        .registered_proof = find_kind(c1),
        .dev_params = SEALC2_DEV_PARAMS_ALLOW,
        .sector_id = request.sector_id,
        .proof = proof,
        .proof_len = proof_len,
        .params_dir = argv[4],
    };
    memcpy(claim.prover_id, request.prover_id, sizeof claim.prover_id);
    if (!find_hash(c1, "comm_r", claim.comm_r) || !find_hash(c1, "comm_d", claim.comm_d) ||
        !find_hash(c1, "ticket", claim.ticket) || !find_hash(c1, "seed", claim.seed)) {
        fprintf(stderr, "%s: no commitments\n", argv[1]);
        return 1;
    }
    int32_t verified;
    status = sealc2_verify(engine, &claim, &verified, &err);
    if (status != SEALC2_OK)
        return failed("verify", status);

    for (size_t i = 0; i < proof_len; i++)
        printf("%02x", proof[i]);
    printf("\n%zu bytes, %s\n", proof_len, verified ? "verified" : "NOT verified");
    if (argc == 6) {
        FILE *out = fopen(argv[5], "wb");
        if (out == NULL || fwrite(proof, 1, proof_len, out) != proof_len || fclose(out) != 0) {
            perror(argv[5]);
            return 1;
        }
    }
    free(c1);
    status = sealc2_close(engine, &err);
    if (status != SEALC2_OK)
        return failed("close", status);
    return verified ? 0 : 1;
}
