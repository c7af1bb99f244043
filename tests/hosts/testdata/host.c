/* A C host of libsealc2, one case a process; guest.h has the command line. */
#define _GNU_SOURCE
#include "guest.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

static sealc2_engine engine;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void start(pthread_t *thread, size_t stack, void *(*body)(void *), void *arg) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (stack != 0)
        check(pthread_attr_setstacksize(&attributes, stack) == 0, "stack of %zu bytes", stack);
    if (!check(pthread_create(thread, &attributes, body, arg) == 0, "no thread"))
        exit(1);
    pthread_attr_destroy(&attributes);
}

/* ---- threads ---- */

static void *short_life(void *arg) {
    switch ((intptr_t)arg % 8) {
    case 0: verify_once(engine, 1); break;
    case 1: verify_once(engine, 0); break;
    case 2: refuse_ids(engine); break;
    case 3: verify_ffi(1); break;
    case 4: submit_once(engine, 1, (intptr_t)arg % 16 > 8); break;
    default: refuse_garbage(engine);
    }
    return NULL;
}

static void short_lives(int from, int to) {
    enum { at_once = 20 };
    pthread_t threads[at_once];
    for (; from < to; from += at_once) {
        for (int i = 0; i < at_once; i++)
            start(&threads[i], 0, short_life, (void *)(intptr_t)(from + i));
        for (int i = 0; i < at_once; i++)
            pthread_join(threads[i], NULL);
    }
}

/* 1000 threads that call once and end leave no threads, no files and no memory behind. */
static void case_crowd(void) {
    engine = open_engine(2);
    short_lives(0, 200);
    int threads = thread_count(), files = file_count();
    long before = resident_kib();
    short_lives(200, 1000);
    check(thread_count() <= threads + 4, "threads grew from %d to %d", threads, thread_count());
    check(file_count() <= files, "files grew from %d to %d", files, file_count());
    check(resident_kib() < before + (32 << 10), "resident memory grew from %ld to %ld KiB", before, resident_kib());
    close_engine(engine);
}

static pthread_barrier_t line;

static void *all_kinds(void *arg) {
    int rounds = *(int *)arg;
    for (int i = 0; i < rounds; i++) {
        pthread_barrier_wait(&line);
        every_call(engine);
    }
    return NULL;
}

/* 32 threads do one call of each kind at a time, and each gets its own answer. */
static void case_together(void) {
    enum { callers = 32 };
    engine = open_engine(2);
    every_call(engine);
    pthread_barrier_init(&line, NULL, callers);
    pthread_t threads[callers];
    int rounds = 3;
    int before = thread_count();
    for (int i = 0; i < callers; i++)
        start(&threads[i], i % 2 ? 64 << 10 : 0, all_kinds, &rounds);
    for (int i = 0; i < callers; i++)
        pthread_join(threads[i], NULL);
    check(thread_count() <= before + 2 * callers, "threads grew from %d to %d", before, thread_count());
    close_engine(engine);
    check(lib.sealc2_shutdown(NULL) == SEALC2_OK, "shutdown");
}

/* ---- signals ---- */

enum { signals = 64 };

static struct sigaction before_load[signals + 1];

static void on_signal(int number, siginfo_t *info, void *context) { (void)number, (void)info, (void)context; }

/* Some signals with handlers of the host's, some ignored, most default. */
static void host_signals(void) {
    struct sigaction own = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    sigaddset(&own.sa_mask, SIGUSR2);
    sigaction(SIGUSR1, &own, NULL);
    sigaction(SIGPROF, &own, NULL);
    sigaction(SIGCHLD, &own, NULL);
    sigaction(SIGABRT, &own, NULL);
    signal(SIGHUP, SIG_IGN);
    signal(SIGWINCH, SIG_IGN);
    for (int i = 1; i <= signals; i++)
        sigaction(i, NULL, &before_load[i]);
}

static int same_action(const struct sigaction *a, const struct sigaction *b) {
    if (a->sa_flags != b->sa_flags || a->sa_handler != b->sa_handler)
        return 0;
    for (int i = 1; i <= signals; i++)
        if (sigismember(&a->sa_mask, i) != sigismember(&b->sa_mask, i))
            return 0;
    return 1;
}

/* Loading changes the dispositions of SEGV, BUS, FPE, PIPE and URG and of nothing else; calls change nothing
 * further, nor the caller's mask or alternate stack. */
static void case_dispositions(const char *path) {
    host_signals();
    sigset_t mask, mask_after;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    stack_t stack = {.ss_sp = malloc(64 << 10), .ss_size = 64 << 10}, stack_after;
    sigaltstack(&stack, NULL);
    load(path, RTLD_NOW);
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 1; i <= signals; i++) {
            struct sigaction now;
            if (sigaction(i, NULL, &now) != 0)
                continue; /* of the C library's own */
            int go = i == SIGSEGV || i == SIGBUS || i == SIGFPE || i == SIGPIPE || i == SIGURG;
            int same = same_action(&now, &before_load[i]);
            check(go != same, "signal %d (%s) %s", i, strsignal(i), same ? "still has the host's action" : "has another action");
            if (go)
                check((now.sa_flags & SA_ONSTACK) && (now.sa_flags & SA_SIGINFO), "signal %d: flags %#x", i, now.sa_flags);
        }
        pthread_sigmask(SIG_SETMASK, NULL, &mask_after);
        for (int i = 1; i <= signals; i++)
            check(sigismember(&mask, i) == sigismember(&mask_after, i), "the mask of signal %d changed", i);
        sigaltstack(NULL, &stack_after);
        check(stack_after.ss_sp == stack.ss_sp && stack_after.ss_size == stack.ss_size && stack_after.ss_flags == 0,
              "the caller's alternate stack changed");
        if (pass == 0) {
            engine = open_engine(2);
            every_call(engine);
            close_engine(engine);
        }
    }
}

static _Thread_local sigjmp_buf back;
static volatile sig_atomic_t caught[signals + 1];

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)info, (void)context;
    caught[number]++;
    siglongjmp(back, number);
}

static volatile sig_atomic_t stopping;
static char *beyond_end; /* of a file that was cut: touching it is SIGBUS */
static volatile int zero;

static void fault(int number) {
    if (sigsetjmp(back, 1) != 0)
        return;
    switch (number) {
    case SIGSEGV: *(volatile int *)8 = 1; break;
    case SIGBUS: *(volatile char *)beyond_end = 1; break;
    case SIGFPE: {
        volatile int x = 1;
        x = x / zero;
        break;
    }
    }
    check(0, "no signal %d", number);
}

static void *faults(void *arg) {
    int n = *(int *)arg;
    for (int i = 0; i < n; i++) {
        fault(SIGSEGV);
        fault(SIGBUS);
        fault(SIGFPE);
    }
    return NULL;
}

static void *calls_until_stopped(void *arg) {
    (void)arg;
    while (!stopping)
        every_call(engine);
    return NULL;
}

/* A host that recovers from its own faults by siglongjmp goes on doing so, from threads that never called,
 * between calls of a thread, and while others are inside the library. */
static void case_faults(const char *path) {
    struct sigaction own = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    int numbers[] = {SIGSEGV, SIGBUS, SIGFPE};
    for (int i = 0; i < 3; i++)
        sigaction(numbers[i], &own, NULL);
    char name[] = "/tmp/sealc2-faults-XXXXXX";
    int file = mkstemp(name);
    check(file >= 0 && unlink(name) == 0 && ftruncate(file, 4096) == 0, "temporary file");
    beyond_end = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    check(beyond_end != MAP_FAILED && ftruncate(file, 0) == 0, "mapped file");
    int few = 10, many = 300;
    faults(&few);
    load(path, RTLD_NOW);
    faults(&few);
    engine = open_engine(2);
    pthread_t caller, faulting[2];
    start(&caller, 0, calls_until_stopped, NULL);
    for (int i = 0; i < 2; i++)
        start(&faulting[i], 0, faults, &many);
    for (int i = 0; i < 10; i++) {
        refuse_ids(engine);
        faults(&few);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(faulting[i], NULL);
    stopping = 1;
    pthread_join(caller, NULL);
    for (int i = 0; i < 3; i++)
        check(caught[numbers[i]] >= 100, "signal %d: the host's handler ran %d times", numbers[i], caught[numbers[i]]);
    close_engine(engine);
}

/* A write to a pipe that nobody reads does what the host had asked for: EPIPE where it ignores SIGPIPE, its
 * handler where it has one, and its end where it has none. */
static void case_pipe(const char *path, const char *how) {
    struct sigaction own = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    if (strcmp(how, "ignored") == 0)
        own = (struct sigaction){.sa_handler = SIG_IGN};
    else if (strcmp(how, "default") == 0)
        own = (struct sigaction){.sa_handler = SIG_DFL};
    sigaction(SIGPIPE, &own, NULL);
    load(path, RTLD_NOW);
    engine = open_engine(1);
    refuse_garbage(engine);
    int ends[2];
    check(pipe(ends) == 0, "pipe");
    close(ends[0]);
    errno = 0;
    check(write(ends[1], "x", 1) == -1 && errno == EPIPE, "write: %s", strerror(errno));
    refuse_garbage(engine);
    close_engine(engine);
}

/* Log lines that nobody can read any more are lost, and the host goes on, whatever it does about SIGPIPE. */
static void case_unread(const char *path, const char *how) {
    struct sigaction own = {.sa_handler = strcmp(how, "ignored") == 0 ? SIG_IGN : SIG_DFL};
    sigaction(SIGPIPE, &own, NULL);
    load(path, RTLD_NOW);
    setenv("RUST_LOG", "debug", 1);
    int ends[2], kept = dup(STDERR_FILENO);
    check(kept >= 0 && pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO, "pipe");
    close(ends[0]);
    close(ends[1]);
    engine = open_engine(1);
    verify_once(engine, 1);
    refuse_garbage(engine);
    close_engine(engine);
    dup2(kept, STDERR_FILENO);
}

/* SIGPROF, SIGCHLD and SIGALRM keep arriving at the host's handlers while calls run. The handlers are on the
 * alternate stack, as a host of a Go library must have them. */
static volatile sig_atomic_t ticks[signals + 1];
static void on_tick(int number) { ticks[number]++; }

static void case_storm(const char *path) {
    struct sigaction own = {.sa_handler = on_tick, .sa_flags = SA_ONSTACK | SA_RESTART};
    int numbers[] = {SIGPROF, SIGALRM, SIGUSR1};
    timer_t timers[3];
    for (int i = 0; i < 3; i++)
        sigaction(numbers[i], &own, NULL);
    load(path, RTLD_NOW);
    engine = open_engine(2);
    for (int i = 0; i < 3; i++) {
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = numbers[i]};
        struct itimerspec period = {{0, 500000 + 100000 * i}, {0, 500000}};
        check(timer_create(i ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &event, &timers[i]) == 0 &&
                  timer_settime(timers[i], 0, &period, NULL) == 0, "no timer");
    }
    double until = seconds() + 2;
    int rounds = 0;
    for (; seconds() < until || rounds < 5; rounds++)
        every_call(engine);
    for (int i = 0; i < 3; i++)
        timer_delete(timers[i]);
    for (int i = 1; i < 3; i++)
        check(ticks[numbers[i]] > 100, "signal %d arrived %d times in %d rounds", numbers[i], ticks[numbers[i]], rounds);
    close_engine(engine);
}

/* ---- loading ---- */

static void *load_and_call(void *arg) {
    load(arg, RTLD_NOW | RTLD_LOCAL);
    engine = open_engine(2);
    refuse_ids(engine);
    return NULL;
}

static void *wait_for_end(void *arg) {
    (void)arg;
    while (!stopping)
        usleep(1000);
    every_call(engine);
    return NULL;
}

static _Thread_local char host_tls[1024];

/* Loaded late: by a thread with 64 KiB of stack that ends, when 50 others run, each with thread-local memory. */
static void case_late(const char *path) {
    pthread_t others[50], loader;
    memset(host_tls, 1, sizeof host_tls);
    for (int i = 0; i < 50; i++)
        start(&others[i], 0, wait_for_end, NULL);
    start(&loader, 64 << 10, load_and_call, (void *)path);
    pthread_join(loader, NULL);
    every_call(engine);
    stopping = 1;
    for (int i = 0; i < 50; i++)
        pthread_join(others[i], NULL);
    close_engine(engine);
}

static void case_closed(const char *path) {
    load(path, RTLD_NOW);
    engine = open_engine(1);
    every_call(engine);
    int threads = 0, files = 0;
    for (int i = 0; i < 100; i++) {
        void *handle = dlopen(path, i % 2 ? RTLD_NOW : RTLD_LAZY | RTLD_GLOBAL);
        check(handle != NULL && dlclose(handle) == 0 && dlclose(handle) == 0, "dlopen and dlclose");
        refuse_garbage(engine);
        if (i == 10)
            threads = thread_count(), files = file_count();
    }
    check(thread_count() <= threads + 2 && file_count() <= files, "after 100 closings: threads %d to %d, files %d to %d",
          threads, thread_count(), files, file_count());
    every_call(engine);
    close_engine(engine);
}

/* Threads, files and memory are flat over 200 proofs verified and 200 refused. */
static void case_flat(void) {
    engine = open_engine(2);
    long memory[3] = {0};
    int threads[3] = {0}, files[3] = {0};
    for (int part = 0; part < 3; part++) {
        for (int i = 0; i < (part == 0 ? 50 : 100); i++) {
            verify_once(engine, i % 2);
            refuse_ids(engine);
            submit_once(engine, 1 + (i % 3 == 2), i % 3);
            if (i % 10 == 0) {
                every_call(engine);
                check(lib.sealc2_shutdown(NULL) == SEALC2_OK, "shutdown"); /* the engine of sealc2_ffi.h with all others */
                engine = open_engine(2);
            }
        }
        memory[part] = resident_kib(), threads[part] = thread_count(), files[part] = file_count();
    }
    fprintf(stdout, "resident %ld %ld %ld KiB, threads %d %d %d, files %d %d %d\n", memory[0], memory[1], memory[2],
            threads[0], threads[1], threads[2], files[0], files[1], files[2]);
    check(memory[2] < memory[1] + 8192 && memory[2] < memory[0] + 16384, "resident memory: %ld, %ld, %ld KiB", memory[0], memory[1], memory[2]);
    /* Go starts a thread more now and then on a busy machine; a leak would be one for each of the 100 rounds. */
    check(threads[2] <= threads[1] + 8, "threads: %d, %d, %d", threads[0], threads[1], threads[2]);
    check(files[2] == files[1] && files[1] == files[0], "files: %d, %d, %d", files[0], files[1], files[2]);
    close_engine(engine);
}

/* ---- a host at the limit of its open files ---- */

enum { file_limit = 64 };

static int taken[file_limit], taken_count;

/* Takes all descriptors that the host may have but some. */
static void leave_descriptors(int left) {
    struct rlimit few = {file_limit, file_limit};
    check(setrlimit(RLIMIT_NOFILE, &few) == 0, "setrlimit");
    for (int fd; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;)
        taken[taken_count++] = fd;
    while (left-- > 0 && taken_count > 0)
        close(taken[--taken_count]);
}

static void free_descriptors(void) {
    while (taken_count > 0)
        close(taken[--taken_count]);
}

/* Calls that find few descriptors or none do what they can, and refuse the rest; the host lives. late: also when
 * the library loads there is only the one that loading takes. */
static void case_descriptors(const char *path, int late) {
    if (late)
        leave_descriptors(1);
    load(path, RTLD_NOW);
    free_descriptors();
    for (int left = 0; left < 8; left++) {
        leave_descriptors(left);
        char text[1024] = "";
        sealc2_error err = {.size = sizeof err, .text = text, .text_cap = sizeof text};
        sealc2_engine opened = 0;
        sealc2_status got = lib.sealc2_open(NULL, &opened, &err);
        check(got == SEALC2_OK || got == SEALC2_NO_MEMORY, "open with %d descriptors left: %d, %s", left, got, text);
        check(left > 0 || got == SEALC2_NO_MEMORY, "open without descriptors: %d", got);
        int32_t verified;
        sealc2_verify_request claim = {.size = sizeof claim, .registered_proof = 5, .dev_params = SEALC2_DEV_PARAMS_ALLOW,
                                       .proof = sector.proof, .proof_len = sizeof sector.proof, .sector_id = 1,
                                       .params_dir = sector.keys};
        memcpy(claim.comm_r, sector.comm_r, 32);
        memcpy(claim.comm_d, sector.comm_d, 32);
        memcpy(claim.seed, sector.seed, 32);
        if (got == SEALC2_OK) {
            got = lib.sealc2_verify(opened, &claim, &verified, &err);
            check(got == SEALC2_OK || got == SEALC2_PARAMS, "verify with %d descriptors left: %d, %s", left, got, text);
            check(lib.sealc2_close(opened, NULL) == SEALC2_OK, "close with %d descriptors left", left);
        }
        free_descriptors();
    }
    engine = open_engine(1);
    every_call(engine);
    close_engine(engine);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: host LIBRARY CASE [C1 KEYS PROOF]\n");
        return 2;
    }
    const char *path = argv[1], *name = argv[2];
    if (argc > 5)
        read_sector(argv[3], argv[4], argv[5]);
    setenv("FIL_PROOFS_PARAMETER_CACHE", argc > 4 ? argv[4] : "/nowhere", 1);
    setenv("SEALC2_ALLOW_DEV_PARAMS", "1", 1);
    if (strcmp(name, "dispositions") == 0) case_dispositions(path);
    else if (strcmp(name, "faults") == 0) case_faults(path);
    else if (strcmp(name, "storm") == 0) case_storm(path);
    else if (strcmp(name, "late") == 0) case_late(path);
    else if (strcmp(name, "closed") == 0) case_closed(path);
    else if (strncmp(name, "pipe-", 5) == 0) case_pipe(path, name + 5);
    else if (strncmp(name, "unread-", 7) == 0) case_unread(path, name + 7);
    else if (strcmp(name, "descriptors") == 0) case_descriptors(path, 0);
    else if (strcmp(name, "descriptors-late") == 0) case_descriptors(path, 1);
    else {
        load(path, RTLD_NOW | RTLD_LOCAL);
        if (strcmp(name, "crowd") == 0) case_crowd();
        else if (strcmp(name, "together") == 0) case_together();
        else if (strcmp(name, "flat") == 0) case_flat();
        else {
            fprintf(stderr, "no case %s\n", name);
            return 2;
        }
    }
    return finish();
}
