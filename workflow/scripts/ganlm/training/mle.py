"""Maximum likelihood: the pre-training of SeqGAN, and what one would do today.

An epoch is a fixed number of updates, not a pass over the text. Each epoch's windows, dropout and order
follow from its number, so training can stop and go on between any two epochs.
"""

import logging
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from ganlm.logs import Progress
from ganlm.models.lstm import LanguageModel, Lstm, shifted
from ganlm.randomness import keyed_rng, keyed_seed
from ganlm.training.checkpoint import Checkpoint, collect, restore
from ganlm.training.divergence import DivergenceError

logger = logging.getLogger(__name__)

# Of the outcome, in a checkpoint beside the tensors.
SAVED = ("history", "seconds", "best_epoch", "best_bpc")


@dataclass(frozen=True)
class Settings:
    """Hyper-parameters of maximum likelihood training."""

    epochs: int
    updates: int
    batch: int
    window: int
    carry: bool
    learning_rate: float
    decay: float
    decay_from: int
    schedule: str
    clip: float
    precision: str
    validate_every: int
    validation_tokens: int
    validation_window: int
    seed: int

    def rate(self, epoch: int) -> float:
        """Learning rate of an epoch, counted from 1."""
        if self.schedule == "cosine":
            return self.learning_rate * 0.5 * (1 + math.cos(math.pi * (epoch - 1) / self.epochs))
        return self.learning_rate * self.decay ** -max(0, epoch - self.decay_from + 1)


@dataclass
class Outcome:
    """What training has come to: the record of its epochs, and the best weights on validation."""

    history: list[dict] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    best: dict[str, Tensor] = field(default_factory=dict)
    best_epoch: int = 0
    best_bpc: float = math.inf
    diverged_in: int | None = None


def epoch_windows(tokens: np.ndarray, epoch: int, settings: Settings) -> np.ndarray:
    """The windows of an epoch, shape (updates, batch, window); carried ones begin one token earlier.

    Published: non-overlapping windows of fixed phase, drawn without replacement within an epoch. Carried:
    every row of the batch reads its own stretch of the text from where it stopped, round and round.
    """
    size = settings.window
    needed = settings.batch * (size + 1 if settings.carry else size * settings.updates)
    if len(tokens) < needed:
        raise ValueError(
            f"the train part has {len(tokens):,} tokens, but an epoch of these settings reads {needed:,}: "
            "use a longer text, or lower updates, batch or window"
        )
    if settings.carry:
        stretch = len(tokens) // settings.batch
        first = (epoch - 1) * settings.updates * size + np.arange(settings.updates)[:, None] * size
        starts = np.arange(settings.batch) * stretch + first % (stretch - size)
        size += 1
    else:
        wanted = settings.updates * settings.batch
        chosen = keyed_rng(settings.seed, "windows", epoch).choice(len(tokens) // size, wanted, replace=False)
        starts = chosen.reshape(settings.updates, settings.batch) * size
    return tokens[starts[:, :, None] + np.arange(size)].astype(np.int64)


def train(
    network: LanguageModel, train_tokens: np.ndarray, valid_tokens: np.ndarray, settings: Settings,
    device: torch.device, checkpoint: Checkpoint,
) -> Outcome:  # fmt: skip
    """Train to the last epoch, from the checkpoint if there is one.

    Training that diverges ends there, with the weights of the epoch before.
    """
    network.to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate, fused=True)
    outcome = Outcome()
    if (found := checkpoint.load()) is not None:
        with checkpoint.fitting():
            _resume(found, network, optimizer, outcome)
        logger.info("resuming after epoch %d", len(outcome.history))
    progress = Progress("pretrain_lm", settings.epochs, "epochs", start=len(outcome.history))
    for epoch in range(len(outcome.history) + 1, settings.epochs + 1):
        begin, before = time.monotonic(), _copy(network)
        record = _epoch(network, optimizer, train_tokens, epoch, settings, device)
        if _has_diverged(record, network, outcome):
            network.load_state_dict(before)
            outcome.diverged_in = epoch
            break
        outcome.seconds.append(time.monotonic() - begin)
        if epoch % settings.validate_every == 0 or epoch == settings.epochs:
            record["validation_bpc"] = validate(network, valid_tokens, settings, device)
            _keep_best(outcome, network, epoch, record["validation_bpc"])
        outcome.history.append(record)
        progress.update(epoch, loss=record["loss"], best_bpc=outcome.best_bpc)
        if checkpoint.due() or epoch in (outcome.best_epoch, settings.epochs):
            _save(checkpoint, network, optimizer, outcome)
    return outcome


def validate(network: LanguageModel, tokens: np.ndarray, settings: Settings, device: torch.device) -> float:
    """Bits per token on the start of the validation part, in windows, dropout off."""
    window = settings.validation_window
    rows = max(1, min(settings.validation_tokens, len(tokens)) // window)
    windows = np.asarray(tokens[: rows * window]).reshape(rows, -1)
    model = Lstm(network, device)
    bits, _ = model.surprisal(model.start(rows), windows)
    network.train()
    return float(bits.mean())


def _epoch(
    network: LanguageModel,
    optimizer: torch.optim.Optimizer,
    tokens: np.ndarray,
    epoch: int,
    settings: Settings,
    device: torch.device,
) -> dict:
    torch.manual_seed(keyed_seed(settings.seed, "dropout", epoch) % 2**63)
    for group in optimizer.param_groups:
        group["lr"] = settings.rate(epoch)
    network.train()
    losses, norms, state = [], [], None
    for windows in _on_device(epoch_windows(tokens, epoch, settings), device):
        loss, state = _loss(network, windows, state if settings.carry else None, settings)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(network.parameters(), settings.clip))
        optimizer.step()
        losses.append(loss.detach())
    loss, norms = float(torch.stack(losses).mean()), torch.stack(norms)
    return {
        "epoch": epoch,
        "tokens": settings.updates * settings.batch * settings.window,
        "learning_rate": settings.rate(epoch),
        "loss": loss / math.log(2),
        "gradient_norm": float(norms.mean()),
        "largest_gradient_norm": float(norms.max()),
        "recurrent_weight_rms": float(network.lstm.weight_hh_l0.detach().square().mean().sqrt()),
        "validation_bpc": math.nan,
    }


def _on_device(windows: np.ndarray, device: torch.device) -> Iterator[Tensor]:
    """One transfer per epoch, one view per update."""
    yield from torch.from_numpy(windows).to(device, non_blocking=True)


def _loss(
    network: LanguageModel, windows: Tensor, state: tuple | None, settings: Settings
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Mean negative log-likelihood in nats; the cross-entropy itself is always in float32.

    Whatever starts from nothing starts with the start token, as it will when it is evaluated.
    """
    targets = windows[:, -settings.window :]
    inputs = shifted(targets) if state is None else windows[:, :-1]
    with torch.autocast(windows.device.type, dtype=torch.bfloat16, enabled=settings.precision == "bfloat16"):
        logits, state = network(inputs, state)
    loss = nn.functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
    return loss, tuple(part.detach() for part in state)


def _has_diverged(record: dict, network: LanguageModel, outcome: Outcome) -> bool:
    """Whether more training would mend nothing; an error if nothing was validated that could be used.

    An infinite gradient is as bad as an infinite loss: clipping turns it into NaN. What the last update did
    shows in the weights alone. A network that once was better than guessing, log2 |V| bits, and now needs
    twice as much, has left the region where it can learn.
    """
    loss, norm, guessing = record["loss"], record["gradient_norm"], math.log2(network.output.out_features)
    worse = loss > 2 * guessing and any(earlier["loss"] < guessing for earlier in outcome.history)
    sound = all(weights.isfinite().all() for weights in network.parameters())
    if not worse and sound and math.isfinite(loss) and math.isfinite(norm):
        return False
    what = (
        f"training diverged in epoch {record['epoch']}: the loss is {loss:.3g} bits, guessing costs "
        f"{guessing:.3g}, the gradient is {norm:.3g}, the weights are {'' if sound else 'no longer '}finite"
    )
    if not outcome.best:
        raise DivergenceError(f"{what}; nothing was validated before: lower the learning rate")
    logger.warning("%s; the best weights, of epoch %d, are kept", what, outcome.best_epoch)
    return True


def _copy(network: LanguageModel) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().clone() for name, tensor in network.state_dict().items()}


def _keep_best(outcome: Outcome, network: LanguageModel, epoch: int, bpc: float) -> None:
    if bpc < outcome.best_bpc:
        outcome.best, outcome.best_epoch, outcome.best_bpc = _copy(network), epoch, bpc


def _save(
    checkpoint: Checkpoint, network: LanguageModel, optimizer: torch.optim.Optimizer, outcome: Outcome
) -> None:
    tensors = collect(network=network, optimizer=optimizer)
    tensors |= {f"best/{name}": tensor for name, tensor in outcome.best.items()}
    checkpoint.save(tensors, {name: getattr(outcome, name) for name in SAVED})


def _resume(
    found: tuple[dict[str, Tensor], dict],
    network: LanguageModel,
    optimizer: torch.optim.Optimizer,
    outcome: Outcome,
) -> None:
    tensors, progress = found
    for name in SAVED:
        setattr(outcome, name, progress[name])
    outcome.best = {name.removeprefix("best/"): t for name, t in tensors.items() if name.startswith("best/")}
    # Whether these fit would otherwise only show when training is over.
    if outcome.best:
        network.load_state_dict(outcome.best)
    restore(tensors, network=network, optimizer=optimizer)
