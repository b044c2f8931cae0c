/* What commands share: opening the module, reporting a status, writing files whole. */
#include "runtime/cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_STDIN = 64 << 20 };

static bool
write_all(int fd, const char *bytes, size_t size)
{
    while (size) {
        ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

/* A path that cannot be written is the caller's fault, a disk without room is not. NULL
   is the standard output. */
static int
write_error(const Cli *c, const char *path, int why)
{
    bool environment = why == ENOSPC || why == EDQUOT || why == EIO || why == EROFS ||
                       why == EMFILE || why == ENFILE || why == EPIPE;
    return cli_error(c, environment ? EXIT_ENVIRONMENT : EXIT_INPUT,
                     "cannot write %s%s%s: %s", path ? "'" : "",
                     path ? path : "the standard output", path ? "'" : "", strerror(why));
}

static int
write_directly(const Cli *c, const char *path, int fd, const void *bytes, size_t size)
{
    bool ok = write_all(fd, bytes, size);
    int why = errno;
    if (fd != STDOUT_FILENO && close(fd) != 0 && ok) {
        ok = false;
        why = errno;
    }
    return ok ? EXIT_FINE : write_error(c, path, why);
}

/* Whether `path` names the file `st` tells of. A link to /proc/self/fd/1 need not: the
   file may be unlinked, and replacing the link itself would break it for everybody. */
static bool
is_file(const char *path, const struct stat *st)
{
    struct stat named;
    return path && stat(path, &named) == 0 && named.st_dev == st->st_dev &&
           named.st_ino == st->st_ino;
}

/* Is it the command's own input? A slip of the hand, -o k.tk, must not cost the
   source. */
static bool
is_input(const Cli *c, const struct stat *st)
{
    bool is = is_file(c->file, st);
    for (int i = 0; i < c->files.n && !is; i++)
        is = is_file(c->files.at[i], st);
    return is;
}

int
write_file(const Cli *c, const char *path, const void *bytes, size_t size)
{
    if (strcmp(path, "-") == 0)
        return write_directly(c, NULL, STDOUT_FILENO, bytes, size);
    struct stat st;
    mode_t mode = 0;
    bool exists = stat(path, &st) == 0;
    if (exists && S_ISREG(st.st_mode) && is_input(c, &st))
        return cli_error(c, EXIT_USAGE, "'%s' is the input: it is not overwritten", path);
    char *target = exists ? realpath(path, NULL) : NULL; /* through a link */
    if (exists && (!S_ISREG(st.st_mode) || !is_file(target, &st))) {
        free(target);
        int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
        return fd < 0 ? write_error(c, path, errno)
                      : write_directly(c, path, fd, bytes, size);
    }
    if (exists && access(path, W_OK) != 0) { /* rename would not ask */
        int why = errno;
        free(target);
        return write_error(c, path, why);
    }
    char *tmp;
    int made = asprintf(&tmp, "%s.XXXXXX", target ? target : path);
    if (made < 0) {
        free(target);
        return write_error(c, path, ENOMEM);
    }
    int fd = mkstemp(tmp);
    if (fd < 0) {
        int why = errno;
        free(tmp);
        free(target);
        return write_error(c, path, why);
    }
    if (exists) {
        mode = st.st_mode & 07777;
    } else {
        mode_t mask = umask(0);
        umask(mask);
        mode = 0666 & ~mask;
    }
    bool ok = write_all(fd, bytes, size) && fchmod(fd, mode) == 0;
    int why = errno;
    if (close(fd) != 0 && ok) {
        ok = false;
        why = errno;
    }
    if (ok && rename(tmp, target ? target : path) != 0) {
        ok = false;
        why = errno;
    }
    if (!ok)
        unlink(tmp);
    free(tmp);
    free(target);
    return ok ? EXIT_FINE : write_error(c, path, why);
}

const char *
read_file_text(Cli *c, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = NULL;
    size_t n = 0;
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size <= MAX_STDIN)
        text = arena_alloc(&c->arena, (size_t)st.st_size + 1, 1);
    for (ssize_t got = 1; text && got > 0 && n < (size_t)st.st_size; n += (size_t)got)
        if ((got = read(fd, text + n, (size_t)st.st_size - n)) < 0)
            text = NULL, got = 0;
    int why = errno;
    if (fd >= 0)
        close(fd);
    if (text)
        text[n] = '\0';
    else
        cli_error(c, EXIT_INPUT, "cannot read '%s': %s", path, strerror(why));
    return text;
}

const char *const *
bindings(Cli *c, int *n)
{
    TextList all = {0};
    for (int i = 0; i < c->opt[O_bind].list.n; i++)
        vec_push(&c->arena, &all, c->opt[O_bind].list.at[i]);
    if (c->opt[O_num_warps].given)
        vec_push(&c->arena, &all,
                 arena_printf(&c->arena, "num_warps=%s", c->opt[O_num_warps].text));
    if (c->opt[O_num_stages].given)
        vec_push(&c->arena, &all,
                 arena_printf(&c->arena, "num_stages=%s", c->opt[O_num_stages].text));
    *n = all.n;
    return all.at;
}

static SdcStatus
load_stdin(Cli *c, SdcContext *cx, SdcLang lang, SdcModule **mod, bool *too_large)
{
    Buf b;
    buf_init(&b, &c->arena);
    buf_str(&b, "");
    char part[64 << 10];
    for (;;) {
        ssize_t n = read(STDIN_FILENO, part, sizeof part);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        if (b.n > MAX_STDIN) {
            *too_large = true;
            return SDC_ERROR_FILE;
        }
        buf_add(&b, part, (size_t)n);
    }
    return sdc_module_load_text(cx, "<stdin>", b.s, b.n, lang, mod);
}

static SdcStatus
load_as(Cli *c, SdcContext *cx, SdcLang lang, SdcModule **mod)
{
    int fd = open(c->file, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > MAX_STDIN) {
        if (fd >= 0)
            close(fd);
        return sdc_module_load_file(cx, c->file, mod); /* it has the message */
    }
    char *text = arena_alloc(&c->arena, (size_t)st.st_size + 1, 1);
    size_t n = 0;
    ssize_t got;
    while (n < (size_t)st.st_size &&
           (got = read(fd, text + n, (size_t)st.st_size - n)) > 0)
        n += (size_t)got;
    close(fd);
    return sdc_module_load_text(cx, c->file, text, n, lang, mod);
}

/* The module with the fused kernel, which is the one to be used from now on. */
static SdcStatus
fuse(Cli *c, SdcModule **mod)
{
    SdcFuseOptions o = {.kernels = c->opt[O_fuse].text,
                        .bind = c->opt[O_buffers].text,
                        .name = c->opt[O_kernel].text};
    SdcStatus status = sdc_fuse(*mod, &o, mod);
    if (status == SDC_OK) /* it stands last */
        c->opt[O_kernel].text =
            sdc_module_kernel_name(*mod, sdc_module_kernel_count(*mod) - 1);
    return status;
}

/* device_print belongs to the results. */
static void
print_line(void *user, const char *line)
{
    (void)user;
    puts(line);
}

/* Checks are what sdc run does unless it is asked for times. */
static int
wanted_checks(const Cli *c)
{
    const OptionValue *check = &c->opt[O_check];
    const char *target = c->opt[O_target].text;
    bool cpu = !target || strcmp(target, "cpu") == 0;
    if (c->command != CMD_run || !cpu || c->opt[O_no_check].given ||
        (c->opt[O_time].given && !check->given))
        return 0;
    return check->given && *check->text ? SDC_CHECK_ACCESS | SDC_CHECK_NAN
                                        : SDC_CHECK_ACCESS;
}

int
load_module(Cli *c, SdcContext **cx, SdcModule **mod, SdcStatus *got)
{
    *got = SDC_OK;
    SdcContextOptions o = {
        .include_dirs = c->opt[O_include].list.at,
        .ninclude = c->opt[O_include].list.n,
        .defines = c->opt[O_define].list.at,
        .ndefine = c->opt[O_define].list.n,
        .threads = (int)c->opt[O_threads].number,
        .cpu = c->opt[O_cpu].text,
        .color = c->color,
        .debug = c->opt[O_debug].given > 0,
        .target = 1u << c->command & C_LAUNCH ? c->opt[O_target].text : NULL,
        .device = (int)c->opt[O_device].number,
        .check = wanted_checks(c),
        .print = print_line,
    };
    if (sdc_context_create(&o, cx) != SDC_OK)
        return cli_error(c, EXIT_ENVIRONMENT, "out of memory");
    const char *lang = c->opt[O_lang].text;
    SdcLang as = !lang                      ? SDC_LANG_AUTO
                 : strcmp(lang, "tir") == 0 ? SDC_LANG_TIR
                                            : SDC_LANG_TRITON;
    bool too_large = false;
    SdcStatus status = strcmp(c->file, "-") == 0 ? load_stdin(c, *cx, as, mod, &too_large)
                       : as != SDC_LANG_AUTO     ? load_as(c, *cx, as, mod)
                                             : sdc_module_load_file(*cx, c->file, mod);
    if (too_large)
        return cli_error(c, EXIT_INPUT, "the standard input has more than %d MiB",
                         MAX_STDIN >> 20);
    if (status == SDC_OK && c->opt[O_fuse].given)
        status = fuse(c, mod);
    *got = status;
    return EXIT_FINE;
}

int
open_module(Cli *c, SdcContext **cx, SdcModule **mod)
{
    SdcStatus got;
    int status = load_module(c, cx, mod, &got);
    return got == SDC_OK ? status : report_status(c, *cx, got);
}

int
report_status(Cli *c, SdcContext *cx, SdcStatus status)
{
    fputs(status == SDC_OK ? sdc_warnings(cx) : sdc_error(cx), stderr);
    switch (status) {
    case SDC_OK: return EXIT_FINE;
    case SDC_ERROR_SOURCE:
    case SDC_ERROR_ARGUMENT:
    case SDC_ERROR_UNSUPPORTED:
    case SDC_ERROR_FILE:
    case SDC_ERROR_CHECK: return EXIT_INPUT;
    case SDC_ERROR_ENVIRONMENT:
    case SDC_ERROR_MEMORY: return EXIT_ENVIRONMENT;
    case SDC_ERROR_INTERNAL: break;
    }
    const char *text = sdc_error_reproducer(cx);
    bool tir = strncmp(text, "//", 2) == 0;
    const char *path =
        arena_printf(&c->arena, "sdc-crash-%ld.%s", (long)getpid(), tir ? "tir" : "tk");
    if (*text && write_file(c, path, text, strlen(text)) == EXIT_FINE)
        cli_note(c,
                 "this is a bug of sdc; '%s' repeats it, please report it with that file",
                 path);
    else
        cli_note(c, "this is a bug of sdc, please report it");
    return EXIT_BUG;
}
