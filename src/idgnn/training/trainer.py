"""The training loop."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, cast

import torch
from torch import Tensor, nn

from idgnn.identity.cost import TooLargeError
from idgnn.models.identity_aware_model import IdentityAwareModel
from idgnn.models.large_graph import check_fanout
from idgnn.models.predictor import Predictor
from idgnn.tasks.problem import Problem
from idgnn.tasks.query_set import QuerySet
from idgnn.training.batches import Batches, BatchSource, GraphBatch, PreparesBatches
from idgnn.training.cuda_graphs import CudaGraphCache, make_adam_state
from idgnn.training.evaluation import Predictions, batch_norms, predict_all, reestimate_batchnorm
from idgnn.training.precision import check_precision, tf32_products
from idgnn.training.processes import SINGLE_PROCESS, Processes, choose_device, device_name, is_out_of_memory
from idgnn.training.recorder import Kind, Recorder, is_recorded, knows_padding
from idgnn.training.root_batches import RootBatches, RootSource
from idgnn.training.run_folder import Epoch
from idgnn.training.run_settings import TrainOptions
from idgnn.training.seeds import generator_of, seed_device, seed_of

# More would hardly change BatchNorm's statistics, and of a large graph each costs its preparation.
_STATISTICS_BATCHES = 32
# Of the tensors that hold the queries of an epoch: room for those of the next ones, where they are drawn anew.
_SPARE = 0.1


class DivergedError(ValueError):
    """The training loss is not finite."""


class HalvedBatchWarning(UserWarning):
    """Memory ran out, and training continues with smaller batches."""


class Trainer:
    """Trains a network, one epoch at a time.

    All randomness comes from the seed: on a CPU a run repeats bit for bit, and so does a run that was stopped after any
    epoch and resumed (:mod:`idgnn.training.checkpoint`).

    Args:
        model: The network; it is moved to the device.
        problem: The task.
        options: The training options.
        seed: Determines the order of the graphs, negatives and sampled neighbors, and any randomness of the network.
        processes: The processes that train together. `batch_size` is the size of a batch over all of them.
    """

    def __init__(
        self,
        model: Predictor,
        problem: Problem,
        options: TrainOptions,
        seed: int = 0,
        processes: Processes = SINGLE_PROCESS,
    ) -> None:
        self.device = choose_device(device_name(options.device, processes))
        check_precision(options.precision, self.device)
        _check_options(options, model, problem)
        recorded = is_recorded(options, model, processes, self.device)
        self.model, self.problem, self.options, self.seed = model.to(self.device), problem, options, seed
        self.processes = processes
        self.network = torch.compile(self.model, dynamic=True) if options.compile else self.model
        self.parallel = processes.parallel(cast(nn.Module, self.network))
        self.recorder: Recorder | None = None
        if recorded:
            self.recorder = Recorder(CudaGraphCache(self.device), knows_padding(model), options.compile)
        self.optimizer = torch.optim.Adam(
            self.model.parameters(),
            # A captured step reads the learning rate from the device.
            lr=torch.tensor(options.lr, device=self.device) if recorded else options.lr,
            weight_decay=options.weight_decay,
            fused=self.device.type in ("cpu", "cuda"),
            capturable=recorded,
        )
        if recorded:
            make_adam_state(self.optimizer)
        # With query_batch_size, graphs stay on the CPU, and only what a batch needs is copied to the device.
        by_query = options.query_batch_size is not None
        # Those of recorded steps are padded on the CPU.
        place = torch.device("cpu") if recorded else self.device
        self.source = RootSource(model, options.workers, place) if by_query else None
        self.train = self._placed(problem.train)
        self._fit_cycle_scale()
        self.batches: BatchSource | RootBatches | None = None  # of the training part, until its queries change
        self.held_out = {name: self._batches(self._placed(part)) for name, part in problem.held_out.items()}
        self.on_step: Callable[[int, int], None] | None = None  # (steps done, steps of the epoch) after each step
        self.epoch, self.batch_size = 0, options.query_batch_size or options.batch_size
        self.best_epoch, self.best_score, self.best_weights = 0, -math.inf, dict[str, Tensor]()

    def epochs(self) -> Iterator[Epoch]:
        """Trains up to the last epoch, and yields the result of each."""
        while self.epoch < self.options.epochs:
            yield self.train_epoch()

    def train_epoch(self) -> Epoch:
        """One pass over the training graphs, and an evaluation of the held-out parts if it is due."""
        start = time.perf_counter()
        lr = self._set_learning_rate()
        seed_device(seed_of(self.seed, "network", self.epoch) + self.processes.rank, self.device)
        batches = self._training_batches()
        self.model.train()
        if self._frozen:
            for norm in batch_norms(self.model):
                norm.eval()
        total, steps = torch.zeros((), device=self.device), 0
        waiting = self._assign_to_batches(batches.num_items)
        while waiting:
            try:
                for loss in self._steps(batches, list(waiting)):
                    total += loss
                    steps += 1
                    waiting.pop(0)
                    if self.on_step is not None:
                        self.on_step(steps, steps + len(waiting))
            except Exception as error:
                if not is_out_of_memory(error) or waiting[0].numel() == 1:
                    raise
                self._halve_batches(waiting[0].numel(), error)
                waiting = list(torch.cat(waiting).split(self.batch_size))
        frozen = self._frozen  # in this epoch
        self.epoch += 1
        due = self.epoch % self.options.eval_every == 0 or self.epoch == self.options.epochs
        # Weights of epochs with fixed statistics are trained for these.
        if not frozen and (due or self._frozen) and self.options.reestimate_batchnorm and batch_norms(self.model):
            with reestimate_batchnorm(self.model):
                for _ in self._outputs("statistics", batches, self._for_statistics(batches.num_items)):
                    pass
        self.processes.average_statistics(self.model)
        loss = self.processes.sum(total).item() / steps  # the only synchronization with a GPU in an epoch
        if not math.isfinite(loss):
            raise DivergedError(f"the loss of epoch {self.epoch} is {loss}. Try a lower learning rate than {lr:g}.")
        metrics = self.evaluate() if due else {}
        self._update_best(metrics)
        return Epoch(self.epoch, loss, lr, self.batch_size, steps, time.perf_counter() - start, metrics)

    def evaluate(self) -> dict[str, dict[str, float]]:
        """All metrics on all held-out parts."""
        metrics = {}
        for name in self.held_out:
            found = self.predict(name)
            metrics[name] = self.problem.objective.measure(found.out, found.target, found.graph)
        return metrics

    def predict(self, name: str) -> Predictions:
        """The outputs of the network for all queries of a held-out part."""
        batches, part = self.held_out[name], self.held_out[name].part

        def outputs(items: Sequence[Tensor]) -> Iterator[Tensor]:
            return self._outputs("predict", batches, items)

        out = predict_all(self.model, outputs, batches.num_items, self.batch_size, self.processes)
        assert part.target is not None
        owner = torch.arange(part.num_graphs) if part.level == "graph" else part.query_owner
        return Predictions(out, part.target.to(out.device), owner.to(out.device))

    def finish(self) -> Predictor:
        """The trained network, with the weights that `options.keep` names."""
        if self.options.keep == "best" and self.best_weights:
            self.model.load_state_dict(self.best_weights)
        return self.model

    @property
    def _frozen(self) -> bool:
        """Whether BatchNorm's statistics are fixed in the epoch that comes next; a function of the epoch alone."""
        return self.epoch >= self.options.epochs * (1 - self.options.freeze_batchnorm)

    def _assign_to_batches(self, num_items: int) -> list[Tensor]:
        """The ids of the graphs (with query_batch_size: the queries) of each batch of this epoch."""
        every, epoch = self.options.reshuffle_every, self.epoch
        if self.recorder is not None and epoch % every == 0:
            self.recorder.reassigned()
        order = torch.randperm(num_items, generator=generator_of(self.seed, "order", epoch - epoch % every))
        batches = list(order.split(self.batch_size))
        if every == 1:
            return batches
        shuffled = torch.randperm(len(batches), generator=generator_of(self.seed, "batches", epoch))
        return [batches[i] for i in shuffled.tolist()]

    def _for_statistics(self, num_items: int) -> list[Tensor]:
        """The batches that BatchNorm's statistics are averaged over: all, or if there are many some drawn at random."""
        most = _STATISTICS_BATCHES * self.batch_size
        if num_items <= most:
            return list(torch.arange(num_items).split(self.batch_size))
        drawn = torch.randperm(num_items, generator=generator_of(self.seed, "statistics", self.epoch))
        return list(drawn[:most].split(self.batch_size))

    def _steps(self, batches: BatchSource | RootBatches, assigned: list[Tensor]) -> Iterator[Tensor]:
        """Trains on each batch and yields its loss; with several processes, this one's part of the loss."""
        if self.recorder is not None:
            yield from self._recorded("frozen step" if self._frozen else "step", batches, assigned, self._step)
            return
        for items, batch in zip(assigned, self._shares(batches, assigned), strict=True):
            if self.processes.size == 1:
                yield self._step(batch)
                continue
            share = self.processes.share(items)
            weight = batches.count(share) / batches.count(items)  # gradients are averaged over the processes
            yield weight * self._step(replace(batch, weight=weight * self.processes.size))

    def _shares(self, batches: BatchSource | RootBatches, assigned: Sequence[Tensor]) -> Iterator[GraphBatch]:
        """This process's share of each batch. If a share is empty, it is the first item, with weight 0."""
        shares = [self.processes.share(items) for items in assigned]
        items = [share if share.numel() else whole[:1] for share, whole in zip(shares, assigned, strict=True)]
        return batches.each(items, seed_of(self.seed, "fanout", self.epoch))

    def _outputs(
        self, kind: Literal["statistics", "predict"], batches: BatchSource | RootBatches, items: Sequence[Tensor]
    ) -> Iterator[Tensor]:
        """What the network gives for this process's share of each batch, without gradients."""
        if self.recorder is not None:
            for some, out in zip(items, self._recorded(kind, batches, items, self._forward), strict=True):
                yield out[: batches.count(some)].clone()  # the next batch is written over it
        else:
            shares = batches.each(items) if kind == "predict" else self._shares(batches, items)
            yield from map(self._forward, shares)

    def _recorded(
        self,
        kind: Kind,
        batches: BatchSource | RootBatches,
        assigned: Sequence[Tensor],
        function: Callable[[GraphBatch], Tensor],
    ) -> Iterator[Tensor]:
        """A function of each batch, replayed."""
        assert self.recorder is not None
        if isinstance(batches, RootBatches):
            for batch in self._shares(batches, assigned):
                yield self.recorder.run_roots(kind, batch, self.device, function)
        else:
            for graphs in assigned:
                yield self.recorder.run(kind, batches, graphs, self.batch_size, function)

    def _forward(self, batch: GraphBatch) -> Tensor:
        with tf32_products(self.options.precision == "tf32"), self._autocast():
            return self.network(batch.ready, batch.graph, batch.num_graphs)

    def _step(self, batch: GraphBatch) -> Tensor:
        assert batch.target is not None
        with tf32_products(self.options.precision == "tf32"):
            with self._autocast():
                out = self.parallel(batch.ready, batch.graph, batch.num_graphs)
            loss = self.problem.objective.loss(out, batch.target, batch.real)
            self.optimizer.zero_grad()
            self.processes.weighted(loss, batch.weight, self.model).backward()
        self.optimizer.step()
        return loss.detach()

    def _halve_batches(self, size: int, error: Exception) -> None:
        """Makes batches half as large as the one that did not fit into memory."""
        if self.processes.size > 1:
            raise TooLargeError(
                f"memory ran out with batches of {size}. With several processes they are not made smaller "
                f"automatically: resume with a smaller {'query_batch_size' if self.source else 'batch_size'}, or start "
                "more processes."
            ) from error
        # Weights change at the end of a step, so they are unchanged; BatchNorm's statistics include the batch.
        self.batch_size = -(-size // 2)
        if self.recorder is not None:
            self.recorder.clear()
        warnings.warn(
            f"memory ran out in epoch {self.epoch + 1}: from here on batches have {self.batch_size} "
            f"{'queries' if self.source else 'graphs'}.",
            HalvedBatchWarning,
            stacklevel=3,
        )

    def _fit_cycle_scale(self) -> None:
        """Standardizes the counts of ID-GNN-Fast over the training graphs, before any batch is prepared."""
        scale = None if isinstance(self.model, PreparesBatches) else getattr(self.model.encoder, "count_scale", None)
        if scale is not None and not bool(scale.fitted):
            scale.fit(self.model.encoder.counts_of(self.train.edge_index, self.train.x.size(0)))

    def _placed(self, part: QuerySet) -> QuerySet:
        return part if self.source else part.to(self.device)

    def _batches(
        self, part: QuerySet, fanout: tuple[int, ...] = (), over: Batches | None = None, spare: float = 0.0
    ) -> BatchSource | RootBatches:
        if self.source:
            return self.source.batches(part, fanout)
        if isinstance(self.model, PreparesBatches):
            return self.model.batches(part)
        # A network of the experiments may have an encoder that prepares batches, and no more.
        encoder = self.model if isinstance(self.model, Predictor) else self.model.encoder
        return Batches(part, encoder, over, spare)

    def _training_batches(self) -> BatchSource | RootBatches:
        part = self.train.epoch(generator_of(self.seed, "queries", self.epoch))
        before = self.batches
        if before is not None and part is before.part:
            return before
        if self.recorder is None:
            self.batches = self._batches(part, self.options.fanout)
            return self.batches
        over, spare = before if isinstance(before, Batches) else None, 0.0 if part is self.train else _SPARE
        self.batches = made = self._batches(part, self.options.fanout, over, spare)
        if before is not None:
            self.recorder.follow(before, made)
        return made

    def _set_learning_rate(self) -> float:
        """A function of the epoch alone, so that a resumed run needs no scheduler state."""
        lr = self.options.lr
        if self.options.schedule == "cosine":
            lr *= 0.5 * (1 + math.cos(math.pi * self.epoch / self.options.epochs))
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(lr)
            else:
                group["lr"] = lr
        return lr

    def _update_best(self, metrics: dict[str, dict[str, float]]) -> None:
        objective = self.problem.objective
        if "valid" not in metrics:
            return
        value = metrics["valid"][objective.metric]
        score = value if objective.higher_is_better else -value
        if score > self.best_score:
            self.best_epoch, self.best_score = self.epoch, score
            if self.options.keep == "best":
                self.best_weights = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.options.precision == "bf16")


def _check_options(options: TrainOptions, model: Predictor, problem: Problem) -> None:
    """Refuses options that do not fit the network or the task, and warns of one without effect."""
    if options.freeze_batchnorm and options.freeze_batchnorm * options.epochs < 1:
        epochs = "1 epoch has" if options.epochs == 1 else f"{options.epochs} epochs have"
        needed = math.ceil(1 / options.freeze_batchnorm)
        warnings.warn(
            f"freeze_batchnorm is {options.freeze_batchnorm}, but {epochs} no last epoch in which BatchNorm's "
            f"statistics are fixed. Train for at least {needed} epochs, or leave it out.",
            stacklevel=3,
        )
    options.check_level(problem.level)
    if isinstance(model, PreparesBatches):
        if options.query_batch_size is not None:
            raise ValueError(
                f"query_batch_size is for predictors, but {type(model).__name__} prepares its own batches of graphs. "
                "Leave it out."
            )
    elif isinstance(model.encoder, IdentityAwareModel):
        _check_wrapped_options(options)
    elif options.fanout:
        check_fanout(options.fanout, model.encoder.num_layers)


def _check_wrapped_options(options: TrainOptions) -> None:
    """Refuses what does not work for a model that :func:`idgnn.identity_aware` wrapped."""
    if options.fanout:
        raise ValueError("fanout is for the named layers (conv='gcn', ...), not for a model of your own. Leave it out.")
    if options.compile:
        raise ValueError(
            "compile is for the named layers (conv='gcn', ...): torch.compile makes a model of your own no faster. "
            "Leave it out."
        )
