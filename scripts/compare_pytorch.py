#!/usr/bin/env python3
"""PyTorch's ways to compute the problems of a run, in one sitting on one GPU, beside our best variant and the vendor routes.

    compare_pytorch.py RESULT [-o FILE] [--tuner BIN]     problems of a result.json; our best is timed too
    compare_pytorch.py CONFIG [-o FILE]                   problems of a config: PyTorch alone
    compare_pytorch.py --show FILE                        the table of an earlier -o

Every round launches each of PyTorch's ways and our best cubin (from `tuner inspect`) once, in an order that rotates, L2
flushed before each outside of what is timed, a pause of four times the round's length (0.1 s at most) after it. --vendors
runs `tuner` on the same problems first, with a budget of one evaluation each: the vendor routes are then timed in the same
job on the same GPU, by another process. Without it they are those of RESULT, of another sitting.

Exit codes: 0 done, 1 --fail-slower was not met, 2 wrong usage or file, 3 no PyTorch or no GPU.
"""

import argparse
import datetime
import hashlib
import json
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from pytorch_table import against_pytorch, interval, table  # noqa: E402

PROBLEM_DEFAULTS = {"batch": 1, "stride": 1, "padding": 0, "output_padding": 0, "dilation": 1, "groups": 1, "bias": False}
CLASSES = ["fp32", "tf32", "fp16", "bf16"]
WARM_UP = 50  # launches at most until three agree with the three before within 2 %


class Fault(Exception):
    """What is wrong, in a line, and the exit code."""

    def __init__(self, code, text):
        super().__init__(" ".join(text.split()))
        self.code = code


# Files


def read(path):
    try:
        document = json.loads(path.read_text())
    except OSError as error:
        raise Fault(2, f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise Fault(2, f"{path}: not JSON: {error}") from error
    if not isinstance(document, dict):
        raise Fault(2, f"{path}: neither a result nor a config")
    return document


def whole_problem(path, entry):
    known = {"name", "in_channels", "out_channels", "kernel_size", "length", *PROBLEM_DEFAULTS}
    problem = PROBLEM_DEFAULTS | {key: value for key, value in entry.items() if key in known - {"name"}}
    for key in ("in_channels", "out_channels", "kernel_size", "length"):
        if not isinstance(problem.get(key), int):
            raise Fault(2, f"{path}: a problem lacks {key}")
    return problem


def jobs_of(path, document):
    """[(name, problem, class, class record of a result or None)]"""
    jobs = []
    if "measured" in document:
        for problem in document.get("problems", []):
            whole = whole_problem(path, problem.get("problem", {}))
            jobs += [(problem["name"], whole, record["class"], record) for record in problem["classes"]]
    else:
        entries = [(entry.get("name", "problem"), entry) for entry in document.get("problems", [])]
        for workloads in document.get("workloads", []):
            file = path.parent / workloads
            entries += [(entry["name"], entry["problem"]) for entry in read(file).get("workloads", [])]
        for name, entry in entries:
            jobs += [(name, whole_problem(path, entry), accuracy, None) for accuracy in document.get("classes", ["fp32"])]
    if not jobs:
        raise Fault(2, f"{path}: neither a result nor a config: no problems")
    return jobs


def fastest_variant(record):
    timed = [v for v in record["variants"] if v["outcome"] == "ok" and v.get("time_ms")] if record else []
    return min(timed, key=lambda v: v["time_ms"]["median"], default=None)


def vendor_rows(record, how):
    rows = []
    for route in record["baselines"] if record else []:
        if not route.get("time_ms") or route["outcome"] != "ok":
            continue
        if not (route.get("best_of_its_name") or route.get("not_comparable")):
            continue
        row = {"kind": "vendor", "name": f"{route['name']}: {route['route']}", "library": route["name"], "how": how}
        row |= {key: route["time_ms"][key] for key in ("median", "low", "high")}
        row |= {"engine": " ".join([route["engine"], route["knobs"]]).strip(), "comparable": not route.get("not_comparable", False)}
        rows.append(row)
    notes = [row for row in rows if not row["comparable"]]
    return [row for row in rows if row["comparable"]] + sorted(notes, key=lambda row: row["median"])[:1]


# Timing


def tuner_of(options):
    beside = pathlib.Path(__file__).resolve().parents[1] / "build/release/bin/tuner"
    found = options.tuner or shutil.which("tuner") or (str(beside) if beside.exists() else None)
    if not found:
        raise Fault(3, "tuner is not on PATH: give --tuner BIN, or --no-ours to time PyTorch alone")
    return found


def run_tuner(command):
    try:
        ended = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise Fault(3, f"{command[0]}: {error.strerror}") from error
    if ended.returncode != 0:
        raise Fault(3, f"{' '.join(map(str, command[:2]))} ended with {ended.returncode}: {(ended.stderr or ended.stdout).strip()}")


def our_cubin(torch, options, document, job, variant, tensors, folder):
    """Our variant on the same tensors: `tuner inspect` of a result that holds this problem and class alone."""
    from cubin_launch import Cubin

    name, _, accuracy, record = job
    problem = next(p for p in document["problems"] if p["name"] == name)
    alone = document | {"problems": [problem | {"classes": [record]}]}
    (folder / "result.json").write_text(json.dumps(alone))
    run_tuner([tuner_of(options), "inspect", str(folder / "result.json"), variant["id"], "-o", str(folder / "variant")])
    cubin = Cubin(folder / "variant", {key: value for key, value in tensors.items() if value is not None}, torch)
    cubin.launch("prepare")
    return cubin


def vendors_here(options, document, jobs, folder):
    """Class records of a run of `tuner` in this job, by problem and class."""
    problems = {name: problem for name, problem, _, _ in jobs}
    config = {"name": "vendors", "problems": [{"name": name} | problem for name, problem in problems.items()]}
    config["classes"] = [accuracy for accuracy in CLASSES if any(job[2] == accuracy for job in jobs)]
    given = document.get("config", document)
    config |= {key: given[key] for key in ("families", "measure", "baselines", "baseline_options") if key in given}
    pairs = len(problems) * len(config["classes"])
    config["search"] = {"budget": {"evaluations": pairs}}
    (folder / "vendors.json").write_text(json.dumps(config))
    run_tuner([tuner_of(options), "--config", str(folder / "vendors.json"), "--out", str(folder / "out"), "--quiet"])
    result = read(folder / "out" / "vendors" / "result.json")
    return {(p["name"], record["class"]): record for p in result["problems"] for record in p["classes"]}


class Clock:
    """Times launches as `tuner` does: cold L2, events, warm-up, pauses."""

    def __init__(self, torch, flags):
        self.torch, self.flags = torch, flags
        size = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 0)
        self.flush = torch.zeros(max(2 * size, 64 << 20), dtype=torch.uint8, device="cuda")

    def once(self, way):
        """Start and stop events, and y."""
        self.flags.set(way)
        self.flush.zero_()
        start, stop = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        y = way.call()
        stop.record()
        return start, stop, y if way.y is None else way.y

    def warm_up(self, way):
        """Launches until their times settle; the last y."""
        taken, y = [], None
        while len(taken) < WARM_UP:
            del y  # its memory is the next call's
            start, stop, y = self.once(way)
            self.torch.cuda.synchronize()
            taken.append(start.elapsed_time(stop))
            before, now = sum(taken[-6:-3]), sum(taken[-3:])
            if len(taken) >= 6 and abs(now - before) <= 0.02 * before:
                break
        return y

    def rounds(self, ways, count):
        """samples[i][r]: ways[i] in round r, ms."""
        samples = [[] for _ in ways]
        for r in range(count):
            began = time.monotonic()
            order = [(i + r) % len(ways) for i in range(len(ways))]
            self.once(ways[order[0]])  # the first launch after a pause is not counted
            taken = [(i, self.once(ways[i])[:2]) for i in order]
            self.torch.cuda.synchronize()
            for i, (start, stop) in taken:
                samples[i].append(start.elapsed_time(stop))
            time.sleep(min(0.1, 4 * (time.monotonic() - began)))
        return samples


def class_report(torch, options, document, job, vendor_record, how):
    import pytorch_modes as modes

    name, problem, accuracy, record = job
    flags = modes.Flags(torch)
    clock = Clock(torch, flags)
    tensors = modes.draw(torch, problem, accuracy)
    ways, missing = modes.ways_of(torch, flags, problem, accuracy, tensors)
    variant = None if options.no_ours else fastest_variant(record)
    with tempfile.TemporaryDirectory() as folder:
        if variant:
            cubin = our_cubin(torch, options, document, job, variant, tensors, pathlib.Path(folder))
            ways.append(modes.Way(variant["id"], cubin.launch, y=tensors["y"], library="ours"))
        reference = modes.reference_of(torch, problem, tensors)
        rows, right = [], []
        for way in ways:
            row = {"kind": "ours" if way.library == "ours" else "pytorch", "name": way.name, "how": "interleaved here"}
            row |= {"library": way.library, "comparable": way.comparable}
            row |= {"note": way.note} if way.note else {}
            try:
                if row["kind"] == "ours":
                    tensors["y"].fill_(float("nan"))
                row["error"] = modes.error_of(torch, reference, way.to_ncl(clock.warm_up(way)))
            except Exception as error:  # torch.compile raises types of its own
                missing.append((way.name, f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"))
                continue
            if row["error"] > modes.most_error(torch, reference, accuracy, way):
                row |= {"comparable": False, "note": f"error {row['error']:.2g}, not of class {accuracy}"}
            rows.append(row)
            right.append(way)
        time.sleep(0.5)
        for row, samples in zip(rows, clock.rounds(right, options.rounds)):
            row |= interval(samples) | {"samples": samples}
    rows += vendor_rows(vendor_record, how)
    return {"class": accuracy, "rows": rows, "missing": [{"name": n, "why": " ".join(w.split())} for n, w in missing]}


# Reporting


def provenance(torch, options, path):
    properties = torch.cuda.get_device_properties(0)
    smi = shutil.which("nvidia-smi")
    fields = "uuid,driver_version,power.limit,clocks.max.sm"
    facts = subprocess.run([smi, f"--query-gpu={fields}", "--format=csv,noheader", "-i", "0"], capture_output=True, text=True) if smi else None
    return {
        "taken": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": " ".join(sys.argv),
        "file": str(path),
        "file_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "host_python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "gpu": properties.name,
        "sm_count": properties.multi_processor_count,
        fields: facts.stdout.strip() if facts and facts.returncode == 0 else "unknown: no nvidia-smi",
        "protocol": {"l2": "cold", "regime": "burst", "rounds": options.rounds, "inputs": "normal, seed 1, the same for all ways"},
    }


def show(path):
    document = read(path)
    try:
        return table(document)
    except (KeyError, TypeError, AttributeError) as error:
        raise Fault(2, f"{path}: not written by this script: lacks {error}") from error


def measure(options):
    path = options.file
    document = read(path)
    jobs = jobs_of(path, document)
    for flag, at in (("problem", 0), ("accuracy", 2)):
        wanted = getattr(options, flag)
        jobs = [job for job in jobs if not wanted or job[at] in wanted]
    if not jobs:
        raise Fault(2, f"{path}: no such problem or class")
    try:
        import torch
    except ImportError as error:
        raise Fault(3, f"PyTorch is not available: {error}") from error
    if not torch.cuda.is_available():
        raise Fault(3, "PyTorch sees no CUDA GPU")
    torch.backends.cudnn.enabled = True
    report = {"schema_version": 1, "provenance": provenance(torch, options, path), "problems": []}
    here = {}
    if options.vendors:
        with tempfile.TemporaryDirectory() as folder:
            here = vendors_here(options, document, jobs, pathlib.Path(folder))
    how = "same job, another process" if options.vendors else "recorded, another sitting"
    for job in jobs:
        name, problem, accuracy, record = job
        print(f"{name} {accuracy}", file=sys.stderr, flush=True)
        entry = class_report(torch, options, document, job, here.get((name, accuracy), record), how)
        torch.cuda.empty_cache()
        if not report["problems"] or report["problems"][-1]["name"] != name:
            report["problems"].append({"name": name, "problem": problem, "classes": []})
        report["problems"][-1]["classes"].append(entry)
        if options.out:
            options.out.write_text(json.dumps(report, indent=1) + "\n")
    print(table(report))
    if options.fail_slower is None:
        return 0
    checks = [line for p in report["problems"] for entry in p["classes"] for line in against_pytorch(entry["rows"])]
    if not checks:
        raise Fault(1, "--fail-slower: no vendor route and PyTorch way of the same library to compare")
    return 1 if any(percent > options.fail_slower for _, _, _, percent in checks) else 0


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Fault(2, message)


def arguments(argv):
    parser = Parser(prog="compare_pytorch.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=pathlib.Path, metavar="RESULT|CONFIG")
    parser.add_argument("-o", "--out", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--show", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--tuner", metavar="BIN", help="default: on PATH, else build/release/bin/tuner")
    parser.add_argument("--no-ours", action="store_true", help="PyTorch alone, even of a RESULT")
    parser.add_argument("--vendors", action="store_true", help="time the vendor routes in this job too")
    parser.add_argument("--problem", action="append", metavar="NAME")
    parser.add_argument("--class", dest="accuracy", action="append", choices=CLASSES)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--fail-slower", type=float, metavar="PCT", help="exit 1 if a library's best route is slower than PyTorch's use of it")
    options = parser.parse_args(argv)
    if (options.file is None) == (options.show is None):
        raise Fault(2, "give a result or config, or --show FILE")
    if options.rounds < 2:
        raise Fault(2, "--rounds: at least 2")
    return options


def main(argv):
    try:
        options = arguments(argv)
        if options.show:
            print(show(options.show))
            return 0
        return measure(options)
    except Fault as fault:
        print(f"compare_pytorch.py: {fault}", file=sys.stderr)
        return fault.code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
