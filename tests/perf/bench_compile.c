/* The whole process of a cold `sdc compile`, from exec to exit, and the cost of a launch.

       ninja -C build perf && build/perf_bench_compile

   Each command runs 15 times; the median counts. Goals: 100 ms for the matmul to
   host code, 60 to PTX, and 30 for dropout to PTX. Leaves with 1 when a command fails. */
#include "tests/perf/bench.h"

#include <fcntl.h>
#include <libgen.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 15 };

typedef struct Case {
    const char *name, *file;
    double goal; /* ms; 0: none */
    const char *args[16];
} Case;

#define MATMUL_SIG                                                                       \
    "*fp32:16,*fp32:16,*fp32:16,None,i32:16,i32:16,i32:16,i32:16,1,i32:16,1,i32:16,1,"   \
    "64,64,64,8,False,\"none\",\"ieee\""
#define ATTENTION_SIG                                                                    \
    "*fp16:16,*fp16:16,*fp16:16,*fp16:16,*fp32:16,fp32,i32:16,i32:16,i32:16,1,i32:16,"   \
    "i32:16,i32:16,1,i32:16,i32:16,i32:16,1,i32:16,i32:16,i32:16,1,i32,i32:16,i32:16,"   \
    "None,None,fp32,i32,"                                                                \
    "64,64,64"

#define MATMUL_FP16_SIG                                                                  \
    "*fp16:16,*fp16:16,*fp16:16,None,i32:16,i32:16,i32:16,i32:16,1,i32:16,1,i32:16,1,"

static const Case cases[] = {
    {"matmul fp32, host object", "matmul", 100, {"-k", "matmul", "-s", MATMUL_SIG}},
    {"attention fp16, host object",
     "flash_attention",
     0,
     {"-k", "flash_attention_fwd", "-s", ATTENTION_SIG}},
    {"softmax, host object",
     "softmax",
     0,
     {"-k", "softmax", "-s", "*fp32:16,*fp32:16,i32:16,i32:16,i32,i32:16,1024"}},
    {"dropout, host object",
     "dropout",
     0,
     {"-k", "dropout_fwd", "-s", "*fp32:16,*fp32:16,i32,fp32,i32,1024"}},
    {"matmul fp16, PTX of sm_90a",
     "matmul",
     60,
     {"-k", "matmul", "-s", MATMUL_FP16_SIG "128,256,64,8,False,\"none\",\"ieee\"",
      "--num-warps=8", "--target=sm_90a", "--emit=ptx"}},
    {"matmul fp16, PTX of sm_80",
     "matmul",
     60,
     {"-k", "matmul", "-s", MATMUL_FP16_SIG "128,128,32,8,False,\"none\",\"ieee\"",
      "--num-warps=4", "--target=sm_80", "--emit=ptx"}},
    {"dropout, PTX",
     "dropout",
     30,
     {"-k", "dropout_fwd", "-s", "*fp32:16,*fp32:16,i32,fp32,i32,1024", "--target=sm_90a",
      "--emit=ptx"}},
    {"vector_add, tile IR only",
     "vector_add",
     0,
     {"-s", "*fp32:16,*fp32:16,*fp32:16,i32,1024", "--emit=tir"}},
};

/* The command stands beside this program. */
static void
command_path(char *to, size_t size)
{
    char self[400];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    snprintf(to, size, "%s/sdc", dirname(self));
}

/* Wall seconds, or -1; *cpu: what the process itself used, whatever else runs. */
static double
run(const char *sdc, const Case *c, double *cpu)
{
    extern char **environ;
    char file[512];
    char *argv[24] = {(char *)(uintptr_t)sdc, "compile", file, "-o", "/dev/null"};
    int n = 5;
    bench_kernel_path(file, sizeof file, c->file);
    for (int i = 0; i < 16 && c->args[i]; i++)
        argv[n++] = (char *)(uintptr_t)c->args[i];
    pid_t pid;
    int status;
    double from = bench_now();
    if (posix_spawn(&pid, sdc, NULL, NULL, argv, environ) != 0)
        return -1;
    struct rusage u;
    wait4(pid, &status, 0, &u);
    *cpu = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? bench_now() - from : -1;
}

/* Nanoseconds of a launch whose kernel does next to nothing. */
static double
launch_cost(Bench *b)
{
    enum { LAUNCHES = 200000 };
    static const char *const bind[] = {"BLOCK=16"};
    SdcFunction *fn = bench_function(b, "vector_add", "vector_add", bind, 1);
    float *x = bench_floats(b, 64);
    SdcArg args[] = {sdc_ptr(SDC_FP32, x), sdc_ptr(SDC_FP32, x), sdc_ptr(SDC_FP32, x),
                     sdc_int(2)};
    if (!fn)
        return -1;
    bench_launch(b, fn, sdc_grid(1, 1, 1), args, 4);
    double from = bench_now();
    for (int i = 0; i < LAUNCHES && !b->failed; i++)
        bench_launch(b, fn, sdc_grid(1, 1, 1), args, 4);
    b->wrong += b->failed;
    return (bench_now() - from) * 1e9 / LAUNCHES;
}

int
main(void)
{
    char sdc[512];
    Bench b;
    command_path(sdc, sizeof sdc);
    if (!bench_open(&b, 0))
        return 3;
    printf("%-30s %9s %9s %9s %9s\n", "cold sdc compile", "median ms", "min ms", "cpu ms",
           "goal ms");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double t[ROUNDS], cpu[ROUNDS];
        bool failed = false;
        for (int r = 0; r < ROUNDS && !failed; r++)
            failed = (t[r] = run(sdc, &cases[i], &cpu[r])) < 0;
        if (failed) {
            printf("%-30s FAILED\n", cases[i].name);
            b.wrong++;
            continue;
        }
        qsort(t, ROUNDS, sizeof *t, bench_by_value);
        qsort(cpu, ROUNDS, sizeof *cpu, bench_by_value);
        printf("%-30s %9.1f %9.1f %9.1f ", cases[i].name, t[ROUNDS / 2] * 1e3, t[0] * 1e3,
               cpu[ROUNDS / 2] * 1e3);
        if (cases[i].goal > 0)
            printf("%9.0f %s\n", cases[i].goal,
                   t[ROUNDS / 2] * 1e3 <= cases[i].goal ? "OK" : "slow");
        else
            printf("\n");
    }
    printf("\nlaunch of one program on the CPU, arguments as before: %.0f ns\n",
           launch_cost(&b));
    return bench_close(&b);
}
