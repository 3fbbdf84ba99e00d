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
from ganlm.provenance import fingerprint

try:
    config.update(checked(config, HOME / "workflow/schemas/config.schema.yaml"))
except ValueError as error:
    raise WorkflowError(str(error)) from None


TABLE1 = config["table1"] or list(config["models"])


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


def hyper_parameters(model):
    """What training and evaluation depend on; the rest of a model's block is for the tables."""
    presentation = ("window", "paper")
    return {
        key: value
        for key, value in config["models"][model].items()
        if key not in presentation
    }


def model_source(model):
    """The module a model's kind lives in: it is imported by name, so its users must declare it."""
    return f"ganlm/models/{config['models'][model]['kind']}.py"


def trained_model(wildcards):
    """The files a model is loaded from; a kind without training has none."""
    if config["models"][wildcards.model]["kind"] == "uniform":
        return []
    return multiext(
        f"<results>/models/{wildcards.model}/model", ".safetensors", ".json"
    )
