/* go-nvml leaves every function of NVML undefined and counts on lazy binding. A library that contains it so cannot be
 * loaded with all symbols bound at once (dlopen with RTLD_NOW, executables linked with -z now), NVML or not. Here each name
 * is defined, visible to this library alone, as a jump through a table, which sealc2_nvml_resolve fills from the real library.
 * What that lacks stays a function that answers NVML_ERROR_FUNCTION_NOT_FOUND. */
#include <dlfcn.h>
#include <stddef.h>

static int missing(void) { return 13; /* NVML_ERROR_FUNCTION_NOT_FOUND */ }

#define S(name) __attribute__((visibility("hidden"), used)) void *sealc2_slot_##name = (void *)missing;
#include "zz_names.h"
#undef S

#if defined(__x86_64__)
#define JUMP(name) " jmp *sealc2_slot_" #name "(%rip)\n"
#elif defined(__aarch64__)
#define JUMP(name) " adrp x16, sealc2_slot_" #name "\n ldr x16, [x16, :lo12:sealc2_slot_" #name "]\n br x16\n"
#endif
#define S(name) __asm__(".text\n.globl " #name "\n.hidden " #name "\n.type " #name ", @function\n" #name ":\n" JUMP(name));
#include "zz_names.h"
#undef S

/* Returns how many functions the real library has, or -1 where there is no library. Filling twice does no harm. */
__attribute__((visibility("hidden"))) int sealc2_nvml_resolve(void) {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL), *found;
    int count = 0;
    if (!library) return -1;
#define S(name) if ((found = dlsym(library, #name))) { sealc2_slot_##name = found; count++; }
#include "zz_names.h"
#undef S
    return count;
}
