# SPDX-License-Identifier: Apache-2.0
"""What helps who types: the manual pages, whose examples work as they are typed there, and completion."""

import glob
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import host
import lib
from lib import check, eq, test, workspace

GROUP = "manual"
PAGES = "/usr/share/man/man1/qscope*.1"

# Types the lines in turn, and prints those whose exit status is not what stands behind them (0 where nothing does),
# with what they said.
TYPIST = r"""
while IFS= read -r line; do
        want=0
        [[ ! $line =~ '# exit status '([0-9]+)$ ]] || want=${BASH_REMATCH[1]}
        eval "$line" >"$0" 2>&1 </dev/null && got=0 || got=$?
        ((got == want)) || { echo "$line: exit status $got" && cat "$0"; }
done
"""


def examples(page):
    """The lines of a page's EXAMPLES, as a reader sees them."""
    section = re.search(r'^\.SH EXAMPLES\n\.nf\n(.*?)^\.fi$', host.read(page), re.M | re.S)
    check(section, f"{page} has no examples")
    return section[1].replace("\\-", "-")


def for_this_bed(lines):
    """Without the controllers doctor finds something missing, and what the policy eval gives cannot be had."""
    if host.has_controllers():
        return lines
    return re.sub("^qscope doctor$", "qscope doctor  # exit status 1", lines, flags=re.M).replace(
        "qscope eval ", "qscope eval --policy default ")


def typed(page, top, log):
    typist = subprocess.run(["bash", "-c", TYPIST, log], input=for_this_bed(examples(page)), cwd=top, env=lib.CALLER,
                            capture_output=True, text=True, check=False)
    return typist.stdout + typist.stderr


@test(timeout=120)
def test_examples():
    """Whoever types the examples of a page sees what it says, with the exit status that it says."""
    pages = sorted(glob.glob(PAGES))
    check(len(pages) > 10, f"only these pages are installed: {pages}")
    with ThreadPoolExecutor(4) as people:
        for page, faults in zip(pages, people.map(typed, pages, [workspace(uid=0) for _ in pages],
                                                  [lib.scratch() for _ in pages])):
            eq(faults, "", page)


OFFERED = r"""
. /usr/share/bash-completion/completions/qscope
COMP_WORDS=(qscope "$@") COMP_CWORD=$#
_qscope 2>/dev/null
printf '%s\n' "${COMPREPLY[@]}"
"""


@test()
def test_completion():
    """The completion of bash knows the policies in force and the jobs that have receipts."""
    eq(lib.qscope("run", "--quiet", "--job-id", "completed-by", "--", "true", cwd=workspace()).status, 0, "exit status")
    for words, wanted in ((["run", "--policy", "str"], "strict"), (["policy", "show", "tru"], "trusted"),
                          (["log", "completed"], "completed-by")):
        said = subprocess.run(["bash", "-c", OFFERED, "bash", *words], env=lib.CALLER, capture_output=True, text=True,
                              check=True)
        eq(said.stdout.split(), [wanted], " ".join(words))
