/* Executes one instruction that only newer CPUs have, by name. A CPU without it ends the process with SIGILL. */
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    unsigned long x = 1;
    if (argc != 2)
        return 2;
    if (strcmp(argv[1], "none") == 0)
        return 0;
    if (strcmp(argv[1], "adx") == 0)
        __asm__ volatile("adcx %0, %0" : "+r"(x) : : "cc");
    else if (strcmp(argv[1], "bmi2") == 0)
        __asm__ volatile("mulx %0, %0, %0" : "+r"(x) : : "rdx");
    else if (strcmp(argv[1], "avx2") == 0)
        __asm__ volatile("vpaddd %%ymm0, %%ymm0, %%ymm0" : : : "xmm0");
    else if (strcmp(argv[1], "sha") == 0)
        __asm__ volatile("sha256msg1 %%xmm0, %%xmm0" : : : "xmm0");
    else if (strcmp(argv[1], "avx512ifma") == 0)
        __asm__ volatile("vpmadd52luq %%zmm0, %%zmm0, %%zmm0" : : : "xmm0");
    else
        return 2;
    return 0;
}
