"""SeqGAN: adversarial training of a pre-trained language model by policy gradient (Yu et al. 2017).

The defaults do what the method describes. What the published code of Tevet et al. did differently is a
switch each, so that its behaviour can be run on purpose and told apart from the method's: discriminator
batches of one class only (`shuffle: false`), roll-outs by the current generator (`rollout_lag: 0`), dropout
while sampling, a summed policy loss. All randomness is keyed by the place in training, so that it can stop
and go on between any two steps, and so that an epoch of one arm meets the random numbers of another's.
"""

from contextlib import AbstractContextManager
from copy import deepcopy
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from ganlm.models.discriminator import Discriminator
from ganlm.models.lstm import LanguageModel, shifted
from ganlm.randomness import keyed_rng, keyed_seed
from ganlm.training import adversarial
from ganlm.training.mle import validate
from ganlm.training.optimizers import TensorFlowAdam
from ganlm.training.rollout import rewards, sample

# Epoch, of which 0 is the discriminator's pre-training, and step within it.
Place = tuple[int, int]


@dataclass(frozen=True)
class Settings:
    """Hyper-parameters of adversarial training, and the switches for the published code's behaviour."""

    epochs: int
    length: int
    batch: int
    sequences: int
    pretrain_rounds: int
    rounds: int
    passes: int
    repeats: int
    learning_rate: float
    discriminator_rate: float
    clip: float
    penalty: float
    discriminator_embedding: int
    discriminator_dropout: float
    held_out: int
    shuffle: bool
    rollout_lag: float
    sampling_dropout: bool
    loss: str
    reward: str
    baseline: bool
    adam: str
    precision: str
    keep: tuple[int, ...]
    validation_tokens: int
    validation_window: int
    seed: int

    @property
    def steps(self) -> int:
        """Rounds of discriminator pre-training, then per epoch one policy step and its rounds."""
        return self.pretrain_rounds + self.epochs * (1 + self.rounds)


@dataclass(kw_only=True)
class Players(adversarial.Players):
    """A generator, the policy that completes its sentences, and what judges them."""

    generator: LanguageModel
    policy: LanguageModel
    discriminator: Discriminator
    discriminator_adam: torch.optim.Optimizer

    @classmethod
    def from_generator(
        cls, generator: LanguageModel, vocabulary: int, settings: Settings, device: torch.device
    ) -> "Players":
        """A fresh discriminator and fresh optimizers; the roll-out policy starts as the generator."""
        generator = generator.to(device)
        discriminator = Discriminator(
            vocabulary, settings.length, settings.discriminator_embedding, settings.discriminator_dropout
        ).to(device)
        adam = {"pytorch": torch.optim.Adam, "tensorflow": TensorFlowAdam}[settings.adam]
        return cls(
            generator=generator,
            policy=deepcopy(generator),
            discriminator=discriminator,
            generator_adam=adam(generator.parameters(), lr=settings.learning_rate),
            discriminator_adam=torch.optim.Adam(
                discriminator.parameters(), lr=settings.discriminator_rate, fused=True
            ),
        )

    def parts(self) -> dict[str, nn.Module | torch.optim.Optimizer]:
        """All five."""
        return {
            "generator": self.generator,
            "policy": self.policy,
            "discriminator": self.discriminator,
            "generator_adam": self.generator_adam,
            "discriminator_adam": self.discriminator_adam,
        }


class Trainer(adversarial.Loop):
    """Rounds of the discriminator, and between them steps of the policy."""

    stage: ClassVar[str] = "adversarial_train"
    unit: ClassVar[str] = "steps"

    def __init__(
        self, players: Players, train: np.ndarray, valid: np.ndarray, settings: Settings, device: torch.device
    ) -> None:
        super().__init__(players, settings, device)
        self._train, self._valid = train, valid
        for part, tokens in (("train", train), ("validation", valid)):
            if len(tokens) < settings.length:
                raise ValueError(
                    f"the {part} part has {len(tokens):,} tokens, but a sequence has {settings.length}: "
                    "use a longer text, or lower length"
                )

    def step(self, step: int) -> dict:
        """A round of the discriminator or a step of the policy; what it came to."""
        epoch, within = place = self._place(step)
        torch.manual_seed(keyed_seed(self.settings.seed, "dropout", place) % 2**63)
        random = torch.Generator(self.device).manual_seed(
            keyed_seed(self.settings.seed, "draws", place) % 2**63
        )
        if epoch and within == 0:
            record = self.policy_step(random)
        else:
            record = self.discriminator_round(place, random)
        if self.ends_epoch(step):
            bpc = validate(self.players.generator, self._valid, self.settings, self.device)
            record["validation_bpc"] = bpc
        return {"epoch": epoch} | record

    def _place(self, step: int) -> Place:
        if step < self.settings.pretrain_rounds:
            return 0, step
        epoch, within = divmod(step - self.settings.pretrain_rounds, 1 + self.settings.rounds)
        return epoch + 1, within

    def ends_epoch(self, step: int) -> bool:
        """After the last round; that of pre-training, if there is one, tells where the first epoch starts."""
        epoch, within = self._place(step)
        return within == (self.settings.rounds if epoch else self.settings.pretrain_rounds - 1)

    def policy_step(self, random: torch.Generator) -> dict:
        """One update of the generator by policy gradient, then the roll-out policy follows."""
        players, settings = self.players, self.settings
        samples = self._fakes(settings.batch, random)
        if settings.reward == "constant":
            reward = torch.ones(samples.shape, device=self.device)
        else:
            players.policy.eval()
            players.discriminator.eval()
            with self._autocast():
                reward = rewards(players.policy, players.discriminator, samples, settings.repeats, random)
        advantage = reward - reward.mean(dim=0) if settings.baseline else reward
        players.generator.train(settings.sampling_dropout)
        with self._autocast(), self._backend_with_gradient():
            logits, _ = players.generator(shifted(samples))
        log_p = logits.float().log_softmax(dim=-1).gather(-1, samples[:, :, None])[:, :, 0]
        loss = -(log_p * advantage).sum() / (1 if settings.loss == "sum" else samples.numel())
        players.generator_adam.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(players.generator.parameters(), settings.clip)
        players.generator_adam.step()
        self._follow()
        return {
            "tokens": samples.numel(),
            "policy_loss": loss.item(),
            "gradient_norm": norm.item(),
            "reward_mean": reward.mean().item(),
            "reward_spread": reward.std(dim=0, correction=0).mean().item(),
        }

    @torch.no_grad()
    def _follow(self) -> None:
        """The roll-out policy becomes lag * itself + (1 - lag) * generator."""
        lag = self.settings.rollout_lag
        for old, new in zip(
            self.players.policy.parameters(), self.players.generator.parameters(), strict=True
        ):
            old.mul_(lag).add_(new, alpha=1 - lag)

    def discriminator_round(self, place: Place, random: torch.Generator) -> dict:
        """Some passes over fresh fakes and random real windows; accuracy on held-out ones."""
        players, settings = self.players, self.settings
        sequences = torch.cat(
            [self._reals(self._train, settings.sequences, place), self._fakes(settings.sequences, random)]
        )
        labels = torch.zeros(len(sequences), dtype=torch.long, device=self.device)
        labels[: settings.sequences] = 1
        players.discriminator.train()
        losses = []
        for _ in range(settings.passes):
            order = torch.arange(len(sequences), device=self.device)
            if settings.shuffle:
                order = torch.randperm(len(sequences), generator=random, device=self.device)
            batches = order.split(settings.batch)
            losses += [self._discriminator_update(sequences[batch], labels[batch]) for batch in batches]
        return {
            "tokens": settings.passes * sequences.numel(),
            "discriminator_loss": torch.stack(losses).mean().item(),
        } | self._accuracy(place, random)

    def _discriminator_update(self, sequences: Tensor, labels: Tensor) -> Tensor:
        discriminator, adam = self.players.discriminator, self.players.discriminator_adam
        with self._autocast():
            logits = discriminator(sequences)
        loss = nn.functional.cross_entropy(logits, labels) + self.settings.penalty * discriminator.penalty()
        adam.zero_grad(set_to_none=True)
        loss.backward()
        adam.step()
        return loss.detach()

    @torch.no_grad()
    def _accuracy(self, place: Place, random: torch.Generator) -> dict:
        """Share of held-out real and of fresh generated sequences that the discriminator tells apart."""
        self.players.discriminator.eval()
        count = self.settings.held_out
        with self._autocast():
            real = self.players.discriminator.real(self._reals(self._valid, count, place))
            fake = self.players.discriminator.real(self._fakes(count, random))
        return {
            "accuracy_real": (real > 0.5).float().mean().item(),
            "accuracy_fake": (fake <= 0.5).float().mean().item(),
        }

    def _reals(self, tokens: np.ndarray, count: int, place: Place) -> Tensor:
        """Random windows of fixed phase, none twice while there are enough of them."""
        length = self.settings.length
        there = len(tokens) // length
        rng = keyed_rng(self.settings.seed, "reals", len(tokens), place)
        chosen = rng.choice(there, count, replace=count > there)
        windows = tokens[chosen[:, None] * length + np.arange(length)].astype(np.int64)
        return torch.from_numpy(windows).to(self.device)

    def _fakes(self, count: int, random: torch.Generator) -> Tensor:
        self.players.generator.train(self.settings.sampling_dropout)
        with self._autocast():
            return sample(self.players.generator, count, self.settings.length, random)

    def _backend_with_gradient(self) -> AbstractContextManager:
        """cuDNN has no backward pass of an LSTM in evaluation mode; PyTorch's own has."""
        cudnn = torch.backends.cudnn
        return cudnn.flags(
            enabled=self.settings.sampling_dropout,
            benchmark=cudnn.benchmark,
            deterministic=cudnn.deterministic,
            allow_tf32=cudnn.allow_tf32,
        )
