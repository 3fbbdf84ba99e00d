"""
What the reader looks at.

INPUTS: <results>/evaluate/, <results>/choose_n/, resources/literature.csv
OUTPUTS: <results>/tables/*.{csv,md,tex,html,txt}, <results>/figures/*.{svg,pdf,png,csv}
"""


rule render_table1:
    input:
        summaries=expand("<results>/evaluate/{model}.json", model=EXPERIMENT.table1),
        corpus=rules.split_corpus.output.corpus,
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
        models={name: EXPERIMENT.models[name] for name in EXPERIMENT.table1},
        windows=config["evaluation"]["windows"],
        code=code("render_table1.py"),
    script:
        "../scripts/render_table1.py"


rule render_differences:
    input:
        summaries=expand("<results>/evaluate/{model}.json", model=EXPERIMENT.models),
        blocks=expand("<results>/evaluate/{model}.csv", model=EXPERIMENT.models),
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
        level=config["evaluation"]["level"],
        code=code("render_differences.py"),
    script:
        "../scripts/render_differences.py"


rule render_choose_n:
    input:
        curves=expand("<results>/choose_n/{model}.csv", model=CHOOSE_N),
        chosen=expand("<results>/choose_n/{model}.json", model=CHOOSE_N),
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
        code=code("render_choose_n.py"),
    script:
        "../scripts/render_choose_n.py"


rule render_gap:
    input:
        summaries=expand("<results>/evaluate/{model}.json", model=EXPERIMENT.gap_models),
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
        report(
            "<results>/figures/estimators.svg",
            caption="../report/estimators.rst",
            category="3 From draws to bits",
            labels={"result": "Estimators: bias against draws per token"},
        ),
        multiext("<results>/figures/estimators", ".pdf", ".png", ".csv"),
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
        summaries=expand(
            "<results>/evaluate/{instance}.json",
            instance=EXPERIMENT.adversarial_instances,
        ),
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
        arms=EXPERIMENT.arms,
        protocol=EXPERIMENT.first_protocol,
        code=code("render_adversarial.py"),
    script:
        "../scripts/render_adversarial.py"


rule render_estimates:
    input:
        summaries=expand("<results>/evaluate/{model}.json", model=EXPERIMENT.models),
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
        code=code("render_estimates.py"),
    script:
        "../scripts/render_estimates.py"
