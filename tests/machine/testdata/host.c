/* A C host of libsealc2 that does one thing:
 *
 *   host LIBRARY open                    opens an engine with the defaults and closes it
 *   host LIBRARY ffi                     calls seal_commit_phase2, whose engine opens at the first call
 *   host LIBRARY prove C1 PARAMS BYTES   proves the sector with id 1 of miner 1000 within BYTES of host memory, and
 *                                        prints the status and the error's text, or the proof in hex
 *
 * Exit code 0 means that the library was called, whatever it answered. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sealc2.h"
#include "sealc2_ffi.h"

static void *library;

static void *find(const char *name) {
    void *symbol = dlsym(library, name);
    if (!symbol) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return symbol;
}

#define FIND(name) __typeof__(&name) name##_ = find(#name)

static uint8_t *read_all(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        exit(1);
    }
    long end = ftell(file);
    rewind(file);
    uint8_t *data = malloc((size_t)end + 1);
    *length = fread(data, 1, (size_t)end, file);
    fclose(file);
    return data;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    if (strcmp(argv[2], "ffi") == 0) {
        FIND(seal_commit_phase2);
        FIND(destroy_seal_commit_phase2_response);
        uint8_32_array_t prover = {{0xe8, 0x07}};
        slice_ref_uint8_t c1 = {(const uint8_t *)"{}", 2};
        destroy_seal_commit_phase2_response_(seal_commit_phase2_(c1, 1, &prover)); /* refused: that is no C1 */
        return 0;
    }

    FIND(sealc2_open);
    FIND(sealc2_prove);
    FIND(sealc2_close);
    FIND(sealc2_status_name);
    static char text[65536];
    sealc2_error failure = {.size = sizeof failure, .text = text, .text_cap = sizeof text};
    sealc2_engine engine;
    sealc2_config config = {.size = sizeof config};
    if (argc > 5)
        config.host_bytes = strtoull(argv[5], NULL, 10);
    if (sealc2_open_(&config, &engine, &failure) != SEALC2_OK) {
        fprintf(stderr, "%s\n", text);
        return 1;
    }
    if (argc > 5) {
        sealc2_prove_request request = {.size = sizeof request, .sector_id = 1, .params_dir = argv[4], .dev_params = SEALC2_DEV_PARAMS_ALLOW};
        request.prover_id[0] = 0xe8;
        request.prover_id[1] = 0x07;
        size_t length = 0, made = 0;
        request.c1 = read_all(argv[3], &length);
        request.c1_len = length;
        uint8_t proof[SEALC2_PROOF_BYTES];
        sealc2_status status = sealc2_prove_(engine, &request, proof, sizeof proof, &made, &failure);
        printf("%s\n", sealc2_status_name_(status));
        if (status != SEALC2_OK)
            puts(text);
        for (size_t i = 0; status == SEALC2_OK && i < made; i++)
            printf("%02x", proof[i]);
    }
    return sealc2_close_(engine, &failure) == SEALC2_OK ? 0 : 1;
}
