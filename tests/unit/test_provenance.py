"""Which edits change a fingerprint, and which do not."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from ganlm import provenance
from ganlm.provenance import file_digest, fingerprint, package_versions

SCRIPTS = Path(provenance.__file__).parents[1]

METRIC = '''"""Bits per character."""
import math


class Metric:
    """A mean."""

    base: int = 2
    """Base of the logarithm."""

    def bits(self, p):
        """Surprise at an event."""
        # natural logarithm, then bits
        return -math.log(p) / math.log(self.base) + len("x")
'''


def write(root: Path, **files: str) -> Path:
    """Write modules; a double underscore in a keyword is a slash: `a__b` is `a/b.py`."""
    for name, text in files.items():
        path = root / f"{name.replace('__', '/').replace('INIT', '__init__')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def reached(root: Path, *sources: str) -> set[str]:
    return set(fingerprint(root, *sources))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# natural logarithm, then bits", "# nats, then bits\n\n"),
        ('"""Bits per character."""', '"""BPC."""'),
        ('"""Bits per character."""\n', ""),
        ('"""A mean."""', "'''Some other mean.'''"),
        ('    """Base of the logarithm."""\n', ""),
        ('"""Surprise at an event."""', '"""Negative log-probability."""'),
        ("import math\n", "import math\n\n\n\n"),
        ('"x"', "'x'"),
        ('"x"', '("x")'),
        ('"x"', 'u"x"'),
        ("math.log(p)", "math.log(\n            p,\n        )"),
        ("\n", "\r\n"),
    ],
)
def test_edits_without_effect_keep_the_digest(tmp_path, old, new):
    before = fingerprint(write(tmp_path, metric=METRIC), "metric.py")
    assert old in METRIC
    (tmp_path / "metric.py").write_bytes(METRIC.replace(old, new).encode())
    assert fingerprint(tmp_path, "metric.py") == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("base: int = 2", "base: int = 10"),
        ("base: int = 2", "base: int = 2.0"),
        ("base: int", "base: float"),
        ("self, p)", "self, q)"),
        ("log(p)", "log2(p)"),
        ("-math", "+math"),
        ('"x"', '"y"'),
        ('"x"', 'b"x"'),
        ("class Metric:", "class Metric(object):"),
        ("import math", "import math, cmath"),
        ("return -math", "-math"),
        ("+ len", "- len"),
    ],
)
def test_edits_with_effect_change_the_digest(tmp_path, old, new):
    before = fingerprint(write(tmp_path, metric=METRIC), "metric.py")
    assert old in METRIC
    write(tmp_path, metric=METRIC.replace(old, new))
    assert fingerprint(tmp_path, "metric.py") != before


def test_multiline_constants_do_not_depend_on_line_endings(tmp_path):
    write(tmp_path, unix="X = '''a\nb'''\n")
    (tmp_path / "windows.py").write_bytes(b"X = '''a\r\nb'''\r\n")
    both = fingerprint(tmp_path, "unix.py", "windows.py")
    assert both["unix.py"] == both["windows.py"]


@pytest.mark.parametrize(
    ("statement", "modules"),
    [
        ("import lib.deep.leaf", {"lib/__init__", "lib/deep/__init__", "lib/deep/leaf"}),
        ("import lib.deep.leaf as leaf", {"lib/__init__", "lib/deep/__init__", "lib/deep/leaf"}),
        ("import os, lib.other", {"lib/__init__", "lib/other"}),
        ("from lib import deep", {"lib/__init__", "lib/deep/__init__"}),
        ("from lib import other as o", {"lib/__init__", "lib/other"}),
        ("from lib.other import function", {"lib/__init__", "lib/other"}),
        ("from lib.other import *", {"lib/__init__", "lib/other"}),
        ("def f():\n    from lib import other", {"lib/__init__", "lib/other"}),
        ("try:\n    import lib.other\nexcept ImportError:\n    pass", {"lib/__init__", "lib/other"}),
        ("import bare.module", {"bare/module"}),
        ("import sibling", {"sibling"}),
        ("import numpy, lib_unknown", set()),
        ("if TYPE_CHECKING:\n    import lib.other", set()),
        ("if typing.TYPE_CHECKING:\n    import lib\nelse:\n    import sibling", {"sibling"}),
    ],
)
def test_import_statements_reach_modules_and_their_packages(tmp_path, statement, modules):
    write(
        tmp_path,
        stage=statement,
        sibling="",
        lib__INIT="",
        lib__other="",
        lib__deep__INIT="",
        lib__deep__leaf="",
        bare__module="",
    )
    assert reached(tmp_path, "stage.py") == {"stage.py"} | {f"{name}.py" for name in modules}


@pytest.mark.parametrize(
    ("statement", "modules"),
    [
        ("from . import near", {"lib/deep/near"}),
        ("from .near import function", {"lib/deep/near"}),
        ("from .. import far", {"lib/far"}),
        ("from ..far import function", {"lib/far"}),
        ("from ..side.leaf import x", {"lib/side/__init__", "lib/side/leaf"}),
    ],
)
@pytest.mark.parametrize("importer", ["lib/deep/__init__.py", "lib/deep/module.py"])
def test_relative_imports_count_from_the_package(tmp_path, importer, statement, modules):
    write(
        tmp_path,
        near="",
        far="",
        lib__INIT="",
        lib__far="",
        lib__near="",
        lib__deep__INIT="",
        lib__deep__near="",
        lib__side__INIT="",
        lib__side__leaf="",
    )
    (tmp_path / importer).write_text(statement)
    packages = {"lib/__init__.py", "lib/deep/__init__.py"}
    assert reached(tmp_path, importer) == packages | {importer} | {f"{m}.py" for m in modules}


def test_an_edit_shows_in_the_importers_and_nowhere_else(tmp_path):
    write(
        tmp_path,
        train="from lib.models import ngram",
        evaluate="from lib import metric",
        lib__INIT="",
        lib__metric="X = 1",
        lib__models__INIT="from .. import alphabet",
        lib__models__ngram="ORDER = 5",
        lib__models__lstm="WIDTH = 512",
        lib__alphabet="SIZE = 27",
    )

    def changed_by(**edit: str) -> set[str]:
        stages = ("train.py", "evaluate.py")
        before = {stage: fingerprint(tmp_path, stage) for stage in stages}
        write(tmp_path, **edit)
        return {stage for stage in stages if fingerprint(tmp_path, stage) != before[stage]}

    assert changed_by(lib__metric="X = 2") == {"evaluate.py"}
    assert changed_by(lib__models__ngram="ORDER = 7") == {"train.py"}
    assert changed_by(lib__models__lstm="WIDTH = 1024") == set()
    assert changed_by(lib__alphabet="SIZE = 28") == {"train.py"}
    assert changed_by(lib__models__INIT="from .. import alphabet\nX = 1") == {"train.py"}
    assert changed_by(lib__INIT="X = 1") == {"train.py", "evaluate.py"}
    assert changed_by(lib__INIT="X = 1  # comment") == set()
    assert changed_by(lib__unused="X = 1") == set()


def test_the_fingerprint_names_the_edited_module(tmp_path):
    write(tmp_path, stage="import a", a="import b", b="X = 1")
    before = fingerprint(tmp_path, "stage.py")
    write(tmp_path, b="X = 2")
    after = fingerprint(tmp_path, "stage.py")
    assert {file for file in after if after[file] != before[file]} == {"b.py"}


def test_python_loads_exactly_the_modules_of_the_fingerprint(tmp_path):
    write(
        tmp_path,
        stage="import lib.a.b\nfrom lib.c import d, value\nfrom bare import e",
        lib__INIT="from . import f",
        lib__a__INIT="from .. import g as other",
        lib__a__b="def late():\n    from .h import i\nlate()",
        lib__a__h="from ..c.k import i",
        lib__c__INIT="value = 1",
        lib__c__d="from ..m import n",
        lib__c__k="import lib.c.d\ni = 1",
        lib__f="from .c import value",
        lib__g="",
        lib__m="from lib.a import b\nn = 1",
        lib__unused="",
        bare__e="",
    )
    listing = (
        "import sys, stage; from pathlib import Path; print(*sorted("
        "Path(m.__file__).relative_to(Path.cwd()).as_posix() for m in list(sys.modules.values())"
        " if (getattr(m, '__file__', None) or '').startswith(str(Path.cwd()))))"
    )
    command = [sys.executable, "-c", listing]
    loaded = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == list(fingerprint(tmp_path, "stage.py"))


def test_cycles_end(tmp_path):
    write(tmp_path, a="import b\nimport a", b="import c", c="from a import x")
    assert reached(tmp_path, "a.py") == reached(tmp_path, "c.py") == {"a.py", "b.py", "c.py"}


def test_a_package_hides_the_module_of_the_same_name(tmp_path):
    write(tmp_path, stage="import lib", lib="X = 1", lib__INIT="X = 2")
    assert reached(tmp_path, "stage.py") == {"stage.py", "lib/__init__.py"}


def test_further_sources_stand_for_dynamic_imports(tmp_path):
    write(tmp_path, stage="__import__('plugin')", plugin="import helper", helper="")
    assert reached(tmp_path, "stage.py") == {"stage.py"}
    assert reached(tmp_path, "stage.py", "plugin.py") == {"stage.py", "plugin.py", "helper.py"}


def test_place_and_age_of_the_files_do_not_count(tmp_path):
    write(tmp_path / "here", stage="import lib.a", lib__INIT="", lib__a="X = 1")
    before = fingerprint(tmp_path / "here", "stage.py")
    shutil.move(tmp_path / "here", tmp_path / "there")
    for path in (tmp_path / "there").rglob("*.py"):
        os.utime(path, (0, 0))
    after = fingerprint(tmp_path / "there", "stage.py")
    assert list(after.items()) == list(before.items())
    assert json.loads(json.dumps(after)) == after


def test_a_relative_root_gives_the_same(tmp_path, monkeypatch):
    write(tmp_path, stage="import a", a="")
    absolute = fingerprint(tmp_path, "./stage.py")
    monkeypatch.chdir(tmp_path)
    assert fingerprint(Path(), "stage.py") == absolute


@pytest.mark.parametrize(
    ("source", "line"),
    [(b"x = 1\ny = (\nz = 3\n", 2), (b"x = 1\n\ny = '\xff'\n", 3)],
)
def test_an_unreadable_module_is_named_with_its_line(tmp_path, source, line):
    write(tmp_path, stage="import broken")
    (tmp_path / "broken.py").write_bytes(source)
    with pytest.raises(ValueError, match=rf"broken\.py, line {line}: not valid Python"):
        fingerprint(tmp_path, "stage.py")


@pytest.mark.parametrize("source", ["absent.py", "../outside.py", "folder", "data.txt"])
def test_a_source_must_be_a_python_file_below_the_root(tmp_path, source):
    root = write(tmp_path / "root", stage="")
    (root / "folder").mkdir()
    (root / "data.txt").touch()
    write(tmp_path, outside="")
    with pytest.raises(ValueError, match="is no Python file below"):
        fingerprint(root, source)


def test_file_digest_is_sha256(tmp_path):
    data = tmp_path / "data"
    data.write_bytes(b"abc")  # first test vector of FIPS 180-2
    published = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert file_digest(data) == published
    data.write_bytes(bytes(3_000_000))
    assert file_digest(data) == hashlib.sha256(bytes(3_000_000)).hexdigest()


def test_package_versions_do_not_need_the_package():
    assert package_versions("numpy", "no-such-package") == {
        "numpy": metadata.version("numpy"),
        "no-such-package": "not installed",
    }


def test_every_module_of_the_library_can_be_read():
    modules = {path.relative_to(SCRIPTS).as_posix() for path in SCRIPTS.rglob("ganlm/**/*.py")}
    assert reached(SCRIPTS, *modules) >= modules
    assert "ganlm/provenance.py" in modules


def test_each_text_is_parsed_once_however_many_stages_reach_it(tmp_path):
    tree = shutil.copytree(SCRIPTS, tmp_path / "scripts")
    texts = {path.relative_to(tree).as_posix(): path.read_bytes() for path in tree.rglob("*.py")}
    provenance._analyse.cache_clear()
    for file in [*texts, *texts]:
        fingerprint(tree, file)
    assert provenance._analyse.cache_info().misses == len(set(texts.values()))
