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
        rates="<benchmarks>/train/{model}.csv",
    log:
        "<logs>/train/{model}.log",
    wildcard_constraints:
        model=one_of(EXPERIMENT.of_kind("ngram")),
    cache: "omit-software"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime="30m",
    params:
        model=hyper_parameters,
        code=code("train_ngram.py"),
    script:
        "../scripts/train_ngram.py"


rule pretrain_lm:
    input:
        train=rules.split_corpus.output.train,
        valid=rules.split_corpus.output.valid,
        corpus=rules.split_corpus.output.corpus,
    output:
        best="<results>/models/{model}/model.safetensors",
        last="<results>/models/{model}/last.safetensors",
        sidecar="<results>/models/{model}/model.json",
        history="<results>/models/{model}/history.csv",
        rates="<benchmarks>/train/{model}.csv",
    log:
        "<logs>/train/{model}.log",
    wildcard_constraints:
        model=one_of(EXPERIMENT.of_kind("lstm")),
    cache: "omit-software"
    conda:
        "../../environment.yml"
    threads: 2
    resources:
        mem_mb=4000,
        runtime="12h",
        gpu=1,
        checkpoint_seconds=60,
        device=config["device"],
    params:
        model=hyper_parameters,
        torch=package_versions("torch")["torch"],
        code=code("pretrain_lm.py"),
    script:
        "../scripts/pretrain_lm.py"


rule adversarial_train:
    input:
        train=rules.split_corpus.output.train,
        valid=rules.split_corpus.output.valid,
        corpus=rules.split_corpus.output.corpus,
        start=lambda wildcards: f"<results>/models/{EXPERIMENT.models[wildcards.model]['start']}/model.safetensors",
    output:
        best="<results>/models/{model}/model.safetensors",
        last="<results>/models/{model}/last.safetensors",
        kept="<results>/models/{model}/kept.safetensors",
        sidecar="<results>/models/{model}/model.json",
        history="<results>/models/{model}/history.csv",
        rates="<benchmarks>/train/{model}.csv",
    log:
        "<logs>/train/{model}.log",
    wildcard_constraints:
        model=one_of(EXPERIMENT.of_kind("seqgan")),
    cache: "omit-software"
    conda:
        "../../environment.yml"
    threads: 2
    resources:
        mem_mb=8000,
        runtime="24h",
        gpu=1,
        checkpoint_seconds=60,
        device=config["device"],
    params:
        model=hyper_parameters,
        torch=package_versions("torch")["torch"],
        code=code("adversarial_train.py"),
    script:
        "../scripts/adversarial_train.py"


rule train_recurrent_gan:
    input:
        train=rules.split_corpus.output.train,
        valid=rules.split_corpus.output.valid,
        corpus=rules.split_corpus.output.corpus,
    output:
        best="<results>/models/{model}/model.safetensors",
        last="<results>/models/{model}/last.safetensors",
        kept="<results>/models/{model}/kept.safetensors",
        sidecar="<results>/models/{model}/model.json",
        history="<results>/models/{model}/history.csv",
        rates="<benchmarks>/train/{model}.csv",
    log:
        "<logs>/train/{model}.log",
    wildcard_constraints:
        model=one_of(EXPERIMENT.of_kind("recurrent_gan")),
    cache: "omit-software"
    conda:
        "../../environment.yml"
    threads: 2
    resources:
        mem_mb=4000,
        runtime="7d",
        gpu=1,
        checkpoint_seconds=60,
        device=config["device"],
    params:
        model=hyper_parameters,
        torch=package_versions("torch")["torch"],
        code=code("train_recurrent_gan.py"),
    script:
        "../scripts/train_recurrent_gan.py"
