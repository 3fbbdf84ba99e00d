"""
Figures that the reader looks at, and tables that say the same.

INPUTS: <results>/evaluate/, <results>/choose_n/, <results>/sweep/, <results>/models/, resources/literature.csv
OUTPUTS: <results>/figures/*.{svg,pdf,png,csv}, <results>/tables/*.{csv,md,tex,html,txt}
"""


rule render_standings:
    input:
        summaries=expand(
            "<results>/evaluate/{model}.json",
            model=finished("evaluate", EXPERIMENT.models),
        ),
        literature=bundled("resources/literature.csv"),
    output:
        report(
            "<results>/figures/standings.svg",
            caption="../report/standings.rst",
            category="1 Results",
            labels={"result": "All models on one axis, by protocol"},
        ),
        multiext("<results>/figures/standings", ".pdf", ".png", ".csv"),
    log:
        "<logs>/render_standings.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        protocols=list(EXPERIMENT.protocols),
        quoted=EXPERIMENT.is_text8,
        code=code("render_standings.py"),
    script:
        "../scripts/render_standings.py"


rule render_pairs:
    input:
        blocks=lambda wildcards: expand(
            "<results>/evaluate/{model}.csv",
            model=finished("evaluate", EXPERIMENT.protocols[wildcards.protocol]),
        ),
    output:
        figure=report(
            "<results>/figures/pairs-{protocol}.svg",
            caption="../report/pairs.rst",
            category="1 Results",
            labels={"result": "Pairs of models under {protocol}"},
        ),
        formats=[
            f"<results>/figures/pairs-{{protocol}}.{format}"
            for format in ("pdf", "png", "csv")
        ],
        tables=[
            f"<results>/tables/pairs-{{protocol}}.{format}"
            for format in ("csv", "md", "tex", "txt")
        ],
        page=report(
            "<results>/tables/pairs-{protocol}.html",
            caption="../report/pairs.rst",
            category="1 Results",
            labels={"result": "Pairs of models under {protocol}, as a table"},
        ),
    log:
        "<logs>/render_pairs-{protocol}.log",
    wildcard_constraints:
        protocol=one_of(EXPERIMENT.protocols),
    localrule: True
    conda:
        "../../environment.yml"
    params:
        level=config["evaluation"]["level"],
        missing=lambda wildcards: missing(
            "evaluate", EXPERIMENT.protocols[wildcards.protocol]
        ),
        code=code("render_pairs.py"),
    script:
        "../scripts/render_pairs.py"


rule render_recurrence:
    output:
        report(
            "<results>/figures/recurrence.svg",
            caption="../report/recurrence.rst",
            category="2 How many draws",
            labels={"result": "Figure 1: what is drawn, and what is fed back"},
        ),
        multiext("<results>/figures/recurrence", ".pdf", ".png", ".csv"),
    log:
        "<logs>/render_recurrence.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        code=code("render_recurrence.py"),
    script:
        "../scripts/render_recurrence.py"


rule render_bound:
    output:
        report(
            "<results>/figures/bound.svg",
            caption="../report/bound.rst",
            category="2 How many draws",
            labels={"result": "Bound: draws that guarantee an accuracy"},
        ),
        multiext("<results>/figures/bound", ".pdf", ".png", ".csv"),
    log:
        "<logs>/render_bound.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        epsilon=config["choose_n"]["epsilon"],
        draws=config["evaluation"]["draws"],
        code=code("render_bound.py"),
    script:
        "../scripts/render_bound.py"


rule render_choose_n:
    input:
        curves=expand(
            "<results>/choose_n/{model}.csv", model=finished("choose_n", CHOOSE_N)
        ),
        chosen=expand(
            "<results>/choose_n/{model}.json", model=finished("choose_n", CHOOSE_N)
        ),
    output:
        report(
            "<results>/figures/choose_n.svg",
            caption="../report/choose_n.rst",
            category="2 How many draws",
            labels={"result": "Figure 2: convergence"},
        ),
        multiext("<results>/figures/choose_n", ".pdf", ".png", ".csv"),
        multiext("<results>/tables/choose_n", ".csv", ".md", ".tex", ".txt"),
        report(
            "<results>/tables/choose_n.html",
            caption="../report/choose_n_table.rst",
            category="2 How many draws",
            labels={"result": "Choice of N: the rule, and a plan in bits"},
        ),
    log:
        "<logs>/render_choose_n.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        draws=config["evaluation"]["draws"],
        missing=missing("choose_n", CHOOSE_N),
        code=code("render_choose_n.py"),
    script:
        "../scripts/render_choose_n.py"


rule render_gap:
    input:
        summaries=expand(
            "<results>/evaluate/{model}.json",
            model=finished("evaluate", EXPERIMENT.gap_models),
        ),
        literature=bundled("resources/literature.csv"),
    output:
        report(
            "<results>/figures/gap.svg",
            caption="../report/gap.rst",
            category="3 From draws to bits",
            labels={"result": "Gap: approximate minus exact bits against N"},
        ),
        multiext("<results>/figures/gap", ".pdf", ".png", ".csv"),
    log:
        "<logs>/render_gap.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        protocol=EXPERIMENT.first_protocol,
        published_draws=2000,
        code=code("render_gap.py"),
    script:
        "../scripts/render_gap.py"


rule render_estimators:
    input:
        summary=f"<results>/evaluate/{BASELINE}.json",
    output:
        figure=[
            report(
                "<results>/figures/estimators.svg",
                caption="../report/estimators.rst",
                category="3 From draws to bits",
                labels={"result": "Estimators: bias against draws per token"},
            ),
            *multiext("<results>/figures/estimators", ".pdf", ".png", ".csv"),
        ],
        table=[
            *multiext("<results>/tables/estimators", ".csv", ".md", ".tex", ".txt"),
            report(
                "<results>/tables/estimators.html",
                caption="../report/estimators.rst",
                category="3 From draws to bits",
                labels={"result": "Estimators: bias and cost, as a table"},
            ),
        ],
    log:
        "<logs>/render_estimators.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        protocol=EXPERIMENT.first_protocol,
        code=code("render_estimators.py"),
    script:
        "../scripts/render_estimators.py"


rule render_adversarial:
    input:
        summaries=expand("<results>/evaluate/{instance}.json", instance=ARM_INSTANCES),
        blocks=expand("<results>/evaluate/{instance}.csv", instance=ARM_INSTANCES),
    output:
        report(
            "<results>/figures/adversarial.svg",
            caption="../report/adversarial.rst",
            category="4 Adversarial training",
            labels={"result": "Arms: bits against epochs"},
        ),
        multiext("<results>/figures/adversarial", ".pdf", ".png", ".csv"),
    log:
        "<logs>/render_adversarial.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        arms=ARMS,
        protocol=EXPERIMENT.first_protocol,
        code=code("render_adversarial.py"),
    script:
        "../scripts/render_adversarial.py"


rule render_sweep:
    input:
        summaries=expand(
            "<results>/sweep/test/{model}.json",
            model=finished("sweep", EXPERIMENT.swept),
        ),
        chosen=expand(
            "<results>/sweep/{model}.json",
            model=finished("sweep", EXPERIMENT.swept),
        ),
    output:
        report(
            "<results>/figures/sweep.svg",
            caption="../report/sweep.rst",
            category="1 Results",
            labels={"result": "Windows: bits against the length of the context"},
        ),
        multiext("<results>/figures/sweep", ".pdf", ".png", ".csv"),
    log:
        "<logs>/render_sweep.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        code=code("render_sweep.py"),
    script:
        "../scripts/render_sweep.py"


rule render_training:
    input:
        histories=lambda wildcards: expand(
            "<results>/models/{model}/history.csv",
            model=finished("train", EXPERIMENT.of_kind(wildcards.kind)),
        ),
        rates=lambda wildcards: expand(
            "<benchmarks>/train/{model}.csv",
            model=finished("train", EXPERIMENT.of_kind(wildcards.kind)),
        ),
    output:
        figure=report(
            "<results>/figures/training-{kind}.svg",
            caption="../report/training.rst",
            category="5 Training and cost",
            labels={"result": "Training of {kind}"},
        ),
        formats=[
            f"<results>/figures/training-{{kind}}.{format}"
            for format in ("pdf", "png", "csv")
        ],
        speed=[
            f"<benchmarks>/training-{{kind}}.{format}"
            for format in ("svg", "pdf", "png", "csv")
        ],
    log:
        "<logs>/render_training-{kind}.log",
    wildcard_constraints:
        kind="|".join(TRAINED_KINDS),
    localrule: True
    conda:
        "../../environment.yml"
    params:
        models=lambda wildcards: finished("train", EXPERIMENT.of_kind(wildcards.kind)),
        code=code("render_training.py"),
    script:
        "../scripts/render_training.py"
