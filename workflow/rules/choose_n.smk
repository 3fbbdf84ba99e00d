"""
How many draws are enough.

INPUTS: <results>/corpus/, <results>/models/{model}/ or a generator's own files
OUTPUTS: <results>/choose_n/{model}.csv (the convergence curve), <results>/choose_n/{model}.json (what follows)
"""


rule choose_n:
    input:
        test=rules.split_corpus.output.test,
        corpus=rules.split_corpus.output.corpus,
        model=model_files,
    output:
        curve="<results>/choose_n/{model}.csv",
        chosen="<results>/choose_n/{model}.json",
    log:
        "<logs>/choose_n/{model}.log",
    benchmark:
        "<benchmarks>/choose_n/{model}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime="1h",
        device=config["device"],
    params:
        model=hyper_parameters,
        torch=torch_version,
        window=lambda wildcards: EXPERIMENT.pilot_window(wildcards.model),
        choose_n={
            key: value for key, value in config["choose_n"].items() if key != "models"
        },
        seed=config["evaluation"]["seed"],
        characters=config["evaluation"]["characters"],
        code=lambda wildcards: code("choose_n.py", EXPERIMENT.source(wildcards.model)),
    script:
        "../scripts/choose_n.py"
