"""Extension of griffe: the section `Example:` of a docstring is code, as `Examples:` is."""

import griffe


class DocstringExamples(griffe.Extension):
    """Renaming of the section, which griffe reads as a box of prose."""

    def on_object(self, *, obj: griffe.Object, **kwargs: object) -> None:
        """Rename the section of one docstring."""
        if obj.docstring:
            obj.docstring.value = obj.docstring.value.replace("\nExample:\n", "\nExamples:\n")
