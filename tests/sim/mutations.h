/* Ways to break the PTX of test_hopper.c, one line each. */
#ifndef SDC_TESTS_SIM_MUTATIONS_H
#define SDC_TESTS_SIM_MUTATIONS_H

/* What happens to the nth line that has the text (0: to all): its statement is dropped,
   the last operand or the predicate replaced, or the found text itself. */
typedef enum How { DROP, LAST, BARE, TEXT } How;
static const char *const how_names[] = {"drop", "last", "bare", "text"};

typedef struct Mutation {
    int subject;
    const char *line;
    int nth;
    How how;
    const char *text;
} Mutation;

static const Mutation mutations[] = {
    /* waits for dots */
    {MATMUL, "wgmma.wait_group.sync.aligned 1", 1, TEXT,
     "wgmma.wait_group.sync.aligned 2"},
    {MATMUL, "wgmma.wait_group.sync.aligned 0", 1, DROP, NULL},
    {FORWARD, "wgmma.wait_group.sync.aligned 1", 1, DROP, NULL},
    {FORWARD, "wgmma.wait_group.sync.aligned 0", 2, DROP, NULL},
    {BACKWARD, "wgmma.wait_group.sync.aligned 1", 1, TEXT,
     "wgmma.wait_group.sync.aligned 2"},
    {BACKWARD, "wgmma.wait_group.sync.aligned 1", 3, TEXT,
     "wgmma.wait_group.sync.aligned 2"},
    {FORWARD, "wgmma.wait_group.sync.aligned 0", 1, DROP, NULL},
    {FORWARD, "wgmma.wait_group.sync.aligned 0", 4, DROP, NULL},
    {FORWARD, "wgmma.wait_group.sync.aligned 0", 6, DROP, NULL},
    {BACKWARD, "wgmma.wait_group.sync.aligned 0", 1, DROP, NULL},
    {BACKWARD, "wgmma.wait_group.sync.aligned 0", 2, DROP, NULL},
    {BACKWARD, "wgmma.wait_group.sync.aligned 1", 1, DROP, NULL},
    {BACKWARD, "wgmma.wait_group.sync.aligned 1", 2, DROP, NULL},
    /* registers of dots */
    {MATMUL, "wgmma.fence", 1, DROP, NULL},
    {FORWARD, "wgmma.fence", 4, DROP, NULL},
    {BACKWARD, "wgmma.fence", 3, DROP, NULL},
    {MATMUL, "wgmma.commit_group", 1, DROP, NULL},
    {BACKWARD, "wgmma.commit_group", 2, DROP, NULL},
    /* phases */
    {MATMUL, "mbarrier.try_wait", 1, DROP, NULL},
    {MATMUL, "mbarrier.try_wait", 2, DROP, NULL},
    {MATMUL, "mbarrier.try_wait", 1, LAST, "1"},
    {MATMUL, "mbarrier.try_wait", 1, LAST, "0"},
    {MATMUL, "mbarrier.try_wait", 2, LAST, "1"},
    {MATMUL, "mbarrier.try_wait", 2, LAST, "0"},
    {FORWARD, "mbarrier.try_wait", 5, LAST, "1"},
    {FORWARD, "mbarrier.try_wait", 6, DROP, NULL},
    {BACKWARD, "mbarrier.try_wait", 1, LAST, "1"},
    {FORWARD, "mbarrier.try_wait", 3, DROP, NULL},
    {FORWARD, "mbarrier.try_wait", 4, DROP, NULL},
    {FORWARD, "mbarrier.try_wait", 5, DROP, NULL},
    {FORWARD, "mbarrier.try_wait", 1, LAST, "0"},
    {FORWARD, "mbarrier.try_wait", 2, LAST, "0"},
    {FORWARD, "mbarrier.try_wait", 3, LAST, "0"},
    {BACKWARD, "mbarrier.try_wait", 1, DROP, NULL},
    {BACKWARD, "mbarrier.try_wait", 2, DROP, NULL},
    {BACKWARD, "mbarrier.try_wait", 3, DROP, NULL},
    {BACKWARD, "mbarrier.try_wait", 2, LAST, "1"},
    /* counts */
    {MATMUL, "mbarrier.arrive.expect_tx", 1, LAST, "16"},
    {MATMUL, "cp.async.bulk.tensor.2d.shared", 1, DROP, NULL},
    {MATMUL, "mbarrier.arrive.shared", 0, DROP, NULL},
    {MATMUL, "mbarrier.arrive.shared", 2, BARE, NULL},
    {MATMUL, "mbarrier.init", 1, LAST, "2"},
    {MATMUL, "mbarrier.init", 5, LAST, "7"},
    {FORWARD, "mbarrier.arrive.shared", 1, DROP, NULL},
    /* releases */
    {FORWARD, "mbarrier.arrive.shared", 3, DROP, NULL},
    {MATMUL, "mbarrier.arrive.shared", 1, DROP, NULL},
    {MATMUL, "mbarrier.arrive.shared", 2, DROP, NULL},
    /* proxies */
    {MATMUL, "fence.proxy.async", 1, DROP, NULL},
    {MATMUL, "fence.mbarrier_init", 0, DROP, NULL},
    {FORWARD, "fence.proxy.async", 1, DROP, NULL},
    {BACKWARD, "fence.proxy.async", 4, DROP, NULL},
    /* stores */
    {MATMUL, "cp.async.bulk.wait_group 0", 1, DROP, NULL},
    {MATMUL, "cp.async.bulk.wait_group.read", 1, DROP, NULL},
    {MATMUL, "cp.async.bulk.commit_group", 1, DROP, NULL},
    /* barriers */
    /* clusters: the barrier of both programs is one of each, too */
    {MATMUL, "barrier.cluster.wait", 1, TEXT, "membar.cta"},
    {MATMUL, "mapa.shared::cluster", 0, LAST, "0"},
    {MATMUL, "mapa.shared::cluster", 1, LAST, "1"},
    {MATMUL, "mbarrier.arrive.shared::cluster", 1, DROP, NULL},
    {MATMUL, "mbarrier.arrive.shared::cluster", 2, DROP, NULL},
    {MATMUL, "multicast::cluster", 1, DROP, NULL},
    {MATMUL, "multicast::cluster", 1, LAST, "1"},
    {MATMUL, "bar.sync \t2, 256", 1, DROP, NULL},
    {MATMUL, "bar.sync \t2, 256", 2, DROP, NULL},
    {MATMUL, "bar.sync \t2, 256", 1, LAST, "128"},
    {FORWARD, "bar.sync \t2, 256", 1, DROP, NULL},
    {BACKWARD, "bar.sync \t0", 2, DROP, NULL},
    {FORWARD, "mbarrier.arrive.expect_tx", 1, DROP, NULL},
    {BACKWARD, "mbarrier.arrive.expect_tx", 1, DROP, NULL},
    {FORWARD, "fence.proxy.async", 2, DROP, NULL},
    {FORWARD, "bar.sync \t0", 1, DROP, NULL},
    {BACKWARD, "bar.sync \t0", 1, DROP, NULL},
    {BACKWARD, "bar.sync \t0", 3, DROP, NULL},
    {BACKWARD, "cp.async.bulk.wait_group", 1, DROP, NULL},
    /* registers of warps */
    {MATMUL, "setmaxnreg.dec", 1, DROP, NULL},
    {MATMUL, "setmaxnreg.inc", 1, LAST, "300"},
};

/* What the mutation replaces around its place in the text. */
static void
span(const Mutation *m, const char *hit, const char **from, const char **to)
{
    *from = hit;
    *to = m->how == TEXT ? hit + strlen(m->line) : strchr(hit, ';');
    if (m->how == LAST)
        for (*from = *to; !strchr(", \t", (*from)[-1]);)
            --*from;
    if (m->how == DROP || m->how == BARE)
        while ((*from)[-1] != '\n')
            --*from;
    if (m->how == BARE)
        *to = hit;
    if (m->how == DROP && strstr(m->line, "try_wait")) { /* its loop, too */
        *from = strstr(*from, "again:");
        *to = strstr(hit, "over:");
    }
}

/* NULL: there is no such place. */
static char *
mutate(const char *ptx, const Mutation *m)
{
    char *out = malloc(2 * strlen(ptx) + 1);
    const char *copied = ptx, *search = ptx, *from, *to;
    size_t used = 0;
    int seen = 0, done = 0;
    for (const char *hit; (hit = strstr(search, m->line));) {
        search = hit + strlen(m->line);
        if (++seen != m->nth && m->nth)
            continue;
        span(m, hit, &from, &to);
        memcpy(out + used, copied, (size_t)(from - copied));
        used += (size_t)(from - copied);
        used += (size_t)sprintf(out + used, "%s", m->text ? m->text : "");
        copied = to;
        done++;
    }
    strcpy(out + used, copied);
    if (done)
        return out;
    free(out);
    return NULL;
}

#endif
