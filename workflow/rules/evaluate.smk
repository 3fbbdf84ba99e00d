"""
How many bits a model needs for the test part.

INPUTS: <results>/corpus/, <results>/models/{model}/ or a generator's own files
OUTPUTS: <results>/evaluate/{model}.csv (one row per block), <results>/evaluate/{model}.json (the reduction)
"""


# Blocks are independent, so `--set-scatter evaluation=8` changes the number of jobs and nothing else.
scattergather:
    evaluation=1,


rule approx_evaluate:
    input:
        test=rules.split_corpus.output.test,
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
    params:
        model=hyper_parameters,
        torch=torch_version,
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
