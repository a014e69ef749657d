"""The training loop."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn

from idgnn.identity.cost import TooLargeError
from idgnn.models.large_graph import check_fanout
from idgnn.models.predictor import Predictor
from idgnn.tasks.problem import Problem
from idgnn.tasks.query_set import QuerySet
from idgnn.training.answers import Answers, answer, predictions
from idgnn.training.batches import Batches, GraphBatch
from idgnn.training.devices import choose_device, is_out_of_memory
from idgnn.training.epoch import Epoch
from idgnn.training.norm_statistics import anew
from idgnn.training.options import TrainOptions
from idgnn.training.processes import ALONE, Processes, device_name
from idgnn.training.recording import Recorder
from idgnn.training.root_batches import RootBatches, RootSource
from idgnn.training.seeds import generator_of, seed_of


class DivergedError(ValueError):
    """Training went astray: its loss is not a finite number any more."""


class HalvedBatchWarning(UserWarning):
    """Memory ran out, and training goes on with smaller batches."""


class Trainer:
    """Trains a network, an epoch at a time.

    All randomness comes from the seed: on a CPU a run repeats bit for bit, and so does one that was stopped after any
    epoch and goes on from there (:mod:`idgnn.training.checkpoint`).

    Args:
        model: The network; it is moved to the device.
        problem: The task.
        options: How.
        seed: Of the order of the graphs, of what is drawn, and of anything random in the network.
        processes: Those that train together. A batch is dealt among them, so its size is that of all shares together.
    """

    def __init__(
        self, model: Predictor, problem: Problem, options: TrainOptions, seed: int = 0, processes: Processes = ALONE
    ) -> None:
        _check(model, problem, options, processes)
        self.device = choose_device(device_name(options.device, processes))
        self.model, self.problem, self.options, self.seed = model.to(self.device), problem, options, seed
        self.processes = processes
        self.network = torch.compile(self.model, dynamic=True) if options.compile else self.model
        self.parallel = processes.parallel(cast(nn.Module, self.network))
        # A recorded step reads the learning rate from where it lies.
        self.lr: float | Tensor = torch.tensor(options.lr, device=self.device) if options.cuda_graphs else options.lr
        self.optimizer = torch.optim.Adam(
            self.model.parameters(),
            lr=self.lr,
            weight_decay=options.weight_decay,
            fused=self.device.type in ("cpu", "cuda"),
            capturable=options.cuda_graphs,
        )
        if options.cuda_graphs and self.device.type != "cuda":
            raise ValueError(f"cuda_graphs is for CUDA, but the device is {self.device}. Leave it out.")
        self.recorder = Recorder(self.device) if options.cuda_graphs else None
        # With query_batch_size, graphs stay on the CPU, and what a batch needs of them is brought to the device.
        self.source = (
            None if options.query_batch_size is None else RootSource(model.encoder, options.workers, self.device)
        )
        self.train = self._placed(problem.train)
        self.batches: Batches | RootBatches | None = None  # of the training part, kept while its queries are the same
        self.held_out = {name: self._batches(self._placed(part)) for name, part in problem.held_out.items()}
        self.epoch, self.batch_size = 0, options.query_batch_size or options.batch_size
        self.best_epoch, self.best_score, self.best_weights = 0, -math.inf, dict[str, Tensor]()

    def epochs(self) -> Iterator[Epoch]:
        """Trains on to the last epoch, and tells after each how it went."""
        while self.epoch < self.options.epochs:
            yield self.train_epoch()

    def train_epoch(self) -> Epoch:
        """One pass over the training graphs, and a look at the held-out ones."""
        start = time.perf_counter()
        lr = self._set_rate()
        torch.manual_seed(seed_of(self.seed, "network", self.epoch) + self.processes.rank)
        batches = self._training_batches()
        self.model.train()
        total, steps = torch.zeros((), device=self.device), 0
        waiting = self._deal(batches.num_items)
        while waiting:
            try:
                for loss in self._steps(batches, list(waiting)):
                    total += loss
                    steps += 1
                    waiting.pop(0)
            except Exception as error:
                if not is_out_of_memory(error) or waiting[0].numel() == 1:
                    raise
                self._halve(waiting[0].numel(), error)
                waiting = list(torch.cat(waiting).split(self.batch_size))
        self.epoch += 1
        due = self.epoch % self.options.eval_every == 0 or self.epoch == self.options.epochs
        if due and self.options.reestimate_batchnorm:
            self._reestimate_batchnorm(batches)
        self.processes.average_statistics(self.model)
        loss = self.processes.sum(total).item() / steps  # the one place where an epoch waits for a GPU
        if not math.isfinite(loss):
            raise DivergedError(f"the loss of epoch {self.epoch} is {loss}. Try a lower learning rate than {lr:g}.")
        metrics = self.evaluate() if due else {}
        self._remember_best(metrics)
        return Epoch(self.epoch, loss, lr, self.batch_size, steps, time.perf_counter() - start, metrics)

    def evaluate(self) -> dict[str, dict[str, float]]:
        """All metrics on all held-out parts."""
        found = {}
        for name in self.held_out:
            answers = self.answer(name)
            assert answers.target is not None
            found[name] = self.problem.objective.measure(answers.out, answers.target, answers.graph)
        return found

    def answer(self, name: str) -> Answers:
        """What the network says about all queries of a held-out part."""
        with self._autocast():
            run = predictions(self.network)
            return answer(self.model, run, self.held_out[name], self.batch_size, self.processes)

    def finish(self) -> Predictor:
        """The trained network, with the weights that the options ask for."""
        if self.options.keep == "best" and self.best_weights:
            self.model.load_state_dict(self.best_weights)
        return self.model

    def _deal(self, num_items: int) -> list[Tensor]:
        """The graphs, or with query_batch_size the queries, of each batch of this epoch."""
        times, epoch = self.options.reshuffle_every, self.epoch
        if self.recorder is not None and epoch % times == 0:
            self.recorder.forget()
        order = torch.randperm(num_items, generator=generator_of(self.seed, "order", epoch - epoch % times))
        batches = list(order.split(self.batch_size))
        if times == 1:
            return batches
        shuffled = torch.randperm(len(batches), generator=generator_of(self.seed, "batches", epoch))
        return [batches[i] for i in shuffled.tolist()]

    def _steps(self, batches: Batches | RootBatches, deal: list[Tensor]) -> Iterator[Tensor]:
        """A step on each batch; gives its loss, or of several processes this one's part of it."""
        if self.recorder is not None:
            assert isinstance(batches, Batches)
            for graphs in deal:
                yield self._replay(batches, graphs)
            return
        for items, batch in zip(deal, self._shares(batches, deal), strict=True):
            if self.processes.size == 1:
                yield self._step(batch)
                continue
            share = self.processes.share(items)
            weight = batches.count(share) / batches.count(items)  # gradients are averaged over the processes
            yield weight * self._step(replace(batch, weight=weight * self.processes.size))

    def _reestimate_batchnorm(self, batches: Batches | RootBatches) -> None:
        """Works BatchNorm's statistics out on the training part, as it is with the weights of this moment."""
        deal = torch.arange(batches.num_items).split(self.batch_size)
        with anew(self.model), self._autocast():
            for batch in self._shares(batches, deal):
                self.network(batch.ready, batch.graph, batch.num_graphs)

    def _shares(self, batches: Batches | RootBatches, deal: Sequence[Tensor]) -> Iterator[GraphBatch]:
        """This process's share of each batch. One that is left without computes the first answer, as others do."""
        shares = [self.processes.share(items) for items in deal]
        lots = [share if share.numel() else items[:1] for share, items in zip(shares, deal, strict=True)]
        return batches.each(lots, self._draw())

    def _draw(self) -> int:
        """The seed of what is drawn for the batches of this epoch."""
        return seed_of(self.seed, "fanout", self.epoch)

    def _replay(self, batches: Batches, graphs: Tensor) -> Tensor:
        """A step that is recorded when its batch comes for the first time."""
        assert self.recorder is not None
        key = int(graphs[0])  # of the batches of a deal, a graph is in one alone
        return self.recorder.run(key, lambda: batches.cut(graphs), self._step)

    def _step(self, batch: GraphBatch) -> Tensor:
        assert batch.target is not None
        with self._autocast():
            out = self.parallel(batch.ready, batch.graph, batch.num_graphs)
        loss = self.problem.objective.loss(out, batch.target)
        self.optimizer.zero_grad()
        self.processes.weighted(loss, batch.weight, self.model).backward()
        self.optimizer.step()
        return loss.detach()

    def _halve(self, size: int, error: Exception) -> None:
        """Makes batches half as large as the one that did not fit."""
        if self.processes.size > 1:
            raise TooLargeError(
                f"memory ran out with batches of {size}. Several processes cannot make them smaller as they go: resume "
                f"with {'query_batch_size' if self.source else 'batch_size'} set to less, or start more processes."
            ) from error
        # The weights move at the end of a step, so they are what they were; BatchNorm has seen the batch.
        self.batch_size = -(-size // 2)
        if self.recorder is not None:
            self.recorder.forget()
        what = "queries" if self.source else "graphs"
        warnings.warn(
            f"memory ran out in epoch {self.epoch + 1}: from here on batches have {self.batch_size} {what}.",
            HalvedBatchWarning,
            stacklevel=3,
        )

    def _placed(self, part: QuerySet) -> QuerySet:
        return part if self.source else part.to(self.device)

    def _batches(self, part: QuerySet, fanout: tuple[int, ...] = ()) -> Batches | RootBatches:
        return self.source.batches(part, fanout) if self.source else Batches(part, self.model.encoder)

    def _training_batches(self) -> Batches | RootBatches:
        part = self.train.epoch(generator_of(self.seed, "queries", self.epoch))
        if self.batches is None or part is not self.batches.part:
            self.batches = self._batches(part, self.options.fanout)
            if self.recorder is not None:
                self.recorder.forget()
        return self.batches

    def _set_rate(self) -> float:
        """A function of the epoch alone, so that nothing has to be remembered."""
        lr = self.options.lr
        if self.options.schedule == "cosine":
            lr *= 0.5 * (1 + math.cos(math.pi * self.epoch / self.options.epochs))
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(lr)
            else:
                group["lr"] = lr
        return lr

    def _remember_best(self, metrics: dict[str, dict[str, float]]) -> None:
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


def _check(model: Predictor, problem: Problem, options: TrainOptions, processes: Processes) -> None:
    """Refuses options that do not fit the network, the task, or the number of processes."""
    if options.query_batch_size is not None and problem.level == "graph":
        raise ValueError(
            f"query_batch_size is {options.query_batch_size}, the nodes or pairs in a batch, but the task asks about "
            "whole graphs. Leave it out: batch_size is the number of graphs."
        )
    if options.fanout:
        check_fanout(options.fanout, model.encoder.num_layers)
    if options.cuda_graphs and processes.size > 1:
        raise ValueError(f"cuda_graphs is for one process, but there are {processes.size}. Leave it out.")
