"""Grids: one to three sizes as an SdcGrid; those of numbers are remembered."""

from __future__ import annotations

import operator
from typing import Any

from . import _lib as L
from .errors import ArgumentError

known: dict[Any, L.Grid] = {}


def make_grid(grid: Any) -> L.Grid:
    """One to three numbers as an SdcGrid."""
    if not isinstance(grid, (tuple, list)):
        grid = grid if hasattr(grid, "__iter__") else (grid,)
    sizes = tuple(grid)
    if not 1 <= len(sizes) <= 3:
        raise ArgumentError(f"a grid has one to three sizes, not {len(sizes)}")
    try:
        numbers = [operator.index(n) for n in sizes] + [1, 1]
    except TypeError:
        raise ArgumentError(f"a grid of {sizes}: sizes are whole numbers, such as "
                            "cdiv(n, BLOCK)") from None
    if any(not 0 <= n < 2**31 for n in numbers):
        raise ArgumentError(f"a grid of {sizes}: sizes are from 0 to 2147483647")
    made = L.Grid(*numbers[:3])
    if len(known) > 4096:
        known.clear()
    if all(type(n) is int for n in sizes):
        known[sizes] = made
    return made
