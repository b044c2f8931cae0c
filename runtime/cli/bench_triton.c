/* --vs triton: the same file by Triton itself, in a Python of the machine that stays
   there while the bench runs. It is told of a row as JSON, with the configuration that
   sdc took, answers when the kernel is compiled, and then measures one launch whenever it
   is asked: so it takes its turns in the rounds of the others. Times are taken in the
   same way: caches emptied, device events. */
#include "runtime/cli/bench.h"
#include "runtime/cli/json.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char program[] =
    "import importlib.machinery, importlib.util, json, os, sys, time\n"
    "job = json.load(open(sys.argv[1]))\n"
    "answer = os.fdopen(os.dup(1), 'w')\n"
    "os.dup2(2, 1)\n"
    "import torch, triton, triton.language as tl\n"
    "sys.path.insert(0, os.path.dirname(os.path.abspath(job['file'])))\n"
    "loader = importlib.machinery.SourceFileLoader('kernels_of_sdc', job['file'])\n"
    "spec = importlib.util.spec_from_loader(loader.name, loader)\n"
    "module = importlib.util.module_from_spec(spec)\n"
    "loader.exec_module(module)\n"
    "kernel = getattr(module, job['kernel'])\n"
    "while not isinstance(kernel, triton.runtime.JITFunction): kernel = kernel.fn\n"
    "torch.cuda.set_device(job['device'])\n"
    "types = {'fp16': torch.float16, 'bf16': torch.bfloat16, 'fp32': torch.float32,\n"
    "         'fp64': torch.float64, 'i1': torch.bool, 'i8': torch.int8,\n"
    "         'i16': torch.int16, 'i32': torch.int32, 'i64': torch.int64,\n"
    "         'u8': torch.uint8, 'fp8e5': torch.float8_e5m2,\n"
    "         'fp8e4nv': torch.float8_e4m3fn}\n"
    "flush = torch.empty(128 << 20, dtype=torch.uint8, device='cuda')\n"
    "def tensor(a):\n"
    "    raw = open(a['data'], 'rb').read()\n"
    "    flat = torch.frombuffer(bytearray(raw), dtype=torch.uint8).cuda()\n"
    "    return flat.view(types[a['type']]).reshape(a['shape'])\n"
    "def prepare(path):\n"
    "    row = json.load(open(path))\n"
    "    made = [tensor(a) if 'data' in a else None for a in row['args']]\n"
    "    args = []\n"
    "    for a, t in zip(row['args'], made):\n"
    "        if a.get('extra'): continue\n"
    "        if 'block' in a:\n"
    "            from triton.tools.tensor_descriptor import TensorDescriptor\n"
    "            t = TensorDescriptor.from_tensor(made[a['of']], a['block'])\n"
    "        args.append(a['value'] if 'value' in a else t)\n"
    "    names = dict(job['bind'])\n"
    "    names = {k: eval(v, {'tl': tl}) for k, v in names.items()}\n"
    "    names.update(row['constants'])\n"
    "    run = lambda: kernel[tuple(row['grid'])](*args, **names)\n"
    "    run(); torch.cuda.synchronize()\n"
    "    return run\n"
    "for line in sys.stdin:\n"
    "    what, _, path = line.strip().partition(' ')\n"
    "    if what == 'row':\n"
    "        run = prepare(path)\n"
    "        print('ready', file=answer, flush=True)\n"
    "        continue\n"
    "    if job['cold']: flush.zero_()\n"
    "    e = [torch.cuda.Event(enable_timing=True) for _ in range(2)]\n"
    "    e[0].record(); run(); e[1].record(); torch.cuda.synchronize()\n"
    "    print(e[0].elapsed_time(e[1]) * 1e-3, file=answer, flush=True)\n";

struct TritonJob {
    Cli *c;
    Buf row;
    int files;
    bool failed;
    pid_t pid;
    FILE *ask, *answer;
    char dir[64];
};

static int
add_array(TritonJob *t, const Array *a, bool extra)
{
    const char *path = arena_printf(&t->c->arena, "%s/%d", t->dir, t->files++);
    buf_printf(&t->row, "\"type\": \"%s\", \"data\": \"%s\", \"shape\": [",
               sdc_dtype_name(a->dtype), path);
    for (int i = 0; i < a->rank; i++)
        buf_printf(&t->row, "%s%lld", i ? "," : "", (long long)a->shape[i]);
    buf_printf(&t->row, "]%s", extra ? ", \"extra\": true" : "");
    return write_file(t->c, path, a->data, a->bytes);
}

static int
add_argument(TritonJob *t, const Run *r, int i)
{
    const RunArg *a = &r->args[i];
    const char *desc = "";
    int status = EXIT_FINE;
    buf_str(&t->row, "{");
    if (a->array.data) {
        status = add_array(t, &a->array, i >= r->nparam);
    } else if (a->value.kind == SDC_ARG_DESC) {
        for (int k = 0; k < r->narg; k++)
            if (r->args[k].array.data && r->args[k].value.v.ptr == a->desc[0].base)
                desc = arena_printf(&t->c->arena, "%d", k);
        buf_printf(&t->row, "\"of\": %s, \"block\": [", desc);
        for (int k = 0; k < a->desc[0].rank; k++)
            buf_printf(&t->row, "%s%d", k ? "," : "", a->desc[0].block[k]);
        buf_str(&t->row, "]");
    } else if (a->value.kind == SDC_ARG_INT) {
        buf_printf(&t->row, "\"value\": %lld", (long long)a->value.v.i);
    } else if (a->value.kind == SDC_ARG_FLOAT) {
        buf_printf(&t->row, "\"value\": %.17g", a->value.v.f);
    } else {
        buf_str(&t->row, "\"value\": null");
    }
    buf_str(&t->row, "}");
    return status;
}

/* The row of the sweep as JSON. */
static int
describe(TritonJob *t, const Run *r, int64_t value)
{
    static const char *const option[] = {"num_warps", "num_stages"};
    int64_t v;
    buf_init(&t->row, &t->c->arena);
    buf_printf(&t->row, "{\"value\": %lld, \"grid\": [%d,%d,%d], \"args\": [",
               (long long)value, r->grid.x, r->grid.y, r->grid.z);
    int status = EXIT_FINE;
    bool first = true;
    for (int i = 0; i < r->narg && status == EXIT_FINE; i++) {
        if (i < r->nparam && r->params[i].is_constexpr) {
            /* its place in the list is kept, for what descriptors name */
            buf_printf(&t->row, "%s{\"extra\": true}", first ? "" : ",");
        } else {
            buf_str(&t->row, first ? "" : ",");
            status = add_argument(t, r, i);
        }
        first = false;
    }
    buf_str(&t->row, "], \"constants\": {");
    first = true;
    for (int i = 0; i < r->nparam + COUNT_OF(option); i++) {
        bool own = i < r->nparam;
        const char *name = own ? r->params[i].name : option[i - r->nparam];
        if ((own && !r->params[i].is_constexpr) || !sdc_kernel_constant(r->k, name, &v))
            continue;
        buf_printf(&t->row, "%s\"%s\": %lld", first ? "" : ", ", name, (long long)v);
        first = false;
    }
    buf_str(&t->row, "}}\n");
    return status;
}

/* -c NAME=VALUE that are no integers: Python's own spelling. */
static void
add_bindings(Buf *b, const Cli *c)
{
    const TextList *bind = &c->opt[O_bind].list;
    for (int i = 0; i < bind->n; i++) {
        size_t n = strcspn(bind->at[i], "=");
        buf_printf(b, "%s[\"%.*s\", \"", i ? ", " : "", (int)n, bind->at[i]);
        for (const char *p = bind->at[i] + n + (bind->at[i][n] == '='); *p; p++)
            buf_printf(b, *p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
        buf_str(b, "\"]");
    }
}

/* Starts it between two pipes. */
static bool
start_python(TritonJob *t, const char *script, const char *job)
{
    const char *own = getenv("SDC_PYTHON");
    const char *argv[] = {own && *own ? own : "python3", script, job, NULL};
    posix_spawn_file_actions_t files;
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    bool ok = pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0 &&
              posix_spawn_file_actions_init(&files) == 0;
    if (ok) {
        posix_spawn_file_actions_adddup2(&files, to[0], STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&files, from[1], STDOUT_FILENO);
        ok = posix_spawnp(&t->pid, argv[0], &files, NULL, (char *const *)(uintptr_t)argv,
                          environ) == 0;
        posix_spawn_file_actions_destroy(&files);
    }
    t->pid = ok ? t->pid : 0;
    close(to[0]);
    close(from[1]);
    t->ask = ok ? fdopen(to[1], "w") : NULL;
    t->answer = ok ? fdopen(from[0], "r") : NULL;
    if (!t->ask)
        close(to[1]);
    if (!t->answer)
        close(from[0]);
    return ok && t->ask && t->answer;
}

/* A line there and one back; false: nobody answers. */
static bool
ask(TritonJob *t, const char *what, const char *path, char *line, size_t size)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, old; /* when it has ended */
    sigaction(SIGPIPE, &ignore, &old);
    bool ok = fprintf(t->ask, "%s%s%s\n", what, *path ? " " : "", path) > 0 &&
              fflush(t->ask) == 0 && fgets(line, (int)size, t->answer);
    sigaction(SIGPIPE, &old, NULL);
    return ok;
}

int
triton_open(Cli *c, const Run *r, TritonJob **out)
{
    TritonJob *t = *out = arena_new(&c->arena, TritonJob);
    Buf b;
    t->c = c;
    strcpy(t->dir, "/tmp/sdc-bench.XXXXXX");
    if (!mkdtemp(t->dir)) {
        *out = NULL;
        return cli_error(c, EXIT_ENVIRONMENT, "no temporary folder: %s", strerror(errno));
    }
    const char *script = arena_printf(&c->arena, "%s/vs.py", t->dir);
    const char *job = arena_printf(&c->arena, "%s/job", t->dir);
    buf_init(&b, &c->arena);
    buf_str(&b, "{\"file\": ");
    json_quote(&b, c->file);
    buf_printf(&b, ", \"kernel\": \"%s\", \"device\": %lld, \"cold\": %s, \"bind\": [",
               r->kernel, (long long)c->opt[O_device].number,
               c->opt[O_warm].given ? "false" : "true");
    add_bindings(&b, c);
    buf_str(&b, "]}\n");
    int status = write_file(c, script, program, sizeof program - 1);
    if (status == EXIT_FINE)
        status = write_file(c, job, b.s, b.n);
    if (status == EXIT_FINE && !start_python(t, script, job))
        status = cli_error(c, EXIT_ENVIRONMENT,
                           "--vs triton: there is no python3 (SDC_PYTHON names it)");
    return status;
}

int
triton_prepare(TritonJob *t, const Run *r, int64_t value)
{
    char line[64];
    const char *path = arena_printf(&t->c->arena, "%s/row", t->dir);
    int status = describe(t, r, value);
    if (status == EXIT_FINE)
        status = write_file(t->c, path, t->row.s, t->row.n);
    if (status == EXIT_FINE && !ask(t, "row", path, line, sizeof line))
        status = cli_error(t->c, EXIT_ENVIRONMENT,
                           "--vs triton: Python has no Triton with torch, or the kernel "
                           "fails there");
    return status;
}

SdcStatus
triton_timed(void *triton, double *seconds)
{
    TritonJob *t = triton;
    char line[64] = "";
    *seconds = 0;
    if (!t->failed && ask(t, "time", "", line, sizeof line))
        *seconds = strtod(line, NULL);
    t->failed |= !(*seconds > 0);
    return SDC_OK;
}

bool
triton_failed(const TritonJob *t)
{
    return t->failed;
}

/* It ends when nobody can ask any more. */
void
triton_done(TritonJob *t)
{
    if (!t)
        return;
    if (t->ask)
        fclose(t->ask);
    if (t->answer)
        fclose(t->answer);
    while (t->pid && waitpid(t->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    DIR *d = opendir(t->dir);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        if (*e->d_name != '.')
            unlink(arena_printf(&t->c->arena, "%s/%s", t->dir, e->d_name));
    if (d)
        closedir(d);
    rmdir(t->dir);
}
