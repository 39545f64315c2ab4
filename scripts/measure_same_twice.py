#!/usr/bin/env python3
"""Times one variant against itself in many processes, and counts the intervals that claim a difference.

    measure_same_twice.py RESULT --tuner BIN [--class NAME] [--problem NAME] [--count 20] [--out DIR]

Each comparison is a process of its own: `tuner compare --live RESULT RESULT`, which loads the best variant's cubin under
two names and times both in interleaved rounds. A 95 % interval of the ratio that leaves out 1 is a false difference; at
most 3 of 20 may be, and no 99.9 % interval. DIR gets each comparison's JSON and summary.txt. Exit code 1 where more are.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time


def leaves_out_one(interval):
    low, high = interval["low"], interval["high"]
    return low is not None and high is not None and not low <= 1 <= high


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", type=pathlib.Path)
    parser.add_argument("--tuner", default="tuner")
    parser.add_argument("--class", dest="accuracy")
    parser.add_argument("--problem")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("same-twice"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    command = [options.tuner, "compare", "--live", str(options.result), str(options.result), "--fail-slower", "1000"]
    command += ["--class", options.accuracy] if options.accuracy else []
    command += ["--problem", options.problem] if options.problem else []
    lines, outside_95, outside_999, compared = [], 0, 0, 0
    for i in range(options.count):
        target = options.out / f"{i:02}.json"
        start = time.monotonic()
        ended = subprocess.run([*command, "--json", str(target)], capture_output=True, text=True)
        if ended.returncode != 0:
            sys.exit(f"comparison {i} ended with {ended.returncode}: {ended.stderr.strip() or ended.stdout.strip()}")
        for row in json.loads(target.read_text())["live"]:
            ratio, wide = row["ratio"], row["ratio_999"]
            compared += 1
            outside_95 += leaves_out_one(ratio)
            outside_999 += leaves_out_one(wide)
            mark = " outside 99.9 %" if leaves_out_one(wide) else " outside 95 %" if leaves_out_one(ratio) else ""
            lines.append(
                f"{i:2} {row['problem']} {row['class']} {row['regime']} ratio {ratio['median']:.6f} "
                f"[{ratio['low']:.6f}, {ratio['high']:.6f}] 99.9 % [{wide['low']:.6f}, {wide['high']:.6f}] "
                f"{len(row['base']['samples'])} rounds, {time.monotonic() - start:.1f} s{mark}"
            )
            print(lines[-1], flush=True)
    lines.append(f"{compared} comparisons: {outside_95} outside the 95 % interval, {outside_999} outside the 99.9 %")
    print(lines[-1])
    (options.out / "summary.txt").write_text("\n".join(lines) + "\n")
    return 0 if outside_95 <= 0.15 * compared and outside_999 == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
