"""
From token files to models, one rule per way of training.

INPUTS: <results>/corpus/
OUTPUTS: <results>/models/{model}/model.safetensors, <results>/models/{model}/model.json
"""


rule train_ngram:
    input:
        train=rules.split_corpus.output.train,
        corpus=rules.split_corpus.output.corpus,
    output:
        weights="<results>/models/{model}/model.safetensors",
        sidecar="<results>/models/{model}/model.json",
    log:
        "<logs>/train/{model}.log",
    wildcard_constraints:
        model=of_kind("ngram"),
    cache: "omit-software"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime="30m",
    params:
        model=lambda wildcards: hyper_parameters(wildcards.model),
        code=code("train_ngram.py"),
    script:
        "../scripts/train_ngram.py"
