"""The Recurrent GAN's training: a Wasserstein critic with gradient penalty, without any pre-training.

Critic: mean D(fake) − mean D(real) + λ mean (‖∇D(x̃)‖ − 1)², x̃ = real + a (fake − real), a ~ U(0, 1) per item,
with the norm over time and vocabulary jointly (Gulrajani et al. 2017). Generator: −mean D(fake). The
curriculum goes from short windows to long ones; each stage starts from the last one's weights, and each is
kept. All randomness is keyed by iteration, so training can stop and go on between any two of them.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from ganlm.models.recurrent_gan import Critic, Generator
from ganlm.randomness import keyed_rng, keyed_seed
from ganlm.training import adversarial
from ganlm.training.teacher_helping import draw_items, fake_items, real_items

SMALLEST_PROBABILITY = 1e-20
ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class Settings:
    """Hyper-parameters of the training, and the switches for the published code's behaviour."""

    lengths: tuple[int, ...]
    iterations: int
    critic_updates: int
    generator_updates: int
    batch: int
    windows: int | None
    learning_rate: float
    critic_rate: float
    betas: tuple[float, float]
    penalty: float
    optimizer_restart: bool
    skip_first_real: bool
    precision: str
    log_every: int
    keep: tuple[int, ...]
    validation_tokens: int
    validation_window: int
    validation_draws: int
    seed: int

    @property
    def steps(self) -> int:
        """Iterations of all stages."""
        return len(self.lengths) * self.iterations

    @property
    def updates(self) -> int:
        """Of both networks, in all stages."""
        return self.steps * (self.critic_updates + self.generator_updates)

    def place(self, step: int) -> tuple[int, int]:
        """The stage's length, and the iteration within it, counted from 1."""
        stage, within = divmod(step, self.iterations)
        return self.lengths[stage], within + 1


@dataclass(kw_only=True)
class Players(adversarial.Players):
    """A generator and its critic."""

    generator: Generator
    critic: Critic
    critic_adam: torch.optim.Optimizer

    @classmethod
    def at_start(cls, generator: Generator, critic: Critic, settings: Settings, device: torch.device) -> Self:
        """Fresh optimizers for fresh networks."""
        generator, critic = generator.to(device), critic.to(device)
        adams = _optimizers(generator, critic, settings)
        return cls(generator=generator, critic=critic, generator_adam=adams[0], critic_adam=adams[1])

    def forget_moments(self, settings: Settings) -> None:
        """Start the optimizers anew."""
        self.generator_adam, self.critic_adam = _optimizers(self.generator, self.critic, settings)

    def parts(self) -> dict[str, nn.Module | torch.optim.Optimizer]:
        """All four."""
        return {
            "generator": self.generator,
            "critic": self.critic,
            "generator_adam": self.generator_adam,
            "critic_adam": self.critic_adam,
        }


def _optimizers(generator: Generator, critic: Critic, settings: Settings) -> list[torch.optim.Adam]:
    return [
        torch.optim.Adam(network.parameters(), lr=rate, betas=tuple(settings.betas), fused=True)
        for network, rate in ((generator, settings.learning_rate), (critic, settings.critic_rate))
    ]


def gradient_penalty(critic: nn.Module, points: Tensor) -> Tensor:
    """Mean of (‖∇D‖ − 1)² over points (rows, length, vocabulary), differentiable by the critic's weights."""
    points = points.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(critic(points).sum(), points, create_graph=True)
    return (gradient.flatten(1).norm(dim=1) - 1).square().mean()


class Trainer(adversarial.Loop):
    """Iterations of critic and generator, from stage to stage; the epoch of a stage is its length."""

    stage: ClassVar[str] = "train_recurrent_gan"
    unit: ClassVar[str] = "iterations"

    def __init__(
        self, players: Players, train: np.ndarray, valid: np.ndarray, settings: Settings, device: torch.device
    ) -> None:
        super().__init__(players, settings, device)
        self._train, self._valid = train, valid
        if len(train) < max(settings.lengths):
            raise ValueError(
                f"the train part has {len(train):,} tokens, but the last stage reads {max(settings.lengths)} "
                "at once: use a longer text, or shorter lengths"
            )
        if len(valid) < settings.validation_window:
            raise ValueError(
                f"the validation part has {len(valid):,} tokens, but a window has "
                f"{settings.validation_window}: use a longer text, or lower validation_window"
            )

    def step(self, step: int) -> dict[str, float]:
        """One iteration, and at the end of a stage the bits on validation."""
        record = {"epoch": self.settings.place(step)[0]} | self.iteration(step)
        if self.ends_epoch(step):
            generator = self.players.generator
            record["validation_bpc"] = validate(generator, self._valid, self.settings, self.device)
        return record

    def ends_epoch(self, step: int) -> bool:
        """After the last iteration of a stage."""
        return self.settings.place(step)[1] == self.settings.iterations

    def is_recorded(self, step: int) -> bool:
        """Every so many iterations, and the end of each stage."""
        return self.ends_epoch(step) or self.settings.place(step)[1] % self.settings.log_every == 0

    def iteration(self, step: int) -> dict[str, float]:
        """Updates of the critic, then of the generator, each on a new batch; means of what they came to."""
        settings = self.settings
        length, within = settings.place(step)
        if settings.optimizer_restart and within == 1:
            self.players.forget_moments(settings)
        random = torch.Generator(self.device).manual_seed(keyed_seed(settings.seed, "draws", step) % 2**63)
        windows = self._windows(step, length)
        critic = [self.critic_update(batch, random) for batch in windows[: settings.critic_updates]]
        generator = [self.generator_update(batch, random) for batch in windows[settings.critic_updates :]]
        means = {
            name: torch.stack([found[name] for found in side]).mean().item()
            for side in (critic, generator)
            for name in side[0]
        }
        return {"tokens": windows.numel()} | means

    def _windows(self, step: int, length: int) -> Tensor:
        """Random windows of fixed phase for all updates of an iteration, shape (updates, batch, length)."""
        settings, there = self.settings, len(self._train) // length
        there = there if settings.windows is None else min(there, settings.windows)
        shape = (settings.critic_updates + settings.generator_updates, settings.batch, 1)
        rng = keyed_rng(settings.seed, "windows", step)
        starts = length * rng.integers(there, size=shape)
        windows = self._train[starts + np.arange(length)].astype(np.int64)
        return torch.from_numpy(windows).to(self.device)

    def critic_update(self, windows: Tensor, random: torch.Generator) -> dict[str, Tensor]:
        """One step of the critic on real and fake items, which are drawn independently."""
        players, settings = self.players, self.settings
        with torch.no_grad():
            fake = self._fakes(windows, random)
        chosen = draw_items(settings.batch, windows, int(settings.skip_first_real), random)
        real = real_items(windows, chosen, fake.shape[-1])
        share = torch.rand(len(real), 1, 1, generator=random, device=self.device)
        with self._autocast():
            on_fake, on_real = players.critic(torch.cat([fake, real])).chunk(2)
            penalty = gradient_penalty(players.critic, torch.lerp(real, fake, share))
        distance = on_real.mean() - on_fake.mean()
        loss = settings.penalty * penalty - distance
        norm = _update(players.critic, players.critic_adam, loss)
        return {
            "critic_loss": loss.detach(),
            "wasserstein": distance.detach(),
            "gradient_penalty": penalty.detach(),
            "critic_gradient_norm": norm,
        }

    def generator_update(self, windows: Tensor, random: torch.Generator) -> dict[str, Tensor]:
        """One step of the generator towards what the critic takes for real."""
        players = self.players
        fake = self._fakes(windows, random)
        with self._autocast():
            loss = -players.critic(fake).mean()
        norm = _update(players.generator, players.generator_adam, loss)
        return {"generator_loss": loss.detach(), "generator_gradient_norm": norm}

    def _fakes(self, windows: Tensor, random: torch.Generator) -> Tensor:
        generator = self.players.generator
        noise = generator.noise(len(windows), random)
        with self._autocast():
            soft = generator(windows, noise).float().softmax(dim=-1)
        return fake_items(windows, soft, draw_items(self.settings.batch, windows, 0, random))


def _update(network: nn.Module, optimizer: torch.optim.Optimizer, loss: Tensor) -> Tensor:
    """One step of one player, with no gradient for the other; the norm of its own."""
    optimizer.zero_grad(set_to_none=True)
    parameters = list(network.parameters())
    loss.backward(inputs=parameters)
    optimizer.step()
    return nn.utils.get_total_norm([parameter.grad for parameter in parameters])


@torch.inference_mode()
def validate(generator: Generator, tokens: np.ndarray, settings: Settings, device: torch.device) -> float:
    """Bits per token by the mean softmax over fresh noise, on the start of the validation part, in windows.

    The noise depends on the seed only, so that stages are compared on the same draws.
    """
    window, draws = settings.validation_window, settings.validation_draws
    rows = min(settings.validation_tokens, len(tokens)) // window
    windows = torch.from_numpy(tokens[: rows * window].astype(np.int64).reshape(rows, window)).to(device)
    random = torch.Generator(device).manual_seed(keyed_seed(settings.seed, "validation") % 2**63)
    bits = 0.0
    for some in windows.split(max(1, ROWS_AT_ONCE // draws)):
        repeated = some.repeat(draws, 1)
        log_p = generator(repeated, generator.noise(len(repeated), random)).log_softmax(dim=-1)
        gold = log_p.gather(-1, repeated[:, :, None]).double().exp().view(draws, len(some), window)
        bits -= gold.mean(dim=0).clamp(min=SMALLEST_PROBABILITY).log2().sum().item()
    return bits / windows.numel()
