"""How many draws a result in bits needs: from a pilot run and a target half-width to a plan.

A pilot is summarised by its survival curve: everything `ibs` does with a cap of M draws (bias,
variance, cost) is a sum over that curve, so every cap up to the pilot's own is judged at once.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta, norm

from ganlm.estimators import LN2, NEVER_HIT, Array, harmonic_number


@dataclass(frozen=True)
class Pilot:
    """What a pilot run says about positions like its own, for every cap up to its own.

    `survival[j]` is the mean of (1-p)^j, the fraction of positions not hit in j draws, for
    j = 0, ..., cap. `beyond` is the mean of Σ_{j>cap} (1-p)^j / j nats as far as it is known, and
    `beyond_bound` an upper bound on it. `sample` is the number of positions behind the survival,
    infinite where they are all there are.
    """

    survival: Array
    beyond: float
    beyond_bound: float
    sample: float


def pilot_from_probabilities(p: ArrayLike, cap: int, sample: float = math.inf) -> Pilot:
    """Pilot of an explicit model, from p at the positions to evaluate, or at a `sample` of them.

    What lies beyond the cap is known too: infinite if some p is 0. A sample's noise is taken to be that of
    first hits at as many positions, which is more than that of the positions alone.
    """
    p = np.asarray(p, dtype=float)
    survival = np.empty(cap + 1)
    missed = np.ones_like(p)
    for j in range(cap + 1):
        survival[j] = missed.mean()
        missed *= 1 - p
    with np.errstate(divide="ignore"):
        nats = -np.log(p).mean()
    beyond = max(nats - (survival[1:] / np.arange(1, cap + 1)).sum(), 0.0)
    return Pilot(survival, beyond, beyond, sample)


def pilot_from_first_hits(
    first_hits: ArrayLike, cap: int, floor: float = 0.0, confidence: float = 0.95
) -> Pilot:
    """Pilot of a sampled model from the first hits of `ibs` with that cap.

    What lies beyond the cap was not seen and counts as 0. If every p is at least `floor` (weight /
    |V| for a smoothed generator) it is at most u Σ_{j>cap} (1-floor)^(j-cap) / j
    <= u ln(1 + 1/(cap floor)), with u the upper confidence limit (Clopper-Pearson) of the fraction
    of positions never hit; with no floor there is no bound.
    """
    hits = np.asarray(first_hits)
    never = int((hits == NEVER_HIT).sum())
    hit_at = np.bincount(hits[hits != NEVER_HIT], minlength=cap + 1)
    if hit_at.size > cap + 1:
        raise ValueError(f"a first hit at draw {hit_at.size - 1} exceeds the pilot's cap of {cap}.")
    survival = 1 - hit_at.cumsum() / hits.size
    unhit = beta.ppf(confidence, never + 1, hits.size - never) if never < hits.size else 1.0
    bound = unhit * math.log1p(1 / (cap * floor)) if floor > 0 else math.inf
    return Pilot(survival, 0.0, bound, hits.size)


@dataclass(frozen=True)
class Plan:
    """Capped `ibs` for a target half-width: average `runs` runs per position, each up to `cap`.

    With z the normal quantile, `half_width` is |expected bias| + z bias_se + z √(monte_carlo_se² +
    text_se²); `bias_se` is the pilot's own noise. `bias_bound_bits` also covers what the pilot
    could not see. `positions_for_text` is how many positions the text's own noise asks for, however
    many draws are made. If the target is out of reach, the plan is one run at the pilot's cap.
    """

    feasible: bool
    positions: int
    cap: int
    runs: int
    draws_per_token: float
    expected_bias_bits: float
    bias_se: float
    bias_bound_bits: float
    monte_carlo_se: float
    text_se: float
    half_width: float
    positions_for_text: int


def plan(
    pilot: Pilot,
    half_width: float,
    positions: int,
    block_variance: float = 0.0,
    block_length: int = 1,
    confidence: float = 0.95,
) -> Plan:
    """The cap and number of runs of `ibs` that reach the half-width (bits) with the fewest draws.

    With s_j the survival, a run capped at M makes Σ_{j<M} s_j draws and has a variance of at most
    Σ_{1<=j<M} s_j / j² nats². `block_variance` is the variance of the means of blocks of
    `block_length` positions, without Monte-Carlo noise.
    """
    z = norm.isf((1 - confidence) / 2)
    text_variance = block_variance * block_length
    j = np.arange(1, pilot.survival.size)
    lost, bias_se = _truncation(pilot)
    bias = lost + pilot.beyond / LN2
    draws = pilot.survival[:-1].cumsum()
    variance = np.concatenate([[0.0], (pilot.survival[1:-1] / j[:-1] ** 2).cumsum()]) / LN2**2
    room = np.maximum(half_width - bias - z * bias_se, 0)
    allowed = (room / z) ** 2 * positions - text_variance
    possible = allowed > 0
    runs = np.ones(j.size)
    runs[possible] = np.maximum(np.ceil(variance[possible] / allowed[possible]), 1)
    best = np.where(possible, runs * draws, np.inf).argmin() if possible.any() else j.size - 1
    error = math.sqrt((variance[best] / runs[best] + text_variance) / positions)
    return Plan(
        feasible=bool(possible.any()),
        positions=positions,
        cap=int(j[best]),
        runs=int(runs[best]),
        draws_per_token=float(runs[best] * draws[best]),
        expected_bias_bits=-float(bias[best]),
        bias_se=float(bias_se[best]),
        bias_bound_bits=-float(lost[best] + pilot.beyond_bound / LN2),
        monte_carlo_se=math.sqrt(variance[best] / runs[best] / positions),
        text_se=math.sqrt(text_variance / positions),
        half_width=float(bias[best] + z * bias_se[best] + z * error),
        positions_for_text=math.ceil(text_variance * (z / half_width) ** 2),
    )


def _truncation(pilot: Pilot) -> tuple[Array, Array]:
    """Bits lost up to the pilot's cap, Σ_{M<=j<=cap} s_j / j, for every M, and the standard error.

    A first hit K > M contributes L = H_{min(K-1, cap)} - H_{M-1}, and
    E L² = Σ_{j>=M} s_j (2 (H_j - H_{M-1}) / j - 1/j²).
    """
    j = np.arange(1, pilot.survival.size)
    terms = pilot.survival[1:] / j
    harmonic = harmonic_number(j)

    def from_here_on(x: Array) -> Array:
        return x[::-1].cumsum()[::-1]

    lost = from_here_on(terms)
    square = from_here_on(terms * (2 * harmonic - 1 / j)) - 2 * (harmonic - 1 / j) * lost
    return lost / LN2, np.sqrt(np.maximum(square - lost**2, 0) / pilot.sample) / LN2
