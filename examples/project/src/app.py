"""Greets whoever is named on the command line."""

import sys

from greet import greeting

for name in sys.argv[1:] or ["world"]:
    print(greeting(name))
