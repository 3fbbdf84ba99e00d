"""What stands beside a model's weights, so that they explain themselves."""

from ganlm.corpus import Corpus


def sidecar(parameters: dict, corpus: Corpus, code: dict[str, str], **facts: object) -> dict:
    """Hyper-parameters, alphabet, training text and code of a model, and what its training found."""
    return {
        "parameters": parameters,
        "alphabet": corpus.alphabet.symbols,
        "corpus_sha256": corpus.sha256["train"],
        "code": code,
    } | facts
