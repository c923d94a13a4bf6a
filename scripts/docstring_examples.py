"""Extension of griffe that reads the section `Example:` of a docstring as code, like `Examples:`."""

import griffe


class DocstringExamples(griffe.Extension):
    """Renames the section, which griffe would otherwise read as prose."""

    def on_object(self, *, obj: griffe.Object, **kwargs: object) -> None:
        """Rename the section of one docstring."""
        if obj.docstring:
            obj.docstring.value = obj.docstring.value.replace("\nExample:\n", "\nExamples:\n")
