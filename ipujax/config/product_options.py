"""Options of PopLibs for products and convolutions, as JSON: for all of them, or by layer or line.

    {"use128BitConvUnitLoad": true,
     "scopes": {"decoder/layer3": {"planConstraints": {"method": "AMP"}},
                "train.py:31": {"availableMemoryProportion": 0.2}}}

A scope is a layer, as reports name it, with the layers inside it, or a source line; * and ? match
as in file names. Later scopes override earlier ones; all of them override options without a scope.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ipujax.annotations.layers import named_layer
from ipujax.host.file_reading import json_of

SCOPES = "scopes"
NEEDS = (
    'a JSON object of PopLibs\' options, such as {"planConstraints": {"method": "AMP"}}, with '
    f'objects of options by layer or source line in "{SCOPES}"'
)

#: Options of products and convolutions that are read and checked but have no effect in the model;
#: docs/guides/products.md says why.
PRODUCTS_IGNORE = frozenset(
    {
        "disableSRForAMPVertices",
        "enableAmpHalfEnginesPlan",
        "enableConvDithering",
        "enableFastReduce",
        "enableSingleInputReduce",
        "enableTransformsConvTable",
        "experimental.slicVmac16",
        "gatherConvOutput",
        "gatherOutput",
        "inputRHSIsPreArranged",
        "insertTransformsCycleCountProgs",
        "interIpuPartialsEnabled",
        "interIpuPartialsType",
        "interTilePartialsType",
        "maxOutputMemoryProportion",
        "numIPUs",
        "partialsType.interIPU",
        "partialsType.interTile",
        "planConstraintsOutputFilename",
        "remapOutputTensor",
        "startTileMultiplier",
        "use128BitLoad",
        "useAggressiveRegrouping",
        "weightUpdateMethod",
    }
)
#: The same for GCL's collectives.
COLLECTIVES_IGNORE = frozenset(
    {
        "collectiveImplementation",
        "link",
        "maxBytesPerTile",
        "syncful.allToAll",
        "syncful.useForwardingToSupportStridedGroups",
        "syncful.useOptimisedLayout",
        "topology",
        "useGclCollectives",
        "useReplicatedImplementation",
        "useSynclessCollectives",
    }
)

#: Options of PopLibs' pooling, all of them bools.
POOLING = ("poolUseIntrospectiveMapping", "optimizeForSpeed", "useFloatPartialsWhereBeneficial")


def poplibs_options(memory_proportion: float | None, partials: str | None) -> dict[str, Any]:
    """The two options under PopLibs' names, without those that are None."""
    given = {"availableMemoryProportion": memory_proportion, "partialsType": partials}
    return {name: value for name, value in given.items() if value is not None}


def check_product_options(text: str) -> str | None:
    """What is needed if the text is invalid; PopLibs checks names and values of options."""
    if not text:
        return None
    try:
        found = json_of(text)
    except ValueError:
        return NEEDS
    if not isinstance(found, dict):
        return NEEDS
    scopes = found.pop(SCOPES, {})
    if not isinstance(scopes, dict):
        return NEEDS
    groups = (found, *scopes.values())
    return None if all(_is_flat(group) for group in groups) else NEEDS


def check_pooling_options(text: str) -> str | None:
    """What is needed if the text is not a JSON object of PopLibs' pooling options."""
    try:
        found = json_of(text) if text else {}
    except ValueError:
        found = None
    is_known = isinstance(found, dict) and all(
        name in POOLING and str(value).lower() in ("true", "false") for name, value in found.items()
    )
    return None if is_known else f"a JSON object with any of {', '.join(POOLING)}, true or false"


def proportions_of(text: str) -> list[float | None]:
    """The proportion of each IPU, None for an empty place; ValueError for other text."""
    return [float(part) if part.strip() else None for part in text.split(",")]


def check_proportions(text: str) -> str | None:
    """What is needed if the text has anything but proportions between its commas."""
    try:
        found = proportions_of(text)
    except ValueError:
        found = [-1.0]
    is_known = all(each is None or 0 <= each <= 1 for each in found)
    return None if is_known else "numbers from 0 to 1 with commas between, one for each IPU"


def _is_flat(options: Any) -> bool:
    """Whether each value is text, a number or a bool; constraints of plans are objects."""
    return isinstance(options, dict) and all(
        isinstance(value, dict if name == "planConstraints" else (str, int, float))
        for name, value in options.items()
    )


def as_text(options: Mapping[str, Any] | str) -> str:
    """The options as the compiler takes them."""
    return options if isinstance(options, str) else json.dumps(options, sort_keys=True)


def has_scopes(text: str) -> bool:
    """Whether some options are for some products only."""
    return SCOPES in text and SCOPES in json_of(text)


@lru_cache(maxsize=256)
def names_of(text: str) -> frozenset[str]:
    """The names of all options in the text, including those in scopes."""
    options = json_of(text) if text else {}
    groups = (options, *options.pop(SCOPES, {}).values())
    return frozenset(name for group in groups for name in group)


@lru_cache(maxsize=256)
def in_scope(text: str, layer: str, line: str) -> str:
    """The options of the ops of this layer and source line, as text without scopes."""
    options = json_of(text)
    for scope, own in options.pop(SCOPES, {}).items():
        if scope == line or named_layer(layer, [scope]):
            options |= own
    return as_text(options) if options else ""


@lru_cache(maxsize=256)
def flags_of(text: str) -> Mapping[str, str]:
    """Options as PopLibs takes them, with strings as values."""
    options = json_of(text) if text else {}
    return {
        option: value if isinstance(value, str) else json.dumps(value)
        for option, value in options.items()
    }
