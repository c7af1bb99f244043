/* Refuses calls that must not enter Go, and counts callbacks.
 *
 * A child after fork has only the forking thread: Go's scheduler threads are gone, so any call into Go
 * would wait for ever. The check is therefore here, in C, and needs nothing but memory. */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "_cgo_export.h"
#include "bridge.h"

static volatile sig_atomic_t forked;
static pid_t home;
static __thread int callback_depth;

static void mark_child(void) { forked = 1; }

__attribute__((constructor)) static void remember_process(void) {
    home = getpid();
    pthread_atfork(NULL, NULL, mark_child);
}

/* The process id catches children of a bare clone or fork system call, where atfork handlers do not run. */
int sealc2_is_forked(void) { return forked || getpid() != home; }

/* Makes a thread known to Go with all signals blocked, once. Go notes the mask of a thread that it first meets
 * and puts it back when the thread ends, in a destructor of thread-specific data. A host that ends a thread
 * has blocked signals by then and taken the thread's records down, as a Go host has: with signals open again
 * its handlers would run on a thread that it no longer knows. With a full mask noted they stay blocked. */
static void meet_go(void) {
    static __thread int met;
    if (met)
        return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    sealc2go_meet();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    met = 1;
}

const char *sealc2_refusal(int blocks) {
    if (sealc2_is_forked())
        return "called in a child after fork without exec: want a library loaded in this process, got the parent's. "
               "Load libsealc2 after forking, or exec";
    if (blocks && callback_depth > 0)
        return "called from a callback of the library: want another thread, or wait until sealc2_prove has returned";
    meet_go();
    return NULL;
}

int32_t sealc2_call_progress(sealc2_progress_fn fn, void *user, int32_t partition, int32_t partitions,
                             sealc2_in_text stage, uint64_t start_ns, uint64_t elapsed_ns, double done) {
    sealc2_progress progress = {.size = sizeof progress,
                                .partition = partition,
                                .partitions = partitions,
                                .stage = stage,
                                .elapsed_ns = elapsed_ns,
                                .done = done,
                                .start_ns = start_ns};
    callback_depth++;
    int32_t stop = fn(user, &progress);
    callback_depth--;
    return stop;
}

int32_t sealc2_call_partition(sealc2_partition_fn fn, void *user, uint32_t partition, sealc2_in_bytes proof) {
    callback_depth++;
    int32_t stop = fn(user, partition, proof);
    callback_depth--;
    return stop;
}
