"""maml's side of `benchmarks.peers`: run by that with another Python, which has torch, lightning
and maml; reads arrays, prints one JSON line a fit.

    python peers_torch.py ARRAYS.npz

maml: Herde et al., github.com/ies-research/multi-annotator-machine-learning.
"""

# Nothing of this project is imported: the other Python does not have it.

from __future__ import annotations

import json
import logging
import sys
import time
import warnings
from typing import Any

import numpy as np
import torch
from lightning.pytorch import Trainer, seed_everything
from maml.classifiers import (
    AnnotMixClassifier,
    AnnotMixModule,
    CrowdLayerClassifier,
    UnionNetClassifier,
)
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Crowd(Dataset):  # type: ignore[misc]
    """Instances with their row of labels, -1 for none, as maml's datasets give them."""

    def __init__(self, x: Any, z: Any) -> None:
        self.x, self.z = torch.from_numpy(x), torch.from_numpy(z)
        self.a = torch.eye(z.shape[1])

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"x": self.x[index], "z": self.z[index], "a": self.a}


def network(features: int, classes: int, settings: dict[str, Any]) -> tuple[Any, Any]:
    """Returns the base before its last layer, and that layer."""
    width = settings["units"]
    layers: list[Any] = [nn.Linear(features, width)]
    layers += [nn.BatchNorm1d(width)] if settings["batch_norm"] else []
    layers += [nn.ReLU(), nn.Dropout(settings["dropout"])]
    return nn.Sequential(*layers), nn.Linear(width, classes)


def classifier(method: str, shape: tuple[int, int, int], settings: dict[str, Any]) -> Any:
    """Returns one of maml's classifiers with the settings of ours."""
    features, annotators, classes = shape
    embed, output = network(features, classes, settings)
    rates = {
        "optimizer": torch.optim.Adam,
        "optimizer_gt_dict": {"lr": settings["learning_rate"]},
        "optimizer_ap_dict": {"lr": settings["annotator_learning_rate"][method]},
    }
    if method == "annot_mix":
        size = 128
        module = AnnotMixModule(
            n_classes=classes,
            gt_embed_x=embed,
            gt_output=output,
            ap_embed_a=nn.Linear(annotators, size),
            ap_embed_x=nn.Linear(settings["units"], size),
            ap_hidden=nn.Sequential(
                nn.Dropout(0.5), nn.Linear(2 * size, size), nn.BatchNorm1d(size), nn.ReLU()
            ),
            ap_output=nn.Linear(size, classes**2),
        )
        return AnnotMixClassifier(network=module, **rates)
    kind = {"crowd_layer": CrowdLayerClassifier, "unionnet_b": UnionNetClassifier}[method]
    return kind(
        n_classes=classes, n_annotators=annotators, gt_embed_x=embed, gt_output=output, **rates
    )


def fitted(method: str, arrays: Any, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """Returns a fit's accuracy and seconds."""
    seed_everything(seed, verbose=False)
    x, z = arrays["features"], arrays["labels"].astype(np.int64)
    model = classifier(method, (x.shape[1], z.shape[1], int(arrays["classes"])), settings)
    loader = DataLoader(Crowd(x, z), batch_size=settings["batch_size"], shuffle=True)
    trainer = Trainer(
        max_epochs=settings["epochs"],
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    start, worked = time.perf_counter(), time.process_time()
    trainer.fit(model, loader)
    took, work = time.perf_counter() - start, time.process_time() - worked
    result = model.predict_step({"x": torch.from_numpy(arrays["test_features"])}, 0)["p_class"]
    right = result.argmax(dim=-1).numpy() == arrays["test_truth"]
    return {
        "method": method,
        "seed": seed,
        "accuracy": float(right.mean()),
        "seconds": took,
        "cpu_seconds": work,
    }


def main() -> None:
    warnings.simplefilter("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    arrays = np.load(sys.argv[1], allow_pickle=False)
    settings = json.loads(str(arrays["settings"]))
    torch.set_num_threads(settings["threads"])
    for method in settings["methods"]:
        for seed in settings["seeds"]:
            print(json.dumps(fitted(method, arrays, settings, seed)), flush=True)


if __name__ == "__main__":
    main()
