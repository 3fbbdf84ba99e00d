"""What a checked config asks for: its models as rows, and what each of them is made of."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ganlm.config import expanded
from ganlm.protocol import Protocol

OWN_KINDS = ("python", "command", "counts")
EXPLICIT_KINDS = ("uniform", "ngram", "lstm", "seqgan")
MEASURES = {"command": ("sampled",), "counts": ("counts",), "python": ("explicit", "latent", "sampled")}
PRESENTATION = ("window", "paper", "files")


@dataclass(frozen=True)
class Experiment:
    """One config. An instance is a model, or with `-e<epoch>` a model as it was after an epoch."""

    config: dict

    @cached_property
    def models(self) -> dict[str, dict]:
        """Name -> block, every arm a model of its own."""
        return expanded(self.config["models"])

    @cached_property
    def epochs(self) -> dict[str, dict[int, str]]:
        """Model -> epoch -> instance, for models whose training is looked at on the way."""
        adversarial = {name: block for name, block in self.models.items() if block["kind"] == "seqgan"}
        return {
            name: {epoch: f"{name}-e{epoch}" for epoch in block["training"]["keep"]}
            for name, block in adversarial.items()
        }

    @cached_property
    def instances(self) -> dict[str, dict]:
        """Name -> block of everything that can be evaluated."""
        on_the_way = {
            instance: self.models[name] | {"epoch": epoch}
            for name, instances in self.epochs.items()
            for epoch, instance in instances.items()
        }
        return self.models | on_the_way

    @property
    def arms(self) -> dict[str, dict[int, str]]:
        """Model -> epoch -> instance, where epoch 0 is the language model it starts from."""
        return {name: {0: self.models[name]["start"]} | epochs for name, epochs in self.epochs.items()}

    @property
    def adversarial_instances(self) -> list[str]:
        """All instances that the arms pass through."""
        return sorted({instance for epochs in self.arms.values() for instance in epochs.values()})

    @property
    def table1(self) -> list[str]:
        """Models in Table 1."""
        return self.config["table1"] or list(self.models)

    @property
    def first_protocol(self) -> str:
        """The protocol that figures show."""
        return Protocol.parse(self.config["evaluation"]["windows"][0]).name

    @property
    def gap_models(self) -> list[str]:
        """Models whose gap between approximate and exact bits is shown."""
        return [name for name in self.config["choose_n"]["models"] if self.is_explicit(name)]

    def is_explicit(self, instance: str) -> bool:
        """Whether its distributions are known for sure."""
        return self.instances[instance]["kind"] in EXPLICIT_KINDS

    def of_kind(self, kind: str) -> list[str]:
        """The models of a kind."""
        return [name for name, block in self.models.items() if block["kind"] == kind]

    def hyper_parameters(self, instance: str) -> dict:
        """What training and evaluation depend on; the rest of a block is for the tables."""
        block = self.instances[instance]
        return {key: value for key, value in block.items() if key not in PRESENTATION}

    def measurement(self) -> dict:
        """The part of `evaluation` that measuring depends on; the rest concerns what is made of it."""
        later = ("windows", "level", "baseline")
        return {key: value for key, value in self.config["evaluation"].items() if key not in later}

    def windows(self, instance: str) -> list[int | str]:
        """Models whose distributions we compute are measured under every protocol, others under their own."""
        if self.instances[instance]["kind"] in OWN_KINDS:
            return [self._own_window(instance)]
        return self.config["evaluation"]["windows"]

    def pilot_window(self, instance: str) -> int:
        """The window that the choice of N looks at: a carried state has none, so it takes the longest."""
        numbers = [window for window in self.config["evaluation"]["windows"] if window != "none"]
        own = self._own_window(instance)
        return own if own != "none" else max(numbers, default=1000)

    def _own_window(self, instance: str) -> int | str:
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
        if "epoch" in block:
            name, weights = instance.removesuffix(f"-e{block['epoch']}"), "kept"
        return [f"{folder}/{name}/{weights}.safetensors", f"{folder}/{name}/model.json"]
