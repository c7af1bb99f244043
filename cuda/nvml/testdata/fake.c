/* A library with the functions of NVML that a build without cgo calls, for its tests: one device, at 0000:0A:00.0. */
#include <string.h>

static int running;

int nvmlInit_v2(void) { running++; return 0; }
int nvmlShutdown(void) { return running-- > 0 ? 0 : 1; }
int nvmlSystemGetDriverVersion(char *text, unsigned length) {
    if (length < 8) return 7;
    strcpy(text, "580.1.2");
    return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device) {
    if (strcmp(id, "0000:0A:00.0")) return 6;
    *device = &running;
    return 0;
}
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *memory) {
    if (device != &running) return 2;
    memory[0] = 5ull << 40;
    memory[1] = 3ull << 40;
    memory[2] = 2ull << 40;
    return 0;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *mw) { *mw = device == &running ? 345678 : 0; return 0; }
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius) { *celsius = 50 + sensor; return device != &running; }
int nvmlDeviceGetClockInfo(void *device, int clock, unsigned *mhz) { *mhz = 1979 + clock; return device != &running; }
int nvmlDeviceGetTotalEccErrors(void *device, int type, int since, unsigned long long *count) {
    *count = (7ull << 32) + 10 * type + since;
    return device != &running;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) { *reasons = 0x25; return device != &running; }
