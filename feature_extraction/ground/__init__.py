"""Foundation of both packages: errors, atomic files, options, and registries of named functions."""
