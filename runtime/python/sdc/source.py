"""The text of a kernel as a module of its own, with everything that it reaches.

The objects that a kernel's names mean are known here: helpers, constexprs, closures and
classes are written into one text, and what comes from Triton is imported. So nothing is
left to what only Python could know. Where each line came from is kept, for messages.
"""

from __future__ import annotations

import ast
import enum
import hashlib
import inspect
import math
import re
import sys
import textwrap
import types
from typing import Any, Optional

from .dtypes import SPELLING
from .errors import SourceError

# modules whose functions the front end knows, or that matter to annotations alone
_KNOWN = {"math", "torch", "typing", "operator", "functools", "itertools", "builtins",
          "numpy", "enum", "dataclasses"}


def kind(v: Any) -> str:
    """What an object is to a kernel: constexpr, dtype, jit, module, class or value."""
    home, name = type(v).__module__ or "", type(v).__name__
    if name == "constexpr" and hasattr(v, "value"):
        return "constexpr"
    if name in ("dtype", "pointer_type", "block_type") and is_triton(home):
        return "dtype"
    if as_jit(v) is not None:
        return "jit"
    if isinstance(v, types.ModuleType):
        return "module"
    if isinstance(v, type):
        return "class"
    return "value"


def is_triton(home: str) -> bool:
    """Is this the name of a module of Triton, or of what stands for it?"""
    return home.partition(".")[0] == "triton" or home == "sdc" or \
        home.startswith("sdc.language")


def as_jit(v: Any) -> Any:
    """A jit function, sdc's or Triton's; what TRITON_INTERPRET made of one, too."""
    if isinstance(v, types.ModuleType):
        return None  # those of sdc.language have every attribute
    if hasattr(v, "raw_src") and hasattr(v, "get_capture_scope"):
        return v
    if type(v).__name__ == "InterpretedFunction":
        from .jit import JITFunction
        made = v.__dict__.get("_sdc_jit")
        if made is None:
            made = v.__dict__["_sdc_jit"] = JITFunction(v.fn)
        return made
    return None


def literal(v: Any) -> Optional[str]:
    """A value as Python source; None when there is no such text."""
    what = kind(v)
    if what == "constexpr":
        return literal(v.value)
    if what == "dtype":
        if type(v).__name__ == "dtype":
            return "tl." + SPELLING.get(v.name, v.name)
        inner = literal(v.element_ty)
        if type(v).__name__ == "pointer_type":
            return inner and f"tl.pointer_type({inner})"
        return inner and f"tl.block_type({inner}, {[int(n) for n in v.shape]})"
    if isinstance(v, enum.Enum):
        return None  # a name of its class
    if v is None or isinstance(v, (bool, int, str)):
        return repr(v)
    if isinstance(v, float):
        return repr(v) if math.isfinite(v) else f'float("{v}")'
    if isinstance(v, (tuple, list)) and not hasattr(v, "_fields"):
        parts = [literal(x) for x in v]
        if any(p is None for p in parts):
            return None
        return "(" + "".join(f"{p}, " for p in parts) + ")"
    if hasattr(v, "item") and getattr(v, "ndim", 1) == 0 and not hasattr(v, "data_ptr"):
        return literal(v.item())  # a number of numpy
    return None


def _decorator(fn: Any) -> str:
    """@triton.jit with the options that the front end knows."""
    if not hasattr(fn, "params"):
        return "@triton.constexpr_function"
    parts = [f"{name}={list(value)!r}" if isinstance(value, (list, tuple)) else
             f"{name}=True"
             for name in ("do_not_specialize", "do_not_specialize_on_alignment",
                          "noinline", "debug")
             if (value := getattr(fn, name, None))]
    return "@triton.jit" + (f"({', '.join(parts)})" if parts else "")


class Source:
    """A module that is written from live objects."""

    def __init__(self) -> None:
        self._head = ["import triton", "import triton.language as tl"]
        self._body: list[tuple[str, str, int, int]] = []
        self._names: dict[str, Any] = {"triton": None, "tl": None}
        self._placed: dict[int, str] = {}
        self._others: dict[tuple[str, Any], str] = {}  # names that meant two things
        self.kept: list[Any] = []  # whose ids are in _placed
        self.reads: list[tuple[dict[str, Any], str, Any]] = []  # globals: where, value

    # ------------------------------------------------------------ what it says

    def text(self) -> str:
        """The module."""
        head = list(dict.fromkeys(self._head))
        return "\n".join(head) + "\n" + "".join(piece for piece, *_ in self._body)

    def places(self, message: str, name: str) -> str:
        """A message of the compiler with the places of the files that lines came from."""
        table: list[Optional[tuple[str, int, int]]] = [None]
        table += [None] * len(dict.fromkeys(self._head))
        for piece, path, line, column in self._body:
            for i in range(piece.count("\n")):
                table.append((path, line + i, column) if path else None)

        def at(line: int) -> Optional[tuple[str, int, int]]:
            return table[line] if line < len(table) else None

        def place(m: re.Match[str]) -> str:
            found = at(int(m[1]))
            return f"{found[0]}:{found[1]}:{int(m[2]) + found[2]}" if found else m[0]

        def note(m: re.Match[str]) -> str:  # what is written here is nobody's line
            return m[0] if at(int(m[1])) else ""

        here = re.escape(name) + r":(\d+):(\d+)"
        message = re.sub(here + r": note: .*\n.*\n *\^~*\n?", note, message)
        return re.sub(here, place, message).rstrip()

    # ------------------------------------------------------------ what is written

    def add(self, text: str, path: str = "", line: int = 0, column: int = 0) -> None:
        """Writes lines; `path`, `line`, `column`: where the first one came from."""
        self._body.append((text if text.endswith("\n") else text + "\n", path, line,
                           column))

    def fresh(self, want: str, obj: Any) -> str:
        """A name that is not taken by another object."""
        name, i = want, 0
        while name in self._names and self._names[name] is not obj:
            i += 1
            name = f"{want}__{i}"
        self._names[name] = obj
        return name

    def place(self, obj: Any, want: Optional[str] = None) -> str:
        """Writes the definition of a jit function; gives its name in the module."""
        if id(obj) in self._placed:
            return self._placed[id(obj)]
        self.kept.append(obj)
        fn = as_jit(obj)
        home = fn.__module__ or ""
        if is_triton(home):
            name = self._placed[id(obj)] = self._import(fn, want or fn.__name__)
            return name
        src = fn.src
        own = re.match(r"\s*def\s+(\w+)", src)
        if not own:
            raise SourceError(f"'{fn.__name__}' has no text that begins with def")
        name = self._placed[id(obj)] = self.fresh(_short(want or own[1]), obj)
        src = self._reach(src, fn.get_capture_scope(), fn.fn.__globals__)
        if name != own[1]:
            src = re.sub(r"^(\s*def\s+)\w+", r"\g<1>" + name, src, count=1)
        path, line, column = def_place(fn)
        self.add(_decorator(fn))
        self.add(src.rstrip(), path, line, column)
        return name

    def value(self, v: Any) -> str:
        """The text that stands for a compile-time value: numbers, types, functions."""
        what = kind(v)
        if what == "constexpr":
            return self.value(v.value)
        if what == "jit":
            return self.place(v)
        if what == "class":
            self._bind(v.__name__, v, {})
            return v.__name__
        if isinstance(v, (tuple, list)):
            parts = [self.value(x) for x in v]
            if hasattr(v, "_fields"):
                self._bind(type(v).__name__, type(v), {})
                return f"{type(v).__name__}({', '.join(parts)})"
            return "(" + "".join(p + ", " for p in parts) + ")"
        if isinstance(v, enum.Enum):
            cls = self._bind(type(v).__name__, type(v), {})
            return f"{cls}.{v.name}" if v.name in type(v).__members__ else repr(v.value)
        text = literal(v)
        if text is None and is_triton(getattr(v, "__module__", "") or ""):
            return self._import(v, v.__name__)
        if text is None:
            raise SourceError(f"a constexpr cannot be a {type(v).__name__}")
        return text

    def _import(self, obj: Any, name: str) -> str:
        leaf, home = obj.__name__, obj.__module__ or "triton.language"
        for short in ("triton", "triton.language"):
            if getattr(sys.modules.get(short), leaf, None) is obj:
                home = short
        home = re.sub(r"^sdc\b", "triton", home)
        name = self.fresh(name, obj)
        self._head.append(f"from {home} import {leaf} as {name}")
        return name

    def _reach(self, text: str, scope: dict[str, Any],
               home: Optional[dict[str, Any]] = None) -> str:
        """Binds what the names of `text` mean in `scope`; `home`: of it the globals. The
        text, with another name for each that means something else elsewhere."""
        other: dict[str, str] = {}
        tree = ast.parse(textwrap.dedent(text))
        notes = scope.get("__annotations__") or {}
        own = {a.arg for n in ast.walk(tree)
               if isinstance(n, (ast.FunctionDef, ast.Lambda))
               for a in (*n.args.args, *n.args.kwonlyargs, *n.args.posonlyargs,
                         *filter(None, (n.args.vararg, n.args.kwarg)))}
        names = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
        own |= {n.id for n in names if not isinstance(n.ctx, ast.Load)}
        for n in names:
            if n.id in scope and n.id not in own:
                v = scope[n.id]
                other[n.id] = self._bind(n.id, v, notes, _attributes(tree, n.id))
                if home and home.get(n.id) is v and kind(v) in ("constexpr", "value") \
                        and literal(v) is not None:
                    self.reads.append((home, n.id, v))
        return _renamed(text, [n for n in names if other.get(n.id, n.id) != n.id], other)

    def _bind(self, name: str, obj: Any, notes: dict[str, Any],
              used: frozenset[tuple[str, ...]] = frozenset()) -> str:
        """Makes `name` mean `obj`, or another name where it means something else."""
        if name in ("tl", "triton") and isinstance(obj, types.ModuleType) and \
                is_triton(obj.__name__):
            return name
        what = kind(obj)
        if name in self._names and self._names[name] is not obj and what != "module":
            if literal(obj) is not None and literal(obj) == literal(self._names[name]):
                return name
            return self._bind_other(name, obj, notes, what)
        if what != "module" and name in self._names:
            return name
        self._bind_new(name, obj, notes, used, what)
        return name

    def _bind_other(self, name: str, obj: Any, notes: dict[str, Any], what: str) -> str:
        if what == "jit":
            return self.place(obj, name)
        if what == "class":
            raise SourceError(f"two functions of one kernel mean different things by the "
                              f"class '{name}'")
        key = name, literal(obj) or id(obj)
        if key not in self._others:
            self.kept.append(obj)
            made = self.fresh(name, obj)
            del self._names[made]
            self._bind_new(made, obj, {made: notes.get(name, "")}, frozenset(), what)
            self._others[key] = made
        return self._others[key]

    def _bind_new(self, name: str, obj: Any, notes: dict[str, Any],
                  used: frozenset[tuple[str, ...]], what: str) -> None:
        if what == "module":
            self._bind_module(name, obj, used)
        elif what == "jit":
            placed = self.place(obj, name)
            if placed != name:
                self._names[name] = obj
                self.add(f"{name} = {placed}")
        elif what == "class" and obj.__module__ in _KNOWN:
            self._names[name] = obj
            if obj.__module__ != "builtins":
                self._head.append(f"from {obj.__module__} import {obj.__name__} as {name}")
        elif what == "class" and not is_triton(obj.__module__):
            self._names[name] = obj
            self._place_class(name, obj)
        elif what == "constexpr":
            self._names[name] = obj
            self.add(f"{name} = tl.constexpr({self.value(obj)})")
        elif what == "value" and literal(obj) is not None:
            self._names[name] = obj
            note = str(notes.get(name, ""))
            typed = ": tl.constexpr" if "constexpr" in note else ""
            self.add(f"{name}{typed} = {literal(obj)}")
        elif what == "dtype":
            self._names[name] = obj
            self.add(f"{name} = {literal(obj)}")
        elif is_triton(getattr(obj, "__module__", "") or "") and \
                hasattr(obj, "__name__"):
            self._import(obj, name)
        # anything else is no kernel's business; if it is, the front end says so

    def _bind_module(self, name: str, mod: types.ModuleType,
                     used: frozenset[tuple[str, ...]]) -> None:
        home = re.sub(r"^sdc\b", "triton", mod.__name__)
        if home.endswith(".libdevice"):
            home = "triton.language.extra.libdevice"
        top = home.partition(".")[0]
        if top == "triton" or top in _KNOWN and not _has_jit(mod, used):
            parent, _, leaf = home.rpartition(".")
            whole = f"import {leaf} as {name}"
            self._names[name] = mod
            self._head.append(f"from {parent} {whole}" if parent else whole)
            return
        self._namespace(name, mod, used)

    def _namespace(self, name: str, mod: types.ModuleType,
                   used: frozenset[tuple[str, ...]]) -> None:
        """A module of helpers as a class whose attributes are what the kernel uses."""
        lines = []
        for attr in sorted({chain[0] for chain in used if chain}):
            obj = getattr(mod, attr, None)
            inner = self.fresh(f"{name}__{attr}", (mod, attr))
            del self._names[inner]
            deeper = frozenset(c[1:] for c in used if c[0] == attr and len(c) > 1)
            self._bind(inner, obj, getattr(mod, "__annotations__", {}), deeper)
            if inner in self._names:
                lines.append(f"    {attr} = {inner}\n")
        if name in self._names and self._names[name] is mod:
            name_lines = f"{name}.%s"  # helpers of two functions: more attributes
            for line in lines:
                attr, _, inner = line.strip().partition(" = ")
                self.add(f"{name_lines % attr} = {inner}")
            return
        self._names[name] = mod
        self.add(f"class {name}:\n" + "".join(lines or ["    pass\n"]))

    def _place_class(self, name: str, cls: type) -> None:
        try:
            lines, first = inspect.getsourcelines(cls)
        except (OSError, TypeError):
            if hasattr(cls, "_fields"):  # collections.namedtuple's have no text
                self._place_fields(name, cls)
            return
        src = textwrap.dedent("".join(lines))
        scope = dict(vars(sys.modules.get(cls.__module__, types.ModuleType(""))))
        for member in vars(cls).values():
            fn = getattr(member, "fn", member)
            if isinstance(fn, types.FunctionType):
                scope.update(inspect.getclosurevars(fn).nonlocals)
        if "NamedTuple" in src:
            self._head.append("from typing import NamedTuple")
        scope.pop(cls.__name__, None)
        src = self._reach(src, scope)
        self.add(src.rstrip(), inspect.getsourcefile(cls) or "", first)
        if cls.__name__ != name:
            self.add(f"{name} = {cls.__name__}")

    def _place_fields(self, name: str, cls: Any) -> None:
        """A named tuple by the names of its elements."""
        defaults = {f: self.value(v) for f, v in cls._field_defaults.items()}
        self._head.append("from typing import NamedTuple")
        self.add(f"class {name}(NamedTuple):\n" + "\n".join(
            f"    {f}: object" + (f" = {defaults[f]}" if f in defaults else "")
            for f in cls._fields))


def _renamed(text: str, names: list[ast.Name], to: dict[str, str]) -> str:
    """The text with other names in these places."""
    lines = text.splitlines(keepends=True)
    flat = textwrap.dedent(text).splitlines(keepends=True)
    margin = [len(a) - len(b) for a, b in zip(lines, flat)]
    for n in sorted(names, key=lambda n: (n.lineno, n.col_offset), reverse=True):
        line, old = lines[n.lineno - 1].encode(), n.id.encode()
        at = n.col_offset + margin[n.lineno - 1]
        if line[at:at + len(old)] == old:  # inside of an f-string Python tells no place
            line = line[:at] + to[n.id].encode() + line[at + len(old):]
            lines[n.lineno - 1] = line.decode()
    return "".join(lines)


def _short(name: str) -> str:
    """A name that a kernel may have: inductor writes longer ones."""
    if len(name) <= 100:
        return name
    return f"{name[:90]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _attributes(tree: ast.AST, name: str) -> frozenset[tuple[str, ...]]:
    """The chains of attributes of a name: a.b.c is ("b", "c")."""
    found = set()
    for n in ast.walk(tree):
        chain: list[str] = []
        while isinstance(n, ast.Attribute):
            chain.insert(0, n.attr)
            n = n.value
        if chain and isinstance(n, ast.Name) and n.id == name:
            found.add(tuple(chain))
    return frozenset(found)


def _has_jit(mod: types.ModuleType, used: frozenset[tuple[str, ...]]) -> bool:
    """Does one of the chains lead from the module to a jit function?"""
    for chain in used:
        obj: Any = mod
        for attr in chain:
            obj = getattr(obj, attr, None)
        if obj is not None and as_jit(obj) is not None:
            return True
    return False


def def_place(fn: Any) -> tuple[str, int, int]:
    """File, line and indentation of a function's def."""
    for i, line in enumerate(fn.raw_src):
        m = re.match(r"(\s*)(?:async\s+)?def\s", line)
        if m:
            return fn.fn.__code__.co_filename, fn.starting_line_number + i, len(m[1])
    return fn.fn.__code__.co_filename, fn.starting_line_number, 0


def look_again(reads: list[tuple[dict[str, Any], str, Any]]) -> None:
    """Globals that a kernel was compiled with may not change, as in Triton."""
    for home, name, was in reads:
        now = home.get(name)
        if now is not was and (kind(now) != kind(was) or literal(now) != literal(was)):
            raise RuntimeError(f"Global variable {name} has changed since we compiled "
                               f"this kernel, from {was} to {now}")
