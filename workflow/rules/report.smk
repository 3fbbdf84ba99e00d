"""
What a run says of the paper, claim by claim; where a reader starts; and how it was done.

INPUTS: <results>/evaluate/, <results>/choose_n/, <results>/sweep/, <results>/textmetrics/,
    <results>/corpus/corpus.json, resources/literature.csv
OUTPUTS: <results>/findings.{md,csv,html}, <results>/start.html, <results>/methods.html
"""


rule write_findings:
    input:
        blocks=expand(
            "<results>/evaluate/{model}.csv",
            model=finished("evaluate", EXPERIMENT.judged),
        ),
        draws=expand(
            "<results>/choose_n/{model}.json", model=finished("choose_n", CHOOSE_N)
        ),
        sweeps=expand(
            "<results>/sweep/test/{model}.csv",
            model=finished("sweep", EXPERIMENT.questions["swept"]),
        ),
        validation=expand(
            "<results>/sweep/valid/{model}.csv",
            model=finished("sweep", EXPERIMENT.questions["swept"]),
        ),
        windows=expand(
            "<results>/sweep/{model}.json",
            model=finished("sweep", EXPERIMENT.questions["swept"]),
        ),
        scores=expand(
            "<results>/textmetrics/{model}.json",
            model=finished("samples", EXPERIMENT.compared),
        ),
        corpus=available("corpus/{}.json", ["corpus"]),
        literature=bundled("resources/literature.csv"),
    output:
        text="<results>/findings.md",
        table="<results>/findings.csv",
        page=report(
            "<results>/findings.html",
            caption="../report/findings.rst",
            category="1 Results",
            labels={"result": "Findings: which claims of the paper hold in this run"},
        ),
    log:
        "<logs>/write_findings.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        questions=EXPERIMENT.questions,
        thresholds=config["findings"],
        scale=EXPERIMENT.scale,
        code=code("write_findings.py"),
    script:
        "../scripts/write_findings.py"


rule render_start:
    input:
        findings="<results>/findings.csv",
        table=(["<results>/tables/table1.csv"] if TABLE1 else []),
        figure=(
            ["<results>/figures/choose_n.svg"]
            if finished("choose_n", CHOOSE_N)
            else []
        ),
        templates=[
            bundled(f"workflow/report/{page}.html.jinja") for page in ("page", "start")
        ],
    output:
        report(
            "<results>/start.html",
            caption="../report/start.rst",
            category="0 Start here",
            labels={"result": "The question, the answer, Table 1, Figure 2"},
        ),
    log:
        "<logs>/render_start.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        name=config["name"],
        protocol=EXPERIMENT.first_protocol,
        draws=config["evaluation"]["draws"],
        code=code("render_start.py"),
    script:
        "../scripts/render_start.py"


rule render_methods:
    input:
        templates=[
            bundled(f"workflow/report/{page}.html.jinja")
            for page in ("page", "methods")
        ],
    output:
        report(
            "<results>/methods.html",
            caption="../report/methods.rst",
            category="6 Methods",
            labels={
                "result": "Methods: formulas, versions, config, code, how to repeat"
            },
        ),
    log:
        "<logs>/render_methods.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        config=config,
        sources=fingerprinted_sources(),
        versions=package_versions(*SHOWN_PACKAGES),
        code=code("render_methods.py"),
    script:
        "../scripts/render_methods.py"
