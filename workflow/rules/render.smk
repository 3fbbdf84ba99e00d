"""
Tables that the reader looks at.

INPUTS: <results>/evaluate/, <results>/samples/, <results>/textmetrics/, <benchmarks>/, resources/literature.csv
OUTPUTS: <results>/tables/*.{csv,md,tex,html,txt}, <benchmarks>/cost.{csv,md,tex,html,txt}
"""


rule render_table1:
    input:
        summaries=expand(
            "<results>/evaluate/{model}.json",
            model=finished("evaluate", EXPERIMENT.tabulated),
        ),
        corpus="<results>/corpus/corpus.json",
        literature=bundled("resources/literature.csv"),
    output:
        multiext("<results>/tables/table1", ".csv", ".md", ".tex", ".txt"),
        report(
            "<results>/tables/table1.html",
            caption="../report/table1.rst",
            category="1 Results",
            labels={"result": "Table 1: bits per token of every model"},
        ),
    log:
        "<logs>/render_table1.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        models={row: EXPERIMENT.shown(row) for row in TABLE1},
        seeds=TABLE1,
        missing=missing("evaluate", EXPERIMENT.tabulated),
        windows=config["evaluation"]["windows"],
        code=code("render_table1.py"),
    script:
        "../scripts/render_table1.py"


rule render_table2:
    input:
        samples=expand(
            "<results>/samples/{model}.json", model=finished("samples", WRITERS)
        ),
        scores=expand(
            "<results>/textmetrics/{model}.json", model=finished("samples", WRITERS)
        ),
    output:
        multiext("<results>/tables/table2", ".csv", ".md", ".tex", ".txt"),
        report(
            "<results>/tables/table2.html",
            caption="../report/table2.rst",
            category="1 Results",
            labels={"result": "Table 2: samples of every model"},
        ),
    log:
        "<logs>/render_table2.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        shown=config["samples"]["shown"],
        missing=missing("samples", WRITERS),
        code=code("render_table2.py"),
    script:
        "../scripts/render_table2.py"


rule render_differences:
    input:
        summaries=expand(
            "<results>/evaluate/{model}.json",
            model=finished("evaluate", EXPERIMENT.models),
        ),
        blocks=expand(
            "<results>/evaluate/{model}.csv",
            model=finished("evaluate", EXPERIMENT.models),
        ),
    output:
        multiext("<results>/tables/differences", ".csv", ".md", ".tex", ".txt"),
        report(
            "<results>/tables/differences.html",
            caption="../report/differences.rst",
            category="1 Results",
            labels={"result": "Table 1b: paired differences, within each protocol"},
        ),
    log:
        "<logs>/render_differences.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        baseline=BASELINE,
        missing=missing("evaluate", EXPERIMENT.models),
        level=config["evaluation"]["level"],
        code=code("render_differences.py"),
    script:
        "../scripts/render_differences.py"


rule render_estimates:
    input:
        summaries=expand(
            "<results>/evaluate/{model}.json",
            model=finished(
                "evaluate", [*EXPERIMENT.models, *EXPERIMENT.last.values()]
            ),
        ),
    output:
        multiext("<results>/tables/estimates", ".csv", ".md", ".tex", ".txt"),
        report(
            "<results>/tables/estimates.html",
            caption="../report/estimates.rst",
            category="3 From draws to bits",
            labels={"result": "All estimates: every model, estimand and estimator"},
        ),
    log:
        "<logs>/render_estimates.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        missing=missing("evaluate", [*EXPERIMENT.models, *EXPERIMENT.last.values()]),
        code=code("render_estimates.py"),
    script:
        "../scripts/render_estimates.py"


rule render_cost:
    input:
        sidecars=available("models/{}/model.json", TRAINED),
        histories=available("models/{}/history.csv", NETWORKS),
        rates=available("benchmarks/train/{}.csv", TRAINED),
        times=[
            path
            for shard in gather.evaluation(
                "benchmarks/evaluate/{{}}.{scatteritem}.tsv"
            )
            for path in available(shard, EXPERIMENT.models)
        ],
        summaries=available("evaluate/{}.json", EXPERIMENT.models),
    output:
        multiext("<benchmarks>/cost", ".csv", ".md", ".tex", ".txt"),
        report(
            "<benchmarks>/cost.html",
            caption="../report/cost.rst",
            category="5 Training and cost",
            labels={"result": "Cost: parameters, text, time and draws of every model"},
        ),
    log:
        "<logs>/render_cost.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        kinds={name: block["kind"] for name, block in EXPERIMENT.models.items()},
        code=code("render_cost.py"),
    script:
        "../scripts/render_cost.py"
