"""
Where the bits go.

INPUTS: <results>/profile/
OUTPUTS: <results>/figures/profile.{svg,pdf,png,csv}
"""


rule render_profile:
    input:
        expand("<results>/profile/{model}.csv", model=finished("profile", CHOOSE_N)),
    output:
        report(
            "<results>/figures/profile.svg",
            caption="../report/profile.rst",
            category="3 From draws to bits",
            labels={"result": "Where the bits go: by position and by probability"},
        ),
        multiext("<results>/figures/profile", ".pdf", ".png", ".csv"),
    log:
        "<logs>/render_profile.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        models=finished("profile", CHOOSE_N),
        protocols=EXPERIMENT.profile_protocols,
        level=config["evaluation"]["level"],
        code=code("render_profile.py"),
    script:
        "../scripts/render_profile.py"
