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
from ganlm.experiment import Experiment
from ganlm.provenance import fingerprint, package_versions

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

EXPERIMENT = Experiment(config)
if missing := EXPERIMENT.missing_file():
    raise WorkflowError(missing)

CHOOSE_N = config["choose_n"]["models"]
BASELINE = config["evaluation"]["baseline"]


wildcard_constraints:
    model="|".join(map(re.escape, EXPERIMENT.instances)),


pathvars:
    results=f"results/{config['name']}",
    logs="<results>/logs",
    benchmarks="<results>/benchmarks",


def bundled(path):
    """A file of this repository, named relative to the working directory wherever that is."""
    return os.path.relpath(HOME / path)


def code(*sources):
    """A parameter that changes exactly when code changes that the stage's results can depend on.

    How a stage logs cannot change what it computes.
    """
    reached = fingerprint(SCRIPTS, *sources)
    return {path: digest for path, digest in reached.items() if path != "ganlm/logs.py"}


def of_kind(kind):
    """Wildcard constraint: the models of a kind."""
    return "|".join(map(re.escape, EXPERIMENT.of_kind(kind))) or "(?!)"


def hyper_parameters(wildcards):
    """What a model's training and evaluation depend on."""
    return EXPERIMENT.hyper_parameters(wildcards.model)


def torch_version(wildcards):
    """The version of torch, for models that are networks."""
    uses_torch = EXPERIMENT.instances[wildcards.model]["kind"] in ("lstm", "seqgan")
    return package_versions("torch")["torch"] if uses_torch else None


def model_files(wildcards):
    """The files a model is loaded from."""
    return EXPERIMENT.files(wildcards.model, "<results>/models")


def rendered(wildcards):
    """What `all` asks for: Table 1, and the rest as far as the config names models for it."""
    wanted = [*rules.render_table1.output, *rules.render_estimates.output]
    wanted += rules.render_choose_n.output if CHOOSE_N else []
    wanted += rules.render_gap.output if EXPERIMENT.gap_models else []
    wanted += rules.render_differences.output if BASELINE else []
    if BASELINE and EXPERIMENT.is_explicit(BASELINE):
        wanted += rules.render_estimators.output
    wanted += rules.render_adversarial.output if EXPERIMENT.epochs else []
    return wanted
