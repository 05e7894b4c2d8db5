# SPDX-License-Identifier: Apache-2.0
"""What is said about samples: median, quartiles, and the ratio of two medians with how sure it is.

Knows numbers only. `run --selftest` tries it.
"""

import random
import statistics
from typing import NamedTuple

RESAMPLES = 2000
CONFIDENCE = 0.95


class Ratio(NamedTuple):
    """Of two medians; low and high bound it with CONFIDENCE, or are None where there is one sample of each."""

    value: float
    low: float | None
    high: float | None


def median(values):
    return statistics.median(values)


def quartiles(values):
    """(first quartile, third quartile), both among the values or between two of them."""
    if len(values) < 2:
        return values[0], values[0]
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return first, third


def ratio(values, over):
    """The ratio of medians, with a bootstrap of the rounds. Samples of one round were measured beside each other
    and share what the machine did then, so rounds are drawn whole where both have the same number of them."""
    value = median(values) / median(over)
    if len(values) < 2 or len(over) < 2:
        return Ratio(value, None, None)
    chance = random.Random(1)  # the same samples give the same bounds
    found = sorted(_resampled(values, over, chance) for _ in range(RESAMPLES))
    tail = int(RESAMPLES * (1 - CONFIDENCE) / 2)
    return Ratio(value, found[tail], found[-1 - tail])


def _resampled(values, over, chance):
    rows = chance.choices(range(len(values)), k=len(values))
    others = rows if len(over) == len(values) else chance.choices(range(len(over)), k=len(over))
    return median([values[row] for row in rows]) / median([over[row] for row in others])


# --- selftest ---------------------------------------------------------------------------


def selftest():
    """Raises AssertionError where something is not as it must be."""
    assert median([3, 1, 2]) == 2 and median([4, 1]) == 2.5
    assert quartiles([1, 2, 3, 4, 5]) == (2, 4) and quartiles([7]) == (7, 7)
    assert ratio([2], [4]) == Ratio(0.5, None, None)
    steady = ratio([2.0] * 9, [1.0] * 9)
    assert steady == Ratio(2, 2, 2), steady
    _selftest_bounds()


def _selftest_bounds():
    """The bounds hold the true ratio about as often as they promise, and pairs cancel what both have."""
    chance = random.Random(2)
    inside = 0
    for _ in range(40):
        over = [chance.gauss(1, 0.05) for _ in range(15)]
        values = [chance.gauss(1.5, 0.05) for _ in range(15)]
        found = ratio(values, over)
        assert found.low <= found.value <= found.high, found
        inside += found.low <= 1.5 <= found.high
    assert inside >= 34, f"only {inside} of 40 intervals hold the truth"
    drift = [1 + number / 5 for number in range(15)]
    paired = ratio([1.5 * value for value in drift], drift)
    assert abs(paired.low - 1.5) < 1e-9 and abs(paired.high - 1.5) < 1e-9, paired
    assert ratio(drift, drift[:5]).high > 2, "samples of different number cannot be pairs"
