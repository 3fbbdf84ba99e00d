from pathlib import Path

import pandas as pd

from ganlm.literature import comparable, published_gaps

LITERATURE = pd.read_csv(Path(__file__).parents[2] / "resources/literature.csv")


def test_the_gaps_are_those_of_both_versions_of_the_paper():
    """Table 1 of arXiv:1810.12686, versions 1 and 2."""
    found = published_gaps(LITERATURE, 2000)
    gaps = found.set_index(["version", "model"])["gap"].to_dict()
    assert gaps == {
        ("the paper", "seqgan-pretrained"): 0.10,
        ("the paper", "seqgan-full"): 0.09,
        ("its first version", "seqgan-pretrained"): 0.12,
        ("its first version", "seqgan-full"): 0.19,
    }
    assert set(found["draws"]) == {2000}


def test_every_quoted_number_has_a_source():
    assert LITERATURE["source"].notna().all()
    assert LITERATURE["citation"].notna().all()


def test_published_bits_stand_beside_models_of_their_protocol():
    """Windows of 1000 and of 7 are the paper's; records read on without a restart."""
    found = comparable(LITERATURE, ["window-1000", "window-7"]).set_index("model")
    assert found["mean"].to_dict() == {
        "SeqGAN - pre-trained LM": 1.85,
        "SeqGAN - full adversarial training": 1.99,
        "Recurrent GAN - without pre-training": 3.31,
    }
    assert found["protocol"].value_counts().to_dict() == {"window-1000": 2, "window-7": 1}
    records = comparable(LITERATURE, ["carried"])
    assert records["mean"].between(1, 1.5).all()
    assert "MD4" not in set(records["model"]), "an upper bound on chunks is not alike"
