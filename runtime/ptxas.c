/* PTX to machine code by ptxas, for objects that shall need no compiler at run time. The
   program is NVIDIA's and may be missing; nothing else of sdc needs it. */
#include "runtime/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_CUBIN = 256 << 20 };

static bool
put_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    size_t n = strlen(text);
    if (fd < 0)
        return false;
    while (n) {
        ssize_t put = write(fd, text, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            break;
        text += put;
        n -= (size_t)put;
    }
    return close(fd) == 0 && n == 0;
}

static char *
get_file(const char *path, size_t most, size_t *size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    char *text = NULL;
    *size = 0;
    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0 && (size_t)st.st_size <= most)
        text = malloc((size_t)st.st_size + 1);
    while (text && *size < (size_t)st.st_size) {
        ssize_t got = read(fd, text + *size, (size_t)st.st_size - *size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        *size += (size_t)got;
    }
    if (text)
        text[*size] = '\0';
    close(fd);
    return text;
}

/* Runs it with its messages in a file; its exit status, or -1. */
static int
spawn(const char *const *argv, const char *log)
{
    posix_spawn_file_actions_t files;
    pid_t pid;
    int status, got;
    if (posix_spawn_file_actions_init(&files) != 0)
        return -1;
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log, O_WRONLY | O_CREAT,
                                     0600);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    got = posix_spawnp(&pid, argv[0], &files, NULL, (char *const *)(uintptr_t)argv,
                       environ);
    posix_spawn_file_actions_destroy(&files);
    if (got != 0)
        return -1;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

char *
ptxas_run(const char *ptxas, const char *ptx, const char *target, bool lineinfo,
          size_t *size, char *why, size_t why_size)
{
    const char *tmp = getenv("TMPDIR");
    char dir[512], in[600], out[600], log[600], arch[48];
    tmp = tmp && *tmp ? tmp : "/tmp";
    snprintf(dir, sizeof dir, "%s/sdc-XXXXXX", tmp);
    if (!mkdtemp(dir)) {
        snprintf(why, why_size, "no temporary folder in '%s': %s", tmp, strerror(errno));
        return NULL;
    }
    snprintf(in, sizeof in, "%s/k.ptx", dir);
    snprintf(out, sizeof out, "%s/k.cubin", dir);
    snprintf(log, sizeof log, "%s/log", dir);
    snprintf(arch, sizeof arch, "-arch=%s", target);
    const char *argv[] = {ptxas, arch, in, "-o", out, lineinfo ? "-lineinfo" : NULL,
                          NULL};
    char *bytes = NULL;
    if (!put_file(in, ptx)) {
        snprintf(why, why_size, "cannot write '%s': %s", in, strerror(errno));
    } else {
        int status = spawn(argv, log);
        bytes = status == 0 ? get_file(out, MAX_CUBIN, size) : NULL;
        if (!bytes) {
            size_t n;
            char *text = get_file(log, 1 << 20, &n);
            if (status < 0)
                snprintf(why, why_size,
                         "'%s' cannot be run: it is NVIDIA's assembler, of the CUDA "
                         "toolkit; --ptxas or PATH says where it is",
                         ptxas);
            else
                snprintf(why, why_size, "%s: %s", ptxas, text && *text ? text : "failed");
            free(text);
        }
    }
    unlink(in);
    unlink(out);
    unlink(log);
    rmdir(dir);
    return bytes;
}
