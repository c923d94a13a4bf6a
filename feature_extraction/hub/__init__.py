"""Pretrained networks of the `transformers` library as extractors: `hf:MODEL[@revision][#pooling]`.

`families` says of each architecture how its sound, picture and text towers are called; `sound`, `pictures` and `texts`
make an `Extractor` of a tower; `snapshot` finds the files of a model, `networks` loads and runs them.
"""
