"""The claims of Tevet et al. 2019, in the paper's order and with its numbers."""

from collections.abc import Callable, Iterable
from dataclasses import asdict

from ganlm.claims import Judge
from ganlm.findings import Claim, Finding


def claims(judge: Judge) -> list[Claim]:
    """All of them, each with what the run says of it."""
    named = asdict(judge.thresholds)
    return [Claim(title.format(**named), paper, tuple(found(judge))) for title, paper, found in PAPER]


PAPER: tuple[tuple[str, str, Callable[[Judge], Iterable[Finding]]], ...] = (
    (
        "The bound asks for millions of draws",
        "N > ln(2|V|/ε)/(2γ²) is 4.3 million for 27 characters and 8.1 million for 50,000 words.",
        Judge.bound,
    ),
    (
        "{draws:,} draws are enough by the rule of Figure 2",
        "the estimate changes by less than γ' = 0.001 from N > 1600 on, for both of its models.",
        Judge.enough_draws,
    ),
    (
        "Longer windows than {window} hurt the Recurrent GAN",
        "its windows of 7 characters were tuned on validation, because longer ones made it worse.",
        Judge.longer_windows,
    ),
    (
        "LeakGAN performs worse",
        "LeakGAN performed worse than the other models; there is no number.",
        Judge.leakgan,
    ),
    (
        "The numbers of Table 1",
        "1.85 for the pre-trained language model, 1.99 after adversarial training, 3.31 for the Recurrent "
        "GAN, 4.75 for the uniform distribution.",
        Judge.reproduced,
    ),
    (
        "Approximate bits are close to exact ones",
        "1.95 instead of 1.85 and 2.08 instead of 1.99, from 2,000 draws.",
        Judge.approximation,
    ),
    (
        "GANs are worse than language models",
        "1.85 to 3.31 bits for GANs, 1.19 to 1.40 for language models of the time.",
        Judge.gans_behind,
    ),
    (
        "The Recurrent GAN is worse than SeqGAN and the language model SeqGAN starts from",
        "3.31 bits in windows of 7, beside 1.99 and 1.85 in windows of 1,000. Here all windows are alike.",
        Judge.fair_partners,
    ),
    (
        "Adversarial training makes bits worse",
        "1.99 after full adversarial training, 1.85 before it.",
        Judge.deterioration,
    ),
    (
        "Adversarial training lowers the quality of samples",
        "three samples each in Table 2; there is no number. Press et al. score samples by %-IN-TEST-n.",
        Judge.sample_quality,
    ),
)
