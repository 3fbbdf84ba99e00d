"""How good a language model is a text generator that only emits samples?

corpus -> models -> samples and evaluation -> tables and figures, each arrow a file below results/<name>/.
"""

from snakemake.utils import min_version

min_version("9.25")


# One config file is one complete experiment: it replaces the default instead of merging into it.
if not workflow.overwrite_configfiles and "models" not in config:

    configfile: workflow.source_path("config/config.yaml")


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/corpus.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/tune.smk"
include: "workflow/rules/samples.smk"
include: "workflow/rules/choose_n.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/sweep.smk"
include: "workflow/rules/render.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/profile.smk"
include: "workflow/rules/report.smk"


rule all:
    default_target: True
    input:
        rendered,
        expand("<results>/tune/{tune}.json", tune=EXPERIMENT.grids),
    localrule: True
