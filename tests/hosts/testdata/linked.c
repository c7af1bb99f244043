/* A C host that is linked against libsealc2, so that the loader binds every symbol before main. */
#define _GNU_SOURCE
#include "guest.h"

int main(int argc, char **argv) {
    if (argc < 6)
        return 2;
#define F(name) lib.name = name;
    FUNCTIONS(F)
#undef F
    read_sector(argv[3], argv[4], argv[5]);
    setenv("FIL_PROOFS_PARAMETER_CACHE", argv[4], 1); /* after load */
    setenv("SEALC2_ALLOW_DEV_PARAMS", "1", 1);
    sealc2_engine engine = open_engine(2);
    every_call(engine);
    close_engine(engine);
    check(resident_kib() > 0 && thread_count() > 1 && file_count() < 64, "threads %d, files %d", thread_count(), file_count());
    return finish();
}
