"""Documents cannot rot: code blocks run, links lead somewhere, options and lines are as written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("cpp/model/**/*.md")])
#: Followed step by step by test_add_an_op.py.
FOLLOWED = "docs/add-an-op.md"
#: A block of Python or of a shell, and why it is not run, if it is not.
BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>.+) -->\n+)?"
    r"^```(?P<language>python|bash|sh)\b.*\n(?P<code>(?s:.*?))^```$",
    flags=re.M,
)
#: In a folder of its own, which has the examples; `python` and `ipujax` are those of this process.
SETUP = """
import os, subprocess, sys
os.chdir({folder!r})
os.symlink({examples!r}, "examples")
os.environ["HOME"] = os.getcwd()
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
"""
SHELL = "subprocess.run(['bash', '-euxo', 'pipefail', '-c', {code!r}], check=True)"
#: What the blocks before it print; in console blocks with other line breaks and numbers.
SHOWN = re.compile(r"^```(text|console)\n((?s:.*?))^```$", flags=re.M)
LINK = re.compile(r"\[[^\]]*\]\(([^)#]+)(?:#[^)]*)?\)")


def blocks_that_run(page: str) -> list[str]:
    """As Python."""
    return [
        block["code"] if block["language"] == "python" else SHELL.format(code=block["code"])
        for block in BLOCK.finditer((ROOT / page).read_text())
        if not block["reason"]
    ]


def executed_pages() -> list[str]:
    pages = [str(page.relative_to(ROOT)) for page in PAGES]
    return [page for page in pages if page != FOLLOWED and blocks_that_run(page)]


@pytest.mark.parametrize("page", executed_pages())
def test_code_blocks_run(page: str, run_python, tmp_path: Path):
    """One after the other in one process; `<!-- not run: why -->` before a block leaves it out.

    Blocks of a shell run as its children, between those of Python. All print what the page's blocks
    of text show.
    """
    script = tmp_path / "blocks.py"
    setup = SETUP.format(folder=str(tmp_path), examples=str(ROOT / "examples"))
    blocks = [setup, *blocks_that_run(page)]
    script.write_text("\n\n".join(blocks))
    run = run_python(script)
    assert run.returncode == 0, run.stdout + run.stderr
    missing = [
        text
        for language, text in SHOWN.findall((ROOT / page).read_text())
        if not (text in run.stdout if language == "text" else outline(text) in outline(run.stdout))
    ]
    assert not missing, f"{page} shows what it does not print:\n{missing[0]}\n{run.stdout}"


def outline(text: str) -> str:
    """Without line breaks and numbers, which change with the costs of the model."""
    return re.sub(r"\d+(\.\d+)?", "0", " ".join(text.split()))


def test_no_block_is_overlooked():
    """Fences in other spellings would not be run."""
    for page in PAGES:
        text = page.read_text()
        fences = re.findall(
            r"^[ \t]*(?:```|~~~)[ \t]*(?:python|py|bash|sh|shell)\b", text, flags=re.M | re.I
        )
        assert len(fences) == len(BLOCK.findall(text)), page


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

    names = ipujax.__all__
    assert len(names) > 60
    page = (ROOT / "docs" / "api.md").read_text()
    assert [name for name in names if f"`ipujax.{name}`" not in page] == []


def test_the_poplar_api_page_is_up_to_date():
    command = [sys.executable, ROOT / ".ci" / "poplar_api.py"]
    page = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert (ROOT / "docs" / "poplar-api.md").read_text() == page, "run make docs"
    # Of each kind one that only a reader of declarations finds.
    for name in ("`cycleCount`", "`tanhWithOutput`", "`Graph::ConnectionDesc`", "`encodeOneHot`"):
        assert name in page
    assert "node_" not in page  # private


def test_the_ops_page_is_up_to_date():
    from ipujax.cli import ops

    assert (ROOT / "docs" / "ops.md").read_text() == ops.page(), "run make docs"
