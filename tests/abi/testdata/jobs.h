/* The cases of host.c about submitted jobs, and about what an engine tells of itself. Part of host.c. */

static sealc2_job submit(const char *what, sealc2_engine engine, const sealc2_prove_request *request, const char *id,
                         uint32_t priority) {
    sealc2_submit_options options = {.size = sizeof options, .id = id, .priority = priority};
    sealc2_job job = 0;
    expect(what, lib.sealc2_submit(engine, request, &options, &job, &error_out), SEALC2_OK);
    check(job != 0, "%s: handle 0", what);
    return job;
}

static sealc2_job_info progress_of(sealc2_job job) {
    sealc2_job_info info = {.size = sizeof info};
    expect("job_progress", lib.sealc2_job_progress(job, &info, &error_out), SEALC2_OK);
    return info;
}

/* A text of the engine's, to be freed: asked for its length first, with room for what comes meanwhile. */
static char *text_of(sealc2_engine engine, int format) {
    for (size_t room = 0;;) {
        char *out = room ? malloc(room) : NULL;
        size_t len = 0;
        sealc2_status status = format < 0 ? lib.sealc2_metrics(engine, out, room, &len, &error_out)
                                          : lib.sealc2_timeline(engine, (uint32_t)format, out, room, &len, &error_out);
        if (status == SEALC2_OK && out != NULL) {
            check(strlen(out) == len, "form %d: %zu bytes, said to be %zu", format, strlen(out), len);
            return out;
        }
        check(room == 0 ? status == SEALC2_OK : status == SEALC2_CALLER && len >= room, "form %d: %s: %s", format,
              lib.sealc2_status_name(status), said());
        free(out);
        room = len + 256;
    }
}

static void case_jobs_null(void) {
    sealc2_engine engine = open_engine();
    sealc2_job job = 7, plain = 0;
    uint8_t proof[192];
    size_t len = 7;
    sealc2_prove_request request = {.size = sizeof request, .c1 = (const uint8_t *)"{}", .c1_len = 2};
    sealc2_submit_options options = {.size = sizeof options};
    sealc2_job_info info = {.size = sizeof info};
    sealc2_needs needs = {.size = sizeof needs};
    expect("submit, no job", lib.sealc2_submit(engine, &request, NULL, NULL, &error_out), SEALC2_CALLER);
    expect("submit, no request", lib.sealc2_submit(engine, NULL, NULL, &job, &error_out), SEALC2_CALLER);
    check(job == 0, "submit: a handle after a failure");
    expect("submit, no engine", lib.sealc2_submit(0, &request, NULL, &job, &error_out), SEALC2_CALLER);
    expect("submit, no C1 at all", lib.sealc2_submit(engine, &request, NULL, &job, &error_out), SEALC2_INPUT);
    options.priority = 4;
    expect("submit, class 4", lib.sealc2_submit(engine, &request, &options, &job, &error_out), SEALC2_CALLER);
    check(strstr(said(), "options.priority") != NULL, "field not named: %s", said());
    options = (sealc2_submit_options){.size = sizeof options, .replace = 2};
    expect("submit, replace 2", lib.sealc2_submit(engine, &request, &options, &job, &error_out), SEALC2_CALLER);
    options = (sealc2_submit_options){.size = sizeof options - 16};
    expect("submit, short options", lib.sealc2_submit(engine, &request, &options, &job, &error_out), SEALC2_CALLER);
    check(strstr(said(), "options.size: want sizeof = 48, got 32") != NULL, "its size is not said: %s", said());
    options = (sealc2_submit_options){.size = offsetof(sealc2_submit_options, call), .call = 12345};
    expect("submit, the first version's options", lib.sealc2_submit(engine, &request, &options, &job, &error_out), SEALC2_INPUT);
    options.size = sizeof options;
    expect("submit, an unknown call", lib.sealc2_submit(engine, &request, &options, &job, &error_out), SEALC2_CALLER);
    request.progress = (sealc2_progress_fn)(void (*)(void))case_jobs_null;
    expect("submit, a callback", lib.sealc2_submit(engine, &request, NULL, &job, &error_out), SEALC2_CALLER);
    check(strstr(said(), "sealc2_job_progress") != NULL, "the other way not named: %s", said());
    request.progress = NULL;
    expect("job_open", lib.sealc2_job_open(&plain, &error_out), SEALC2_OK);
    request.job = plain;
    expect("submit, a job", lib.sealc2_submit(engine, &request, NULL, &job, &error_out), SEALC2_CALLER);
    for (int i = 0; i < 2; i++) {
        sealc2_job which = i == 0 ? 0 : plain;
        expect("wait", lib.sealc2_wait(which, 0, proof, sizeof proof, &len, &error_out), SEALC2_CALLER);
        check(len == 0, "wait: *proof_len %zu after a failure", len);
        expect("job_progress", lib.sealc2_job_progress(which, &info, &error_out), SEALC2_CALLER);
    }
    expect("job_progress, no info", lib.sealc2_job_progress(plain, NULL, &error_out), SEALC2_CALLER);
    expect("requirements, no shape", lib.sealc2_requirements(engine, NULL, NULL, &needs, &error_out), SEALC2_CALLER);
    expect("requirements, no needs", lib.sealc2_requirements(engine, "2KiB", NULL, NULL, &error_out), SEALC2_CALLER);
    expect("requirements, no such shape", lib.sealc2_requirements(engine, "3KiB", NULL, &needs, &error_out), SEALC2_CALLER);
    expect("requirements, no such device", lib.sealc2_requirements(engine, "2KiB", "abacus", &needs, &error_out), SEALC2_CALLER);
    check(strstr(said(), "abacus") != NULL, "device not named: %s", said());
    expect("preload, no shape", lib.sealc2_preload(engine, NULL, "/nowhere", 0, 0, &error_out), SEALC2_CALLER);
    expect("preload, dev_params 3", lib.sealc2_preload(engine, "2KiB", "/nowhere", 3, 0, &error_out), SEALC2_CALLER);
    expect("preload, nowhere", lib.sealc2_preload(engine, "2KiB", "/nowhere", 0, 0, &error_out), SEALC2_PARAMS);
    expect("evict, no shape", lib.sealc2_evict(engine, NULL, "/nowhere", &error_out), SEALC2_CALLER);
    expect("evict, nowhere", lib.sealc2_evict(engine, "2KiB", "/nowhere", &error_out), SEALC2_PARAMS);
    expect("idle_release", lib.sealc2_idle_release(engine, &error_out), SEALC2_OK);
    expect("idle_release, no engine", lib.sealc2_idle_release(0, &error_out), SEALC2_CALLER);
    char small[8];
    expect("metrics, no length", lib.sealc2_metrics(engine, small, sizeof small, NULL, &error_out), SEALC2_CALLER);
    expect("metrics, NULL with room", lib.sealc2_metrics(engine, NULL, 8, &len, &error_out), SEALC2_CALLER);
    memset(small, '#', sizeof small);
    expect("metrics, little room", lib.sealc2_metrics(engine, small, sizeof small, &len, &error_out), SEALC2_CALLER);
    check(len > 100 && memcmp(small, "########", 8) == 0, "metrics: %zu bytes, or a part was written", len);
    expect("timeline, form 3", lib.sealc2_timeline(engine, 3, NULL, 0, &len, &error_out), SEALC2_CALLER);
    expect("timeline, nothing yet", lib.sealc2_timeline(engine, SEALC2_TIMELINE_TEXT, NULL, 0, &len, &error_out), SEALC2_OK);
    check(len == 0, "timeline before a job: %zu bytes", len);
    expect("cancel", lib.sealc2_cancel(plain, &error_out), SEALC2_OK);
    struct sealc2_circuit circuit = {.size = sizeof circuit};
    expect("a digest that was cancelled", lib.sealc2_circuit_digest(engine, "2KiB", plain, &circuit, NULL, 0, &error_out), SEALC2_CANCELLED);
    check(strcmp(said(), "sealc2_cancel: cancelled") == 0, "who cancelled it: %s", said());
    expect("job_close", lib.sealc2_job_close(plain, &error_out), SEALC2_OK);
    expect("close", lib.sealc2_close(engine, &error_out), SEALC2_OK);

    sealc2_config old = {.size = offsetof(sealc2_config, device_bytes), .host_bytes = 1 << 20, .device_bytes = UINT64_MAX};
    expect("the first version's config", lib.sealc2_open(&old, &engine, &error_out), SEALC2_OK);
    expect("requirements above the budget", lib.sealc2_requirements(engine, "2KiB", NULL, &needs, &error_out), SEALC2_NO_MEMORY);
    check(needs.partitions == 1 && needs.host_bytes > needs.host_limit && needs.host_limit == (1 << 20) - (1 << 15),
          "needs %" PRIu64 " of %" PRIu64 " bytes", needs.host_bytes, needs.host_limit);
    expect("close", lib.sealc2_close(engine, &error_out), SEALC2_OK);
    old.size = 8;
    expect("a config of no version", lib.sealc2_open(&old, &engine, &error_out), SEALC2_CALLER);
    check(strstr(said(), "sizeof = 64, got 8") != NULL, "its size is not said: %s", said());
    old.size = offsetof(sealc2_config, policy) + 4;
    expect("a config that ends within a pointer", lib.sealc2_open(&old, &engine, &error_out), SEALC2_CALLER);
    check(strstr(said(), "config.size: want sizeof = 64, got 52") != NULL, "its size is not said: %s", said());
    old = (sealc2_config){.size = offsetof(sealc2_config, policy), .policy = (const char *)8, .device_workers = UINT32_MAX};
    expect("the config before policies", lib.sealc2_open(&old, &engine, &error_out), SEALC2_OK);
    expect("close", lib.sealc2_close(engine, &error_out), SEALC2_OK);
    old.size = sizeof old;
    old.policy = "";
    expect("too many workers", lib.sealc2_open(&old, &engine, &error_out), SEALC2_CALLER);
    check(strstr(said(), "config.device_workers: want at most 65536, got 4294967295") != NULL, "field not named: %s", said());
    old.device_workers = 0;
    old.partition_workers = 65537;
    expect("too many host stages", lib.sealc2_open(&old, &engine, &error_out), SEALC2_CALLER);
    check(strstr(said(), "config.partition_workers") != NULL, "field not named: %s", said());
    old = (sealc2_config){.size = sizeof old, .policy = "one-lock"};
    expect("no such policy", lib.sealc2_open(&old, &engine, &error_out), SEALC2_CALLER);
    check(strstr(said(), "policy: want reservation, single, two-lock, split, got \"one-lock\"") != NULL, "policies not named: %s", said());
    old = (sealc2_config){.size = sizeof old, .host_bytes = 1 << 20, .device_bytes = UINT64_MAX};
    expect("device memory without an end", lib.sealc2_open(&old, &engine, &error_out), SEALC2_CALLER);
    check(strstr(said(), "config.device_bytes") != NULL, "field not named: %s", said());
    old = (sealc2_config){.size = sizeof old, .host_bytes = 1 << 20, .queue_bytes = 1 << 20};
    expect("nothing but a queue", lib.sealc2_open(&old, &engine, &error_out), SEALC2_CALLER);
}

/* Submits, asks and waits without parameters, as a thread with a small stack can. */
static void jobs_body(struct call *c) {
    static const struct timespec moment = {.tv_nsec = 1000000};
    char own[4096] = "";
    sealc2_error err = {.size = sizeof err, .text = own, .text_cap = sizeof own};
    uint8_t proof[192];
    size_t len = 0;
    sealc2_prove_request request = request_for(c->c1);
    request.params_dir = "/nowhere";
    sealc2_job job = 0;
    sealc2_status status = lib.sealc2_submit(c->engine, &request, NULL, &job, &err);
    check(status == SEALC2_OK, "submit: %s", own);
    sealc2_job_info info = {.size = sizeof info};
    while ((status = lib.sealc2_wait(job, 0, proof, sizeof proof, &len, &err)) == SEALC2_TIMEOUT)
        nanosleep(&moment, NULL);
    check(status == SEALC2_PARAMS && strstr(own, "/nowhere") != NULL, "wait: %s: %s", lib.sealc2_status_name(status), own);
    check(lib.sealc2_job_progress(job, &info, &err) == SEALC2_OK, "job_progress: %s", own);
    check(info.state == SEALC2_JOB_FAILED && info.status == SEALC2_PARAMS && strlen(info.id) == 36 && strcmp(info.stage, "parse") == 0,
          "state %u, status %d, id %s, stage %s", info.state, info.status, info.id, info.stage);
    check(lib.sealc2_job_close(job, &err) == SEALC2_OK, "job_close: %s", own);
}

static void case_jobs(const char *c1_path) {
    file c1 = read_file(c1_path);
    struct call c = {open_engine(), &c1, jobs_body};
    on_thread(&c, 64 << 10);
    pthread_t threads[16];
    for (int i = 0; i < 16; i++)
        check(pthread_create(&threads[i], NULL, run_call, &c) == 0, "no thread");
    for (int i = 0; i < 16; i++)
        pthread_join(threads[i], NULL);

    sealc2_needs needs = {.size = sizeof needs};
    expect("requirements", lib.sealc2_requirements(c.engine, "2KiB", NULL, &needs, &error_out), SEALC2_OK);
    check(needs.partitions == 1 && needs.batch == 1 && needs.devices == 1 && needs.host_bytes > 1 << 20 && needs.threads >= 1 &&
              needs.host_bytes <= needs.host_limit && needs.threads <= needs.threads_limit,
          "needs: %u partitions, batch %u, %" PRIu64 " bytes", needs.partitions, needs.batch, needs.host_bytes);

    sealc2_prove_request request = request_for(&c1);
    sealc2_job job = 0;
    request.sector_id = 2;
    expect("another sector", lib.sealc2_submit(c.engine, &request, NULL, &job, &error_out), SEALC2_INPUT);
    check(strstr(said(), "replica_id") != NULL, "not named: %s", said());
    request.sector_id = 1;
    request.params_dir = "/nowhere";
    sealc2_submit_options options = {.size = sizeof options, .id = "a\nb"};
    expect("an id with a line's end", lib.sealc2_submit(c.engine, &request, &options, &job, &error_out), SEALC2_CALLER);

    char *metrics = text_of(c.engine, -1);
    check(strstr(metrics, "\nsealc2_proofs_total{result=\"failed\",class=\"porep\"} 17\n") != NULL, "failed jobs are not in\n%s", metrics);
    check(strstr(metrics, "\nsealc2_failures_total{kind=\"params\"} 17\n") != NULL, "the kind is not in\n%s", metrics);
    free(metrics);
    char *lines = text_of(c.engine, SEALC2_TIMELINE_JSON);
    int parses = 0;
    for (char *at = lines; (at = strstr(at, "\"stage\":\"parse\"")) != NULL; at++)
        parses++;
    check(parses == 17, "%d parse stages in\n%s", parses, lines);
    free(lines);
    char *trace = text_of(c.engine, SEALC2_TIMELINE_CHROME);
    static const char head[] = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
    check(strncmp(trace, head, sizeof head - 1) == 0, "no trace: %.60s", trace);
    free(trace);
    unmap(&c1);
    expect("close", lib.sealc2_close(c.engine, &error_out), SEALC2_OK);
}

struct waiter {
    sealc2_job job;
    sealc2_status status;
    uint8_t proof[192];
};

static void *wait_for_job(void *arg) {
    struct waiter *w = arg;
    size_t len;
    w->status = lib.sealc2_wait(w->job, SEALC2_FOREVER, w->proof, sizeof w->proof, &len, NULL);
    return NULL;
}

/* r, s and the proof that the reference makes with them, in hex. */
static void case_jobs_prove(const char *c1_path, const char *params, const char *r_hex, const char *s_hex, const char *proof_hex) {
    sealc2_engine engine = open_engine();
    file c1 = read_file(c1_path);
    uint8_t r[32], s[32], want[192], proof[192 + 8];
    size_t len = 7;
    from_hex(r_hex, r, 32);
    from_hex(s_hex, s, 32);
    from_hex(proof_hex, want, 192);
    expect("preload", lib.sealc2_preload(engine, "2KiB", params, SEALC2_DEV_PARAMS_ALLOW, 0, &error_out), SEALC2_OK);
    sealc2_prove_request request = request_for(&c1);
    request.params_dir = params;
    request.dev_params = SEALC2_DEV_PARAMS_ALLOW;
    sealc2_job dropped = submit("submit", engine, &request, "porep-1000-1", SEALC2_CLASS_POREP);
    request.r = r;
    request.s = s;
    request.scalar_count = 1;
    sealc2_job job = submit("submit, urgent", engine, &request, "winning", SEALC2_CLASS_WINNING_POST);
    sealc2_job again = submit("submit again", engine, &request, "winning", SEALC2_CLASS_POREP);
    check(again != job, "one handle twice");
    request.scalar_count = 0;
    request.r = request.s = NULL;
    sealc2_submit_options options = {.size = sizeof options, .id = "winning"};
    sealc2_job other = 0;
    expect("another content", lib.sealc2_submit(engine, &request, &options, &other, &error_out), SEALC2_CALLER);
    check(other == 0 && strstr(said(), "winning") != NULL, "job not named: %s", said());
    unmap(&c1); /* the library has its copy */
    memset(r, 0xA5, sizeof r);

    expect("a wait that asks", lib.sealc2_wait(job, 0, proof, sizeof proof, &len, &error_out), SEALC2_TIMEOUT);
    check(len == 0, "*proof_len %zu of a job under way", len);
    expect("cancel", lib.sealc2_cancel(dropped, &error_out), SEALC2_OK);
    expect("wait for a cancelled one", lib.sealc2_wait(dropped, 60000, proof, sizeof proof, &len, &error_out), SEALC2_CANCELLED);
    check(strstr(said(), "job \"porep-1000-1\": cancelled") != NULL, "said: %s", said());
    check(progress_of(dropped).state == SEALC2_JOB_CANCELLED, "its state");

    struct waiter w = {.job = again};
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_job, &w);
    expect("wait, room for 191 bytes", lib.sealc2_wait(job, SEALC2_FOREVER, proof, 191, &len, &error_out), SEALC2_CALLER);
    check(len == 192, "room for 191 bytes: *proof_len %zu", len);
    memset(proof, '#', sizeof proof);
    expect("wait", lib.sealc2_wait(job, SEALC2_FOREVER, proof, sizeof proof, &len, &error_out), SEALC2_OK);
    check(len == 192 && memcmp(proof, want, 192) == 0, "the proof is not the reference's");
    check(memcmp(proof + 192, "########", 8) == 0, "written past the proof");
    pthread_join(thread, NULL);
    check(w.status == SEALC2_OK && memcmp(w.proof, want, 192) == 0, "the other waiter");
    sealc2_job_info info = progress_of(job);
    check(info.state == SEALC2_JOB_DONE && info.status == SEALC2_OK && info.priority == SEALC2_CLASS_WINNING_POST && info.partitions == 1 &&
              info.delivered == 1 && info.done == 1 && strcmp(info.id, "winning") == 0 && strcmp(info.stage, "verify") == 0 && info.partition == 0 &&
              info.running_ns > 0,
          "state %u, class %u, %u of %u, %f, stage %s", info.state, info.priority, info.delivered, info.partitions, info.done, info.stage);
    c1 = read_file(c1_path);
    request = request_for(&c1);
    request.params_dir = params;
    request.dev_params = SEALC2_DEV_PARAMS_ALLOW;
    expect("another content when it is done", lib.sealc2_submit(engine, &request, &options, &other, &error_out), SEALC2_CALLER);
    options.replace = 1;
    expect("in its place", lib.sealc2_submit(engine, &request, &options, &other, &error_out), SEALC2_OK);
    check(progress_of(other).state < SEALC2_JOB_DONE && strcmp(progress_of(other).id, "winning") == 0, "not a new job of that id");
    expect("cancel", lib.sealc2_cancel(other, &error_out), SEALC2_OK);
    expect("wait for it", lib.sealc2_wait(other, 60000, proof, sizeof proof, &len, &error_out), SEALC2_CANCELLED);
    unmap(&c1);
    char *lines = text_of(engine, SEALC2_TIMELINE_TEXT);
    check(strstr(lines, ",SYNTH_START,winning,partition=0\n") != NULL && strstr(lines, ",GPU_END,winning,worker=0,partition=0,gpu_ms=") != NULL,
          "timeline\n%s", lines);
    free(lines);
    expect("evict", lib.sealc2_evict(engine, "2KiB", params, &error_out), SEALC2_OK);

    /* A job under way when the engine closes; both results stay with their handles. */
    c1 = read_file(c1_path);
    request = request_for(&c1);
    request.params_dir = params;
    request.dev_params = SEALC2_DEV_PARAMS_ALLOW;
    other = submit("submit", engine, &request, NULL, SEALC2_CLASS_SNAP);
    expect("close", lib.sealc2_close(engine, &error_out), SEALC2_OK);
    expect("wait after close", lib.sealc2_wait(other, SEALC2_FOREVER, proof, sizeof proof, &len, &error_out), SEALC2_CANCELLED);
    check(strstr(said(), "closed") != NULL, "said: %s", said());
    expect("a proof after close", lib.sealc2_wait(job, 0, proof, sizeof proof, &len, &error_out), SEALC2_OK);
    expect("shutdown", lib.sealc2_shutdown(&error_out), SEALC2_OK);
    expect("wait after shutdown", lib.sealc2_wait(job, 0, proof, sizeof proof, &len, &error_out), SEALC2_CALLER);
    unmap(&c1);
}
