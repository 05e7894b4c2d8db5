# SPDX-License-Identifier: Apache-2.0
"""What was measured: kept by group, printed as tables, written as JSON. Knows the targets."""

import json
import os
import time

import measure
import stats

# What must be reached, at most. Ratios, but for memory.
TARGETS = {
    "cold": ("one job, cold, over systemd-run with the same sandbox", 1.10),
    "warm": ("warm, one job after the other, over cold", 0.35),
    "warm-bubblewrap": ("warm, over bubblewrap's cold start", 2.0),
    "files-size": ("100,000-file workspace over 1,000-file workspace", 1.2),
    "files-snapshots": ("100,000-file workspace over two SHA-256 snapshots of it", 0.02),
    "output": ("1 GiB of output, over sha256sum alone", 1.5),
    "build": ("a real build inside a job over the same outside", 1.10),
    "memory": ("qscope's peak memory in a 10,000-job batch at -j 4, over 32 MiB", 1.0),
}


class Group:
    """What one group has measured."""

    def __init__(self, name, summary):
        self.name = name
        self.summary = summary
        self.tables = []
        self.figures = []
        self.notes = []
        self.facts = {}
        self.error = None

    def table(self, title, samples, base):
        """samples: {name: values in seconds}; each is compared with base."""
        rows = {}
        for name, values in samples.items():
            first, third = stats.quartiles(values)
            rows[name] = {"values": values, "median": stats.median(values), "quartiles": [first, third],
                          "ratio": stats.ratio(values, samples[base])._asdict()}
        self.tables.append({"title": title, "base": base, "rows": rows})

    def figure(self, key, what, values, over):
        """A ratio that says something by itself; with a key of TARGETS one that must be reached."""
        found = stats.ratio(values, over)
        self._add(key, what, found)

    def plain_figure(self, key, what, value):
        """One that is no ratio of samples."""
        self._add(key, what, stats.Ratio(value, None, None))

    def _add(self, key, what, found):
        target = TARGETS.get(key)
        self.figures.append({"key": key, "what": what, **found._asdict(), "at_most": target and target[1],
                             "reached": target and found.value <= target[1]})

    def note(self, sentence):
        self.notes.append(sentence)

    def to_json(self):
        return {"summary": self.summary, "tables": self.tables, "figures": self.figures, "notes": self.notes,
                "facts": self.facts, "error": self.error}


# --- the host ---------------------------------------------------------------------------


def host_facts():
    first = measure.output_of("systemctl", "--version").splitlines() or [""]
    model = [line.split(":", 1)[1].strip() for line in measure.read("/proc/cpuinfo").splitlines()
             if line.startswith("model name")]
    return {
        "kernel": os.uname().release,
        "machine": os.uname().machine,
        "systemd": first[0],
        "qscope": measure.output_of("qscope", "--version"),
        "bubblewrap": measure.output_of("bwrap", "--version"),
        "cpus": len(os.sched_getaffinity(0)),
        "cpu": model[0] if model else None,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "virtualization": measure.output_of("systemd-detect-virt"),
        "controllers": measure.read("/sys/fs/cgroup/cgroup.controllers").split(),
    }


def moment():
    return {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "load": list(os.getloadavg())}


# --- as text ----------------------------------------------------------------------------


def interval(row):
    return "" if row["low"] is None else f"{row['low']:.2f}–{row['high']:.2f}"


def number(value):
    return f"{value:.4f}" if value < 0.1 else f"{value:.2f}"


def print_group(group):
    print(f"\n== {group.name}: {group.summary}")
    for table in group.tables:
        print_table(table)
    for figure in group.figures:
        bounds = f"  ({interval(figure)})" if figure["low"] is not None else ""
        print(f"  {figure['what']}: {number(figure['value'])}{bounds}")
    for sentence in group.notes:
        print(f"  - {sentence}")
    if group.error:
        print(f"  ! not measured to the end: {group.error}")


def print_table(table):
    width = max(len(name) for name in table["rows"])
    print(f"  {table['title']}; over {table['base']}")
    print(f"    {'':{width}}  {'ratio':>8}  {'95%':^13}  {'quartiles':^15}  samples")
    for name, row in table["rows"].items():
        middle = row["median"]
        first, third = (100 * (value / middle - 1) for value in row["quartiles"])
        print(f"    {name:{width}}  {number(row['ratio']['value']):>8}  {'' if name == table['base'] else interval(row['ratio']):^13}"
              f"  {f'{first:+.0f}% to {third:+.0f}%':^15}  {len(row['values'])}")


def print_targets(groups):
    rows = [figure for group in groups for figure in group.figures if figure["at_most"] is not None]
    if not rows:
        return
    width = max(len(TARGETS[figure["key"]][0]) for figure in rows)
    print("\n== what must be reached")
    print(f"    {'':{width}}  {'at most':>8}  {'measured':>8}  {'95%':^13}  reached")
    for figure in rows:
        print(f"    {TARGETS[figure['key']][0]:{width}}  {figure['at_most']:>8}  {number(figure['value']):>8}"
              f"  {interval(figure):^13}  {'yes' if figure['reached'] else 'no'}")


def write_json(path, content):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.write("\n")
