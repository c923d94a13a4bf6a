import torch

from aadml.feature_extraction.ground.consent import consent_to
from aadml.objective.composition import ProxySection, Space
from aadml.proxies import PROXIES, prefix_of
from aadml.proxies.contract import TrainingSet
from aadml.proxies.unchanged import Unchanged

SPACE = Space(("audio", "visual"), 4)


def test_every_clip_stands_for_itself():
    proxy = PROXIES["identity"](4, ("audio", "visual"))
    embeddings = {"audio": torch.randn(3, 4), "visual": torch.randn(3, 4)}
    proxy.refresh(TrainingSet(embeddings, torch.zeros(3), None, None, groups=torch.arange(3)))
    proxies = proxy(embeddings, torch.arange(3))
    assert all(proxies[m] is embeddings[m] for m in embeddings)
    assert proxy.from_bank(embeddings["audio"], "audio", k=2) is embeddings["audio"]
    assert (proxy.aa_on, proxy.aa_mix) == ("all", 1.0)
    assert not list(proxy.parameters())


def test_only_the_identity_is_left_out_of_a_training():
    assert prefix_of("identity") == prefix_of("aadml.proxies.identity:Identity") == ""
    assert ProxySection.of("identity").build_for(SPACE) is None


def test_a_proxy_without_prefix_is_built_and_has_its_name_as_prefix(monkeypatch):
    place = "aadml.proxies.unchanged:Unchanged"
    consent_to(place)
    assert prefix_of(place) == "aadml.proxies.unchanged-Unchanged-"
    assert type(ProxySection.of(place).build_for(SPACE)) is Unchanged
    monkeypatch.setattr(Unchanged, "prefix", "", raising=False)
    assert prefix_of(place) == "aadml.proxies.unchanged-Unchanged-"
