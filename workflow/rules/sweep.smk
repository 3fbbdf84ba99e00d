"""
Bits against the length of the window: what a short context costs, and from where on longer texts hurt.

INPUTS: <results>/corpus/, <results>/models/{model}/ or a generator's own files
OUTPUTS: <results>/sweep/{part}/{model}.{csv,json}, <results>/sweep/{model}.json (the window that validation prefers)
"""


# The same measurement at other windows, and on the validation part too: nothing is chosen on the test part.
use rule approx_evaluate as measure_windows with:
    input:
        text="<results>/corpus/{part}.npy",
        corpus=rules.split_corpus.output.corpus,
        model=model_files,
        chosen=[],
    output:
        "<results>/sweep/{part}/shards/{model}.{scatteritem}.csv",
    log:
        "<logs>/sweep/{part}/{model}.{scatteritem}.log",
    benchmark:
        "<benchmarks>/sweep/{part}/{model}.{scatteritem}.tsv"
    params:
        part=lambda wildcards: wildcards.part,
        windows=config["sweep"]["windows"],
        evaluation=EXPERIMENT.sweep(),


# Being local is not inherited.
use rule gather_evaluation as gather_windows with:
    input:
        gather.evaluation("<results>/sweep/{{part}}/shards/{{model}}.{scatteritem}.csv"),
    output:
        blocks="<results>/sweep/{part}/{model}.csv",
        summary="<results>/sweep/{part}/{model}.json",
    log:
        "<logs>/sweep/{part}/{model}.log",
    localrule: True


rule choose_window:
    input:
        "<results>/sweep/valid/{model}.json",
    output:
        "<results>/sweep/{model}.json",
    log:
        "<logs>/sweep/{model}.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        code=code("choose_window.py"),
    script:
        "../scripts/choose_window.py"
