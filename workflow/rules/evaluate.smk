"""
How many bits a model needs for the test part.

INPUTS: <results>/corpus/, <results>/models/{model}/ or a generator's own files
OUTPUTS: <results>/evaluate/{model}.csv (one row per block), <results>/evaluate/{model}.json (the reduction),
    <results>/profile/{model}.csv (one row per bin of tokens and stretch of text)
"""


rule approx_evaluate:
    input:
        text=rules.split_corpus.output.test,
        corpus=rules.split_corpus.output.corpus,
        model=model_files,
        chosen=branch(
            config["evaluation"]["draws"] == "chosen",
            then="<results>/choose_n/{model}.json",
            otherwise=[],
        ),
    output:
        "<results>/evaluate/shards/{model}.{scatteritem}.csv",
    log:
        "<logs>/evaluate/{model}.{scatteritem}.log",
    benchmark:
        "<benchmarks>/evaluate/{model}.{scatteritem}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime="4h",
        device=config["device"],
    params:
        model=hyper_parameters,
        torch=torch_version,
        precision=lambda wildcards: EXPERIMENT.precision(wildcards.model),
        part="test",
        windows=lambda wildcards: EXPERIMENT.windows(wildcards.model),
        evaluation=EXPERIMENT.measurement(),
        code=lambda wildcards: code(
            "approx_evaluate.py", *EXPERIMENT.sources(wildcards.model)
        ),
    script:
        "../scripts/approx_evaluate.py"


rule gather_evaluation:
    input:
        gather.evaluation("<results>/evaluate/shards/{{model}}.{scatteritem}.csv"),
    output:
        blocks="<results>/evaluate/{model}.csv",
        summary="<results>/evaluate/{model}.json",
    log:
        "<logs>/evaluate/{model}.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        level=config["evaluation"]["level"],
        code=code("gather_evaluation.py"),
    script:
        "../scripts/gather_evaluation.py"


rule gather_profile:
    input:
        rules.gather_evaluation.input,
    output:
        "<results>/profile/{model}.csv",
    log:
        "<logs>/profile/{model}.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        code=code("gather_profile.py"),
    script:
        "../scripts/gather_profile.py"
