"""Tables, figures and the report from those result files that exist: `snakemake -s workflow/render_existing.smk`.

Rules that train and measure are not part of it, so it never starts one. What is missing is a row with its reason.
"""

if not workflow.overwrite_configfiles and "models" not in config:

    configfile: workflow.source_path("../config/config.yaml")


report: "report/workflow.rst"


SHOW_EXISTING = True


include: "rules/common.smk"
include: "rules/render.smk"
include: "rules/figures.smk"
include: "rules/profile.smk"
include: "rules/report.smk"


rule render_existing:
    default_target: True
    input:
        rendered,
    localrule: True
