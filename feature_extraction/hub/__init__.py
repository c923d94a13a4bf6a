"""Pretrained networks of the `transformers` library as extractors: `hf:MODEL[@revision][#pooling]`.

`families` lists the sound, picture and text towers of each architecture. `sound`, `pictures` and `texts` build an
`Extractor` from a tower. `snapshot` finds the files of a model, and `networks` loads and runs the network.
"""
