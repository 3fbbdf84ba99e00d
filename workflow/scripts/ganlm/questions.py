"""Which results of a config speak for which claim of the paper: see `evidence.Questions`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ganlm.expansion import trains_as_published
from ganlm.protocol import Protocol

if TYPE_CHECKING:
    from ganlm.experiment import Experiment


def asked(experiment: "Experiment") -> dict:
    """Plain data, names of instances mostly.

    "Full adversarial training" is what the weights are that training ended with. The best ones on validation
    may be those of an early epoch, of which the paper says nothing; that GANs are worse than language models
    is asked of the best ones, since no GAN should lose by having been trained for too long.
    """
    models, arms = experiment.models, experiment.of_kind("seqgan")
    own = {name: _own_protocol(experiment, name) for name in models}
    noisy = experiment.of_kind("recurrent_gan")
    networks = [*experiment.of_kind("lstm"), *arms]
    published = [name for name in arms if trains_as_published(models[name])]
    controls = [name for name in arms if name not in published]
    ended = {experiment.last[name]: models[name]["start"] for name in arms}
    return {
        "protocol": experiment.first_protocol,
        "level": experiment.config["evaluation"]["level"],
        "max_draws": experiment.config["choose_n"]["max_draws"],
        "choose_n": experiment.choosing,
        "gaps": _once([*networks, *experiment.gap_models]),
        "gans": {name: own[name] for name in [*arms, *noisy]},
        "opponents": _opponents(experiment, [*arms, *noisy]),
        "noisy": {name: own[name] for name in noisy},
        "partners": _once(
            partner for name in published for partner in (models[name]["start"], experiment.last[name])
        ),
        "swept": [name for name in experiment.swept if name in noisy],
        "arms": ended,
        "controls": [instance for name in controls for instance in (name, experiment.last[name])],
        "reproduced": {
            experiment.last[name] if name in arms else name: [own[name], block["paper"]]
            for name, block in models.items()
            if block["paper"] and experiment.config["corpus"]["unit"] == "character"
        },
    }


def _own_protocol(experiment: "Experiment", model: str) -> str:
    return Protocol.parse(experiment.own_window(model)).name


def _opponents(experiment: "Experiment", gans: Iterable[str]) -> dict[str, str]:
    """GAN -> the language model to compare it with, of several seeds the one with its own."""
    named = experiment.config["findings"]["language_model"]
    if named is None:
        return {}
    models = experiment.rows.get(named, [named])
    place = {name: number for names in experiment.rows.values() for number, name in enumerate(names)}
    return {gan: models[place[gan] if len(models) > 1 else 0] for gan in gans}


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
