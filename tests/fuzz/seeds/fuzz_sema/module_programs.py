log = []
try:
    try:
        from no_such_package.sub import thing
    except ValueError:
        log.append("wrong")
    finally:
        log.append("inner")
except (KeyError, ModuleNotFoundError) as e:
    log.append("outer")
out = log
name, n = "k", 7
out = [f"{name}_{n:03d}", "{}-{}".format(name, n), "{0}{1}{0}".format("a", "b"), "{n:>4}|".format(n=n), f"{n:#x} {n:b} {n:<4}|{name:>3}|{name:^5}|", f"{name!r}", "%s=%d" % (name, n), "%05d" % 42]
a = list(range(10))
out = [a[2:5], a[:3], a[-3:], a[::3], a[::-2], a[8:2:-1], tuple(a)[1:3], a[20:], a[-20:2]]
total = 0
for i in range(3, 20, 4):
    if i == 11:
        continue
    total += i
else:
    total = -total
n = 0
while True:
    n += 3
    if n > 10:
        break
while n > 5:
    n -= 1
else:
    n *= 100
out = [total, n, i]
out = [[i * j for i in range(3) for j in range(i)], [x for x in range(10) if x % 2 if x > 3], {k: v for k, v in [("a", 1), ("b", 2)]}, sorted({x % 3 for x in range(7)}), sum(x * x for x in range(4))]
d = {"a": 1, **{"b": 2}}
d["c"] = 3
d.update(x=9)
e = dict(d, z=0)
del e["a"]
out = [d, list(d.keys()), list(d.values()), d.get("q", 7), d.setdefault("n", 5), d.pop("b"), list(e.items()), d | {"a": 0}]
def f(a, b=2, *rest, c=3, **more):
    return (a, b, rest, c, more)
args = (1, 2, 3)
out = [f(1), f(1, 5, 6, 7), f(*args, c=0), f(b=1, a=0, z=9), f(**{"a": "A", "q": 1})]
def make(n):
    def add(x):
        return x + n
    return add
fs = [lambda x: x * i for i in range(3)]
gs = [lambda x, i=i: x * i for i in range(3)]
out = [make(3)(4), [f(10) for f in fs], [g(10) for g in gs]]
def twice(f):
    def g(x):
        return f(f(x))
    return g
def times(n):
    def deco(f):
        return lambda x: f(x) * n
    return deco
@times(10)
@twice
def inc(x):
    return x + 1
out = inc(3)
def pairs(n):
    for i in range(n):
        for j in range(i):
            yield i, j
out = [list(pairs(3)), sum(i for i, _ in pairs(4)), [*pairs(2)]]
class Cfg:
    BLOCK = 64
    names = ["a"]
    def __init__(self, n, scale=2):
        self.n = n
        self.scale = scale
    def total(self):
        return self.n * self.scale + self.BLOCK
    @property
    def double(self):
        return self.n * 2
    @staticmethod
    def fixed(x):
        return x + 1
    @classmethod
    def make(cls, n):
        return cls(n, scale=1)
class Sub(Cfg):
    BLOCK = 1
c = Cfg(5)
out = [c.total(), Cfg.BLOCK, c.double, Cfg.fixed(1), Cfg.make(7).total(), Sub(2).total(), hasattr(c, "nope"), isinstance(c, Cfg)]
