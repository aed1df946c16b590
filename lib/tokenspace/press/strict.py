"""YAML that says what it means: a key that is written twice is an error, not the last one."""

from typing import Any

import yaml


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no types
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        lines: dict[str, int] = {}
        for name, _ in node.value:
            key, line = str(self.construct_object(name, deep=True)), name.start_mark.line + 1
            if key in lines:
                raise yaml.YAMLError(f"{key} is in line {lines[key]} and in line {line}: keep one")
            lines[key] = line
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        return found


def load(text: str) -> Any:
    """Read YAML; raises `yaml.YAMLError` where it is none, or names something twice.

    >>> load("{a: 1, b: {c: 2}}")
    {'a': 1, 'b': {'c': 2}}
    """
    return yaml.load(text, _Loader)
