"""
Which hyper-parameters of a language model validation prefers. The test part is no input here.

INPUTS: <results>/corpus/{train,valid}.npy
OUTPUTS: <results>/tune/{tune}.csv (one row per point), <results>/tune/{tune}.json (the winner)
"""


# A point is trained as any language model; its files stay apart from those that are evaluated.
# Of all that a rule can inherit, `cache` is left out by Snakemake.
use rule pretrain_lm as pretrain_point with:
    output:
        best="<results>/tune/points/{tune}/{model}/model.safetensors",
        last="<results>/tune/points/{tune}/{model}/last.safetensors",
        sidecar="<results>/tune/points/{tune}/{model}/model.json",
        history="<results>/tune/points/{tune}/{model}/history.csv",
        rates="<benchmarks>/tune/points/{tune}/{model}.csv",
    log:
        "<logs>/tune/points/{tune}/{model}.log",
    wildcard_constraints:
        model=one_of(point for grid in EXPERIMENT.grids.values() for point in grid),
    cache: "omit-software"
    params:
        model=lambda wildcards: EXPERIMENT.point(wildcards.tune, wildcards.model),


rule tune:
    input:
        lambda wildcards: expand(
            "<results>/tune/points/{tune}/{point}/model.json",
            tune=wildcards.tune,
            point=EXPERIMENT.grids[wildcards.tune],
        ),
    output:
        points="<results>/tune/{tune}.csv",
        winner="<results>/tune/{tune}.json",
    log:
        "<logs>/tune/{tune}.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        model=lambda wildcards: config["tune"][wildcards.tune]["model"],
        points=lambda wildcards: EXPERIMENT.grids[wildcards.tune],
        code=code("tune.py"),
    script:
        "../scripts/tune.py"
