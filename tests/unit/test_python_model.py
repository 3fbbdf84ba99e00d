import sys
import textwrap

import numpy as np
import pytest

from ganlm.corpus import Alphabet
from ganlm.generator import GeneratorError, Surroundings
from ganlm.models import python

SURROUNDINGS = Surroundings(Alphabet(tuple("abc")), seed=5)

GOOD = """
    from __future__ import annotations

    from dataclasses import dataclass

    import numpy as np
    from beside_it import CONSTANT
    from ganlm.generator import Sampled


    @dataclass
    class Memory:
        length: int


    class Good(Sampled):
        def __init__(self, alphabet, seed, length, offset=0):
            self.memory, self.seed, self.offset = Memory(length), seed, offset + CONSTANT
            self.symbols = alphabet.symbols

        def draw(self, prefixes, counts, rng):
            return [rng.integers(len(self.symbols), size=count) for count in counts]


    class Abstract(Sampled):
        def __init__(self, alphabet, seed):
            pass


    class Unrelated:
        pass


    class Failing(Good):
        def __init__(self, alphabet, seed):
            raise KeyError("its own problem")


    function = print
"""


@pytest.fixture
def load(tmp_path, monkeypatch):
    (tmp_path / "queue.py").write_text(textwrap.dedent(GOOD))
    (tmp_path / "beside_it.py").write_text("CONSTANT = 40\n")
    monkeypatch.setattr(sys, "path", sys.path.copy())
    modules = sys.modules.copy()

    def load(name, file="queue.py", **arguments):
        return python.load({"object": f"{tmp_path}/{file}:{name}", "arguments": arguments}, [], SURROUNDINGS)

    yield load
    for name in set(sys.modules) - set(modules):
        del sys.modules[name]


def test_a_class_is_made_with_alphabet_seed_and_arguments(load):
    """Also if its module has the name of another, uses dataclasses, and imports what lies beside it."""
    import queue

    generator = load("Good", length=3, offset=2)
    assert (generator.memory.length, generator.offset, generator.seed) == (3, 42, 5)
    assert (generator.symbols, generator.vocabulary, generator.strength) == (("a", "b", "c"), 3, "sampled")
    assert [len(ids) for ids in generator.draw_in_windows([np.arange(3)], [(0, 1, 4)], seed=1)] == [4]
    assert sys.modules["queue"] is queue


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("Good", {"file": "none.py"}, r"there is no file .*none\.py: `object` is path/to/file\.py:ClassName"),
        ("Bad", {}, r"queue\.py has no class Bad derived from ganlm\.generator\.Explicit, Latent or Sampled"),
        ("Unrelated", {}, "has no class Unrelated derived from"),
        ("function", {}, "has no class function derived from"),
        ("Abstract", {}, "class Abstract lacks what its base class asks for: draw"),
        ("Sampled", {}, "class Sampled lacks what its base class asks for: draw"),
        ("Good", {}, "missing a required argument: 'length'"),
        ("Good", {"length": 3, "width": 4}, "got an unexpected keyword argument 'width'"),
        ("Good", {"length": 3, "seed": 4}, "multiple values for argument 'seed'"),
    ],
)
def test_what_cannot_be_loaded_gets_one_sentence(load, name, options, said):
    with pytest.raises(GeneratorError, match=said) as caught:
        load(name, **options)
    assert "\n" not in str(caught.value)


def test_an_error_of_its_own_is_its_own(load):
    with pytest.raises(KeyError, match="its own problem"):
        load("Failing")
