"""
What the rules share: the checked config, paths, and the parameters that decide what re-runs.
"""

import os
import sys
from pathlib import Path

# `workflow.basedir` would be the importing project when this workflow is used as a module.
HOME = Path(
    workflow.current_basedir.get_path_or_uri(secret_free=True), "../.."
).resolve()
SCRIPTS = HOME / "workflow/scripts"
sys.path.insert(0, str(SCRIPTS))

from snakemake.exceptions import WorkflowError

from ganlm.config import checked
from ganlm.protocol import Protocol
from ganlm.provenance import fingerprint

try:
    config.update(
        checked(
            config,
            HOME / "workflow/schemas/config.schema.yaml",
            HOME / "resources/literature.csv",
        )
    )
except ValueError as error:
    raise WorkflowError(str(error)) from None


TABLE1 = config["table1"] or list(config["models"])
CHOOSE_N = config["choose_n"]["models"]
EXPLICIT_KINDS = ("uniform", "ngram")
GAP = [name for name in CHOOSE_N if config["models"][name]["kind"] in EXPLICIT_KINDS]
FIRST_PROTOCOL = Protocol.parse(config["evaluation"]["windows"][0]).name


wildcard_constraints:
    model="|".join(map(re.escape, config["models"])),


pathvars:
    results=f"results/{config['name']}",
    logs="<results>/logs",
    benchmarks="<results>/benchmarks",


def bundled(path):
    """A file of this repository, named relative to the working directory wherever that is."""
    return os.path.relpath(HOME / path)


def code(*sources):
    """A parameter that changes exactly when code changes that the stage can reach."""
    return fingerprint(SCRIPTS, *sources)


def of_kind(*kinds):
    """Wildcard constraint: the models of these kinds."""
    names = [
        re.escape(name)
        for name, block in config["models"].items()
        if block["kind"] in kinds
    ]
    return "|".join(names) or "(?!)"


OWN_KINDS = ("python", "command", "counts")
MEASURES = {
    "command": ["sampled"],
    "counts": ["counts"],
    "python": ["explicit", "latent", "sampled"],
}


def rendered(wildcards):
    """What `all` asks for: Table 1, and the rest as far as the config names models for it."""
    baseline = config["evaluation"]["baseline"]
    wanted = [*rules.render_table1.output]
    wanted += rules.render_choose_n.output if CHOOSE_N else []
    wanted += rules.render_gap.output if GAP else []
    wanted += rules.render_differences.output if baseline else []
    if baseline and config["models"][baseline]["kind"] in EXPLICIT_KINDS:
        wanted += rules.render_estimators.output
    return wanted


def hyper_parameters(model):
    """What training and evaluation depend on; the rest of a model's block is for the tables."""
    presentation = ("window", "paper", "files")
    return {
        key: value
        for key, value in config["models"][model].items()
        if key not in presentation
    }


def own_window(model):
    """The protocol a model is meant for."""
    return config["models"][model]["window"] or config["evaluation"]["windows"][0]


def measured_windows(model):
    """Models whose distributions we compute are measured under every protocol, others under their own."""
    if config["models"][model]["kind"] in OWN_KINDS:
        return [own_window(model)]
    return config["evaluation"]["windows"]


def pilot_window(model):
    """The window that the choice of N looks at: a carried state has none, so it takes the longest."""
    windows = [
        own_window(model),
        *sorted(filter(is_number, config["evaluation"]["windows"]), reverse=True),
    ]
    return next((window for window in windows if is_number(window)), 1000)


def is_number(window):
    """Whether a protocol resets the state."""
    return window != "none"


def model_source(model):
    """The module a model's kind lives in: it is imported by name, so its users must declare it."""
    return f"ganlm/models/{config['models'][model]['kind']}.py"


def model_sources(model):
    """The modules that evaluation imports by name: the model's, and those that measure it."""
    measures = MEASURES.get(config["models"][model]["kind"], ["explicit"])
    return [
        model_source(model),
        *(f"ganlm/measure_{measure}.py" for measure in measures),
    ]


def model_files(wildcards):
    """The files a model is loaded from: what training wrote, or a generator's own files."""
    block = config["models"][wildcards.model]
    match block["kind"]:
        case "uniform":
            return []
        case "python":
            return [block["object"].rpartition(":")[0], *block["files"]]
        case "command":
            return [*filter(os.path.isfile, block["command"]), *block["files"]]
        case "counts":
            return [block["file"]]
    return multiext(
        f"<results>/models/{wildcards.model}/model", ".safetensors", ".json"
    )
