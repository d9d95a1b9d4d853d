"""What notebooks and interpreters show of results: short reprs, and tables as HTML."""

from __future__ import annotations

import dataclasses
from html.parser import HTMLParser

import jax
import jax.numpy as jnp
import pytest

import ipujax as ipu
from ipujax.reporting.model import Tried

X = jax.ShapeDtypeStruct((64, 64), jnp.float32)
NAME = "<script>f & 'g'</script>"


def layers(x):
    for i in range(8):
        with jax.named_scope(f"<b>layer{i}</b>"):
            x = jnp.tanh(x @ x)
    return x


@pytest.fixture(scope="module")
def report() -> ipu.Report:
    tried = Tried("a <smaller> batch", 1000, 2.0, True, False)
    return dataclasses.replace(ipu.report(layers, X), name=NAME, remedies=(tried,))


@pytest.fixture(scope="module")
def shown(report):
    return {
        "report": report,
        "comparison": report.compare(dataclasses.replace(report, cycles=2 * report.cycles)),
        "cost": ipu.cost(layers, X),
        "configuration": ipu.IPUConfig().replace(x64="demote", partials_type="half"),
        "defaults": ipu.IPUConfig(),
    }


KINDS = ("report", "comparison", "cost", "configuration", "defaults")
WORDS = {
    "report": ("fits", "layer", "a <smaller> batch", "cycles", NAME, "compiled"),
    "comparison": ("before", "after", "+100.0%", NAME),
    "cost": ("fits", "cycles", "stack"),
    "configuration": ("x64", "demote", "partials_type", "half"),
    "defaults": ("defaults",),
}


class Reader(HTMLParser):
    """Texts of a page; its tags must be closed in order."""

    def __init__(self, page: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data + "\n"


@pytest.mark.parametrize("kind", KINDS)
def test_reprs_are_short_and_of_one_line(shown, kind):
    text = repr(shown[kind])
    assert len(text) < 300
    assert "\n" not in text
    assert type(shown[kind]).__name__ in text


@pytest.mark.parametrize("kind", KINDS)
def test_notebooks_show_tables(shown, kind):
    page = Reader(shown[kind]._repr_html_())
    assert page.tags <= {"p", "table", "thead", "tbody", "tr", "th", "td"}
    for word in WORDS[kind]:
        assert word in page.text


def test_the_tables_have_what_the_text_has(report):
    page = Reader(report._repr_html_()).text
    words = {word.rstrip(",;") for word in str(report).split()}
    assert [word for word in words if word not in page] == []


def test_reprs_say_what_matters(report):
    assert f"{report.cycles:.0f} cycles" in repr(report)
    assert "fits" in repr(report)
    config = ipu.IPUConfig().replace(x64="demote")
    assert eval(repr(config), {"IPUConfig": ipu.IPUConfig}) == config
    assert repr(ipu.IPUConfig()) == "IPUConfig()"
