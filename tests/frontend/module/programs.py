"""CPython's answers to programs.txt, as programs.expected has them: the repr of `out` of
each section."""
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "stub"))
for part in open(os.path.join(here, "programs.txt")).read().split("=== ")[1:]:
    name, _, body = part.partition("\n")
    scope = {"__name__": "kernels"}
    exec(compile(body, name, "exec"), scope)
    print(name, repr(scope["out"]))
