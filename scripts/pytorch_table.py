"""Statistics and the table of compare_pytorch.py, from its JSON alone. Imported by it."""

import statistics


def interval(samples):
    """Median and its 95 % interval by order statistics; the interval is None where there are too few samples."""
    ordered, n = sorted(samples), len(samples)
    median = statistics.median(ordered)
    # P(fewer than k of n lie below the median), for k = 1, 2, ...: the largest with at most 2.5 % on a side.
    mass, term, k = 0.0, 0.5**n, 0
    while k < n and mass + term <= 0.025:
        mass += term
        k += 1
        term *= (n - k + 1) / k
    if k == 0:
        return {"median": median, "low": None, "high": None}
    return {"median": median, "low": ordered[k - 1], "high": ordered[n - k]}


def ratio(theirs, ours):
    """Theirs over ours, round by round: above 1 we are faster."""
    return interval([t / o for t, o in zip(theirs, ours)])


def against_pytorch(rows):
    """How each library's best comparable route does against PyTorch's best use of the same library."""
    lines = []
    for library in ("cudnn", "cublas_shift_add"):
        routes = [r for r in rows if r["kind"] == "vendor" and r["comparable"] and r["library"] == library]
        uses = [r for r in rows if r["kind"] == "pytorch" and r["comparable"] and r["library"] == library]
        if routes and uses:
            route, use = (min(of, key=lambda r: r["median"]) for of in (routes, uses))
            lines.append((library, route, use, 100 * (route["median"] / use["median"] - 1)))
    return lines


def cell(row):
    text = f"{row['median']:#.4g}"
    if row.get("low") is not None and row.get("high") is not None:
        text += f" [{row['low']:#.4g}, {row['high']:#.4g}]"
    return text


def versus(row, ours):
    if not ours or row is ours or not row["comparable"]:
        return ""
    if row.get("samples") and ours.get("samples"):
        r = ratio(row["samples"], ours["samples"])
        return f"{r['median']:.3f}" + (f" [{r['low']:.3f}, {r['high']:.3f}]" if r["low"] is not None else "")
    return f"~{row['median'] / ours['median']:.3f}"


def table(document):
    p = document["provenance"]
    lines = [f"{p['gpu']}, PyTorch {p['torch']}, CUDA {p['cuda']}, cuDNN {p['cudnn']}, {p['taken']}"]
    for problem in document["problems"]:
        for entry in problem["classes"]:
            rows = sorted(entry["rows"], key=lambda r: (not r["comparable"], r["median"]))
            ours = next((r for r in rows if r["kind"] == "ours"), None)
            lines += ["", f"{problem['name']}, {entry['class']}"]
            grid = [["", "ms [95 %]", "ours is faster by", ""]]
            for row in rows:
                label = {"ours": "ours: ", "pytorch": "PyTorch ", "vendor": ""}[row["kind"]] + row["name"]
                remark = row["how"] if row["comparable"] else f"not comparable: {row.get('note') or 'conversions not counted'}"
                grid.append([label, cell(row), versus(row, ours), remark])
            widths = [max(len(line[i]) for line in grid) for i in range(4)]
            lines += ["  " + "  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip() for line in grid]
            lines += [f"  PyTorch {m['name']}: not available: {m['why']}" for m in entry["missing"]]
            for library, route, use, percent in against_pytorch(rows):
                lines.append(f"  {library} is {percent:+.1f} % against PyTorch's best by the same library ({use['name']}), {route['how']}")
    return "\n".join(lines)
