#!/usr/bin/env python3
"""What became of Triton's own tests: table.py [--write PAGE] WHERE HOW LOG...

A line a file; below it every test that is not right, with the reason where it was looked at
(REASONS), and its text where not. With --write the section of docs/compatibility.md on the
tests WHERE they ran ("on the CPU") is replaced.
"""
import collections
import json
import re
import sys

# Tests that cannot say anything of sdc, or ask for less than it does; by hand. A third text
# must be in what the test says.
REASONS = [
    (r"test_pointer_arguments|test_no_rematerialization|test_preshuffle_scale",
     "needs an NVIDIA driver"),
    (r"test_call\[.*noinline", "wants noinline functions to fail; sdc inlines them"),
    (r"test_fp8_support", "wants a type to be refused that Triton's CPU lacks and sdc has on "
     "every target"),
    (r"test_tensor_descriptor_reduce", "wants bf16 to be refused, which sdc has"),
    (r"test_constexpr_annotated_global", "wants annotated globals to be refused, which Triton "
     "took until 3.1; sdc takes both"),
    (r"test_err_in_builtin", "wants a place in Triton's core.py"),
    (r"test_returns_branched", "wants the place of the helper; sdc tells that of the return"),
    (r"test_constexpr_function_taking_list", "a builtin written with Triton's internals"),
    (r"test_num_ctas_pre_sm90", "wants clusters to be refused; num_ctas is a hint for sdc"),
    *((r"test_aggregate_", "the decorator is Triton's own, and this Triton is older than the test",
       says) for says in ("did not initialize attribute", "no attribute 'aggregate_replace'",
                          "DID NOT RAISE TypeError")),
    (r"jit_hook|test_compile_only_ws", "hooks and back ends of Triton's Python"),
    (r"test_scaled_dot", "one sum of thousands, of terms that cancel to about their rounding in "
     "fp32: it depends on the order of addition, which is another in torch on this CPU",
     "Mismatched elements: 1 / "),
]
CLASSES = ["right", "looks at IR", "not of sdc", "other words", "refused", "wrong", "crash",
           "skipped"]


def reason(r):
    for pattern, why, *says in REASONS:
        if re.search(pattern, r["id"]) and all(s in r["text"] for s in says):
            return why
    return None


def kind(r):
    outcome, text, exc = r["outcome"], r["text"], r["exc"]
    if outcome == "passed":
        return "right"
    if outcome == "skipped":
        return "skipped"
    if outcome == "crashed" or r["status"] == 70:
        return "crash"
    if "Inspects" in exc or "[inner Inspects]" in text:
        return "looks at IR"
    if reason(r) or "ShimGap" in exc:
        return "not of sdc"
    if r["status"] in (1, 2) and exc == "AssertionError":
        return "other words"
    if exc == "AssertionError" and re.search(r"/\w+\.py:\d+:\d+: error|error:", text):
        return "other words"
    return "refused" if r["status"] else "wrong"


def read(logs):
    total, results = {}, {}
    for path in logs:
        for line in open(path):
            r = json.loads(line)
            if r["what"] == "collected":
                for name, counts in r["total"].items():
                    total[name] = counts[0]
            elif r["what"] == "end":
                results[r["id"]] = r
    return total, results


def replaced(text, title, section):
    """The text of a page with the section of that title; one that it lacks comes last of the
    suite's own.

    >>> page = "# P\\n\\n## Triton a\\n\\nold\\n\\n## Kernels\\n\\nkept\\n"
    >>> replaced(page, "## Triton a", "## Triton a\\n\\nnew\\n")
    '# P\\n\\n## Triton a\\n\\nnew\\n\\n## Kernels\\n\\nkept\\n'
    >>> replaced(page, "## Triton", "## Triton\\n\\nnew\\n")
    '# P\\n\\n## Triton a\\n\\nold\\n\\n## Triton\\n\\nnew\\n\\n## Kernels\\n\\nkept\\n'
    >>> replaced("# P\\n", "## Triton", "## Triton\\n\\nnew\\n")
    '# P\\n\\n## Triton\\n\\nnew\\n'
    """
    head, *sections = re.split(r"^(?=## )", text, flags=re.M)
    titles = [s.split("\n")[0] for s in sections]
    if title in titles:
        sections[titles.index(title)] = section
    else:
        own = [i for i, t in enumerate(titles) if t.startswith("## Triton")]
        sections.insert(own[-1] + 1 if own else 0, section)
    return "\n\n".join(part.rstrip("\n") for part in [head, *sections]) + "\n"


def main():
    args = sys.argv[1:]
    page = args[1] if args[0] == "--write" else None
    where, how, *logs = args[2:] if page else args
    title = "## Triton's own tests %s" % where
    section = title + "\n\n" + how + "\n\n" + tables(logs)
    if not page:
        print(section)
        return
    with open(page) as f:
        text = replaced(f.read(), title, section)
    with open(page, "w") as f:
        f.write(text)


def tables(logs):
    out = []
    total, results = read(logs)
    by_file = collections.defaultdict(collections.Counter)
    open_ = collections.defaultdict(list)
    for name, r in sorted(results.items()):
        k = kind(r)
        by_file[name.split("::")[0]][k] += 1
        if k not in ("right", "skipped", "looks at IR"):
            open_[(k, name.split("[")[0])].append(r)
    out.append("| file | tests | run | " + " | ".join(CLASSES) + " |")
    out.append("|---" * (3 + len(CLASSES)) + "|")
    sums = collections.Counter()
    for name, counts in sorted(by_file.items()):
        sums += counts
        tests = sum(n for t, n in total.items() if t.split("::")[0] == name)
        sums["tests"] += tests
        out.append("| `%s` | %d | %d | " % (name, tests, sum(counts.values())) +
                   " | ".join(str(counts[c]) for c in CLASSES) + " |")
    ran = sum(sums[c] for c in CLASSES)
    out.append("| all | %d | %d | " % (sums["tests"], ran) +
               " | ".join(str(sums[c]) for c in CLASSES) + " |")
    applicable = ran - sums["skipped"] - sums["looks at IR"] - sums["not of sdc"]
    out.append("\n%d of %d applicable tests are right (%.1f%%).\n" %
               (sums["right"], applicable, 100 * sums["right"] / max(applicable, 1)))
    out.append("| test | how many | class | why |\n|---|---|---|---|")
    for (k, name), rs in sorted(open_.items()):
        why = reason(rs[0])
        if not why:
            why = next((re.sub(r"^.*?error: ", "", t) for t in rs[0]["text"].split("\n")
                        if "error:" in t), rs[0]["exc"] + " " + rs[0]["text"][:80])
            why = "`" + why.replace("|", "/").replace("\n", " ")[:110] + "`"
        out.append("| `%s` | %d | %s | %s |" % (name.split("::")[1], len(rs), k, why))
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    main()
