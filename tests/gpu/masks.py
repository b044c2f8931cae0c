"""Masks of SparseDrop as its kernels draw them, by torch."""
import torch


def blocks_live(rows, cols, seed, p):
    """tl.rand(seed, i * cols + j) > p of all blocks (i, j), on the GPU."""
    c = [torch.arange(rows * cols, dtype=torch.int64)] + [
        torch.zeros(rows * cols, dtype=torch.int64) for _ in range(3)]
    k0, k1, low = seed, 0, 0xffffffff

    def product(m, x):  # high and low word of a dot of 32 bits
        part = (m >> 16) * x + (((m & 0xffff) * x) >> 16)
        return part >> 16, (m * (x & 0xffff) + ((m * (x >> 16) & 0xffff) << 16)) & low
    for _ in range(10):
        (h0, l0), (h1, l1) = product(0xD2511F53, c[0]), product(0xCD9E8D57, c[2])
        c = [h1 ^ c[1] ^ k0, l1, h0 ^ c[3] ^ k1, l0]
        k0, k1 = (k0 + 0x9E3779B9) & low, (k1 + 0xBB67AE85) & low
    x = torch.where(c[0] >= 1 << 31, c[0] ^ low, c[0])
    return ((x.float() * 4.6566127342e-10) > p).reshape(rows, cols).cuda()
