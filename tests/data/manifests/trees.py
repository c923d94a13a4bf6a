"""Small copies of data sets: text files, and media files with their own name as content."""


def put(root, *names, **texts):
    """Write media files by name, and text files by name (`__` for the dot)."""
    for name, text in [
        *((name, name) for name in names),
        *((key.replace("__", "."), text) for key, text in texts.items()),
    ]:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root
