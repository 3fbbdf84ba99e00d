"""What a config's models stand for: one row per arm, and of each trained row one network per seed."""

from collections.abc import Sequence

ARCHITECTURE = ("embedding", "hidden", "layers", "dropout")
SEEDED_KINDS = ("lstm", "seqgan", "recurrent_gan")
ONE_SEED = (1,)
# How the published code trains SeqGAN. An arm with other settings is a control: the paper never ran it.
PUBLISHED = {
    "shuffle": False,
    "rollout_lag": 0,
    "sampling_dropout": True,
    "loss": "sum",
    "reward": "discriminator",
    "baseline": False,
    "learning_rate": 0.01,
    "adam": "tensorflow",
}


def expanded(models: dict, seeds: Sequence[int] = ONE_SEED) -> dict:
    """The models as rows, one that has arms as `<name>-<arm>`, each trained one with every seed.

    What the paper published is set beside arms that do what its code did, and beside no other.
    An arm knows the architecture of the language model it starts from; a curriculum knows what it keeps. With
    several seeds a trained row becomes `<row>-s<seed>`, and starts from its language model with that seed.
    """
    return {
        name: _with_seed(block, seed, seeds)
        for row, block in _rows(models).items()
        for name, seed in _names(row, block, seeds)
    }


def instances_by_row(models: dict, seeds: Sequence[int]) -> dict[str, list[str]]:
    """Row -> the names of its seeds, or its own."""
    return {row: [name for name, _ in _names(row, block, seeds)] for row, block in _rows(models).items()}


def seeded(row: str, seeds: Sequence[int]) -> list[str]:
    """The names of a trained row; a single seed changes none."""
    return [f"{row}-s{seed}" for seed in seeds] if len(seeds) > 1 else [row]


def kept_lengths(block: dict) -> list[int]:
    """In the order of the curriculum; its end is always kept."""
    lengths, keep = block["training"]["lengths"], block["training"]["keep"]
    return [length for length in lengths if keep is None or length in keep or length == lengths[-1]]


def trains_as_published(block: dict) -> bool:
    """Whether an arm does what the published code did; how long and how large is another matter."""
    return PUBLISHED.items() <= block["training"].items()


def _names(row: str, block: dict, seeds: Sequence[int]) -> list[tuple[str, int]]:
    if block["kind"] not in SEEDED_KINDS:
        return [(row, 1)]
    return list(zip(seeded(row, seeds), seeds, strict=True))


def _with_seed(block: dict, seed: int, seeds: Sequence[int]) -> dict:
    """`training.seed` is the base: seed 1 is the base itself, seed 2 the number after it."""
    if block["kind"] not in SEEDED_KINDS:
        return block
    made = block | {"training": block["training"] | {"seed": block["training"]["seed"] + seed - 1}}
    if "start" in block and len(seeds) > 1:
        made["start"] = f"{block['start']}-s{seed}"
    return made


def _rows(models: dict) -> dict[str, dict]:
    rows = {}
    for name, block in models.items():
        match block["kind"]:
            case "recurrent_gan":
                rows[name] = block | {"training": block["training"] | {"keep": kept_lengths(block)}}
            case "seqgan":
                start = models[block["start"]]
                shared = {key: value for key, value in block.items() if key != "arms"}
                shared |= {"architecture": {key: start[key] for key in ARCHITECTURE}}
                for arm, changes in block["arms"].items():
                    made = shared | {"training": block["training"] | changes}
                    rows[f"{name}-{arm}"] = made if trains_as_published(made) else made | {"paper": None}
            case _:
                rows[name] = block
    return rows
