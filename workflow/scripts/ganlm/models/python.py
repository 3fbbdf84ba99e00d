"""Any generator that is a Python class: `object: path/to/file.py:ClassName`, `arguments: {...}`."""

import importlib.util
import inspect
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
    if inspect.isabstract(kind):
        missing = ", ".join(sorted(kind.__abstractmethods__))
        raise GeneratorError(f"{path}: class {name} lacks what its base class asks for: {missing}")
    try:
        inspect.signature(kind).bind(surroundings.alphabet, surroundings.seed, **parameters["arguments"])
    except TypeError as error:
        raise GeneratorError(
            f"{path}: {name}(alphabet, seed, **arguments) does not fit the arguments of the config: {error}"
        ) from None
    generator = kind(surroundings.alphabet, surroundings.seed, **parameters["arguments"])
    generator.vocabulary = surroundings.vocabulary
    return generator


def _module(path: Path) -> object:
    """Import a file by its path; modules beside it can be imported by their name.

    It is registered, as dataclasses and pickle need, under a name that cannot hide another module.
    """
    if not path.is_file():
        raise GeneratorError(f"there is no file {path}: `object` is path/to/file.py:ClassName")
    sys.path.insert(0, str(path.parent.resolve()))
    spec = importlib.util.spec_from_file_location(f"generator_{path.stem}", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
