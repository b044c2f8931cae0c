/* Messages to the standard error, and progress. */
#include "runtime/cli/cli.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int
cli_error(const Cli *c, int status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs(c->color ? "\033[1msdc: \033[1;31merror:\033[0;1m " : "sdc: error: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputs(c->color ? "\033[0m\n" : "\n", stderr);
    va_end(ap);
    return status;
}

void
cli_warning(const Cli *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs(c->color ? "\033[1msdc: \033[1;35mwarning:\033[0m " : "sdc: warning: ",
          stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}

void
cli_note(const Cli *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs(c->color ? "\033[1msdc: \033[1;36mnote:\033[0m " : "sdc: note: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}

struct Progress {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stop;
    const char *what;
    bool stopped;
};

/* Wakes twice a second after the first second; says nothing before. */
static void *
progress_main(void *arg)
{
    Progress *p = arg;
    struct timespec start, until;
    clock_gettime(CLOCK_REALTIME, &start);
    until = start;
    until.tv_sec += 1;
    bool shown = false;
    pthread_mutex_lock(&p->lock);
    while (!p->stopped) {
        if (pthread_cond_timedwait(&p->stop, &p->lock, &until) == 0)
            continue;
        fprintf(stderr, "\r\033[Ksdc: %s, %ld s", p->what,
                (long)(until.tv_sec - start.tv_sec));
        fflush(stderr);
        shown = true;
        until.tv_nsec += 500000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
    }
    pthread_mutex_unlock(&p->lock);
    if (shown)
        fputs("\r\033[K", stderr);
    return NULL;
}

Progress *
progress_start(const char *what)
{
    if (!isatty(STDERR_FILENO))
        return NULL;
    Progress *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->what = what;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->stop, NULL);
    if (pthread_create(&p->thread, NULL, progress_main, p) == 0)
        return p;
    pthread_cond_destroy(&p->stop);
    pthread_mutex_destroy(&p->lock);
    free(p);
    return NULL;
}

void
progress_stop(Progress *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stopped = true;
    pthread_cond_signal(&p->stop);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->stop);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
