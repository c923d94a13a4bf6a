"""Search of clips by sound, picture, video or words, with an index in one file and a search page.

>>> from aadml.search import Index
>>> index = Index.build("my_clips", "my.index", model="runs/...")  # doctest: +SKIP
>>> index.search(audio="rain.wav", to="visual", k=5).hits[0].id  # doctest: +SKIP
'roof'
"""

from typing import TYPE_CHECKING

from aadml.feature_extraction.ground.import_paths import imported_on_demand

if TYPE_CHECKING:
    from aadml.search.index import Index
    from aadml.search.results import Found, Hit

__all__ = ["Found", "Hit", "Index"]

__getattr__ = imported_on_demand(__name__, {"Found": "results", "Hit": "results", "Index": "index"})
