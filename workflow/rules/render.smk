"""
What the reader looks at.

INPUTS: <results>/evaluate/{model}.json, resources/literature.csv
OUTPUTS: <results>/tables/table1.{csv,md,tex,html,txt}
"""


rule render_table1:
    input:
        summaries=expand("<results>/evaluate/{model}.json", model=TABLE1),
        corpus=rules.split_corpus.output.corpus,
        literature=bundled("resources/literature.csv"),
    output:
        csv="<results>/tables/table1.csv",
        markdown="<results>/tables/table1.md",
        latex="<results>/tables/table1.tex",
        html=report(
            "<results>/tables/table1.html",
            caption="../report/table1.rst",
            category="1 Results",
            labels={"table": "Table 1: bits per character on the test part"},
        ),
        text="<results>/tables/table1.txt",
    log:
        "<logs>/render_table1.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        models={name: config["models"][name] for name in TABLE1},
        windows=config["evaluation"]["windows"],
        code=code("render_table1.py"),
    script:
        "../scripts/render_table1.py"
