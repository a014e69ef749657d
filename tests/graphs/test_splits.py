import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from idgnn.graphs.dataset import Dataset
from idgnn.graphs.splits import Split, k_fold, provided, random_split


def ids_of(split: Split) -> list[int]:
    return sorted(torch.cat(list(split.values())).tolist())


@given(st.integers(5, 300), st.sampled_from([(0.8, 0.2), (0.5, 0.5), (0.6, 0.2, 0.2)]), st.integers(0, 9))
def test_every_id_is_in_exactly_one_part(num: int, fractions: tuple[float, ...], seed: int) -> None:
    split = random_split(num, fractions, seed)
    assert list(split) == ["train", "valid", "test"][: len(fractions)]
    assert ids_of(split) == list(range(num))
    for part, fraction in zip(split, fractions, strict=True):
        assert abs(split[part].numel() - fraction * num) <= 1
    again = random_split(num, fractions, seed)
    assert all(torch.equal(split[part], again[part]) for part in split)


def test_other_seeds_give_other_splits() -> None:
    assert len({tuple(random_split(50, seed=seed)["valid"].tolist()) for seed in range(10)}) == 10


@pytest.mark.parametrize("fractions", [(1.0,), (0.5, 0.4), (1.2, -0.2), (0.25,) * 4])
def test_invalid_fractions_are_refused(fractions: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="expected 2 or 3 positive numbers"):
        random_split(100, fractions)


def test_too_few_for_the_parts_are_refused() -> None:
    with pytest.raises(ValueError, match=r"1 graphs or nodes .* sizes \[1, 0\], expected at least one in each"):
        random_split(1)


@given(st.lists(st.integers(0, 3), min_size=10, max_size=80), st.integers(2, 10), st.booleans())
def test_folds_cover_everything_once_and_are_balanced(labels: list[int], folds: int, stratified: bool) -> None:
    y = torch.tensor(labels)
    splits = k_fold(y, folds, stratified=stratified)
    assert len(splits) == folds
    assert sorted(i for split in splits for i in split["valid"].tolist()) == list(range(len(labels)))
    for split in splits:
        assert ids_of(split) == list(range(len(labels)))
    sizes = [split["valid"].numel() for split in splits]
    assert max(sizes) - min(sizes) <= 1
    if stratified:
        each = torch.stack([y[split["valid"]].bincount(minlength=4) for split in splits])
        assert (each.amax(dim=0) - each.amin(dim=0)).max() <= 1


def test_folds_of_a_number_cannot_be_stratified_but_random() -> None:
    assert len(k_fold(20, 4, stratified=False)) == 4
    with pytest.raises(ValueError, match="Pass the labels, or stratified=False"):
        k_fold(20, 4)
    with pytest.raises(ValueError, match="folds is 10 for 3 graphs or nodes"):
        k_fold(3, stratified=False)


def test_the_split_that_comes_with_a_dataset() -> None:
    graphs = [Data(x=torch.ones(2, 1)) for _ in range(3)]
    ids = {"train": torch.tensor([2]), "valid": torch.tensor([0]), "test": torch.tensor([1])}
    assert dict(provided(Dataset("d", graphs, provided_split=ids))) == ids
    masks = Data(
        x=torch.ones(3, 1),
        train_mask=torch.tensor([True, False, False]),
        val_mask=torch.tensor([False, False, True]),
    )
    assert {part: each.tolist() for part, each in provided(Dataset("d", [masks])).items()} == {
        "train": [0],
        "valid": [2],
    }
    with pytest.raises(ValueError, match=r"no split comes with d. Use split random or folds"):
        provided(Dataset("d", graphs))


def test_parts_that_overlap_or_have_other_names_are_refused() -> None:
    with pytest.raises(ValueError, match="1 ids of the split appear more than once"):
        Split({"train": torch.tensor([0, 1]), "valid": torch.tensor([1])})
    with pytest.raises(ValueError, match=r"parts of a split are \['val'\]"):
        Split({"val": torch.tensor([1])})
