/* Keeps the preemption of a Go host.
 *
 * Go asks its threads to yield by SIGURG. When this library loads, its Go runtime replaces the process's
 * SIGURG handler and does not pass on what was meant for the host, so a host written in Go would wait
 * seconds for a tight loop at each garbage collection. An early constructor therefore notes the host's
 * handler, and a late one, which runs after the Go runtime's own constructor in link order, puts a handler
 * in place that calls both: each runtime ignores requests on threads that are not its own. A host without a
 * SIGURG handler sees no change. Once the chain stands it must not be moved: a request that is pending on a
 * thread while handlers change stays pending for ever. */
#define _GNU_SOURCE
#include <signal.h>
#include <stddef.h>

static struct sigaction host_action, own_action;

static int is_handler(const struct sigaction *action) {
    if (action->sa_flags & SA_SIGINFO)
        return action->sa_sigaction != NULL;
    return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

static int same_handler(const struct sigaction *a, const struct sigaction *b) {
    return (a->sa_flags & SA_SIGINFO) == (b->sa_flags & SA_SIGINFO) && a->sa_handler == b->sa_handler;
}

static void call(const struct sigaction *action, int number, siginfo_t *info, void *context) {
    if (action->sa_flags & SA_SIGINFO)
        action->sa_sigaction(number, info, context);
    else
        action->sa_handler(number);
}

/* The host first: its context is untouched then, and a Go runtime preempts by changing it. Only one of the
 * two changes anything, since a thread belongs to one runtime. */
static void chain(int number, siginfo_t *info, void *context) {
    call(&host_action, number, info, context);
    call(&own_action, number, info, context);
}

__attribute__((constructor(101))) static void note_host(void) { sigaction(SIGURG, NULL, &host_action); }

__attribute__((constructor)) static void chain_host(void) {
    if (!is_handler(&host_action) || sigaction(SIGURG, NULL, &own_action) != 0 || !is_handler(&own_action) ||
        same_handler(&own_action, &host_action))
        return;
    struct sigaction both = own_action; /* on the alternate stack, with the runtime's mask */
    both.sa_flags |= SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    both.sa_sigaction = chain;
    sigaction(SIGURG, &both, NULL);
}
