import torch

from aadml.proxies import PROXIES
from aadml.proxies.contract import TrainingSet


def test_every_clip_stands_for_itself():
    proxy = PROXIES["identity"](4, ("audio", "visual"))
    embeddings = {"audio": torch.randn(3, 4), "visual": torch.randn(3, 4)}
    proxy.refresh(TrainingSet(embeddings, torch.zeros(3), None, None, groups=torch.arange(3)))
    proxies = proxy(embeddings, torch.arange(3))
    assert all(proxies[m] is embeddings[m] for m in embeddings)
    assert proxy.from_bank(embeddings["audio"], "audio", k=2) is embeddings["audio"]
    assert (proxy.aa_on, proxy.aa_mix) == ("all", 1.0)
    assert not list(proxy.parameters())
