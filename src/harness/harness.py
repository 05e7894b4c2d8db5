# SPDX-License-Identifier: Apache-2.0
"""Calls solution(input) of candidate.py and prints what it gave, as JSON; argv[1]: output, input or both."""

import json
import os
import sys

# Standard output is for the answer alone: what the candidate prints goes to standard error.
answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)

value = json.load(sys.stdin)
sys.path.insert(0, os.getcwd())
import candidate  # noqa: E402 # its top level must not see the answer's stream as standard output

output = candidate.solution(value)
wanted = {"output": {"output": output}, "input": {"input": value}, "both": {"output": output, "input": value}}
answer.write(json.dumps(wanted[sys.argv[1]], allow_nan=False) + "\n")
answer.close()
