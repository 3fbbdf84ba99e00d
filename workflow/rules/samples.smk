"""
What a model writes when it is left alone, and how much of it has been written before.

INPUTS: <results>/corpus/, <results>/models/{model}/ or a generator's own files
OUTPUTS: <results>/samples/{model}.txt (one sample per line), <results>/samples/{model}.json (the exact texts),
<results>/textmetrics/{model}.json
"""


rule draw_samples:
    input:
        corpus=rules.split_corpus.output.corpus,
        model=model_files,
    output:
        lines="<results>/samples/{model}.txt",
        texts="<results>/samples/{model}.json",
    log:
        "<logs>/samples/{model}.log",
    benchmark:
        "<benchmarks>/samples/{model}.tsv"
    wildcard_constraints:
        model=one_of(filter(EXPERIMENT.emits_text, EXPERIMENT.instances)),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime="1h",
        device=config["device"],
    params:
        model=lambda wildcards: EXPERIMENT.writing_parameters(wildcards.model),
        torch=torch_version,
        samples={key: config["samples"][key] for key in ("count", "length", "seed")},
        code=lambda wildcards: code(
            "draw_samples.py", EXPERIMENT.source(wildcards.model)
        ),
    script:
        "../scripts/draw_samples.py"


rule score_samples:
    input:
        samples=rules.draw_samples.output.texts,
        test=rules.split_corpus.output.test,
        corpus=rules.split_corpus.output.corpus,
    output:
        "<results>/textmetrics/{model}.json",
    log:
        "<logs>/textmetrics/{model}.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        line=config["samples"]["reference_line"],
        code=code("score_samples.py"),
    script:
        "../scripts/score_samples.py"
