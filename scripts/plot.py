#!/usr/bin/env python3
"""Static plots of measured results, for papers and READMEs: scripts/plot.py RESULT.json OUT.svg|OUT.png

One problem: the times of the best variant and of each vendor's best route by class and regime, against the floors of the
run: the device's limits, and what a copy of x took in the same rounds. Several problems: how much faster the best
variant is than the fastest vendor route, problem by problem, by class. Needs matplotlib.
"""

import json
import math
import sys

VENDORS = {"cudnn": "cuDNN, best route", "cublas_shift_add": "cuBLAS, shift and add"}


def fail(message):
    print(f"plot.py: {message}", file=sys.stderr)
    raise SystemExit(2)


def times_of(record):
    """The record's times by regime."""
    times = [record.get("time_ms"), *record.get("other_regimes", [])]
    return {time["regime"]: time for time in times if time}


def winner(entry):
    """The fastest right variant, or None."""
    right = [v for v in entry["variants"] if v["outcome"] == "ok" and v.get("time_ms")]
    named = [v for v in right if v["id"] == entry.get("best")]
    return (named or sorted(right, key=lambda v: v["time_ms"]["median"]) or [None])[0]


def bars_of(entry, ours):
    """By regime that ours was timed in: rows of (label, time, whose)."""
    for regime, time in times_of(ours).items():
        rows = [(f"{ours['family']} (ours)", time, "ours")]
        for route in entry["baselines"]:
            if route.get("best_of_its_name") and regime in times_of(route):
                rows.append((VENDORS.get(route["name"], route["name"]), times_of(route)[regime], "vendor"))
        yield regime, rows


def plot_one(axes, problem):
    y, ticks, labels, floors = 0.0, [], [], {}
    for entry in problem["classes"]:
        ours = winner(entry)
        for regime, rows in bars_of(entry, ours) if ours else ():
            top = y
            for label, time, whose in rows:
                middle = time["median"]
                low, high = time["low"] or middle, time["high"] or middle
                axes.barh(y, middle, 0.8, color="#2a7f62" if whose == "ours" else "#9aa5b1",
                          xerr=[[middle - low], [high - middle]])
                axes.text(middle, y, f"  {middle:.3g} ms", va="center", fontsize=8)
                ticks.append(y)
                labels.append(f"{entry['class']}, {regime}: {label}")
                y += 1
            marks = {"device limits of our variant": ours["model"]["lower_bound_ms"]}
            for copy in entry.get("conditions", {}).get("copy", []):
                if copy["regime"] == regime:
                    marks["a copy of x, same rounds"] = copy["median"]
            for (name, at), style in zip(marks.items(), ("-", ":")):
                line = axes.plot([at, at], [top - 0.5, y - 0.5], style, color="#b3261e", linewidth=1.5)[0]
                floors.setdefault(name, line)
            y += 0.6
    axes.set_yticks(ticks, labels, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("ms, median with 95 % interval")
    axes.margins(x=0.15)
    axes.legend(floors.values(), floors.keys(), fontsize=8, loc="lower right")
    return max(2.0, 0.3 * y + 1)


def ratios_of(result):
    """By class: (problem, fastest vendor's time over ours) from the first regime's ratios."""
    by_class = {}
    for problem in result["problems"]:
        for entry in problem["classes"]:
            first = [r for r in entry["ratios"] if r["regime"] == entry["ratios"][0]["regime"]]
            if first:
                least = min(r["ratio"] for r in first)
                by_class.setdefault(entry["class"], []).append((problem["name"], least))
    return by_class


def plot_many(axes, result):
    longest = 0
    for name, ratios in ratios_of(result).items():
        ordered = sorted(ratio for _, ratio in ratios)
        mean = math.exp(sum(map(math.log, ordered)) / len(ordered))
        axes.plot(range(1, len(ordered) + 1), ordered, "o-", markersize=3, linewidth=1,
                  label=f"{name}: geometric mean {mean:.2f}, worst {ordered[0]:.2f}")
        longest = max(longest, len(ordered))
    if not longest:
        fail("no problem of the result has a ratio to a vendor route")
    axes.axhline(1, color="#b3261e", linewidth=1)
    axes.set_yscale("log")
    axes.set_xlabel("problems, the slowest ratio first")
    axes.set_ylabel("fastest vendor route's time / ours")
    axes.legend(fontsize=8)
    return 4.0


def main(arguments):
    if len(arguments) != 2 or not arguments[1].endswith((".svg", ".png")):
        fail("usage: scripts/plot.py RESULT.json OUT.svg|OUT.png")
    try:
        with open(arguments[0], encoding="utf-8") as file:
            result = json.load(file)
        problems, measured = result["problems"], result["measured"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        fail(f"{arguments[0]}: no result file: {error}")
    if not measured:
        fail(f"{arguments[0]}: nothing was timed (no GPU)")
    try:
        import matplotlib
    except ImportError:
        fail("needs matplotlib (Debian: python3-matplotlib)")
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "tuner"  # the same file from the same result
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 4))
    height = plot_one(axes, problems[0]) if len(problems) == 1 else plot_many(axes, result)
    figure.set_figheight(height)
    machine = result["environment"]
    axes.set_title(f"{result['name']}: {machine['gpu']}, {machine['power_limit_w']:g} W, L2 cold", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(arguments[1], dpi=150, metadata={"Date": None} if arguments[1].endswith(".svg") else None)
    print(arguments[1])


if __name__ == "__main__":
    main(sys.argv[1:])
