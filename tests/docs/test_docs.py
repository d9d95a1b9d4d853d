"""Documents cannot rot: code blocks run, links lead somewhere, options and lines are as written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/data/*.md")])
#: Pages whose Python blocks are run, each page's blocks one after the other in one process.
EXECUTED = (
    "README.md",
    "docs/guides/callbacks-and-cache.md",
    "docs/guides/costs.md",
    "docs/guides/replication.md",
    "docs/guides/verify.md",
)
LINK = re.compile(r"\[[^\]]*\]\(([^)#]+)(?:#[^)]*)?\)")


def python_blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S)


@pytest.mark.parametrize("page", EXECUTED)
def test_code_blocks_run(page: str, run_python, tmp_path: Path):
    blocks = python_blocks((ROOT / page).read_text())
    assert blocks, f"{page} has no Python block"
    script = tmp_path / "blocks.py"
    script.write_text("\n\n".join(blocks))
    run = run_python(script)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path):
    targets = [t for t in LINK.findall(page.read_text()) if "://" not in t]
    missing = [t for t in targets if not (page.parent / t).exists()]
    assert not missing, f"{page.name} links to {missing}"


def test_every_make_target_in_the_documents_exists():
    targets = set(re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), flags=re.M))
    for page in PAGES:
        named = re.findall(r"`make ([a-z ]+)`", page.read_text())
        unknown = {word for words in named for word in words.split()} - targets
        assert not unknown, f"{page.name} names make targets {unknown}"


def test_every_word_of_the_command_line_is_in_the_readme():
    from ipujax.cli.main import WORDS

    readme = (ROOT / "README.md").read_text()
    assert [word for word in WORDS if f"python -m ipujax {word}" not in readme] == []


def test_every_public_name_is_documented():
    import ipujax

    source = Path(ipujax.__file__).read_text()
    names = re.findall(r"^from \S+ import (\w+) as \1$", source, flags=re.M)
    assert names
    page = (ROOT / "docs" / "api.md").read_text()
    assert [name for name in names if f"`ipujax.{name}`" not in page] == []


def test_the_ops_page_is_up_to_date():
    from ipujax.cli import ops

    assert (ROOT / "docs" / "ops.md").read_text() == ops.page(), "run make docs"
