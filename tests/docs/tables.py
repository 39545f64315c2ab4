"""Regenerates the figures in README.md and docs/PERFORMANCE.md from the files under results/.

    tables.py --tuner build/release/bin/tuner            fails if a document differs from what results/ says
    tables.py --tuner build/release/bin/tuner --update   writes the documents anew

A block stands between two lines `<!-- NAME: from RESULT -->` and `<!-- end -->`; BLOCKS makes its text.
"""

import argparse
import difflib
import gzip
import json
import math
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = ["README.md", "docs/PERFORMANCE.md"]
BLOCK = re.compile(r"(?P<begin><!-- (?P<name>[\w-]+): from (?P<result>\S+) -->\n).*?(?P<end><!-- end -->\n)", re.DOTALL)
LEAST_BLOCKS = {"README.md": 3, "docs/PERFORMANCE.md": 3}  # a document that lost its markers proves nothing
VARIANTS_SHOWN = 8
ROUTES_SHOWN = 3


class Fault(Exception):
    """What is wrong with a document or result, in a line."""


def ms(time, interval=True):
    text = f"{time['median']:#.4g}"
    if interval and time["low"] is not None and time["high"] is not None:
        text += f" [{time['low']:#.4g}, {time['high']:#.4g}]"
    return text


def timed(records, valid=("ok",)):
    """Records that were timed, are right and may be compared, fastest first."""
    chosen = [r for r in records if r["outcome"] in valid and r.get("time_ms") and not r.get("not_comparable")]
    return sorted(chosen, key=lambda r: r["time_ms"]["median"])


def classes_of(result):
    return [(problem, record) for problem in result["problems"] for record in problem["classes"]]


def tunables(variant):
    def text(value):
        return "x".join(str(v) for v in value) if isinstance(value, list) else str(value)

    return variant["family"] + " " + " ".join(f"{k}={text(v)}" for k, v in variant["tunables"].items())


def representative(record, name):
    """The route that stands for a baseline, or None."""
    return next((b for b in record["baselines"] if b["name"] == name and b.get("best_of_its_name")), None)


def table(header, rows):
    return "".join("| " + " | ".join(cells) + " |\n" for cells in [header, ["---"] * len(header), *rows])


def conditions(result):
    e = result["environment"]
    ours = next((v for _, record in classes_of(result) for v in timed(record["variants"])), None)
    if ours is None:
        raise Fault("the result holds no variant that is right and timed")
    time = ours["time_ms"]
    return (
        f"{result['started'][:10]}, one {e['gpu']} ({e['sm_count']} SMs, driver {e['driver']}, {e['power_limit_w']:.0f} W), "
        f"CUDA {e['cuda']}, L2 {time['l2']}, {time['regime']}; tuner {result['tool']['version']} ({result['tool']['commit']})"
    )


def against(record, name):
    """A baseline's time and how it compares with our best variant of the same class."""
    route = representative(record, name)
    if route is None:
        return "none"
    text = f"{ms(route['time_ms'], False)} ms"
    ratio = next((r for r in record["ratios"] if r["baseline"] == name), None)
    return text + (f", {ratio['ratio']:.3f}x [{ratio['low']:.3f}, {ratio['high']:.3f}]" if ratio else "")


def default_class(problem, record, ours):
    """PyTorch runs cuDNN in TF32 unless told otherwise: what class fp32 is up against. Other rounds, hence the ~."""
    default = next((c for c in problem["classes"] if c["class"] == "tf32"), None)
    route = representative(default, "cudnn") if default else None
    if record["class"] == "tf32":
        return "as cuDNN in this row"
    if record["class"] != "fp32" or not route or not ours:
        return "-"
    return f"{ms(route['time_ms'], False)} ms, ~{route['time_ms']['median'] / ours[0]['time_ms']['median']:.3f}x"


def summary_table(result):
    rows = []
    for problem, record in classes_of(result):
        ours = timed(record["variants"])
        row = [record["class"], f"**{ms(ours[0]['time_ms'])} ms** ({ours[0]['family']})" if ours else "nothing valid"]
        row += [against(record, "cudnn"), against(record, "cublas_shift_add")]
        rows.append([*row, default_class(problem, record, ours)])
    header = ["class", "ours, median [95 %]", "cuDNN's best route", "cuBLAS, shift and add", "cuDNN in TF32 (PyTorch's default class)"]
    return table(header, rows) + f"\nMeasured {conditions(result)}.\n"


def variants_table(result):
    """The fastest variants of each class, run-off times where they took part in one."""
    rows = []
    for _, record in classes_of(result):
        for variant in timed(record["variants"])[:VARIANTS_SHOWN]:
            time = variant["time_ms"]
            share = variant["model"]["lower_bound_ms"] / time["median"]
            errors = variant["errors"]
            rows.append(
                [record["class"], ms(time), str(len(time["samples"])), f"{100 * share:.0f} %", str(variant["registers"]),
                 f"{variant['shared_bytes'] / 1024:.1f}", f"{100 * variant['occupancy']:.0f} %",
                 f"{errors['element']:.2g}, {errors['row']:.2g}", tunables(variant)]
            )
    header = ["class", "median ms [95 %]", "samples", "of limit", "registers", "shared KiB", "occupancy",
              "error / bound: element, row", "variant"]
    return table(header, rows)


def routes_table(result):
    """The fastest routes of each baseline and direction."""
    rows = []
    for _, record in classes_of(result):
        for name in dict.fromkeys(b["name"] for b in record["baselines"]):
            mine = timed([b for b in record["baselines"] if b["name"] == name])
            for direction in dict.fromkeys(b["route"].split(",")[0] for b in mine):
                for route in [b for b in mine if b["route"].split(",")[0] == direction][:ROUTES_SHOWN]:
                    engine = " ".join(filter(None, [route["engine"], route["knobs"]]))
                    rows.append([record["class"], name, route["route"], engine, f"{route['workspace_bytes'] / 2**20:.0f}",
                                 f"{ms(route['time_ms'])}"])
    return table(["class", "baseline", "route", "engine", "workspace MiB", "median ms [95 %]"], rows)


def counts_table(result):
    rows = []
    for _, record in classes_of(result):
        outcomes = [v["outcome"] for v in record["variants"]]
        rows.append([record["class"], f"{record.get('space_size', 0):,}", str(len(outcomes)),
                     ", ".join(f"{outcomes.count(o)} {o}" for o in dict.fromkeys(outcomes)),
                     f"{sum(record.get('rejections', {}).values()):,}", str(len(record["baselines"]))])
    return table(["class", "valid configurations", "tried", "outcomes", "refused unbuilt", "vendor routes recorded"], rows)


# What an H200 reached (docs/PERFORMANCE.md, "Floors"): bytes a second, and multiply-adds' operations a second by class.
COPY_RATE = 4.20e12
RATE = {"fp32": 745e12 / 3, "tf32": 402e12, "fp16": 745e12, "bf16": 745e12}
FLOOR_COUNTS_FROM = 0.010  # ms


def floor_ms(problem, name):
    """The larger of each byte once and all multiply-adds at the class's rate."""
    p = problem["problem"]
    length_out = (p["length"] - 1) * p["stride"] - 2 * p["padding"] + p["dilation"] * (p["kernel_size"] - 1) + p["output_padding"] + 1
    weights = p["in_channels"] * p["out_channels"] // p["groups"] * p["kernel_size"]
    elements = p["batch"] * (p["in_channels"] * p["length"] + p["out_channels"] * length_out) + weights
    flop = 2 * p["batch"] * weights * p["length"]
    return 1e3 * max(elements * (4 if name.endswith("32") else 2) / COPY_RATE, flop / RATE[name])


def best_vendor(record):
    """The fastest route that stands for a baseline, or None."""
    standing = [b for b in record["baselines"] if b.get("best_of_its_name") and b.get("time_ms")]
    return min(standing, key=lambda b: b["time_ms"]["median"], default=None)


def mean(ratios):
    return f"{math.prod(ratios) ** (1 / len(ratios)):.2f}" if ratios else "-"


def layers_table(result):
    """Every layer and class: floor, ours, the best vendor route; the means of each class above."""
    rows, sums = [], {}
    for problem, record in classes_of(result):
        p, name = problem["problem"], record["class"]
        ours = next(iter(timed(record["variants"])), None)
        vendor = best_vendor(record)
        floor = floor_ms(problem, name)
        shape = (f"B{p['batch']} {p['in_channels']} to {p['out_channels']} K{p['kernel_size']} s{p['stride']}"
                 + (f" g{p['groups']}" if p["groups"] > 1 else "") + f" L{p['length']}")
        row = [re.sub(r" \((train|infer)\)$", "", problem["name"]), shape, name, f"{floor:.3g}"]
        if ours and vendor:
            paired = [r["ratio"] for r in record["ratios"]]
            ratio = min(paired) if paired else vendor["time_ms"]["median"] / ours["time_ms"]["median"]
            total = sums.setdefault(name, {"ratio": [], "floor": [], "lost": 0})
            total["ratio"].append(ratio)
            total["lost"] += ratio < 0.97
            if floor > FLOOR_COUNTS_FROM:
                total["floor"].append(ours["time_ms"]["median"] / floor)
            rows.append([*row, f"{ms(ours['time_ms'], False)} ({ours['family']})",
                         f"{ms(vendor['time_ms'], False)} ({vendor['name']}, {vendor['route'].split(',')[0]})", f"{'' if paired else '~'}{ratio:.2f}x"])
        else:
            rows.append([*row, f"{ms(ours['time_ms'], False)} ({ours['family']})" if ours else "nothing valid", "none", "-"])
    means = [[name, str(len(t["ratio"])), mean(t["ratio"]) + "x", f"{min(t['ratio']):.2f}x", str(t["lost"]),
              f"{mean(t['floor'])} ({len(t['floor'])} layers)"] for name, t in sums.items()]
    return (table(["class", "layers", "best vendor over ours, geometric mean", "worst", "slower than the vendor by more than 3 %",
                   "ours over the floor, geometric mean, floors above 10 us"], means)
            + "\n" + table(["layer", "shape", "class", "floor ms", "ours ms", "best vendor ms", "ratio"], rows))


BLOCKS = {"summary": summary_table, "variants": variants_table, "routes": routes_table, "counts": counts_table,
          "layers": layers_table}


def shown(details):
    """Of what follows the table: the conditions of what carries a warning, then what closes the report."""
    groups = []  # a title, or a closing line, with the lines under it
    for line in details:
        if line.startswith("  "):
            groups[-1].append(line)
        else:
            groups.append([line])
    kept = ["..."]
    for title, *lines in groups:
        if any(line.startswith("  warning: ") for line in lines):
            kept += [title, *(line for line in lines if line.startswith(("  warning: ", "  during the run-off: ", "  measured again ")))]
        elif not lines:
            kept.append(title)
    return [line for line in kept if not line.startswith("[?]") or any("[?]" in other for other in kept if other is not line)]


def report_block(tuner, path):
    """`tuner report` without routes and outcomes, each line whole."""
    done = subprocess.run([tuner, "report", path], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Fault(f"tuner report {path}: exit {done.returncode}: {done.stderr.strip()}")
    machine, grid, details = done.stdout.split("\n\n", 2)
    return f"```\n$ tuner report {path}\n{machine}\n\n{grid}\n" + "\n".join(shown(details.splitlines())) + "\n```\n"


def block_text(name, path, tuner):
    if not (ROOT / path).is_file():
        raise Fault(f"{path} is missing: the documents' figures come from it")
    if name == "report":
        return report_block(tuner, path)
    if name not in BLOCKS:
        raise Fault(f"no block is called {name}: there are report, {', '.join(BLOCKS)}")
    raw = (ROOT / path).read_bytes()
    result = json.loads(gzip.decompress(raw) if path.endswith(".gz") else raw)
    return BLOCKS[name](result)


def regenerated(document, tuner):
    """The document as it is and as it should be, and what could not be made; such blocks stay as they are."""
    text = (ROOT / document).read_text(encoding="utf-8")
    faults = []
    count = len(BLOCK.findall(text))
    if count < LEAST_BLOCKS[document]:
        faults.append(f"{count} generated blocks, at least {LEAST_BLOCKS[document]} expected")

    def renew(match):
        try:
            return match["begin"] + block_text(match["name"], match["result"], tuner) + match["end"]
        except Fault as fault:
            faults.append(f"{match['name']}: {fault}")
            return match[0]

    return text, BLOCK.sub(renew, text), faults


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--tuner", required=True, help="the program")
    arguments.add_argument("--update", action="store_true", help="write the documents instead of comparing them")
    options = arguments.parse_args()
    tuner = str(pathlib.Path(options.tuner).resolve())
    wrong = False
    for document in DOCUMENTS:
        before, after, faults = regenerated(document, tuner)
        for fault in faults:
            print(f"{document}: {fault}")
        wrong = wrong or bool(faults)
        if before == after:
            continue
        if options.update:
            (ROOT / document).write_text(after, encoding="utf-8")
            print(f"{document}: written")
        else:
            wrong = True
            print("".join(difflib.unified_diff(before.splitlines(True), after.splitlines(True), document, "from results/")))
            print(f"{document} differs from results/: python3 tests/docs/tables.py --tuner {options.tuner} --update")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
