"""What every model cost: parameters, training text, time, draws.

Times differ from run to run, so what is made of this belongs to the other timings, not to the results.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pandas as pd

from ganlm.summary import BEST_FIRST

TRAINED = ("ngram", "lstm", "seqgan", "recurrent_gan")
MISSING, NONE, OWN = "missing", "none", "its own"
DEVICES = {"cpu": "CPU", "cuda": "GPU"}


@dataclass(frozen=True)
class Records:
    """What is left of a run, by model, as far as it is there.

    Attributes:
        sidecars: what training said about its weights.
        histories: one row per recorded step, or epoch, of training.
        rates: the seconds of each of these.
        times: Snakemake's benchmarks of all jobs that measured a model.
        summaries: results of evaluation.

    """

    sidecars: Mapping[str, dict] = field(default_factory=dict)
    histories: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    rates: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    times: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    summaries: Mapping[str, dict] = field(default_factory=dict)


def cost(kinds: Mapping[str, str], records: Records) -> pd.DataFrame:
    """One row per model, given its kind; what should be there and is not is said to be missing."""
    return pd.DataFrame(
        {
            "Model": model,
            "Parameters": _by_kind(kind, _parameters, model, records),
            "Training tokens": _by_kind(kind, _training_tokens, model, records),
            "Training time": _by_kind(kind, _training_time, model, records),
            "Evaluation time": _evaluation_time(model, records),
            "Draws per token": _draws(model, records),
            "Trained on": _by_kind(kind, _device, model, records),
        }
        for model, kind in kinds.items()
    )


def _by_kind(kind: str, find: Callable[[str, Records], str | None], model: str, records: Records) -> str:
    """What training left; a uniform distribution has none, and that of own generators is not known here."""
    if kind not in TRAINED:
        return NONE if kind == "uniform" else OWN
    return find(model, records) or MISSING


def _parameters(model: str, records: Records) -> str | None:
    """Of the generator alone; SeqGAN's is the network it starts from. An n-gram model has its counts."""
    sidecar = records.sidecars.get(model, {})
    if "distinct_ngrams" in sidecar:
        return f"{sum(sidecar['distinct_ngrams']):,}"
    start = sidecar.get("parameters", {}).get("start")
    size = sidecar.get("size", records.sidecars.get(start, {}).get("size"))
    return None if size is None else f"{size:,}"


def _training_tokens(model: str, records: Records) -> str | None:
    """What the updates read, real or generated, repetitions included."""
    if "training_tokens" in (sidecar := records.sidecars.get(model, {})):
        return f"{sidecar['training_tokens']:,}"
    if model not in records.histories:
        return None
    history = records.histories[model]
    return f"{(history['tokens'] * steps(history)).sum():,}"


def steps(history: pd.DataFrame) -> pd.Series:
    """How many steps each record stands for: those since the one before; without numbers, one."""
    if "step" not in history:
        return pd.Series(1, index=history.index)
    return history["step"].diff().fillna(history["step"] + 1).astype(int)


def _training_time(model: str, records: Records) -> str | None:
    """Steps that were not timed take as long as the median of those of their epoch that were."""
    if model not in records.rates:
        return None
    seconds, history = records.rates[model]["seconds"], records.histories.get(model)
    stands_for = steps(seconds.to_frame() if history is None else history)
    if (stands_for == 1).all():
        return duration(seconds.sum())
    typical = seconds.groupby(history["epoch"]).transform("median")
    return f"≈ {duration((typical * stands_for).sum())}"


def _evaluation_time(model: str, records: Records) -> str:
    """Of all jobs: without a summary, some of them have not run."""
    done = model in records.times and model in records.summaries
    return duration(records.times[model]["s"].sum()) if done else MISSING


def _draws(model: str, records: Records) -> str:
    """Of the estimate that tables show first."""
    results = records.summaries.get(model, {"results": []})["results"]
    for estimator in BEST_FIRST:
        for result in results:
            if (result["estimand"], result["estimator"]) == ("sample", estimator):
                return f"{result['draws_per_token']:,.0f} ({estimator})"
    return MISSING


def _device(model: str, records: Records) -> str | None:
    """What a network's sidecar names; counting runs on the CPU."""
    if model not in records.sidecars:
        return None
    return DEVICES[records.sidecars[model].get("device", "cpu")]


def duration(seconds: float) -> str:
    """Seconds with two digits, or hours, minutes and seconds."""
    if seconds < 59.5:
        return f"{seconds:.2g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
