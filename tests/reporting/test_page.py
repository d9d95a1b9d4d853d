"""Pages open in a browser without a network, draw their charts, filter and zoom."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import pytest

import ipujax as ipu
from tests.reporting.browser import Page, opened

pytest.importorskip("bokeh", reason="needs Bokeh to draw pages; install ipujax[report]")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
browser = pytest.mark.skipif(
    CHROMIUM is None, reason="needs a browser; install Debian's package chromium"
)

MODEL = "Bokeh.documents[0].get_model_by_name"
COLOURS = """(() => {
  const seen = new Set();
  const visit = (root) => {
    for (const node of root.querySelectorAll('*')) {
      if (node.shadowRoot) visit(node.shadowRoot);
      if (node.tagName !== 'CANVAS' || !node.width || !node.height) continue;
      const pixels = node.getContext('2d').getImageData(0, 0, node.width, node.height).data;
      for (let i = 0; i < pixels.length; i += 4)
        if (pixels[i + 3] === 255) seen.add([pixels[i], pixels[i + 1], pixels[i + 2]].join(','));
    }
  };
  visit(document);
  return [...seen];
})()"""


def program(x, w):
    for i in range(4):
        with jax.named_scope(f"layer{i}"):
            x = jax.nn.softmax(x @ w)
    return jax.lax.fori_loop(0, 9, lambda _, c: jnp.tanh(c @ w), x)


@pytest.fixture(scope="module")
def report() -> ipu.Report:
    shape = jax.ShapeDtypeStruct((96, 96), jnp.float32)
    found = ipu.report(program, shape, shape)
    return dataclasses.replace(found, name="</script><script>throw 1</script>&amp;")


@pytest.fixture(scope="module")
def page(report, tmp_path_factory) -> Iterator[Page]:
    path = tmp_path_factory.mktemp("page") / "step.html"
    report.save(path)
    assert CHROMIUM is not None
    with opened(CHROMIUM, path) as found:
        yield found


@browser
def test_it_opens_without_errors_and_without_a_network(page: Page):
    assert page.evaluate("document.querySelector('h1').textContent").startswith("</script>")
    assert page.problems == []
    assert [url for url in page.requests if not url.startswith(("file:", "data:", "blob:"))] == []


@browser
def test_the_charts_are_drawn(page: Page):
    colours = set(page.evaluate(COLOURS))
    # compute, exchange, sync, further iterations; code of tiles; the mark of the peak
    for drawn in ("0,114,178", "230,159,0", "204,121,167", "185,199,214", "179,38,30"):
        assert drawn in colours


@browser
def test_the_filter_and_the_choice_change_the_table(page: Page, report: ipu.Report):
    # callbacks are asynchronous
    names = f"new Promise((done) => setTimeout(() => done({MODEL}('times').data.name), 200))"
    page.evaluate(f"{MODEL}('group').active = 1")
    assert page.evaluate(names) == [g.name or "(no layer)" for g in report.by("layer")][:1000]
    boxes = "[...Bokeh.documents[0]._all_models.values()].filter((m) => m.name === 'filter')"
    page.evaluate(f"{boxes}.forEach((box) => {{ box.value_input = 'LAYER2'; }})")
    shown = page.evaluate(names)
    assert shown
    assert all("layer2" in name for name in shown)
    page.evaluate(f"{boxes}.forEach((box) => {{ box.value_input = ''; }})")
    assert len(page.evaluate(names)) == len(report.by("layer"))
    assert page.problems == []


@browser
@pytest.mark.parametrize("chart", ["timeline", "tiles", "liveness"])
def test_the_wheel_zooms(page: Page, chart: str):
    span = f"(() => {{ const r = {MODEL}('{chart}').x_range; return r.end - r.start; }})()"
    before = page.evaluate(span)
    place = page.evaluate(
        "(() => { const view = Bokeh.index.find_one_by_id("
        f"{MODEL}('{chart}').id); view.el.scrollIntoView({{block: 'center'}});"
        "const b = view.el.getBoundingClientRect(); return [b.x + 300, b.y + b.height / 3]; })()"
    )
    page.call(
        "Input.dispatchMouseEvent",
        type="mouseWheel",
        x=place[0],
        y=place[1],
        deltaX=0,
        deltaY=-400,
    )
    page.evaluate("new Promise((done) => setTimeout(done, 400))")
    assert 0 < page.evaluate(span) < before
    assert page.problems == []


TOOLTIPS = """(() => {
  const texts = [];
  const visit = (root) => {
    for (const node of root.querySelectorAll('*')) {
      if (!node.shadowRoot) continue;
      const content = node.shadowRoot.querySelector('.bk-tooltip-content');
      if (content && node.getBoundingClientRect().width) texts.push(content.innerText);
      visit(node.shadowRoot);
    }
  };
  visit(document);
  return texts;
})()"""


def hovered(page: Page, chart: str) -> set[str]:
    """The texts of all tooltips that a pointer meets on a grid over a chart."""
    x, y, width, height = page.evaluate(
        f"(() => {{ const view = Bokeh.index.find_one_by_id({MODEL}('{chart}').id);"
        "view.el.scrollIntoView({block: 'center'}); const b = view.el.getBoundingClientRect();"
        "return [b.x, b.y, b.width, b.height]; })()"
    )
    texts: set[str] = set()
    for i in range(1, 10):
        for j in range(1, 8):
            place = {"x": x + width * i / 10, "y": y + height * j / 8}
            page.call("Input.dispatchMouseEvent", type="mouseMoved", **place)
            texts.update(page.evaluate(TOOLTIPS))
    return texts


CHARTS = {
    "bars": ("name", "kind", "cycles"),
    "timeline": ("step", "kind", "cycles"),
    "tiles": ("tile", "category", "bytes"),
    "liveness": ("step", "live on all tiles", "bytes"),
}


@browser
@pytest.mark.parametrize("chart", list(CHARTS))
def test_the_tooltips_have_their_names_and_numbers(page: Page, chart: str):
    texts = hovered(page, chart)
    assert any(all(word in text for word in CHARTS[chart]) for text in texts), texts
    assert [text for text in texts if "@" in text or "$" in text or "???" in text] == []
    assert any(character.isdigit() for text in texts for character in text)


@browser
@pytest.mark.parametrize("chart", ["timeline", "tiles", "liveness"])
def test_the_legend_is_within_its_chart(page: Page, chart: str):
    legend, height = page.evaluate(
        f"(() => {{ const model = {MODEL}('{chart}');"
        "const view = Bokeh.index.find_one_by_id(model.id);"
        "const legend = model.right.find((each) => each.type === 'Legend');"
        "const drawn = view.views.find_one_by_id(legend.id);"
        "return [drawn.bbox.bottom, view.bbox.bottom]; })()"
    )
    assert 0 < legend <= height


@browser
@pytest.mark.parametrize("chart", list(CHARTS))
def test_the_axes_have_whole_numbers(page: Page, chart: str):
    texts = page.evaluate(
        f"(() => {{ const axis = {MODEL}('{chart}').below[0];"
        "return axis.formatter.doFormat([20000, 1e9], {loc: 0}); })()"
    )
    assert texts == ["20,000", "1,000,000,000"]


@browser
def test_a_comparison_opens(report: ipu.Report, tmp_path):
    shape = jax.ShapeDtypeStruct((96, 96), jnp.float32)
    report.compare(ipu.report(jnp.tanh, shape)).save(tmp_path / "both.html")
    assert CHROMIUM is not None
    with opened(CHROMIUM, tmp_path / "both.html") as found:
        assert found.problems == []
        assert found.evaluate("document.querySelectorAll('h1').length") == 2


def test_every_tried_change_has_a_verdict(report):
    from ipujax.reporting.model import Tried
    from ipujax.reporting.tables import remedy_table

    tried = [Tried("half", 1000, 9.0, fits, True) for fits in (True, False)]
    table = remedy_table(dataclasses.replace(report, remedies=tuple(tried)))
    assert list(table.source.data["fits"])[1:] == ["fits", "does not fit"]


def test_without_the_library_the_error_says_what_to_install(report, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "bokeh", None)
    with pytest.raises(ipu.ReportError, match=r"pip install 'ipujax\[report\]'"):
        report.save(tmp_path / "step.html")
