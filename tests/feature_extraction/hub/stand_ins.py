"""Stand-ins for the packages of docs/recipes, with the interfaces of the real packages, which were not run."""

import textwrap
from pathlib import Path

import torch

RECIPES = Path(__file__).parents[3] / "docs" / "recipes"
SCALE = torch.arange(1.0, 1025.0)
STAND_INS = {
    "imagebind/__init__.py": "",
    "imagebind/models/__init__.py": "",
    "imagebind/data.py": """
        import torch

        def waveform2melspec(waveform, sample_rate, num_mel_bins, target_length):
            waveform -= waveform.mean()
            frames = waveform[0].unfold(0, 400, 160)[:target_length, :num_mel_bins].T
            return torch.nn.functional.pad(frames, (0, target_length - frames.shape[1]))[None]

        def load_and_transform_text(text, device):
            return torch.stack([torch.tensor((list(one.encode()) + [0] * 77)[:77]) for one in text])
    """,
    "imagebind/models/imagebind_model.py": """
        import torch

        SHAPES = {"audio": (1, 128, 204), "vision": (3, 224, 224), "text": (77,)}

        class Network(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = torch.nn.Parameter(torch.zeros(1024))

            def forward(self, inputs):
                assert not self.training
                for kind, values in inputs.items():
                    assert values.shape[1:] == SHAPES[kind], values.shape
                return {kind: v.float().flatten(1).mean(1)[:, None] * self.scale for kind, v in inputs.items()}

        def imagebind_huge(pretrained=False):
            assert not pretrained  # would download and read a pickle
            return Network()
    """,
    "BEATs.py": """
        import torch

        class BEATsConfig:
            def __init__(self, cfg=None):
                self.finetuned_model = False
                self.__dict__.update(cfg or {})

        class BEATs(torch.nn.Module):
            def __init__(self, cfg):
                super().__init__()
                assert not cfg.finetuned_model
                self.scale = torch.nn.Parameter(torch.zeros(768))

            def extract_features(self, source, padding_mask=None):
                assert not self.training
                return source.unfold(1, 2800, 1600).std(-1)[..., None] * self.scale, padding_mask
    """,
}


def lay_out(folder):
    """Write the recipes, the stand-ins and weights into a folder."""
    for name, code in STAND_INS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(textwrap.dedent(code))
    for path in RECIPES.glob("*.py"):
        (folder / path.name).write_text(path.read_text())
    torch.save({"scale": SCALE}, folder / "imagebind_huge.pth")
    fine_tuned = {"scale": SCALE[:768], "predictor.weight": torch.zeros(2, 768), "predictor.bias": torch.zeros(2)}
    torch.save({"cfg": {"finetuned_model": True}, "model": fine_tuned}, folder / "BEATs_iter3_plus_AS2M.pt")
