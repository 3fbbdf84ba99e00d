"""
What the rules share: the checked config, paths, and the parameters that decide what re-runs.
"""

import os
import sys
from functools import cache
from pathlib import Path

# `workflow.basedir` would be the importing project when this workflow is used as a module.
HOME = Path(
    workflow.current_basedir.get_path_or_uri(secret_free=True), "../.."
).resolve()
SCRIPTS = HOME / "workflow/scripts"
sys.path.insert(0, str(SCRIPTS))

from snakemake.exceptions import WorkflowError

from ganlm.config import checked, refuse_repeated_keys
from ganlm.experiment import TRAINED_KINDS, Experiment
from ganlm.files import spent
from ganlm.provenance import fingerprint, package_versions

try:
    for file in workflow.overwrite_configfiles:
        refuse_repeated_keys(Path(file))
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

CHOOSE_N = EXPERIMENT.choosing
BASELINE = config["evaluation"]["baseline"]
WRITERS = list(filter(EXPERIMENT.emits_text, EXPERIMENT.models))
NETWORKS = [name for kind in TRAINED_KINDS for name in EXPERIMENT.of_kind(kind)]
TRAINED = [*EXPERIMENT.of_kind("ngram"), *NETWORKS]


# What a stage leaves behind for the reader, below <results>.
FINISHED = {
    "train": ("models/{}/history.csv", "benchmarks/train/{}.csv"),
    "evaluate": ("evaluate/{}.json", "evaluate/{}.csv"),
    "samples": ("samples/{}.json", "textmetrics/{}.json"),
    "choose_n": ("choose_n/{}.json", "choose_n/{}.csv"),
    "profile": ("profile/{}.csv",),
    "sweep": (
        "sweep/{}.json",
        "sweep/valid/{}.csv",
        "sweep/test/{}.json",
        "sweep/test/{}.csv",
    ),
}
# Whose versions the page on methods names.
SHOWN_PACKAGES = ("torch", "numpy", "scipy", "pandas", "matplotlib", "snakemake")
# Set by render_existing.smk.
SHOW_EXISTING = globals().get("SHOW_EXISTING", False)


def one_of(names):
    """Wildcard constraint: these names, of which there may be none."""
    return "|".join(map(re.escape, names)) or "(?!)"


wildcard_constraints:
    model=one_of(EXPERIMENT.instances),
    tune=one_of(EXPERIMENT.grids),
    part="test|valid",


# Blocks are independent, so `--set-scatter evaluation=8` changes the number of jobs and no result. Only the Recurrent
# GAN pays for it: each shard has a prefix tree of its own, and equal prefixes of two shards are computed twice.
scattergather:
    evaluation=1,


pathvars:
    results=f"results/{config['name']}",
    logs="<results>/logs",
    benchmarks="<results>/benchmarks",


def bundled(path):
    """A file of this repository, named relative to the working directory wherever that is."""
    return os.path.relpath(HOME / path)


@cache
def code(*sources):
    """A parameter that changes exactly when code changes that the stage's results can depend on.

    How a stage logs cannot change what it computes.
    """
    reached = fingerprint(SCRIPTS, *sources)
    return {path: digest for path, digest in reached.items() if path != "ganlm/logs.py"}


def fingerprinted_sources():
    """Script of a stage, or module that is imported by name -> fingerprints of all it can reach."""
    scripts = sorted(path.name for path in SCRIPTS.glob("*.py"))
    by_name = {
        source for model in EXPERIMENT.models for source in EXPERIMENT.sources(model)
    }
    return {source: code(source) for source in [*scripts, *sorted(by_name)]}


def hyper_parameters(wildcards):
    """What a model's training and evaluation depend on."""
    return EXPERIMENT.hyper_parameters(wildcards.model)


def torch_version(wildcards):
    """The version of torch, for models that are networks."""
    uses_torch = EXPERIMENT.instances[wildcards.model]["kind"] in TRAINED_KINDS
    return package_versions("torch")["torch"] if uses_torch else None


def model_files(wildcards):
    """The files a model is loaded from."""
    return EXPERIMENT.files(wildcards.model, "<results>/models")


def missing(stage, names):
    """Name -> why there is nothing to show of it. A run makes what is missing: only `render_existing` asks."""
    if not SHOW_EXISTING:
        return {}
    needed = {
        name: [
            f"results/{config['name']}/{file.format(name)}" for file in FINISHED[stage]
        ]
        for name in names
    }
    absent = {
        name: [path for path in paths if not os.path.exists(path)]
        for name, paths in needed.items()
    }
    return {
        name: f"not evaluated: {paths[0]} is missing"
        for name, paths in absent.items()
        if paths
    }


def available(pattern, names):
    """The file of each name, below <results>. Only `render_existing` leaves out what is missing."""
    files = [pattern.format(name) for name in names]
    return [
        f"<results>/{file}"
        for file in files
        if not SHOW_EXISTING or os.path.exists(f"results/{config['name']}/{file}")
    ]


def finished(stage, names):
    """The names that a rule can show."""
    return [name for name in names if name not in missing(stage, names)]


def shown_arms():
    """Arm -> epoch -> instance, for arms whose start was evaluated: all their epochs are compared with it."""
    done = finished("evaluate", EXPERIMENT.adversarial_instances)
    return {
        arm: {epoch: instance for epoch, instance in epochs.items() if instance in done}
        for arm, epochs in EXPERIMENT.arms.items()
        if epochs[0] in done
    }


ARMS = shown_arms()
ARM_INSTANCES = sorted({name for epochs in ARMS.values() for name in epochs.values()})

# Rows of Table 1 -> their instances, of which there may be several seeds.
TABLE1 = {
    row: finished("evaluate", names)
    for row, names in EXPERIMENT.table1.items()
    if finished("evaluate", names)
}


def rendered(wildcards):
    """Tables and figures, as far as the config names models for them, and there is something to show."""
    evaluated = finished("evaluate", EXPERIMENT.instances)
    wanted = {
        rules.render_table1: TABLE1,
        rules.render_estimates: evaluated,
        rules.render_standings: finished("evaluate", EXPERIMENT.models),
        rules.render_cost: finished("evaluate", EXPERIMENT.models),
        rules.write_findings: True,
        rules.render_recurrence: True,
        rules.render_bound: True,
        rules.render_start: True,
        rules.render_methods: True,
        rules.render_table2: finished("samples", WRITERS),
        rules.render_choose_n: finished("choose_n", CHOOSE_N),
        rules.render_sweep: finished("sweep", EXPERIMENT.swept),
        rules.render_gap: finished("evaluate", EXPERIMENT.gap_models),
        rules.render_profile: finished("profile", CHOOSE_N),
        rules.render_differences: BASELINE in evaluated,
        rules.render_estimators: BASELINE in evaluated
        and EXPERIMENT.is_explicit(BASELINE),
        rules.render_adversarial: ARMS,
    }
    paths = [path for rule, shown in wanted.items() if shown for path in rule.output]
    for protocol, models in EXPERIMENT.protocols.items():
        if len(finished("evaluate", models)) > 1:
            paths += expand(rules.render_pairs.output, protocol=protocol)
    for kind in TRAINED_KINDS:
        if finished("train", EXPERIMENT.of_kind(kind)):
            paths.append(f"<results>/figures/training-{kind}.svg")
    return paths


onsuccess:
    for path in list(spent(Path("results", config["name"]))):
        path.unlink(missing_ok=True)


onerror:
    if any("SIGKILL" in Path(file).read_text(errors="replace") for file in log):
        print(
            "The system ended a stage (SIGKILL), mostly for want of memory: run fewer stages at once (--cores 1) or "
            "give it more memory; the same command goes on.",
            file=sys.stderr,
        )
