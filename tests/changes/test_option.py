"""An option is declared in one file; the compiler and the engine read it by its name."""

from __future__ import annotations

from pathlib import Path

from tests.changes.tree import Tree

#: A rule that gives the option's value, and a file of the engine that refuses one of its values.
CHECK = """
import os
import jax
import numpy as np
from ipujax.config import page
from ipujax.compiler.rules.registry import custom_call_rule
from ipujax.compiler.rules import poplar as ipu

@custom_call_rule("option")
def option(builder, op):
    value = np.int32(builder.options.new_option).tobytes()
    return [builder.graph.addConstantBytes(ipu.poplar.INT, [], value, "option")]

assert "`ipu_new_option` | `IPUJAX_NEW_OPTION` | `3` | a whole number from 0 to 9" in page.table()

def read():
    return jax.ffi.ffi_call("option", jax.ShapeDtypeStruct((), np.int32))()

device = jax.devices("ipu")[0]
with jax.default_device(device):
    assert jax.jit(read)() == 3
    assert jax.jit(read, compiler_options={"ipu_new_option": 4})() == 4
    os.environ["IPUJAX_NEW_OPTION"] = "5"
    assert jax.jit(lambda: read() + 0)() == 5
    for value, text in ((10, "ipu_new_option'] needs a whole number"), (7, "no sevens")):
        try:
            jax.jit(read, compiler_options={"ipu_new_option": value})()
        except jax.errors.JaxRuntimeError as error:
            assert text in str(error), error
        else:
            raise AssertionError(value)
"""


def test_an_option_is_declared_in_one_file(run_python, tmp_path: Path):
    tree = Tree(tmp_path)
    tree.replace(
        "ipujax/config/arithmetic.py",
        "    fast_math: bool = option(",
        """    new_option: int = option(3, "An option.", "IPUJAX_NEW_OPTION", bounds=(0, 9))
    fast_math: bool = option(""",
    )
    assert tree.changed() == ["ipujax/config/arithmetic.py"]
    tree.replace(  # its reader
        "cpp/model/engine/build/Build.cpp",
        "  build::Draft draft;\n  draft.image.signature",
        """  if (options.options.integer("new_option") == 7)
    throw std::invalid_argument("no sevens");
  build::Draft draft;
  draft.image.signature""",
    )
    tree.build()
    (tmp_path / "check.py").write_text(CHECK)
    run = run_python(tmp_path / "check.py", env=tree.environment())
    assert run.returncode == 0, run.stdout + run.stderr
