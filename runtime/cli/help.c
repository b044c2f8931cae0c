/* Help and the manual page, from the table options.def. */
#include "runtime/cli/cli.h"

#include <string.h>

/* A source to begin with. Not indented: a here-document has to be copied as it stands. */
#define ADD_TK \
    "cat >add.tk <<END\n" \
    "import triton\n" \
    "import triton.language as tl\n" \
    "@triton.jit\n" \
    "def add(x, y, out, n, BLOCK: tl.constexpr):\n" \
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n" \
    "    a = tl.load(x + i, mask=i < n)\n" \
    "    b = tl.load(y + i, mask=i < n)\n" \
    "    tl.store(out + i, a + b, mask=i < n)\n" \
    "END\n"

/* Examples of a command: shell scripts that work in any folder, which a test does. */
static const char *const examples[CMD_COUNT] = {
    [CMD_check] = ADD_TK "# compiles every kernel, with the signatures that it prints\n"
                         "sdc check add.tk\n"
                         "# one kernel with one's own signature, for two targets\n"
                         "sdc check add.tk -s '*fp32,*fp32,*fp32,i32,1024' \\\n"
                         "    --target sm_90a,cpu\n"
                         "# all files of a folder, for an editor\n"
                         "sdc check . --json\n",
    [CMD_compile] =
        ADD_TK "# object code for the host; ':16' promises a multiple of 16\n"
               "sdc compile add.tk -s '*fp32:16,*fp32:16,*fp32:16,i32,1024' -o add.o\n"
               "# PTX, with the arguments by name\n"
               "sdc compile add.tk -s 'x=*fp16,y=*fp16,out=*fp16,n=i32' \\\n"
               "    -c BLOCK=1024 --target sm_90a -o add.ptx\n"
               "# one object for two GPUs and the CPU, with a typed launcher in C that\n"
               "# takes the first signature that its arguments allow\n"
               "sdc compile add.tk --target sm_80,sm_90a,cpu -c BLOCK=1024 \\\n"
               "    -s '*fp32:16,*fp32:16,*fp32:16,i32:16' \\\n"
               "    -s '*fp32,*fp32,*fp32,i32' \\\n"
               "    -g 'cdiv(n,BLOCK)' -o add.o --header add.h\n"
               "# every stage can be left and entered as text\n"
               "sdc compile add.tk -s '*fp32,*fp32,*fp32,i32,64' --emit=tir | \\\n"
               "    sdc compile - --emit=llvm\n"
               "# the tile IR after each pass, and where the time goes\n"
               "sdc compile add.tk -s '*fp32,*fp32,*fp32,i32,64' --emit=asm \\\n"
               "    --dump-after=all --time-report\n",
    [CMD_explain] =
        ADD_TK "# what becomes of it on Hopper, with types that are guessed\n"
               "sdc explain add.tk\n"
               "# with types and promises of one's own, and another number of warps:\n"
               "# what is not divisible by 16 cannot be loaded by TMA\n"
               "sdc explain add.tk -s 'x=*fp16:16,y=*fp16,out=*fp16:16,n=i32' \\\n"
               "    -c BLOCK=1024 --num-warps 8\n",
    [CMD_run] = ADD_TK
        "sdc run add.tk -k add -g 'cdiv(n,BLOCK)' -c BLOCK=1024 -a n=98432 \\\n"
        "    -a 'x=randn:f32[n]' -a 'y=randn:f32[n]:7' -a 'out=empty:f32[n]' \\\n"
        "    --out out=sum.npy\n"
        "# what was written there is an argument here\n"
        "sdc run add.tk -k add -g 'cdiv(n,BLOCK)' -c BLOCK=1024 -a n=98432 \\\n"
        "    -a x=@sum.npy -a y=@sum.npy -a 'out=empty:f32[n]' --time\n",
    [CMD_bench] = ADD_TK
        "# a sweep beside another configuration, measured in the same rounds\n"
        "sdc bench add.tk -g 'cdiv(n,BLOCK)' -c BLOCK=1024 -a 'x=randn:f32[n]' \\\n"
        "    -a 'y=randn:f32[n]' -a 'out=empty:f32[n]' --sweep 'n=1024..65536*8' \\\n"
        "    --vs BLOCK=64 --json add.json --svg add.svg\n"
        "# the next day: is it still as fast? As values for a spreadsheet, too\n"
        "sdc bench add.tk -g 'cdiv(n,BLOCK)' -c BLOCK=1024 -a 'x=randn:f32[n]' \\\n"
        "    -a 'y=randn:f32[n]' -a 'out=empty:f32[n]' --sweep 'n=1024..65536*8' \\\n"
        "    --vs add.json --csv add.csv\n",
    [CMD_plot] =
        ADD_TK "sdc bench add.tk -g 'cdiv(n,BLOCK)' -c BLOCK=1024 \\\n"
               "    -a 'x=randn:f32[n]' -a 'y=randn:f32[n]' -a 'out=empty:f32[n]' \\\n"
               "    --sweep 'n=1024,65536' \\\n"
               "    --vs BLOCK=64 --json plot.json\n"
               "# one picture a question: how fast, how long, how much faster\n"
               "sdc plot plot.json -o rate.svg\n"
               "sdc plot plot.json --y time --scale log-log -o time.svg\n"
               "sdc plot plot.json --y speedup --title 'BLOCK=1024' -o speedup.svg\n",
    [CMD_tune] =
        "cat >scale.tk <<END\n"
        "import triton\n"
        "import triton.language as tl\n"
        "@triton.autotune(configs=[triton.Config({'BLOCK': b}) for b in [64, 1024]],\n"
        "                 key=['n'])\n"
        "@triton.jit\n"
        "def scale(x, out, n, BLOCK: tl.constexpr):\n"
        "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        "    tl.store(out + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)\n"
        "END\n"
        "sdc tune scale.tk -g 'cdiv(n,BLOCK)' -a n=100000 -a 'x=randn:f32[n]' \\\n"
        "    -a 'out=empty:f32[n]'\n"
        "# the winner, for 'sdc compile --header' and for reading\n"
        "cat scale.tk.tune\n",
    [CMD_cache] = "sdc cache stat\n"
                  "# at most 100 MiB, what was used last\n"
                  "sdc cache gc --limit 100\n",
    [CMD_doctor] = "sdc doctor\n"
                   "sdc doctor --print-completion bash >sdc.bash\n"
                   "sdc doctor --print-man >sdc.1\n",
};

static const char run_specs[] =
    "Arguments, -a NAME=SPEC:\n"
    "  @FILE.npy[:DTYPE]     an array; bf16 and fp8 are kept as u16 and u8: @w.npy:bf16\n"
    "  GEN:DTYPE[SHAPE][:SEED]  an array made here; GEN is zeros, ones, empty, arange,\n"
    "                        rand (0 to 1), randn (normal), randint (0 to 99);\n"
    "                        SHAPE may use integer arguments: randn:fp16[M,K]:3\n"
    "  3  -1  i64:3          an integer; i32 when it fits\n"
    "  3*w  cdiv(n,64)       an integer, of integer arguments\n"
    "  0.5  fp64:0.5         a float, fp32 unless said otherwise\n"
    "  true  false  none\n"
    "  (3, i64:7, NAME, ..)  a tuple: numbers, arrays by NAME, descriptors, tuples\n"
    "  desc:NAME[BLOCK]      a tensor descriptor over the array NAME, which need be no\n"
    "                        parameter: -a x=randn:fp16[128,256] -a d=desc:x[64,64]\n"
    "Dtypes are Triton's (fp32, fp16, bf16, i32, u8, ...) or f32, float32, int32, ...\n"
    "Expressions have + - * // %, parentheses, cdiv, min and max.\n"
    "As in Triton, an integer equal to 1 and numbers and addresses divisible by 16\n"
    "specialize the kernel.\n";

static const char check_passes[] =
    "A kernel passes when it compiles: names, types, constants, and code for each\n"
    "--target. What neither annotations, defaults, @triton.autotune,\n"
    "@triton.heuristics nor -s and -c say is guessed by what the kernel does with a\n"
    "parameter and printed as a signature that -s takes; where the text leaves a\n"
    "choice (fp32 or fp16, a flag, the size of a tile) a few are tried, and one\n"
    "that compiles is enough. Jit functions that return a value, or that only\n"
    "others of the file call, are helpers and not counted.\n"
    "Of a folder all .tk files are checked, and the .py files that say jit; not\n"
    "what begins with a dot.\n"
    "--json prints {\"diagnostics\": [{file, line, column, end_line, end_column,\n"
    "severity, code, message, notes}], \"kernels\": [{file, name, line, passes,\n"
    "guessed, signature}]}; lines and columns count from 1, in bytes, 0 is unknown;\n"
    "severity is error or warning; code is syntax, module, name, signature, type,\n"
    "target or other.\n"
    "Exit status 0: all kernels pass; 1: one does not, or a file cannot be read.\n";

static const char bench_says[] =
    "All that is compared runs in rounds: every kernel once a round, in an order that\n"
    "is drawn anew, so that whatever else goes on meets all of them alike. A column of\n"
    "a baseline has its time over the kernel's (above 1 the kernel is faster), the\n"
    "interval that holds the true ratio 999 times in 1000, and a verdict:\n"
    "  better, worse         the whole interval is more than 1 % away from 1\n"
    "  same                  it is not: no difference can be seen\n"
    "  same code             the machine code is that of the kernel; measured once\n"
    "FILE.json was measured before, so its interval is wider by as much as copies and\n"
    "matmuls have become faster or slower since, and by 5 %.\n"
    "The roofline is the best that any round has reached: copies, sums and matmuls\n"
    "that run now and then in the same rounds, and the kernel itself.\n"
    "A warning says when the machine is noisy, and what differences are not seen then.\n";

static const char statuses[] =
    "Exit status: 0; 1 the input is at fault; 2 usage; 3 the environment (no GPU, full\n"
    "disk); 70 a bug of sdc.\n";

/* ---------------------------------------------------------------- clauses */


/* "run, bench: " in front of a clause: its length, and whether `id` is among these; 0: it
   is for all commands. */
static size_t
clause_for(const char *text, CommandId id, bool *among)
{
    const char *p = text;
    *among = false;
    for (;;) {
        size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyz");
        int c = 0;
        while (c < CMD_COUNT && (strlen(command_info[c].name) != n ||
                                 memcmp(p, command_info[c].name, n) != 0))
            c++;
        if (c == CMD_COUNT)
            return 0;
        *among |= c == (int)id;
        p += n;
        if (strncmp(p, ": ", 2) == 0)
            return (size_t)(p + 2 - text);
        if (strncmp(p, ", ", 2) != 0)
            return 0;
        p += 2;
    }
}

const char *
option_doc(const OptionInfo *o, CommandId id, char out[DOC_MOST])
{
    size_t at = 0;
    for (const char *p = o->doc; *p;) {
        const char *end = strstr(p, "; ");
        size_t len = end ? (size_t)(end - p) : strlen(p);
        bool among;
        size_t name = clause_for(p, id, &among);
        if ((!name || among) && at + len + 3 < DOC_MOST) {
            at += (size_t)snprintf(out + at, DOC_MOST - at, "%s%.*s", at ? "; " : "",
                                   (int)(len - name), p + name);
        }
        p += len + (end ? 2 : 0);
    }
    out[at] = '\0';
    return out;
}

void
help_all(FILE *to)
{
    fprintf(to, "sdc %s: compiles and runs Triton kernels without Python\n\n",
            sdc_version());
    fputs("usage: sdc COMMAND [OPTION]... [FILE]\n\ncommands:\n", to);
    for (int i = 0; i < CMD_COUNT; i++)
        fprintf(to, "  %-9s %s\n", command_info[i].name, command_info[i].doc);
    fputs("\n'sdc COMMAND --help' explains a command with examples that can be copied.\n"
          "FILE is a .tk or Triton .py file, or tile IR (.tir); '-' is the standard "
          "input.\n",
          to);
    fputs(statuses, to);
}

/* Text broken at blanks to fit `width` columns behind `indent`; the cursor is at `at`. */
static void
put_wrapped(FILE *to, const char *text, int at, int indent, int width)
{
    fprintf(to, "%*s", indent > at ? indent - at : 0, "");
    at = indent;
    while (*text) {
        int n = (int)strcspn(text, " ");
        if (at > indent && at + 1 + n > width) {
            fprintf(to, "\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            fputc(' ', to);
            at++;
        }
        fprintf(to, "%.*s", n, text);
        at += n;
        text += n;
        text += *text == ' ';
    }
    fputc('\n', to);
}

void
help_command(FILE *to, CommandId id)
{
    const CommandInfo *c = &command_info[id];
    fprintf(to, "sdc %s: %s\n\nusage: sdc %s [OPTION]...%s%s\n\noptions:\n", c->name,
            c->doc, c->name, *c->operand ? " " : "", c->operand);
    for (int i = 0; i < OPTION_COUNT; i++) {
        const OptionInfo *o = &option_info[i];
        if (!(o->commands & (1u << id)))
            continue;
        char left[80];
        char letter[8] = "    ";
        if (o->letter)
            snprintf(letter, sizeof letter, "-%c, ", o->letter);
        bool maybe = o->kind == OPT_MAYBE;
        int n = snprintf(left, sizeof left, "  %s--%s%s%s%s", letter, o->name,
                         maybe ? "[=" : *o->arg ? " " : "", o->arg, maybe ? "]" : "");
        fputs(left, to);
        if (n > 29) {
            fputc('\n', to);
            n = 0;
        }
        char doc[DOC_MOST];
        put_wrapped(to, option_doc(o, id, doc), n, 30, 88);
    }
    if (id == CMD_run)
        fprintf(to, "\n%s", run_specs);
    if (id == CMD_check)
        fprintf(to, "\n%s", check_passes);
    if (id == CMD_bench)
        fprintf(to, "\n%s", bench_says);
    if (examples[id])
        fprintf(to, "\nexamples:\n%s", examples[id]);
    fprintf(to, "\n%s", statuses);
}

/* ---------------------------------------------------------------- manual page */

/* roff would take a leading dot or quote as a request, and eat backslashes. */
static void
put_roff(FILE *to, const char *text)
{
    bool start = true;
    for (; *text; text++) {
        if (start && (*text == '.' || *text == '\''))
            fputs("\\&", to);
        if (*text == '\\')
            fputs("\\e", to);
        else if (*text == '-')
            fputs("\\-", to);
        else
            fputc(*text, to);
        start = *text == '\n';
    }
}

static void
man_option(FILE *to, const OptionInfo *o, CommandId id)
{
    char doc[DOC_MOST];
    fputs(".TP\n", to);
    if (o->letter)
        fprintf(to, "\\fB\\-%c\\fR, ", o->letter);
    fputs("\\fB\\-\\-", to);
    put_roff(to, o->name);
    fputs("\\fR", to);
    if (*o->arg) {
        fputs(o->kind == OPT_MAYBE ? "[=\\fI" : " \\fI", to);
        put_roff(to, o->arg);
        fputs(o->kind == OPT_MAYBE ? "\\fR]" : "\\fR", to);
    }
    fputc('\n', to);
    put_roff(to, option_doc(o, id, doc));
    fputc('\n', to);
}

void
print_man(FILE *to)
{
    fprintf(to, ".TH SDC 1 \"\" \"sdc %s\" \"User Commands\"\n", sdc_version());
    fputs(".SH NAME\nsdc \\- compiles and runs Triton kernels without Python\n"
          ".SH SYNOPSIS\n.B sdc\n\\fICOMMAND\\fR [\\fIOPTION\\fR]... [\\fIFILE\\fR]\n"
          ".SH DESCRIPTION\n"
          "FILE is a .tk or Triton .py file, or tile IR (.tir); \\- is the standard "
          "input.\n",
          to);
    for (int c = 0; c < CMD_COUNT; c++) {
        fprintf(to, ".SH SDC %s\n", command_info[c].name);
        put_roff(to, command_info[c].doc);
        fputc('\n', to);
        for (int i = 0; i < OPTION_COUNT; i++)
            if (option_info[i].commands & (1u << c) && i != O_help)
                man_option(to, &option_info[i], (CommandId)c);
        if (c == CMD_run) {
            fputs(".PP\n.nf\n", to);
            put_roff(to, run_specs);
            fputs(".fi\n", to);
        }
        if (c == CMD_check || c == CMD_bench) {
            fputs(".PP\n.nf\n", to);
            put_roff(to, c == CMD_check ? check_passes : bench_says);
            fputs(".fi\n", to);
        }
        if (examples[c]) {
            fputs(".PP\n.nf\n", to);
            put_roff(to, examples[c]);
            fputs(".fi\n", to);
        }
    }
    fputs(".SH EXIT STATUS\n", to);
    put_roff(to, statuses);
    fputs(".SH ENVIRONMENT\n", to);
#define VARIABLE(name, text) fputs(".TP\n.B " #name "\n" text "\n", to);
#include "runtime/cli/environment.def"
#undef VARIABLE
}
