#!/usr/bin/env python3
"""What became of Triton's own tests, as docs/compatibility.md: table.py HOW LOG...

A line a file; below it every test that is not right, with the reason where it was looked at
(REASONS), and its text where not.
"""
import collections
import json
import re
import sys

# Tests that cannot say anything of sdc, or ask for less than it does; by hand.
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
    (r"jit_hook|test_compile_only_ws", "hooks and back ends of Triton's Python"),
]
CLASSES = ["right", "looks at IR", "not of sdc", "other words", "refused", "wrong", "crash",
           "skipped"]


def reason(test):
    for pattern, why in REASONS:
        if re.search(pattern, test):
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
    if reason(r["id"]) or "ShimGap" in exc:
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


def main():
    how, logs = sys.argv[1], sys.argv[2:]
    total, results = read(logs)
    by_file = collections.defaultdict(collections.Counter)
    open_ = collections.defaultdict(list)
    for name, r in sorted(results.items()):
        k = kind(r)
        by_file[name.split("::")[0]][k] += 1
        if k not in ("right", "skipped", "looks at IR"):
            open_[(k, name.split("[")[0])].append(r)
    print("# Compatibility\n\nTriton's own tests (`python/test/unit`) with libsdc in the place "
          "of its compiler, on the CPU:\n" + how + "\n\n`tests` are all variants of a file, "
          "`run` those that were drawn. *looks at IR*: what the test reads\nof Triton's own "
          "products; the numbers before that were right. *not of sdc*: see below. *other "
          "words*: refused\nas the test wants, in other words.\n")
    print("| file | tests | run | " + " | ".join(CLASSES) + " |")
    print("|---" * (3 + len(CLASSES)) + "|")
    sums = collections.Counter()
    for name, counts in sorted(by_file.items()):
        sums += counts
        tests = sum(n for t, n in total.items() if t.split("::")[0] == name)
        sums["tests"] += tests
        print("| `%s` | %d | %d | " % (name, tests, sum(counts.values())) +
              " | ".join(str(counts[c]) for c in CLASSES) + " |")
    ran = sum(sums[c] for c in CLASSES)
    print("| all | %d | %d | " % (sums["tests"], ran) +
          " | ".join(str(sums[c]) for c in CLASSES) + " |")
    applicable = ran - sums["skipped"] - sums["looks at IR"] - sums["not of sdc"]
    print("\n%d of %d applicable tests are right (%.1f%%).\n" %
          (sums["right"], applicable, 100 * sums["right"] / max(applicable, 1)))
    print("| test | how many | class | why |\n|---|---|---|---|")
    for (k, name), rs in sorted(open_.items()):
        why = reason(rs[0]["id"])
        if not why:
            why = next((re.sub(r"^.*?error: ", "", t) for t in rs[0]["text"].split("\n")
                        if "error:" in t), rs[0]["exc"] + " " + rs[0]["text"][:80])
            why = "`" + why.replace("|", "/").replace("\n", " ")[:110] + "`"
        print("| `%s` | %d | %s | %s |" % (name.split("::")[1], len(rs), k, why))


main()
