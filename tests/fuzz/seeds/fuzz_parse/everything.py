import triton, os.path as p
from ..a.b import (c as d, e,)
from . import *
@triton.jit(do_not_specialize=["n"])
def f(a, b: "*fp32" = 1, *args: int, c=2, **kw) -> None:
    """doc"""
    x = y = a if b else c; z: tl.constexpr = 0x1F_f + 1e-3 + .5j
    x += not a < b <= c is not None and d not in (1, *e) or -1 ** ~2
    if (n := len(x)) > 1: pass
    elif x: return a, b
    else: raise ValueError("x") from e
    for i, (j, *k) in tl.range(0, 10, step=-1, **kw): continue
    else: break
    while True: assert x, f"{a!r:>{width}} {{}} {b['k']=}"
    with open("f") as g, h: del x[0], y.z
    try: yield x
    except (A, B) as e: global q
    except: nonlocal r
    else: await_ = lambda a, *b, k=1, **c: (yield)
    finally: pass
    s = [i for i in x if i for j in y] + list(k * 2 for k in z)
    t = {1: 2, **u}, {1, 2}, {a: b for a, b in c}, x[1:2, ..., None, ::3], b'\x00' rb'\n'
async def g():
    async for x in y: await z
    async with a: print(r'''raw "string"''' "joined")
class C(B, metaclass=M):
    x: int = 5
