"""Times of whole training steps on a GPU: each contender captured into a CUDA graph, replayed
in turn with all others, medians over the rounds. What a contender launches is inside its time;
a graph holds enough steps that the two events around it do not count.
"""
import os
import random
import statistics
import sys

import torch


def command():
    """How this program was called, without the folders of the machine."""
    left, args = [], iter(sys.argv[1:])
    for arg in args:
        if arg in ("--lib", "--out", "--kernels"):
            next(args, None)
        elif not arg.startswith(("--lib=", "--out=", "--kernels=")):
            left.append(arg)
    return " ".join(["tests/repro/" + os.path.basename(sys.argv[0]), *left])


def capture(step, steps):
    """A graph of `steps` calls of step(), which puts its work on torch's current stream."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            step()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(steps):
            step()
    return graph


def once(graph, steps):
    """Milliseconds of a step in one replay."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / steps


def measure(graphs, steps, rounds):
    """{name: milliseconds of each round} of {name: graph}; one round is thrown away.

    Every round has an order of its own: a device at its power limit slows down behind heavy
    work, and whoever came first behind light work would look better than he is."""
    times = {name: [] for name in graphs}
    order, shuffle = list(graphs), random.Random(1).shuffle
    for i in range(rounds + 1):
        shuffle(order)
        for name in order:
            graphs[name].replay() if i == 0 else None
            ms = once(graphs[name], steps)
            if i:
                times[name].append(ms)
    return times


def median(times):
    return {name: statistics.median(t) for name, t in times.items()}


def fit(points):
    """Least squares y = a + b x over [(x, y)]: (a, b, R^2)."""
    n = len(points)
    mx = sum(x for x, _ in points) / n
    my = sum(y for _, y in points) / n
    sxx = sum((x - mx) ** 2 for x, _ in points)
    syy = sum((y - my) ** 2 for _, y in points)
    sxy = sum((x - mx) * (y - my) for x, y in points)
    b = sxy / sxx if sxx else 0.0
    return my - b * mx, b, (sxy * sxy / (sxx * syy) if sxx and syy else 1.0)
