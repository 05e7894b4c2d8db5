# SPDX-License-Identifier: Apache-2.0
"""What changed in a workspace: ten changes in few files and in many, beside two SHA-256 snapshots of the tree."""

import os

import rivals
from measure import timed

NAME = "files"
SUMMARY = "ten changes in workspaces of different sizes"

SIZES = (1_000, 10_000, 100_000)
QUICK_SIZES = (1_000, 3_000)
IN_A_DIRECTORY = 100
FILE_BYTES = 2048
CHANGES = 10
SCRIPT = 'for n in 0 1 2 3 4 5 6 7 8 9; do echo "$1" >directory-000$n/file-00; done'


def make_tree(top, count):
    for number in range(count):
        directory, name = divmod(number, IN_A_DIRECTORY)
        path = f"{top}/directory-{directory:04}"
        if name == 0:
            os.mkdir(path)
        with open(f"{path}/file-{name:02}", "w", encoding="ascii") as file:
            file.write(f"{number:>15}\n" * (FILE_BYTES // 16))


def snapshots(top, cwd):
    """A snapshot, the changes, a snapshot, the comparison: each a process of its own, as one does it by hand. Other
    bytes each time, since here the changes stay."""
    helper = f"python3 {rivals.HERE}/snapshot.py"
    script = (f'{helper} take {cwd} {top}/before && sh -c "$1" sh "$$-$(date +%N)" && {helper} take {cwd} {top}/after'
              f" && {helper} compare {top}/before {top}/after {CHANGES}")
    return ["sh", "-c", script, "sh", SCRIPT]


def measure(bench, group):
    sizes = QUICK_SIZES if bench.quick else SIZES
    all_of, diffs = {}, {}
    for size in sizes:
        cwd = bench.directory(f"files-{size}")
        make_tree(cwd, size)
        bench.give(cwd)
        top = bench.directory(f"files-of-{size}")
        job = rivals.Job(top, ["sh", "-c", SCRIPT, "sh", "by the job"], cwd)
        diffs[size] = []
        all_of[f"qscope run, {size:,} files"] = rivals.qscope(job, look_at(diffs[size]))
        all_of[f"two snapshots, {size:,} files"] = timed(snapshots(top, cwd), cwd=cwd)
    few, many = sizes[0], sizes[-1]
    samples = bench.interleave(all_of, 12)
    group.table("time of the whole run", samples, f"qscope run, {few:,} files")
    largest = samples[f"qscope run, {many:,} files"]
    group.figure(None if bench.quick else "files-size", f"qscope run, {many:,} files over {few:,}", largest,
                 samples[f"qscope run, {few:,} files"])
    group.figure(None if bench.quick else "files-snapshots", f"qscope run over two snapshots, {many:,} files", largest,
                 samples[f"two snapshots, {many:,} files"])
    group.figure(None, f"looking for changes alone (timing.diff), {many:,} files over {few:,}", diffs[many], diffs[few])
    group.figure(None, f"looking for changes alone over two snapshots, {many:,} files",
                 [value / 1000 for value in diffs[many]], samples[f"two snapshots, {many:,} files"])
    group.note(f"files of {FILE_BYTES} bytes, {IN_A_DIRECTORY} in a directory, all of them in the page cache")


def look_at(diffs):
    def look(receipt):
        found = len(receipt["fs"]["changed"])
        if found != CHANGES:
            raise rivals.Broken(f"{found} changes were found, not {CHANGES}")
        diffs.append(receipt["timing"]["diff"])

    return look
