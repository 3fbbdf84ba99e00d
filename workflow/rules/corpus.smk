"""
From a text to three token files.

INPUTS: the bundled sample, a local file, or the download of text8
OUTPUTS: <results>/corpus/{train,valid,test}.npy, <results>/corpus/corpus.json
"""

CORPUS_SOURCES = {
    "bundled": bundled("resources/text8-2m.xz"),
    "text8": "results/downloads/text8",
    "file": config["corpus"]["path"],
}


rule download_text8:
    output:
        ensure("results/downloads/text8", non_empty=True),
    log:
        "results/downloads/logs/download_text8.log",
    cache: "omit-software"
    retries: 2
    localrule: True
    conda:
        "../../environment.yml"
    params:
        code=code("download_text8.py"),
    script:
        "../scripts/download_text8.py"


rule split_corpus:
    input:
        text=CORPUS_SOURCES[config["corpus"]["source"]],
    output:
        train="<results>/corpus/train.npy",
        valid="<results>/corpus/valid.npy",
        test="<results>/corpus/test.npy",
        corpus="<results>/corpus/corpus.json",
    log:
        "<logs>/split_corpus.log",
    cache: "omit-software"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime="30m",
    params:
        corpus={
            key: config["corpus"][key]
            for key in ("characters", "unit", "alphabet", "vocabulary", "split")
        },
        code=code("split_corpus.py"),
    script:
        "../scripts/split_corpus.py"
