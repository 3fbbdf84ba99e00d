"""
How many bits a model needs for the test part.

INPUTS: <results>/corpus/, <results>/models/{model}/
OUTPUTS: <results>/evaluate/{model}.csv (one row per block), <results>/evaluate/{model}.json (the reduction)
"""


rule approx_evaluate:
    input:
        test=rules.split_corpus.output.test,
        corpus=rules.split_corpus.output.corpus,
        model=trained_model,
    output:
        blocks="<results>/evaluate/{model}.csv",
        summary="<results>/evaluate/{model}.json",
    log:
        "<logs>/evaluate/{model}.log",
    benchmark:
        "<benchmarks>/evaluate/{model}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime="1h",
    params:
        model=lambda wildcards: hyper_parameters(wildcards.model),
        evaluation=config["evaluation"],
        code=lambda wildcards: code("approx_evaluate.py", model_source(wildcards.model)),
    script:
        "../scripts/approx_evaluate.py"
