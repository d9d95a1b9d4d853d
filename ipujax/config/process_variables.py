"""Environment variables that the engine and the tests read for the whole process.

None changes what a program computes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ipujax.errors import ConfigError


def _check_num_threads(text: str) -> str | None:
    known = text.isdecimal() and len(text) <= 4 and 1 <= int(text) <= 1024
    return None if known else "a whole number from 1 to 1024"


def _check_isa(text: str) -> str | None:
    return None if text in ("baseline", "avx2", "avx512") else "baseline, avx2 or avx512"


def _check_folder(text: str) -> str | None:
    return None if Path(text).is_dir() else "a folder that exists"


def _check_extension(text: str) -> str | None:
    found = Path(text).is_dir() and any(Path(text).glob("_poplar.*"))
    return None if found else "a folder with a built extension, _poplar.*.so"


def _check_seconds(text: str) -> str | None:
    known = text.isdecimal() and len(text) <= 6 and int(text) > 0
    return None if known else "a whole number of seconds from 1 to 999999"


def _check_switch(text: str) -> str | None:
    return None if text in ("0", "1") else "0 or 1"


def _check_file(text: str) -> str | None:
    return None if Path(text).is_file() else "a file that exists"


Check = Callable[[str], "str | None"]

#: The variable that names a file of options.
CONFIG_FILE = "IPUJAX_CONFIG"

#: Help for each variable, and a check of its value.
PROCESS_VARIABLES: dict[str, tuple[str, Check]] = {
    CONFIG_FILE: (
        "A file of options, as ipu.IPUConfig.from_file reads; variables override it.",
        _check_file,
    ),
    "IPUJAX_NUM_THREADS": (
        "Number of threads of the IPU Model; by default the number of CPUs.",
        _check_num_threads,
    ),
    "IPUJAX_MAX_ISA": (
        "Newest instruction set that its kernels may use: baseline, avx2 or avx512.",
        _check_isa,
    ),
    "IPUJAX_CODELET_INCLUDE": (
        "An additional folder of headers for codelets compiled at run time.",
        _check_folder,
    ),
    "IPUJAX_TRUST_NATIVE_CODE": (
        "Folder of compiled codelets that you trust loaded programs to run.",
        _check_folder,
    ),
    "IPUJAX_EXTENSION": (
        "Folder of an extension built against a Poplar SDK, to use instead of the IPU Model's.",
        _check_extension,
    ),
    "IPUJAX_POPX_CODELETS": (
        "Folder of popx's codelets, for a build against a Poplar SDK.",
        _check_folder,
    ),
    "IPUJAX_CALLBACK_TIMEOUT": (
        "Seconds that a host callback may take while programs wait for its device, in a build "
        "against a Poplar SDK; then these fail. Default 120.",
        _check_seconds,
    ),
    "IPUJAX_MODEL_AS_IPU": (
        "1 lists the IPU Model as IPUs in poplar::DeviceManager, for programs in C++.",
        _check_switch,
    ),
    "IPUJAX_VERIFY": (
        "1 makes the compiler check shapes between its stages, as the tests do.",
        _check_switch,
    ),
}
#: Variables that act only in a build against a Poplar SDK.
OF_SDK_BUILDS = frozenset({"IPUJAX_POPX_CODELETS", "IPUJAX_CALLBACK_TIMEOUT"})
#: Variables of Graphcore's tools that JAX's programs do not read, and what to use instead. Poplar
#: reads its own in a build against its SDK.
OF_POPLAR = ("POPLAR_", "POPLIBS_", "PVTI_")
_LEVEL, _DESTINATION = "set IPUJAX_LOG_LEVEL", "set IPUJAX_LOG_DESTINATION"
UNREAD_VARIABLES: dict[str, str] = {
    "PVTI_OPTIONS": "jax.profiler.trace and ipu.trace record what runs",
    "POPLAR_RUNTIME_OPTIONS": "no run waits for an IPU; an Engine in C++ reads it",
    "POPLAR_TARGET_OPTIONS": "set JAX_IPU_DEVICE_COUNT, IPUJAX_MACHINE and others",
    "POPLAR_SIMULATOR_OPTIONS": "the IPU Model has options of its own: python -m ipujax options",
    "POPLAR_LOG_LEVEL": _LEVEL,
    "POPLAR_LOG_DEST": _DESTINATION,
    "POPLIBS_LOG_LEVEL": _LEVEL,
    "POPLIBS_LOG_DEST": _DESTINATION,
    "POPTORCH_LOG_LEVEL": _LEVEL,
    "POPTORCH_CACHE_DIR": "set IPUJAX_EXECUTABLE_CACHE_DIR",
    "POPTORCH_IPU_MODEL": "set JAX_IPU_USE_MODEL",
    "POPTORCH_WAIT_FOR_IPU": "set IPUJAX_WAIT_FOR_IPU",
    "TF_POPLAR_FLAGS": "call ipu.configure, or set a variable for each option: "
    "python -m ipujax options",
}
#: Read by the build and its tests only.
BUILD_VARIABLES = frozenset(
    {"IPUJAX_CPP_TESTS", "IPUJAX_POPLAR_SDK", "IPUJAX_SHOW_ULP", "IPUJAX_TESTS_ON_SDK"}
)


def check_process_variables(environment: Mapping[str, str]) -> None:
    """Checks the variables that the engine reads itself, so that errors appear at the start.

    Raises:
        ConfigError: a variable has a value that is not allowed.
    """
    for name, (_, check) in PROCESS_VARIABLES.items():
        value = environment.get(name, "")
        needs = check(value) if value else None
        if needs:
            raise ConfigError(f"[config] {name} needs {needs}; got {value!r}. Correct or unset it.")
