/* Compiling in a process of its own: the sdc command, started for one compile and asked
   over a socket. Whatever happens there, a crash, a loop, memory without end, comes back
   as a status. The host's signals are not touched: a socket tells without SIGPIPE that
   the other end is gone, and the child is waited for by its number. */
#include "runtime/internal.h"

#include "runtime/worker.h"
#include "ir/base/util.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { USUAL_SECONDS = 30, MAX_ANSWER = 512 << 20 };

static void
add_text(CacheBytes *b, const char *text)
{
    cache_field(b, text, text ? strlen(text) + 1 : 0);
}

static void
add_list(CacheBytes *b, const char *const *list, int n)
{
    cache_field(b, &n, sizeof n);
    for (int i = 0; i < n; i++)
        add_text(b, list[i]);
}

static void
make_request(CacheBytes *b, const SdcContext *cx, const CompileJob *job)
{
    const SdcCompileOptions *o = &job->opt;
    WorkerNumbers n = {.emit = o->emit,
                       .lineinfo = o->lineinfo,
                       .debug = job->debug,
                       .check = job->check,
                       .is_tir = job->is_tir,
                       .color = cx->color,
                       .memory = cx->memory_limit};
    add_text(b, job->src.path);
    cache_field(b, job->src.text, job->src.size + 1); /* its NUL, too */
    add_text(b, o->kernel);
    add_text(b, o->signature);
    add_text(b, o->target);
    add_text(b, o->cpu);
    cache_field(b, &n, sizeof n);
    add_list(b, o->bind, o->nbind);
    add_list(b, job->front.include_dirs, job->front.ninclude);
    add_list(b, job->front.defines, job->front.ndefine);
}

static bool
start(const char *command, pid_t *pid, int *fd)
{
    int ends[2];
    posix_spawn_file_actions_t files;
    const char *argv[] = {command, "worker", NULL};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    bool ok = posix_spawn_file_actions_init(&files) == 0;
    if (ok) {
        posix_spawn_file_actions_adddup2(&files, ends[1], STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
        ok = posix_spawn(pid, command, &files, NULL, (char *const *)(uintptr_t)argv,
                         environ) == 0;
        posix_spawn_file_actions_destroy(&files);
    }
    close(ends[1]);
    if (!ok)
        close(ends[0]);
    *fd = ends[0];
    return ok;
}

/* Waits until the socket is ready; false when the time is over. */
static bool
ready(int fd, short what, double until)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = what};
        double left = until - seconds_now();
        if (left <= 0)
            return false;
        int n = poll(&p, 1, (int)(left * 1000) + 1);
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return false;
    }
}

static void
ask(int fd, const CacheBytes *request, double until)
{
    size_t at = 0;
    while (at < request->size && ready(fd, POLLOUT, until)) {
        ssize_t n =
            send(fd, request->data + at, request->size - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0)
            at += (size_t)n;
        else if (n < 0 && errno != EINTR && errno != EAGAIN)
            break;
    }
    shutdown(fd, SHUT_WR);
}

/* Everything until the other end closes. */
static bool
hear(int fd, CacheBytes *answer, double until)
{
    char part[65536];
    while (ready(fd, POLLIN, until)) {
        ssize_t n = recv(fd, part, sizeof part, MSG_DONTWAIT);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n < 0)
            return true; /* it died with a reset */
        if (n == 0)
            return true;
        cache_add(answer, part, (size_t)n);
        if (answer->size > MAX_ANSWER)
            return true;
    }
    return false;
}

typedef struct Answer {
    const char *at[WORKER_ANSWERS];
    size_t size[WORKER_ANSWERS];
} Answer;

static bool
split(const CacheBytes *b, Answer *out)
{
    size_t at = 0;
    for (int i = 0; i < WORKER_ANSWERS; i++) {
        uint64_t n;
        if (b->failed || b->size - at < sizeof n)
            return false;
        memcpy(&n, b->data + at, sizeof n);
        at += sizeof n;
        if (n > b->size - at)
            return false;
        out->at[i] = b->data + at;
        out->size[i] = n;
        at += n;
        if (i >= WORKER_ERROR && (!n || out->at[i][n - 1]))
            return false;
    }
    return at == b->size && out->size[WORKER_STATUS] == sizeof(int);
}

/* The worker's messages become this thread's report. */
static SdcStatus
report(SdcContext *cx, const Answer *a)
{
    int status;
    Report *r = context_report(cx);
    memcpy(&status, a->at[WORKER_STATUS], sizeof status);
    if (r) {
        text_set(status == SDC_OK ? &r->warnings : &r->error,
                 a->at[status == SDC_OK ? WORKER_WARNINGS : WORKER_ERROR]);
        text_set(&r->reproducer, status == SDC_OK ? NULL : a->at[WORKER_REPRODUCER]);
        r->has_place = false;
    }
    return (SdcStatus)status;
}

static SdcStatus
died(SdcContext *cx, const CompileJob *job, bool in_time, int seconds, int how)
{
    const char *kernel = job->opt.kernel ? job->opt.kernel : "";
    if (!in_time)
        return context_fail(cx, SDC_ERROR_SOURCE,
                            "compiling '%s' took more than %d seconds", kernel, seconds);
    if (WIFSIGNALED(how))
        return context_fail(cx, SDC_ERROR_INTERNAL,
                            "the compiler was ended by signal %d while compiling '%s'",
                            WTERMSIG(how), kernel);
    return context_fail(cx, SDC_ERROR_ENVIRONMENT,
                        "the compile worker '%s' gave no answer (exit status %d)",
                        cx->worker, WIFEXITED(how) ? WEXITSTATUS(how) : -1);
}

SdcStatus
worker_compile(SdcContext *cx, const CompileJob *job, SdcrtMeta *meta, CacheBytes *code)
{
    CacheBytes request = {0}, answer = {0};
    Answer a;
    pid_t pid;
    int fd, how = 0,
            seconds = cx->worker_seconds > 0 ? cx->worker_seconds : USUAL_SECONDS;
    make_request(&request, cx, job);
    if (request.failed || !start(cx->worker, &pid, &fd)) {
        cache_bytes_done(&request);
        return context_fail(cx, SDC_ERROR_ENVIRONMENT,
                            "the compile worker '%s' cannot be started", cx->worker);
    }
    double until = seconds_now() + seconds;
    ask(fd, &request, until);
    bool in_time = hear(fd, &answer, until);
    close(fd);
    if (!in_time)
        kill(pid, SIGKILL);
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR)
        continue;
    SdcStatus status;
    if (!in_time || !split(&answer, &a))
        status = died(cx, job, in_time, seconds, how);
    else
        status = report(cx, &a);
    if (status == SDC_OK && a.size[WORKER_META] == sizeof *meta) {
        memcpy(meta, a.at[WORKER_META], sizeof *meta);
        cache_add(code, a.at[WORKER_CODE], a.size[WORKER_CODE]);
        cache_add(code, "", 1); /* PTX ends with a NUL */
        code->size -= !code->failed;
    } else if (status == SDC_OK) {
        status = context_fail(cx, SDC_ERROR_INTERNAL, "the worker's answer is no kernel");
    }
    if (code->failed)
        status = context_fail(cx, SDC_ERROR_MEMORY, "out of memory");
    cache_bytes_done(&request);
    cache_bytes_done(&answer);
    return status;
}
