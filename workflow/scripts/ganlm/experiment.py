"""What a checked config asks for: its models as rows, and what each of them is made of."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ganlm import questions
from ganlm.expansion import expanded, instances_by_row
from ganlm.protocol import Protocol
from ganlm.tuning import changed, points

OWN_KINDS = ("python", "command", "counts")
TRAINED_KINDS = ("lstm", "seqgan", "recurrent_gan")
EXPLICIT_KINDS = ("uniform", "ngram", "lstm", "seqgan")
MEASURES = {
    "recurrent_gan": ("latent",),
    "python": ("explicit", "latent", "sampled"),
    "command": ("sampled",),
    "counts": ("counts",),
}
PRESENTATION = ("window", "paper", "files")
SHOWN = ("kind", "window", "paper")
WRITING = ("refeed",)


@dataclass(frozen=True)
class Experiment:
    """One config. An instance is a model, or with `-e<epoch>` a model as it was after an epoch.

    With several seeds, a row of a table is made of several models: see `expansion`.
    """

    config: dict

    @cached_property
    def models(self) -> dict[str, dict]:
        """Name -> block, every arm and every seed a model of its own."""
        return expanded(self.config["models"], self.config["seeds"])

    @cached_property
    def rows(self) -> dict[str, list[str]]:
        """Row -> its models, one for each seed."""
        return instances_by_row(self.config["models"], self.config["seeds"])

    def _of_rows(self, rows: list[str]) -> list[str]:
        return [name for row in rows for name in self.rows[row]]

    @cached_property
    def epochs(self) -> dict[str, dict[int, str]]:
        """Model -> epoch -> instance, for models whose training is looked at on the way.

        The epochs of a curriculum are its lengths.
        """
        return {
            name: {epoch: f"{name}-e{epoch}" for epoch in block["training"]["keep"]}
            for name, block in self.models.items()
            if block["kind"] in ("seqgan", "recurrent_gan")
        }

    @cached_property
    def instances(self) -> dict[str, dict]:
        """Name -> block of everything that can be evaluated."""
        on_the_way = {
            instance: self.models[name] | {"epoch": epoch}
            for name, instances in self.epochs.items()
            for epoch, instance in instances.items()
        }
        return (
            self.models
            | on_the_way
            | {instance: self.models[name] | {"weights": "last"} for name, instance in self.last.items()}
        )

    @property
    def last(self) -> dict[str, str]:
        """Model -> instance with the weights that training ended with; the model itself has the best.

        A curriculum ends with its last stage, which is an instance already.
        """
        return {name: f"{name}-last" for kind in ("lstm", "seqgan") for name in self.of_kind(kind)}

    @property
    def arms(self) -> dict[str, dict[int, str]]:
        """Model -> epoch -> instance, where epoch 0 is the language model it starts from."""
        return {name: {0: self.models[name]["start"]} | self.epochs[name] for name in self.of_kind("seqgan")}

    @property
    def adversarial_instances(self) -> list[str]:
        """All instances that the arms pass through."""
        return sorted({instance for epochs in self.arms.values() for instance in epochs.values()})

    @cached_property
    def grids(self) -> dict[str, dict[str, dict]]:
        """Tune -> point -> the keys that it sets."""
        return {name: points(block["grid"]) for name, block in self.config["tune"].items()}

    def point(self, tune: str, point: str) -> dict:
        """What the training of a point depends on."""
        block = self.config["models"][self.config["tune"][tune]["model"]]
        return changed(_without(block, *PRESENTATION, *WRITING), self.grids[tune][point])

    @cached_property
    def table1(self) -> dict[str, list[str]]:
        """Row of Table 1 -> its instances, one for each seed.

        The paper's full adversarial training is what an arm ended with: where that is to be set beside the
        published number, it has a row of its own below the arm's best weights.
        """
        found = {}
        for row in self.config["table1"] or self.rows:
            names = found[row] = self.rows[row]
            if self.models[names[0]]["kind"] == "seqgan" and self.models[names[0]]["paper"]:
                found[f"{row}-last"] = [self.last[name] for name in names]
        return found

    @property
    def tabulated(self) -> list[str]:
        """Instances in Table 1."""
        return [name for names in self.table1.values() for name in names]

    def shown(self, row: str) -> dict:
        """What Table 1 shows of a row's block."""
        facts = {key: self.instances[self.table1[row][0]][key] for key in SHOWN}
        return facts | {"paper": None} if f"{row}-last" in self.table1 else facts

    @property
    def choosing(self) -> list[str]:
        """Models whose convergence is shown."""
        return self._of_rows(self.config["choose_n"]["models"])

    @property
    def swept(self) -> list[str]:
        """Models that are measured at many windows."""
        return self._of_rows(self.config["sweep"]["models"])

    @property
    def first_protocol(self) -> str:
        """The protocol that figures show."""
        return Protocol.parse(self.config["evaluation"]["windows"][0]).name

    @property
    def protocols(self) -> dict[str, list[str]]:
        """Protocol -> the models that are measured under it."""
        found: dict[str, list[str]] = {}
        for name in self.models:
            for window in self.windows(name):
                found.setdefault(Protocol.parse(window).name, []).append(name)
        return found

    @property
    def is_text8(self) -> bool:
        """Whether bits are per character of text8, or of its beginning, as published ones are."""
        corpus = self.config["corpus"]
        return corpus["source"] != "file" and corpus["unit"] == "character"

    @property
    def gap_models(self) -> list[str]:
        """Models whose gap between approximate and exact bits is shown."""
        return [name for name in self.choosing if self.is_explicit(name)]

    @property
    def profile_protocols(self) -> list[str]:
        """The protocols of the models whose bits are looked at token by token."""
        windows = map(self.own_window, self.choosing)
        return list(dict.fromkeys(Protocol.parse(window).name for window in windows))

    @cached_property
    def questions(self) -> dict:
        """Which results the findings look at, and under which protocol."""
        return questions.asked(self)

    @property
    def judged(self) -> list[str]:
        """Instances whose result rows the findings read."""
        asked = self.questions
        by_claim = (asked["gaps"], asked["gans"], asked["opponents"].values(), asked["partners"])
        names = [name for names in (*by_claim, asked["arms"], asked["reproduced"]) for name in names]
        return list(dict.fromkeys(names))

    @property
    def compared(self) -> list[str]:
        """Instances whose samples the findings compare."""
        arms = self.questions["arms"]
        return list(dict.fromkeys([*arms, *arms.values()]))

    @property
    def scale(self) -> dict:
        """How much was trained and measured: numbers mean little without it."""
        corpus, evaluation = self.config["corpus"], self.config["evaluation"]
        return {
            "source": corpus["path"] or corpus["source"],
            "unit": corpus["unit"],
            "explicit": evaluation["explicit_characters"],
            "drawn": evaluation["characters"],
            "seeds": len(self.config["seeds"]),
        }

    def is_explicit(self, instance: str) -> bool:
        """Whether its distributions are known for sure."""
        return self.instances[instance]["kind"] in EXPLICIT_KINDS

    def emits_text(self, instance: str) -> bool:
        """Whether it can be asked for samples; of a table of counts only the table is left."""
        return self.instances[instance]["kind"] != "counts"

    def of_kind(self, kind: str) -> list[str]:
        """The models of a kind."""
        return [name for name, block in self.models.items() if block["kind"] == kind]

    def hyper_parameters(self, instance: str) -> dict:
        """What training and evaluation depend on; the rest of a block is for tables and samples."""
        return _without(self.writing_parameters(instance), *WRITING)

    def writing_parameters(self, instance: str) -> dict:
        """What samples depend on: how a model writes does not change how good a language model it is."""
        return _without(self.instances[instance], *PRESENTATION)

    def measurement(self) -> dict:
        """The part of `evaluation` that measuring depends on; the rest concerns what is made of it."""
        later = ("windows", "level", "baseline", "precision")
        return {key: value for key, value in self.config["evaluation"].items() if key not in later}

    def precision(self, instance: str) -> str:
        """Of the networks that have a choice."""
        has_choice = self.instances[instance]["kind"] == "recurrent_gan"
        return self.config["evaluation"]["precision"] if has_choice else "float32"

    def sweep(self) -> dict:
        """As `measurement`, for the sweep over windows: fewer draws, every model on the same short text."""
        block = self.config["sweep"]
        subset = {"characters": block["characters"], "explicit_characters": block["characters"]}
        return self.measurement() | subset | {"draws": block["draws"], "draws_grid": [], "mixture": 0}

    def windows(self, instance: str) -> list[int | str]:
        """Models whose distributions are known are measured under every protocol, others under their own."""
        if self.is_explicit(instance):
            return self.config["evaluation"]["windows"]
        return [self.own_window(instance)]

    def pilot_window(self, instance: str) -> int:
        """The window that the choice of N looks at: a carried state has none, so it takes the longest."""
        numbers = [window for window in self.config["evaluation"]["windows"] if window != "none"]
        own = self.own_window(instance)
        return own if own != "none" else max(numbers, default=1000)

    def own_window(self, instance: str) -> int | str:
        """The one of its row in Table 1."""
        return self.instances[instance]["window"] or self.config["evaluation"]["windows"][0]

    def source(self, instance: str) -> str:
        """The module a model's kind lives in: it is imported by name, so its users must declare it."""
        return f"ganlm/models/{self.instances[instance]['kind']}.py"

    def sources(self, instance: str) -> list[str]:
        """The modules that evaluation imports by name: the model's, and those that measure it."""
        measures = MEASURES.get(self.instances[instance]["kind"], ("explicit",))
        return [self.source(instance), *(f"ganlm/measure_{measure}.py" for measure in measures)]

    def missing_file(self) -> str | None:
        """One sentence about the first file of an own generator that is not there."""
        for name, block in self.models.items():
            if block["kind"] in OWN_KINDS:
                for path in self.files(name, ""):
                    if not Path(path).exists():
                        return f"config: models.{name} needs the file {path}, which does not exist"
        return None

    def files(self, instance: str, folder: str) -> list[str]:
        """The files a model is loaded from: what training wrote below `folder`, or its own files."""
        block = self.instances[instance]
        match block["kind"]:
            case "uniform":
                return []
            case "python":
                return [block["object"].rpartition(":")[0], *block["files"]]
            case "command":
                return [*(word for word in block["command"] if Path(word).is_file()), *block["files"]]
            case "counts":
                return [block["file"]]
        name, weights = instance, "model"
        if "weights" in block:
            name, weights = instance.removesuffix("-last"), "last"
        if "epoch" in block:
            name, weights = instance.removesuffix(f"-e{block['epoch']}"), "kept"
        return [f"{folder}/{name}/{weights}.safetensors", f"{folder}/{name}/model.json"]


def _without(block: dict, *keys: str) -> dict:
    return {key: value for key, value in block.items() if key not in keys}
