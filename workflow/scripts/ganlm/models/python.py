"""Any generator that is a Python class: `object: path/to/file.py:ClassName`, `arguments: {...}`."""

import importlib.util
import sys
from pathlib import Path

from ganlm.generator import Explicit, GeneratorError, Latent, Sampled, Surroundings


def load(parameters: dict, files: list[str], surroundings: Surroundings) -> Explicit | Latent | Sampled:  # noqa: ARG001
    """An instance of the class, made with the alphabet, the seed and the config's arguments."""
    path, _, name = parameters["object"].rpartition(":")
    kind = getattr(_module(Path(path)), name, None)
    if not (isinstance(kind, type) and issubclass(kind, Explicit | Latent | Sampled)):
        raise GeneratorError(
            f"{path} has no class {name} derived from ganlm.generator.Explicit, Latent or Sampled"
        )
    generator = kind(surroundings.alphabet, surroundings.seed, **parameters["arguments"])
    generator.vocabulary = surroundings.vocabulary
    return generator


def _module(path: Path) -> object:
    """Import a file by its path; modules beside it can be imported by their name."""
    if not path.is_file():
        raise GeneratorError(f"there is no file {path}: `object` is path/to/file.py:ClassName")
    sys.path.insert(0, str(path.parent.resolve()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
