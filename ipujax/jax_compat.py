"""The only file that touches what JAX does not promise to keep: one function for each dependence.

Everything here was tried with the series in `TESTED`; another one is refused at load. It is one
file, however long: the place to go through when JAX changes, and no other.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
from jax.interpreters import mlir

from ipujax import host_callbacks, placement
from ipujax.errors import UnsupportedOpError, VersionError

PLATFORM = "ipu"
CALLBACK_TARGET = "ipu_python_callback"
INSPECT_TARGET = "ipu_inspect_sharding"
#: Series of jax and jaxlib whose private parts this file knows.
TESTED = ((0, 10),)


def check_versions(jax_version: str | None = None, jaxlib_version: str | None = None) -> None:
    """Refuses a jax or jaxlib of a series that was not tested.

    Raises:
        VersionError: names what is installed, and what works.
    """
    for name, version in (
        ("jax", jax_version or jax.__version__),
        ("jaxlib", jaxlib_version or jaxlib.__version__),
    ):
        series = tuple(int(part) for part in version.split(".")[:2])
        if series not in TESTED:
            works = " or ".join(".".join(map(str, tested)) + ".x" for tested in TESTED)
            raise VersionError(
                f"[plugin] needs {name} {works}; got {name} {version}. "
                f'Run pip install "jax~={".".join(map(str, TESTED[-1]))}.0" '
                f'"jaxlib~={".".join(map(str, TESTED[-1]))}.0".'
            )


def register_platform(library_path: str, options: Callable[[], dict[str, Any]]) -> None:
    """Makes the plugin's library the platform "ipu", the default where it is installed."""
    from jax._src import xla_bridge

    # Without its name here JAX warns on first use that the platform is experimental.
    xla_bridge._nonexperimental_plugins.add(PLATFORM)
    xla_bridge.register_plugin(PLATFORM, priority=500, library_path=library_path, options=options)


def register_refusal(error: Exception) -> None:
    """Makes JAX raise the error where it would create the platform's client."""
    from jax._src import xla_bridge

    def refuse() -> Any:
        raise error

    xla_bridge.register_backend_factory(PLATFORM, refuse, priority=500, fail_quietly=False)


def is_registered() -> bool:
    """Whether JAX already knows the platform: it may load an entry point more than once."""
    from jax._src import xla_bridge

    return PLATFORM in xla_bridge._backend_factories


def allow_donation() -> None:
    """JAX drops donation on platforms that are not in this list."""
    from jax._src.interpreters import mlir as private_mlir

    if PLATFORM not in private_mlir._platforms_with_donation:
        private_mlir._platforms_with_donation.append(PLATFORM)


def allow_persistent_cache(options_key: Callable[[], str]) -> None:
    """JAX uses its compilation cache only on platforms that it lists; adds ours.

    Args:
        options_key: text that changes with anything that changes what the compiler makes.
    """
    from jax._src import cache_key, compilation_cache

    others = compilation_cache.is_cache_used
    other_key = cache_key.custom_hook

    def is_cache_used(backend: Any) -> bool:
        if backend.platform == PLATFORM:
            # Where no directory is set JAX would make a key of each program, for nothing.
            return bool(compilation_cache.is_persistent_cache_enabled())
        return bool(others(backend))

    def custom_key() -> str:
        return str(other_key()) + hashlib.sha256(options_key().encode()).hexdigest()

    compilation_cache.is_cache_used = is_cache_used
    cache_key.custom_hook = custom_key


def replace_cache_entries() -> None:
    """Makes an entry of the compilation cache take the place of the one that could not be read.

    JAX keeps what it finds under a key, and leaves half an entry where the disk is full. It writes
    ours under a name that no other process uses; renamed, it is there as a whole or not at all.
    """
    from jax._src import compilation_cache

    put = compilation_cache.put_executable_and_time

    @functools.wraps(put)
    def replacing(
        key: str, module_name: str, executable: Any, backend: Any, compile_time: int
    ) -> None:
        cache = compilation_cache._get_cache(backend)
        # A VerificationCache compares entries under the key itself.
        if backend.platform != PLATFORM or not isinstance(cache, compilation_cache.LRUCache):
            put(key, module_name, executable, backend, compile_time)
            return
        unique = f"{key}.{uuid.uuid4().hex}"
        try:
            put(unique, module_name, executable, backend, compile_time)
            _rename_entry(cache.path, unique, key)
        finally:
            for suffix in ("-cache", "-atime"):
                with contextlib.suppress(OSError):
                    (cache.path / f"{unique}{suffix}").unlink(missing_ok=True)

    compilation_cache.put_executable_and_time = replacing


def _rename_entry(folder: Any, old: str, new: str) -> None:
    """Renames an entry, if there is one. Its time of access, if kept, comes before it.

    Another process that makes room in the folder reads the time of each entry that it finds.
    """
    entry, time = folder / f"{old}-cache", folder / f"{old}-atime"
    if time.exists():
        (folder / f"{new}-atime").write_bytes(time.read_bytes())
    if entry.exists():
        entry.replace(folder / f"{new}-cache")


def show_text_on_demand(show: Callable[[bool], None]) -> None:
    """Hands the text of programs to jaxlib inside `as_text` only.

    jaxlib asks for it with every program it compiles, to learn the layouts that it would assume
    anyhow; parsing 1,000 ops for that takes longer than compiling them.

    Args:
        show: counts who wants to see text; the plugin begins with one.
    """
    from jax._src import stages

    others = stages.Executable.as_text

    def as_text(self: stages.Executable) -> str:
        show(True)
        try:
            return others(self)
        finally:
            show(False)

    stages.Executable.as_text = as_text
    show(False)


#: Modules whose compilation was interrupted.
_interrupted: list[Any] = []


def outlive_interrupted_compiles() -> None:
    """Keeps a module whose compilation Ctrl-C ended, for good.

    jaxlib compiles on a thread of its own. KeyboardInterrupt ends the wait for it, frees the module
    and leaves the thread at work on it, which ends the process now and then (jaxlib 0.10).
    """
    from jax._src import compiler

    compile_and_load = compiler.backend_compile_and_load

    @functools.wraps(compile_and_load)
    def keeping(backend: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return compile_and_load(backend, module, *args, **kwargs)
        except KeyboardInterrupt:
            _interrupted.append(module)
            raise

    compiler.backend_compile_and_load = keeping


def allow_callbacks() -> None:
    """Lowers every kind of Python callback to a custom call with the callback's id.

    `pure_callback`, `io_callback` and checkify reach `emit_python_callback`, which refuses unknown
    platforms; `debug.print` and `debug.callback` have rules for named platforms only.
    """
    from jax._src import callback, debugging

    others = callback.emit_python_callback

    def emit(ctx: Any, function: Any, token: Any, *args: Any, **kwargs: Any) -> Any:
        if tuple(ctx.module_context.platforms) == (PLATFORM,):
            return _emit_callback(ctx, function, token, *args, **kwargs)
        return others(ctx, function, token, *args, **kwargs)

    callback.emit_python_callback = emit
    # Not cacheable: two uses of one callback must not share an id's lifetime.
    mlir.register_lowering(
        debugging.debug_callback_p,
        debugging.debug_callback_lowering,
        platform=PLATFORM,
        cacheable=False,
    )
    mlir.register_lowering(
        debugging.debug_print_p,
        debugging.debug_print_lowering_rule,
        platform=PLATFORM,
        cacheable=False,
    )


def refuse_other_memories() -> None:
    """Refuses `device_put` into the host's memory or another layout, jitted or not.

    JAX's rule for platforms that it does not know drops what was asked for.
    """
    from jax._src import core, dispatch
    from jax._src.layout import Format

    def lower(ctx: Any, *values: Any, devices: Sequence[Any], **parameters: Any) -> Sequence[Any]:
        del parameters
        for aval, target in zip(ctx.avals_in, devices, strict=True):
            if isinstance(target, Format):
                if target.layout is not None:
                    layout = str(target.layout._to_xla_layout(aval.dtype))
                    placement.check_layout("device_put", layout, aval.ndim)
                target = target.sharding
            if isinstance(target, core.MemorySpace):
                placement.check_memory("device_put", core.mem_space_to_kind(target))
            placement.check_memory("device_put", getattr(target, "memory_kind", None))
        return values

    mlir.register_lowering(dispatch.device_put_p, lower, platform=PLATFORM)


def allow_inspect_sharding() -> None:
    """Lowers `inspect_array_sharding` over several devices to a call that our partitioner answers.

    JAX's own rule answers at once for one device. For several it writes a call that holds the
    address of a C++ object; the call gets the id of the same function instead.
    """
    from jax._src import debugging

    others = debugging._inspect_sharding_lowering_rule

    def lower(ctx: Any, value: Any, *, callback: Callable[[Any], None]) -> Sequence[Any]:
        from jaxlib.mlir import ir

        kept = ctx.module_context.keepalives
        before = len(kept)
        others(ctx, value, callback=callback)
        if len(kept) > before:
            inspect = kept[-1]
            # The registry's functions return their results: there are none.
            handle = host_callbacks.register(lambda sharding: (inspect(sharding), ())[1], [], [])
            ctx.module_context.add_keepalive(handle)
            call = list(ir.InsertionPoint.current.block.operations)[-1].operation
            call.attributes["call_target_name"] = ir.StringAttr.get(INSPECT_TARGET)
            call.attributes["backend_config"] = ir.StringAttr.get(handle.callback_id)
        return []

    mlir.register_lowering(debugging.inspect_sharding_p, lower, platform=PLATFORM)


def hlo_sharding(serialised: bytes) -> Any:
    """What JAX hands to the callback of `inspect_array_sharding`; see `sharding_bytes`."""
    from jax._src.lib import xla_client

    sharding = xla_client.OpSharding()
    sharding.ParseFromString(serialised)
    return xla_client.HloSharding.from_proto(sharding)


def allow_dlpack() -> None:
    """Hands out arrays by DLPack as the CPU backend does, without a copy: they lie on the host.

    DLPack has no device type for IPUs, and jaxlib refuses platforms that it does not know.
    """
    from jax._src import array, dlpack

    device_of, to_dlpack = array.ArrayImpl.__dlpack_device__, dlpack._to_dlpack

    def dlpack_device(self: Any) -> tuple[Any, int]:
        if self.platform() == PLATFORM and len(self.sharding.device_set) == 1:
            return dlpack.DLDeviceType.kDLCPU, 0
        return device_of(self)

    def capsule(
        x: Any, stream: Any, src_device: Any = None, device: Any = None, copy: bool | None = None
    ) -> Any:
        if x.platform() != PLATFORM or (device is not None and device.platform != "cpu"):
            return to_dlpack(x, stream, src_device, device, copy)
        same = _on_cpu_backend(x)
        return to_dlpack(same, stream, same.device, None, copy)

    array.ArrayImpl.__dlpack_device__ = dlpack_device
    dlpack._to_dlpack = capsule


def follow_transfer_guard(tell: Callable[[bool | None, bool], None]) -> None:
    """Tells the plugin when `jax.transfer_guard_device_to_host` is set; jaxlib keeps it to itself.

    Args:
        tell: whether this thread is guarded (None: as the process), and whether the process is.
    """
    from jax._src import config
    from jax._src.lib import guard_lib

    others = config._update_transfer_guard

    def guards(level: Any) -> bool | None:
        return None if level is None else level != guard_lib.TransferGuardLevel.ALLOW

    def share() -> None:
        thread, process = guard_lib.thread_local_state(), guard_lib.global_state()
        tell(guards(thread.device_to_host), bool(guards(process.device_to_host)))

    def update(state: Any, key: str, value: str | None) -> None:
        others(state, key, value)
        if key == "device_to_host":
            share()

    config._update_transfer_guard = update
    share()


def estimate_costs_by_compiling() -> None:
    """Gives `lowered.cost_analysis()` the compiled program's numbers; JAX knows them for XLA only.

    The executable is kept: a `compile()` that follows takes no time.
    """
    from jax._src.interpreters import pxla

    others = pxla.MeshComputation.cost_analysis

    def cost_analysis(self: Any) -> Any:
        # A program that was lowered for no device in particular cannot be compiled.
        known = self._device_list is not None
        if known and self.compile_args["backend"].platform == PLATFORM:
            return self.compile().cost_analysis()
        return others(self)

    pxla.MeshComputation.cost_analysis = cost_analysis


def _on_cpu_backend(x: Any) -> Any:
    """The CPU backend's array in the same memory; it keeps the memory as long as it lives."""
    try:
        cpu = jax.devices("cpu")[0]
    except RuntimeError as error:
        raise BufferError(
            f"[dlpack] needs JAX's CPU backend; got: {error}. "
            "Set JAX_PLATFORMS=ipu,cpu or use np.asarray."
        ) from error
    with jax.transfer_guard_host_to_device("allow"):
        return jax.device_put(np.asarray(x), cpu)


def test_harnesses() -> Sequence[Any]:
    """JAX's collection of uses of its primitives: only `ipujax.conformance` reads it."""
    from jax._src.internal_test_util import test_harnesses as module

    return list(module.all_harnesses)


def lower_linalg_as_on_cpu() -> None:
    """Lowers primitives of linear algebra to calls named after LAPACK, as JAX's CPU backend does.

    Most have no lowering for other platforms; the others' are loops, slower than one step. All
    checks and conventions (symmetry, failed factorisations to NaN) are then JAX's own.
    """
    from functools import partial

    from jax._src.export import _export
    from jax._src.interpreters import mlir as private_mlir
    from jax._src.lax import linalg

    on_cpu = private_mlir._platform_specific_lowerings["cpu"]
    for primitive in (
        linalg.eig_p,
        linalg.eigh_p,
        linalg.geqp3_p,
        linalg.geqrf_p,
        linalg.hessenberg_p,
        linalg.householder_product_p,
        linalg.lu_p,
        linalg.ormqr_p,
        linalg.schur_p,
        linalg.svd_p,
        linalg.tridiagonal_p,
        linalg.tridiagonal_solve_p,
    ):
        mlir.register_lowering(primitive, on_cpu[primitive].rule, platform=PLATFORM)
    mlir.register_lowering(
        linalg.lu_pivots_to_permutation_p,
        partial(linalg._lu_pivots_to_permutation_gpu_lowering, target_name_prefix=PLATFORM),
        platform=PLATFORM,
    )
    # LAPACK's names are in that list: exported programs may hold them.
    _export._CUSTOM_CALL_TARGETS_GUARANTEED_STABLE.add("ipu_lu_pivots_to_permutation")


def lower_named_platforms_only() -> None:
    """Primitives that JAX lowers for GPUs or TPUs alone, and mean the same here."""
    from functools import partial

    from jax._src.cudnn import scaled_matmul_stablehlo as scaled
    from jax._src.lax import parallel

    mlir.register_lowering(parallel.pbroadcast_p, parallel._pbroadcast_lowering, platform=PLATFORM)
    # As a product of what the scales were multiplied into.
    mlir.register_lowering(
        scaled._scaled_matmul_p, scaled._scaled_matmul_rocm_lowering, platform=PLATFORM
    )
    for name, primitive in _cudnn_primitives().items():
        mlir.register_lowering(primitive, partial(_refuse_primitive, name), platform=PLATFORM)


def _cudnn_primitives() -> dict[str, Any]:
    from jax._src.cudnn import fused_attention_stablehlo as attention

    return {
        "dot_product_attention_fwd": attention._dot_product_attention_fwd_p,
        "dot_product_attention_bwd": attention._dot_product_attention_bwd_p,
        "dot_product_attention_fp8_fwd": attention._dot_product_attention_fp8_fwd_p,
        "dot_product_attention_fp8_bwd": attention._dot_product_attention_fp8_bwd_p,
    }


def _refuse_primitive(name: str, ctx: Any, *operands: Any, **parameters: Any) -> Any:
    raise UnsupportedOpError(
        [(name, "it is a call of NVIDIA's cuDNN; use implementation='xla'", "")]
    )


def _emit_callback(
    ctx: Any,
    function: Callable[..., Sequence[object]],
    token: Any,
    operands: Sequence[Any],
    operand_avals: Sequence[Any],
    result_avals: Sequence[Any],
    *,
    has_side_effect: bool,
    returns_token: bool = True,
    partitioned: bool = False,
    sharding: Any = None,
) -> tuple[Sequence[Any], Any, Any]:
    """`custom_call @ipu_python_callback(token?, operands)`; same contract as JAX's own function."""
    from jax._src import dtypes
    from jax._src.interpreters import mlir as private_mlir

    del returns_token, partitioned

    x64 = bool(jax.config.jax_enable_x64)  # the program's, whatever the running thread's is

    def canonical(*arguments: np.ndarray) -> tuple[np.ndarray, ...]:
        # Python literals and lists are allowed as results; JAX gives them its default dtypes.
        with jax.enable_x64(x64):
            return tuple(dtypes.canonicalize_value(np.asarray(a)) for a in function(*arguments))

    handle = host_callbacks.register(
        canonical,
        [aval.shape for aval in result_avals],
        [aval.dtype for aval in result_avals],
        [aval.dtype for aval in operand_avals],
    )
    # The first keeps it for JAX's executable, the second keeps it out of the persistent cache.
    ctx.module_context.add_keepalive(handle)
    ctx.module_context.add_host_callback(canonical)

    result_types = [mlir.aval_to_ir_type(ctx.module_context, aval) for aval in result_avals]
    if token is not None:
        operands = [token, *operands]
        result_types = [mlir.token_type(), *result_types]
    call = private_mlir.custom_call(
        CALLBACK_TARGET,
        result_types=result_types,
        operands=operands,
        backend_config=handle.callback_id,
        has_side_effect=has_side_effect,
    )
    # JAX's sharding has no entry for the token; the verifier refuses a wrong count.
    if sharding is not None and token is None:
        private_mlir.set_sharding(ctx.module_context, call, sharding)
    results = list(call.results)
    if token is not None:
        token, *results = results
    return results, token, handle


def stablehlo_version() -> list[int]:
    """The newest StableHLO that this jaxlib reads; it asks plugins and then writes no older one."""
    from jaxlib.mlir.dialects import stablehlo

    return [int(part) for part in stablehlo.get_current_version().split(".")]


#: Bytes of programs that a context reads before it is let go: it keeps all types, attributes and
#: constants that it has seen.
_CONTEXT_BYTES = 1 << 20

#: Contexts that no compile has, each with the bytes that it may still read.
_idle_contexts: list[tuple[Any, int]] = []


@contextlib.contextmanager
def lent_context(code_bytes: int) -> Iterator[Any]:
    """An MLIR context to read a program of so many bytes into; nobody else has it meanwhile.

    It comes from the compile before where it can: to make one and load all dialects takes longer
    than a small program's compile. JAX's context has all dialects that a program may hold; there is
    no public way to make one.
    """
    from jax._src.interpreters import mlir as private_mlir

    try:
        context, room = _idle_contexts.pop()
    except IndexError:
        context, room = private_mlir.make_ir_context(), _CONTEXT_BYTES
    try:
        yield context
    finally:
        if room > code_bytes:
            _idle_contexts.append((context, room - code_bytes))


def deserialize_artifact(code: bytes, context: Any = None) -> Any:
    """The MLIR module of a StableHLO portable artifact, in `context` or one of its own."""
    from jax._src.interpreters import mlir as private_mlir
    from jaxlib.mlir.dialects import stablehlo

    if context is None:
        context = private_mlir.make_ir_context()
    return stablehlo.deserialize_portable_artifact(context, code)


def is_undecodable(error: Exception) -> bool:
    """Whether MLIR's bindings were asked for a name whose bytes are no text."""
    return isinstance(error, UnicodeDecodeError) or (
        isinstance(error, RuntimeError) and "str_from_cstr_and_size" in str(error)
    )


def refine_shapes(module: Any) -> None:
    """Writes out, in place, the shapes that follow from the arguments' and from constants.

    The passes stop with an error where a shape depends on run-time values: then the module stays
    as far as it came, and whoever reads it says which op is left.
    """
    from jaxlib.mlir import ir, passmanager
    from jaxlib.mlir.dialects import stablehlo

    stablehlo.register_stablehlo_passes()
    refine = "stablehlo-refine-shapes,func.func(stablehlo-canonicalize-dynamism)"
    with module.context, contextlib.suppress(ir.MLIRError):
        # Twice: the second sees shapes that the first turned from operands into types.
        passmanager.PassManager.parse(f"builtin.module({refine},{refine},canonicalize)").run(
            module.operation
        )


def run_passes(module: Any, passes: Sequence[str]) -> None:
    """Runs MLIR passes of StableHLO and Shardy on a module, in place.

    A pass at the wrong level of nesting ends the process: name only those that were tried.
    """
    from jaxlib.mlir import passmanager
    from jaxlib.mlir.dialects import stablehlo

    stablehlo.register_stablehlo_passes()
    with module.context:
        passmanager.PassManager.parse(f"builtin.module({','.join(passes)})").run(module.operation)


def sharding_bytes(devices: np.ndarray | None, copies: bool) -> bytes:
    """A serialised xla.OpSharding, as PJRT hands it to JAX.

    Args:
        devices: the device of each block, one dimension for each of the tensor's; None for a
            tensor that each device has whole.
        copies: whether the last dimension is one more, of devices that have the same block.
    """
    from jax._src.lib import xla_client

    sharding = xla_client.OpSharding()
    if devices is None:
        sharding.type = xla_client.OpSharding.Type.REPLICATED
    else:
        sharding.type = xla_client.OpSharding.Type.OTHER
        sharding.tile_assignment_dimensions = list(devices.shape)
        sharding.tile_assignment_devices = devices.reshape(-1).tolist()
        sharding.replicate_on_last_tile_dim = copies
    return bytes(sharding.SerializeToString())


def serialize_artifact(lowered: Any) -> bytes:
    """What the plugin would be handed for `jax.jit(f).lower(...)`: for tests and measurements."""
    from jax._src.interpreters import mlir as private_mlir
    from jaxlib import _jax
    from jaxlib.mlir.dialects import stablehlo

    bytecode = private_mlir.module_to_bytecode(lowered.compiler_ir())
    return bytes(
        _jax.mlir.serialize_portable_artifact(bytecode, stablehlo.get_current_version(), True)
    )


def read_compile_options(options: bytes) -> Any:
    """The CompileOptionsProto that JAX sends with a program, parsed by jaxlib's own class."""
    from jaxlib import _jax

    return _jax.CompileOptions.ParseFromString(options)


def parse_module(code: bytes | str) -> Any:
    """The MLIR module that bytecode or text holds, in a context of its own.

    JAX's context has all dialects registered; there is no public way to make one.
    """
    from jax._src.interpreters import mlir as private_mlir
    from jaxlib.mlir import ir

    with private_mlir.make_ir_context(), ir.Location.unknown():
        return ir.Module.parse(code)


def load_program(
    code: bytes | str, device: Any, compiler_options: Mapping[str, str] | None = None
) -> Callable[[Sequence[np.ndarray]], list[Any]]:
    """Compiles StableHLO for one device; the result runs it on NumPy arrays.

    JAX compiles what it traced itself; programs that come from elsewhere go to its client.
    """
    from jaxlib import _jax

    options = _jax.CompileOptions()
    options.num_replicas = options.num_partitions = 1
    options.env_option_overrides = list((compiler_options or {}).items())
    executable = device.client.compile_and_load(
        parse_module(code),
        executable_devices=_jax.DeviceList((device,)),
        compile_options=options,
    )

    def run(arrays: Sequence[np.ndarray]) -> list[Any]:
        results = executable.execute_sharded([jax.device_put(a, device) for a in arrays])
        return [np.asarray(r[0]) for r in results.disassemble_into_single_device_arrays()]

    return run


def evaluate_module(module: Any, arrays: Sequence[np.ndarray]) -> list[Any]:
    """Runs a module on StableHLO's reference interpreter, which jaxlib ships; attributes out.

    It can end the process where a program is beyond it: call it in a process of its own.
    """
    from jax._src.interpreters import mlir as private_mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    with module.context:
        arguments = [
            ir.DenseElementsAttr.get(
                np.ascontiguousarray(a), type=private_mlir.dtype_to_ir_type(a.dtype), shape=a.shape
            )
            for a in arrays
        ]
        return list(stablehlo.eval_module(module, arguments))


@dataclass(frozen=True)
class WatchedCall:
    """One call of a jitted function, after it ran.

    Attributes:
        name: the function's.
        platforms: of the devices that it ran on, one for each.
        effects: whether it calls back to Python or orders effects.
        arguments, results: as its program takes and returns them.
        lower: its StableHLO for a platform, as bytecode.
    """

    name: str
    platforms: list[str]
    effects: bool
    arguments: list[Any]
    results: list[Any]
    lower: Callable[[str], bytes]


@functools.cache
def watch_calls(watcher: Callable[[], Callable[[WatchedCall], None] | None]) -> None:
    """Hands each call of a jitted function to what `watcher()` returns, where that is not None.

    There is no public hook. Calls are seen where JAX dispatches them in Python; while somebody
    watches it is kept from handing the next ones to its fast path in C++. A function that was
    called before must be traced again, which a user context sees to (`jax.make_user_context`).
    """
    from jax._src import pjit

    others, fast = pjit._pjit_call_impl_python, pjit._get_fastpath_data

    def call(*args: Any, **params: Any) -> Any:
        watch = watcher()
        if watch is None:
            return others(*args, **params)
        # Donated arguments are gone after the call.
        copies = [_host_copy(a) for a in args]
        made = others(*args, **params)
        results, compiled, _, constants = made
        execute = compiled.unsafe_call
        inputs = [*map(_host_copy, constants), *copies]
        kept = [a for k, a in enumerate(inputs) if k in execute.kept_var_idx]
        watch(
            WatchedCall(
                params["name"],
                [device.platform for device in execute.xla_executable.local_devices()],
                bool(
                    execute.ordered_effects
                    or execute.has_unordered_effects
                    or execute.has_host_callbacks
                    or execute.mut
                ),
                [_in_dtype(a, aval) for a, aval in zip(kept, compiled.in_avals, strict=True)],
                [_host_copy(r) for r in results],
                functools.partial(_lowered_call, args, params),
            )
        )
        return made

    def fastpath_data(*args: Any, **kwargs: Any) -> Any:
        return None if watcher() is not None else fast(*args, **kwargs)

    pjit._pjit_call_impl_python = call
    pjit._get_fastpath_data = fastpath_data


def _host_copy(value: Any) -> Any:
    """A NumPy copy of what a program sees of a value; the value where there is none."""
    dtype = getattr(value, "dtype", None)
    if dtype is not None and jnp.issubdtype(dtype, jax.dtypes.extended):
        value = jax.random.key_data(value)
    if isinstance(value, jax.Array) and not value.is_fully_addressable:
        return value
    return np.array(value)


def _in_dtype(array: Any, aval: Any) -> Any:
    """Python's numbers and 64-bit arrays have the dtype that JAX gives them."""
    is_key = jnp.issubdtype(aval.dtype, jax.dtypes.extended)
    return array if is_key else array.astype(aval.dtype)


def _lowered_call(args: Sequence[Any], params: dict[str, Any], platform: str) -> bytes:
    """The call's program, lowered once more: JAX caches it for its own platform."""
    from jax._src import pjit
    from jax._src.interpreters import mlir as private_mlir

    # What `_pjit_call_impl_python` passes, but for the platform.
    lowered = pjit._resolve_and_lower(
        [pjit.convert_to_metaty(a) for a in args],
        **params,
        lowering_platforms=(platform,),
        lowering_parameters=private_mlir.LoweringParameters(),
        pgle_profiler=None,
    )
    return bytes(private_mlir.module_to_bytecode(lowered.stablehlo()))


def mapped_axes() -> dict[Any, int]:
    """Name and size of each axis that is mapped where this is called, the outermost first.

    JAX's public functions answer only for an axis whose name one knows.
    """
    from jax._src import core

    return dict(core.get_axis_env().axis_sizes)


def abstract_result(f: Callable[[Any], Any], aval: Any) -> tuple[Any, Any]:
    """What f makes of one abstract array: an abstract array, and effects, as a primitive says them.

    JAX's public way to trace forgets over which mapped axes the argument varies.
    """
    from jax._src import api_util, linear_util
    from jax._src.interpreters import partial_eval

    info = api_util.debug_info("abstract_result", f, (aval,), {})
    flat = linear_util.wrap_init(lambda x: [f(x)], debug_info=info)
    jaxpr, (result,), _ = partial_eval.trace_to_jaxpr_dynamic(flat, [aval])
    return result, jaxpr.effects


def lower_reduce_scatter(
    combine: Callable[[Any, Any], Any],
    ctx: Any,
    x: Any,
    axis_name: tuple[Any, ...],
    axis_index_groups: Any,
    size: int,
    dim: int,
) -> Any:
    """stablehlo.reduce_scatter with a body of its own; JAX's primitive only adds."""
    from types import SimpleNamespace

    from jax._src.lax import parallel

    return parallel._reduce_scatter_lowering(
        SimpleNamespace(bind=combine),
        ctx,
        x,
        scatter_dimension=dim,
        axis_name=axis_name,
        axis_index_groups=axis_index_groups,
        axis_size=size,
        tiled=True,
    )


def lower_broadcast(ctx: Any, x: Any, *, axis_name: tuple[Any, ...]) -> Any:
    """stablehlo.collective_broadcast of the first replica's array."""
    from jax._src.lax import parallel

    return parallel._pbroadcast_lowering(ctx, x, axis_name=axis_name, source=0)


def varying_axes(value: Any) -> frozenset[Any]:
    """The mapped axes over which a value may differ, as `shard_map(check_vma=True)` knows it.

    Empty where nothing is checked. The attribute had another name in each of JAX's last series.

    Args:
        value: an array, or what `jax.eval_shape` tells of one.
    """
    shaped = value if isinstance(value, jax.ShapeDtypeStruct) else jax.typeof(value)
    known = shaped.manual_axis_type
    return frozenset() if known is None else frozenset(known.varying)


@functools.cache
def allow_vmap_of_grouped_all_to_all() -> None:
    """Lets `vmap` pass an all_to_all within groups; JAX refuses whatever axis `vmap` maps over."""
    from jax._src.interpreters import batching
    from jax._src.lax import parallel

    others = batching.fancy_primitive_batchers[parallel.all_to_all_p]

    def batch(axis: Any, values: Any, dimensions: Any, **parameters: Any) -> Any:
        names = parameters["axis_name"]
        names = names if isinstance(names, (list, tuple)) else [names]
        if parameters["axis_index_groups"] is None or axis.name in names:
            return others(axis, values, dimensions, **parameters)
        return parallel._all_to_all_batcher(values, dimensions, **parameters)

    batching.fancy_primitive_batchers[parallel.all_to_all_p] = batch
