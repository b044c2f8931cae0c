/* --vs triton: the same file by Triton itself, in a Python of the machine. The rows of
   the sweep go there as JSON, with the configuration that sdc took; what comes back are
   lines as --json writes them. Times are taken in the same way: caches emptied, device
   events, the median. */
#include "runtime/cli/bench.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char program[] =
    "import importlib.machinery, importlib.util, json, os, sys, time\n"
    "job = json.load(open(sys.argv[1]))\n"
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
    "for row in job['rows']:\n"
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
    "    times = []\n"
    "    for i in range(1000):\n"
    "        if job['cold']: flush.zero_()\n"
    "        e = [torch.cuda.Event(enable_timing=True) for _ in range(2)]\n"
    "        e[0].record(); run(); e[1].record(); torch.cuda.synchronize()\n"
    "        if i == 2: start = time.time()\n"
    "        if i >= 2: times.append(e[0].elapsed_time(e[1]) * 1e-3)\n"
    "        if i >= 7 and time.time() - start > 0.25: break\n"
    "    times.sort()\n"
    "    print('{\"value\": %d, \"seconds\": %.9g}' % (row['value'], "
    "times[len(times) // 2]))\n";

struct TritonJob {
    Cli *c;
    Buf rows;
    int n;
    char dir[64];
};

TritonJob *
triton_job(Cli *c)
{
    TritonJob *t = arena_new(&c->arena, TritonJob);
    t->c = c;
    buf_init(&t->rows, &c->arena);
    buf_str(&t->rows, "");
    strcpy(t->dir, "/tmp/sdc-bench.XXXXXX");
    return t;
}

static int
add_array(TritonJob *t, const Array *a, bool extra)
{
    const char *path =
        arena_printf(&t->c->arena, "%s/%zu", t->dir, t->rows.n); /* any name of its own */
    buf_printf(&t->rows, "\"type\": \"%s\", \"data\": \"%s\", \"shape\": [",
               sdc_dtype_name(a->dtype), path);
    for (int i = 0; i < a->rank; i++)
        buf_printf(&t->rows, "%s%lld", i ? "," : "", (long long)a->shape[i]);
    buf_printf(&t->rows, "]%s", extra ? ", \"extra\": true" : "");
    return write_file(t->c, path, a->data, a->bytes);
}

static int
add_argument(TritonJob *t, const Run *r, int i)
{
    const RunArg *a = &r->args[i];
    const char *desc = "";
    int status = EXIT_FINE;
    buf_str(&t->rows, "{");
    if (a->array.data) {
        status = add_array(t, &a->array, i >= r->nparam);
    } else if (a->value.kind == SDC_ARG_DESC) {
        for (int k = 0; k < r->narg; k++)
            if (r->args[k].array.data && r->args[k].value.v.ptr == a->desc.base)
                desc = arena_printf(&t->c->arena, "%d", k);
        buf_printf(&t->rows, "\"of\": %s, \"block\": [", desc);
        for (int k = 0; k < a->desc.rank; k++)
            buf_printf(&t->rows, "%s%d", k ? "," : "", a->desc.block[k]);
        buf_str(&t->rows, "]");
    } else if (a->value.kind == SDC_ARG_INT) {
        buf_printf(&t->rows, "\"value\": %lld", (long long)a->value.v.i);
    } else if (a->value.kind == SDC_ARG_FLOAT) {
        buf_printf(&t->rows, "\"value\": %.17g", a->value.v.f);
    } else {
        buf_str(&t->rows, "\"value\": null");
    }
    buf_str(&t->rows, "}");
    return status;
}

int
triton_add(TritonJob *t, const Run *r, int64_t value)
{
    static const char *const option[] = {"num_warps", "num_stages"};
    int64_t v;
    if (!t->n && !mkdtemp(t->dir))
        return cli_error(t->c, EXIT_ENVIRONMENT, "no temporary folder: %s",
                         strerror(errno));
    buf_printf(&t->rows, "%s{\"value\": %lld, \"grid\": [%d,%d,%d], \"args\": [",
               t->n++ ? ",\n" : "", (long long)value, r->grid.x, r->grid.y, r->grid.z);
    int status = EXIT_FINE;
    bool first = true;
    for (int i = 0; i < r->narg && status == EXIT_FINE; i++) {
        if (i < r->nparam && r->params[i].is_constexpr) {
            /* its place in the list is kept, for what descriptors name */
            buf_printf(&t->rows, "%s{\"extra\": true}", first ? "" : ",");
        } else {
            buf_str(&t->rows, first ? "" : ",");
            status = add_argument(t, r, i);
        }
        first = false;
    }
    buf_str(&t->rows, "], \"constants\": {");
    first = true;
    for (int i = 0; i < r->nparam + COUNT_OF(option); i++) {
        bool own = i < r->nparam;
        const char *name = own ? r->params[i].name : option[i - r->nparam];
        if ((own && !r->params[i].is_constexpr) || !sdc_kernel_constant(r->k, name, &v))
            continue;
        buf_printf(&t->rows, "%s\"%s\": %lld", first ? "" : ", ", name, (long long)v);
        first = false;
    }
    buf_str(&t->rows, "}}");
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

/* Runs it, with its output in a file; its exit status, or -1. */
static int
run_python(const char *script, const char *job, const char *out)
{
    const char *own = getenv("SDC_PYTHON");
    const char *argv[] = {own && *own ? own : "python3", script, job, NULL};
    posix_spawn_file_actions_t files;
    pid_t pid;
    int status;
    if (posix_spawn_file_actions_init(&files) != 0)
        return -1;
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out,
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int got = posix_spawnp(&pid, argv[0], &files, NULL, (char *const *)(uintptr_t)argv,
                           environ);
    posix_spawn_file_actions_destroy(&files);
    if (got != 0)
        return -1;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void
triton_done(TritonJob *t)
{
    DIR *d = t && t->n ? opendir(t->dir) : NULL;
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        if (*e->d_name != '.')
            unlink(arena_printf(&t->c->arena, "%s/%s", t->dir, e->d_name));
    if (d)
        closedir(d);
    if (t && t->n)
        rmdir(t->dir);
}

int
triton_measure(TritonJob *t, const Run *r, const char **lines)
{
    Cli *c = t->c;
    const char *script = arena_printf(&c->arena, "%s/vs.py", t->dir);
    const char *job = arena_printf(&c->arena, "%s/job", t->dir);
    const char *out = arena_printf(&c->arena, "%s/out", t->dir);
    Buf b;
    buf_init(&b, &c->arena);
    buf_printf(&b, "{\"file\": \"%s\", \"kernel\": \"%s\", \"device\": %lld, ", c->file,
               r->kernel, (long long)c->opt[O_device].number);
    buf_printf(&b, "\"cold\": %s, \"bind\": [", c->opt[O_warm].given ? "false" : "true");
    add_bindings(&b, c);
    buf_printf(&b, "], \"rows\": [\n%s]}\n", t->rows.s);
    int status = write_file(c, script, program, sizeof program - 1);
    if (status == EXIT_FINE)
        status = write_file(c, job, b.s, b.n);
    if (status != EXIT_FINE)
        return status;
    int got = run_python(script, job, out);
    if (got != 0)
        return cli_error(c, EXIT_ENVIRONMENT,
                         got < 0
                             ? "--vs triton: there is no python3 (SDC_PYTHON names it)"
                             : "--vs triton: Python has no Triton with torch, or the "
                               "kernel fails there");
    *lines = read_file_text(c, out);
    return *lines ? EXIT_FINE : EXIT_INPUT;
}
