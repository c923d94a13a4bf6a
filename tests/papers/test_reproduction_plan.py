from dataclasses import replace

import pytest

from aadml.configuration.config import resolve
from aadml.configuration.files import open_config
from aadml.papers.reproduction_plan import STEPS, shortened


def test_a_shortened_schedule_has_so_many_steps_and_logs_every_epoch():
    config = resolve(open_config("aadml_ave").values)
    short = shortened(config, 1577)
    assert short.training.epochs * 1577 / 200 == pytest.approx(STEPS, rel=0.1)
    assert short.training.train_map == 1
    assert shortened(config, 100_000).training.epochs == 1
    brief = replace(config, training=replace(config.training, epochs=2))
    assert shortened(brief, 100) is brief
