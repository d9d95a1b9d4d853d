"""A profile that was altered and sealed again is refused or shown, never read out of bounds."""

from __future__ import annotations

import random
import struct

import jax
import jax.numpy as jnp

from ipujax._poplar import _poplar
from tests.mutants.corpus import sealed

MASK = (1 << 64) - 1


def checksum(data: bytes) -> int:
    """As cpp/model/engine/image/Image.cpp has it."""
    state = [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, len(data)]

    def mix(k: int, word: int) -> None:
        mixed = (state[k] ^ word) * 0xFF51AFD7ED558CCD & MASK
        state[k] = (mixed << 31 | mixed >> 33) & MASK

    whole = len(data) // 32 * 32
    for i, word in enumerate(struct.unpack(f"<{whole // 8}Q", data[:whole])):
        mix(i % 4, word)
    for i in range(whole, len(data)):
        mix(i % 4, data[i] + 1)
    for k in range(1, 4):
        mix(0, state[k])
    return state[0] ^ state[0] >> 29


def step(x):
    with jax.named_scope("layer"):
        return jax.lax.fori_loop(0, 3, lambda _, c: jnp.tanh(c @ x), x)


def test_altered_profiles_are_refused_or_shown():
    shape = (jax.ShapeDtypeStruct((16, 16), jnp.float32),)
    image = sealed(step, shape, {"ipu_profile": True})
    plain = sealed(step, shape)
    version = struct.unpack_from("<Q", image, 12)[0]
    size_at = 20 + version
    head, contents = image[:size_at], image[size_at + 16 :]
    assert struct.unpack_from("<QQ", image, size_at) == (len(contents), checksum(contents))
    profile_bytes = len(image) - len(plain)  # it comes last
    assert profile_bytes > 4000
    pick = random.Random(0)
    messages = []
    for _ in range(400):
        altered = bytearray(contents)
        for _ in range(pick.randrange(1, 4)):
            altered[len(altered) - pick.randrange(1, profile_bytes)] = pick.randrange(256)
        if pick.random() < 0.1:
            del altered[-pick.randrange(1, profile_bytes) :]
        seal = struct.pack("<QQ", len(altered), checksum(bytes(altered)))
        try:
            _poplar.engine.profileImage(head + seal + bytes(altered))
        except RuntimeError as error:
            messages.append(str(error))
    assert len(messages) > 20
    assert all("[Executable]" in message for message in messages)
