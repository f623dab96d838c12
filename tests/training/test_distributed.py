"""Two processes with a batch each are one process with both batches."""

import os
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

from attnaudit.errors import AttnAuditError
from attnaudit.training import Monitor
from attnaudit.training.distributed import process_group
from tests.training.networks import batch, network, train
from tests.training.two_ranks import gloo_threads

SIZES = (3, 2)


def shares():
    """A batch of five, cut unequally."""
    return batch(sum(SIZES)).split(SIZES)


def work(rank, folder):
    """What every process of the distributed training does."""
    if Path("/sys/class/net/lo").exists():
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    with process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=len(SIZES)):
        results = trained(rank, folder)
    torch.save(results | {"threads": gloo_threads()}, folder / f"{rank}.pt")


def trained(rank, folder):
    """What comes of it on one rank."""
    results = {"lines": []}
    for watched in (False, True):
        model = DistributedDataParallel(network())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for block in model.module.blocks:
            block.norm.eval()  # or each rank would have running means of its own
        torch.manual_seed(10 + rank)
        if watched:
            monitor = Monitor(
                model, {"train": shares()[rank]}, out=folder / "run", every=2, tell=results["lines"].append
            )
            monitor.attach(optimizer)
        train(model, 2, optimizer)
        results[watched] = {name: tensor.clone() for name, tensor in model.module.state_dict().items()}
    results["rows"] = monitor.measure(2).num_rows
    results["readings"] = len(monitor.history)
    try:
        Monitor(model, shares()[rank] if rank == 0 else torch.zeros(1, 17, 2)).measure(0)
    except AttnAuditError as error:
        results["error"] = (type(error).__name__, str(error))
    return results


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    torch.multiprocessing.spawn(work, (folder,), nprocs=len(SIZES))
    return folder


@pytest.fixture(scope="module")
def results(folder):
    return [torch.load(folder / f"{rank}.pt") for rank in range(len(SIZES))]


def aggregates(table):
    table = table.filter(pc.equal(table["input"], "train"))
    return {
        (row["layer"], row["head"], row["measure"]): row["value"]
        for row in table.select(["layer", "head", "measure", "value"]).to_pylist()
    }


@pytest.mark.parametrize("step", [0, 2])
def test_the_numbers_are_those_of_one_process_with_all_inputs(folder, results, step):
    model = network()
    if step:
        model.load_state_dict(results[0][True])
    alone = aggregates(Monitor(model, {"train": batch(sum(SIZES))}, scores=0, tell=lambda _: None).measure(step))
    rows = pq.read_table(folder / "run" / "evidence")
    assert aggregates(rows.filter(pc.equal(rows["step"], step))) == pytest.approx(alone, rel=1e-6)
    assert len(alone) == 2 * 2 * 8


def test_a_distributed_training_does_not_notice_the_monitor(results):
    for result in results:
        torch.testing.assert_close(result[True], result[False], rtol=0, atol=0)


def test_rank_0_alone_talks_and_keeps_rows(results, folder):
    main, other = results
    assert [line.partition("  ")[0] for line in main["lines"]] == ["step 0", "step 2", "step 2"]
    assert main["rows"] > 0
    assert main["readings"] == 3
    assert other["lines"] == []
    assert other["rows"] == other["readings"] == 0
    assert len(list((folder / "run" / "evidence").iterdir())) == 2


def test_what_fails_on_one_rank_fails_on_all(results):
    main, other = (result["error"] for result in results)
    assert main[0] == other[0] == "InputError"
    assert "cannot be called with the batch" in other[1]
    assert main[1] == f"Rank 1: {other[1]}"


def test_no_thread_of_gloo_outlives_the_process_group(results):
    """It could abort the process while Python shuts down."""
    assert [result["threads"] for result in results] == [[], []]
