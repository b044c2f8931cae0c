/* Ways to break the PTX of test_hopper.c, one line each. */
#ifndef SDC_TESTS_SIM_MUTATIONS_H
#define SDC_TESTS_SIM_MUTATIONS_H

#include "tests/sim/mutate.h"

static const char *const how_names[] = {"drop", "last", "bare", "text"};

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
    {FORWARD, "wgmma.wait_group.sync.aligned 0", 3, DROP, NULL},
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
    {FORWARD, "mbarrier.try_wait", 3, LAST, "1"},
    {FORWARD, "mbarrier.try_wait", 4, LAST, "0"},
    {FORWARD, "mbarrier.try_wait", 6, LAST, "0"},
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
    {FORWARD, "mbarrier.arrive.shared", 2, DROP, NULL},
    {MATMUL, "mbarrier.arrive.shared", 1, DROP, NULL},
    {MATMUL, "mbarrier.arrive.shared", 2, DROP, NULL},
    /* proxies */
    {MATMUL, "fence.proxy.async", 1, DROP, NULL},
    {MATMUL, "fence.mbarrier_init", 0, DROP, NULL},
    {FORWARD, "fence.proxy.async", 1, DROP, NULL},
    {BACKWARD, "fence.proxy.async", 4, DROP, NULL},
    /* stores */
    {MATMUL, "cp.async.bulk.wait_group.read 0", 1, DROP, NULL},
    {MATMUL, "cp.async.bulk.wait_group.read", 2, DROP, NULL},
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
    {MATMUL, "bar.sync \t%r", 1, DROP, NULL},
    {MATMUL, "bar.sync \t%r", 2, DROP, NULL},
    {MATMUL, "bar.sync \t%r", 1, LAST, "64"},
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

#endif
