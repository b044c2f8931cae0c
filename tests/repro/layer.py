"""The layer y = (x o m) w / (1 - p) with both its gradients, on a GPU, by sdc and by others.

    layer = Layer(sdc, size, block, plan)   x, w, dy are square fp16 matrices
    layer.step(p, seed)                     forward and backward by sdc's SparseDrop
    layer.dense(), layer.dropout(p), layer.block_dropout(p)      by torch and cuBLAS
    layer.own_dense()                       by sdc's dense product

A plan says how a product (y, dx, dw) is done when blocks are dropped with probability p:
plan(product, p) -> Tile. Both gradients are one launch where that of dx is JOINT, or LISTED and
that of dw is not.
"""
import collections
import os
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests/gpu"))
import libsdc  # noqa: E402

# order: 0: a program for each tile; SORTED: the same, most work first; PAIRED: and two on an
# SM; PAIRS (dx): two live tiles of a row; LISTED: as many programs as there are SMs, which take
# one tile after another from a list that a launch in front makes; JOINT, JOINT_SORTED (dx):
# tiles of dx first, then those of dw, sorted if its own plan is
Tile = collections.namedtuple("Tile", "m n k warps stages order")

SORTED, PAIRED, PAIRS, LISTED, JOINT, JOINT_SORTED = -1, -2, -3, -4, -5, -6


def cdiv(a, b):
    return -(-a // b)


class Layer:
    def __init__(self, sdc, size, block, plan, dense=Tile(128, 128, 64, 4, 2, 0),
                 kernels=os.path.join(ROOT, "kernels_dsl"), overlap=True):
        self.overlap = overlap  # do sdc's launches (launch_pdl)? Its C interface's do
        self.size, self.block, self.plan, self.dense_tile = size, block, plan, dense
        self.x, self.w, self.dy = (torch.randn(size, size, device="cuda",
                                               dtype=torch.float16) for _ in range(3))
        self.y, self.dx, self.dw, self.xd, self.gx = (torch.empty_like(self.x)
                                                      for _ in range(5))
        self.sms = torch.cuda.get_device_properties(0).multi_processor_count
        self.sparse = sdc.load(os.path.join(kernels, "sparsedrop.tk"))
        self.sparse_list = sdc.load(os.path.join(kernels, "sparsedrop_list.tk"))
        self.matmul = sdc.load(os.path.join(kernels, "matmul.tk"))
        self.blocks = cdiv(size, block)
        self.words = torch.zeros(2, self.blocks, cdiv(self.blocks, 64), device="cuda",
                                 dtype=torch.int64)
        # what kernel work_list writes, of the mask and of the transposed one
        side = 1 << (self.blocks - 1).bit_length()
        self.order = torch.zeros(2, side, device="cuda", dtype=torch.int32)
        self.listed_words = torch.zeros(2, side, device="cuda", dtype=torch.int64)
        self.list = torch.zeros(4 + 3 * self.blocks**2, device="cuda", dtype=torch.int32)
        self.functions = {}

    def function(self, module, kernel, constants, tile):
        key = kernel, tuple(constants.items()), tile, self.overlap
        if key not in self.functions:
            self.functions[key] = module.function(kernel, constants, tile.warps, tile.stages,
                                                  self.overlap)
        return self.functions[key]

    def product(self, which, p, seed, stored=False):
        t, n, block = self.plan(which, p), self.size, self.block
        a, b, c = {"y": (self.x, self.w, self.y), "dx": (self.dy, self.w.t(), self.dx),
                   "dw": (self.x.t(), self.dy, self.dw)}[which]
        kind, side = ("sdd", "MASK_N") if which == "dx" else ("dsd", "MASK_K")
        counts = (1, self.blocks) if which == "dw" else (self.blocks, 1)
        constants = {"BLOCK_M": t.m, "BLOCK_N": t.n, "BLOCK_K": t.k, "MASK_M": block,
                     side: block}
        words = self.words[which == "dw"] if stored else None
        head, tail = [a, b, c, words], [
            n, n, n, 1 / (1 - p) if p < 1 else 1.0, *a.stride(), *b.stride(), *c.stride(),
            self.words.shape[2], seed, 0, p, *counts]
        if t.order == LISTED:
            return self.listed(which, constants, t, [a, b, c], tail[:10])
        if t.order == PAIRS:
            fn = self.function(self.sparse, "sdd_pairs", constants, t)
            call = (cdiv(n, t.m) * (self.blocks // 2 + 1),), head + tail
            return fn.prepare(*call, stream=torch.cuda.current_stream().cuda_stream)()
        if t.order:
            constants["ROWS"] = 1 << (cdiv(n, t.m) - 1).bit_length()
            constants["COLS"] = min(64, 1 << (self.blocks - 1).bit_length())
        side = cdiv(n, block) * (block // t.n) if t.order and kind == "sdd" else cdiv(n, t.n)
        programs = cdiv(n, t.m) * side
        if kind == "dsd":
            constants["ONE_WORD"] = self.blocks <= 64
            tail.append(self.sms if t.order == PAIRED else programs)
        fn = self.function(self.sparse, kind + "_matmul", constants, t)
        fn.prepare((programs,), head + tail + [1, 0],
                   stream=torch.cuda.current_stream().cuda_stream)()

    def listed(self, which, constants, t, head, tail):
        turned = int(which == "dw")
        fn = self.function(self.sparse_list, "dsd_listed", constants, t)
        fn.prepare((self.sms,), head + [self.order[turned], self.listed_words[turned]] + tail,
                   stream=torch.cuda.current_stream().cuda_stream)()

    def gradients(self, p, seed):
        t, n, block = self.plan("dx", p), self.size, self.block
        scale = 1 / (1 - p) if p < 1 else 1.0
        strides = [s for x in (self.dy, self.x, self.w, self.dx, self.dw) for s in x.stride()]
        constants = {"MASK_M": block, "MASK_K": block, "BLOCK_N": t.n, "STEP": t.k}
        stream = torch.cuda.current_stream().cuda_stream
        if t.order == LISTED:
            constants["BOTH"] = self.plan("dw", p).order != LISTED
            fn = self.function(self.sparse_list, "gradients_listed", constants, t)
            fn.prepare((self.sms,), [
                self.dy, self.x, self.w, self.dx, self.dx, self.dx, self.dw, self.dw,
                self.list, self.order[1], self.listed_words[1], n, n, n, scale, *strides],
                stream=stream)()
            return
        rows = 1 << (self.blocks - 1).bit_length()
        wide = self.plan("dw", p)
        constants.update(BLOCK_M=t.m, BLOCK_K=t.n, BLOCK_N=wide.n, ONE_WORD=self.blocks <= 64,
                         COLS=min(64, rows), SORTED=rows if wide.order == SORTED else 0,
                         ROWS=rows * (block // t.m) if t.order == JOINT_SORTED else 0,
                         STAGES=t.stages)
        fn = self.function(self.sparse, "gradients_matmul", constants,
                           t._replace(stages=wide.stages))
        side = self.blocks * (block // t.n) if t.order == JOINT_SORTED else cdiv(n, t.n)
        fn.prepare((cdiv(n, t.m) * side + self.blocks * cdiv(n, wide.n),), [
            self.dy, self.x, self.w, self.dx, self.dw, n, n, n, scale, *strides, seed, 0, p, 0,
            1, 0],
            stream=stream)()

    def lists(self, p, seed, both=True):
        fn = self.function(self.sparse_list, "work_list", {"SIZE": self.order.shape[1]},
                           Tile(0, 0, 0, 8, 1, 0))
        fn.prepare((1 + both,), [self.order, self.list, self.listed_words, self.blocks,
                                 self.blocks, seed, 0, p, self.blocks, 1, self.sms],
                   stream=torch.cuda.current_stream().cuda_stream)()

    def masks(self, p, seed, both=True):
        for i in range(1 + both):
            counts = (1, self.blocks) if i else (self.blocks, 1)
            fn = self.function(self.sparse, "block_mask", {"BLOCK_R": 4},
                               Tile(0, 0, 0, 4, 1, 0))
            fn.prepare((cdiv(self.blocks, 4), cdiv(self.blocks, 64)),
                       [self.words[i], self.blocks, self.blocks, self.words.shape[2], seed, 0,
                        p, *counts], stream=torch.cuda.current_stream().cuda_stream)()

    def step(self, p, seed, stored=False):
        if stored:
            self.masks(p, seed)
        if any(self.plan(which, p).order == LISTED for which in ("y", "dx", "dw")):
            self.lists(p, seed)
        self.product("y", p, seed, stored)
        if self.plan("dx", p).order in (LISTED, JOINT, JOINT_SORTED):
            self.gradients(p, seed)
            if self.plan("dw", p).order != LISTED:
                return
        else:
            self.product("dx", p, seed, stored)
        self.product("dw", p, seed, stored)

    def live(self, p, seed):
        """The mask of blocks, as a tensor of bools; and its share of live ones."""
        self.masks(p, seed, both=False)
        bits = self.words[0][:, :, None] >> torch.arange(64, device="cuda") & 1
        return bits.reshape(self.blocks, -1)[:, :self.blocks].bool()

    # ---- contenders

    def dense(self):
        torch.matmul(self.x, self.w, out=self.y)
        torch.matmul(self.dy, self.w.t(), out=self.dx)
        torch.matmul(self.x.t(), self.dy, out=self.dw)

    def dropout(self, p):
        xd, mask = torch.native_dropout(self.x, p, True)
        torch.matmul(xd, self.w, out=self.y)
        torch.matmul(self.dy, self.w.t(), out=self.gx)
        torch.ops.aten.native_dropout_backward(self.gx, mask, 1 / (1 - p))
        torch.matmul(xd.t(), self.dy, out=self.dw)

    def block_dropout(self, p):
        mask = (torch.rand(self.blocks, self.blocks, device="cuda") > p).to(torch.float16)
        mask = mask.div_(1 - p).repeat_interleave(self.block, 0)
        mask = mask.repeat_interleave(self.block, 1)[:self.size, :self.size]
        xd = self.x * mask
        torch.matmul(xd, self.w, out=self.y)
        torch.matmul(self.dy, self.w.t(), out=self.gx)
        self.gx * mask
        torch.matmul(xd.t(), self.dy, out=self.dw)

    def own_dense(self):
        t, n = self.dense_tile, self.size
        constants = {"BLOCK_M": t.m, "BLOCK_N": t.n, "BLOCK_K": t.k}
        fn = self.function(self.matmul, "matmul", constants, t)
        for a, b, c in ((self.x, self.w, self.y), (self.dy, self.w.t(), self.dx),
                        (self.x.t(), self.dy, self.dw)):
            fn.prepare((cdiv(n, t.m) * cdiv(n, t.n),),
                       [a, b, c, None, n, n, n, *a.stride(), *b.stride(), *c.stride()],
                       stream=torch.cuda.current_stream().cuda_stream)()

    # ---- are the results right?

    def wrong(self, p, seed, stored=False):
        """A complaint about step(p, seed), or None: against fp32 products of fp16 values."""
        for out in (self.y, self.dx, self.dw):
            out.fill_(float("nan"))
        self.step(p, seed, stored)
        wide = self.live(p, seed).repeat_interleave(self.block, 0).repeat_interleave(
            self.block, 1)[:self.size, :self.size]
        scale = 1 / (1 - p)
        x, w, dy = self.x.float(), self.w.float(), self.dy.float()
        xm = torch.where(wide, x, 0)
        for name, got, want, size in (
                ("y", self.y, xm @ w, xm.abs() @ w.abs()),
                ("dx", self.dx, torch.where(wide, dy @ w.t(), 0), dy.abs() @ w.abs().t()),
                ("dw", self.dw, xm.t() @ dy, xm.t().abs() @ dy.abs())):
            bound = scale * (size * 2.0**-20 + want.abs() * 2.0**-10) + 2.0**-24
            bad = ~((got.float() - want * scale).abs() <= bound)
            if bad.any():
                i = int(bad.flatten().nonzero()[0])
                return (f"{name}: {int(bad.sum())} of {bad.numel()} wrong, first at "
                        f"{i // self.size}, {i % self.size}")
        return None
