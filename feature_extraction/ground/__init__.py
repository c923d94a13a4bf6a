"""Ground: what both packages stand on: errors, atomic files, tables of named functions."""
