"""From a StableHLO artifact to a sealed executable: `compile.compile_module`."""
