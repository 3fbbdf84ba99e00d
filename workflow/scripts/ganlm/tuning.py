"""A grid of hyper-parameters: its points, and which of them validation prefers.

The test part has no say here: who looks at it while choosing reports a number that is too good.
"""

import itertools

FACTS = ("best_epoch", "best_validation_bpc", "size")


def points(grid: dict[str, list]) -> dict[str, dict]:
    """Name -> keys of every combination, the last key of the grid changing fastest.

    A name follows from keys and values alone: more values, or keys in another order, leave old names alone.
    """
    combinations = (dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values()))
    return {_name(keys): keys for keys in combinations}


def _name(keys: dict) -> str:
    return "-".join(f"{key}-{value}" for key, value in sorted(keys.items()))


def changed(block: dict, keys: dict) -> dict:
    """A model's block with `keys` replaced, each of them in `training` if it is known there."""
    training = {key: value for key, value in keys.items() if key in block["training"]}
    sizes = {key: value for key, value in keys.items() if key not in training}
    return block | sizes | {"training": block["training"] | training}


def row(point: str, keys: dict, sidecar: dict) -> dict:
    """What training found at a point, under the names of its sidecar."""
    return {"point": point} | keys | {fact: sidecar[fact] for fact in FACTS}


def decision(rows: list[dict]) -> dict:
    """The winner, the runner-up and how many bits are between them; a single point has no runner-up.

    Fewest bits on validation win; of equals the smaller model, then the one earlier in the grid.
    """
    winner, *others = sorted(rows, key=lambda row: (row["best_validation_bpc"], row["size"]))
    if not others:
        return {"winner": winner, "runner_up": None, "difference": None}
    difference = others[0]["best_validation_bpc"] - winner["best_validation_bpc"]
    return {"winner": winner, "runner_up": others[0], "difference": difference}
