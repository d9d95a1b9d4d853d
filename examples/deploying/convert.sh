#!/usr/bin/env bash
# Convert and run from the shell: exports a trained classifier, converts it to float16, runs it.
#
# Run: examples/deploying/convert.sh
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

PYTHONPATH=$here python - <<'END'
import jax
import jax.export
import numpy as np
import save

weights, points, label = save.trained()
exported = jax.export.export(jax.jit(save.scores), platforms=["ipu"])(weights, points)
with open("classifier.jax", "wb") as file:
    file.write(exported.serialize())
layers = {f"weights[{i}][{j}]": x for i, layer in enumerate(weights) for j, x in enumerate(layer)}
np.savez("inputs.npz", points=points, **layers)
np.save("label.npy", label)
END

python -m ipujax convert classifier.jax -o half.jax --precision-mode FP16
python -m ipujax run half.jax --inputs inputs.npz --outdir results
python -m ipujax report half.jax | sed -n 1,3p

python - <<'END'
import numpy as np

scores = np.load("results/results.npz")["result"]
accuracy = (scores.argmax(1) == np.load("label.npy")).mean()
print(f"test accuracy in float16: {accuracy:.3f}")
if accuracy < 0.95:
    raise SystemExit(f"needs an accuracy of 0.95; got {accuracy:.3f}")
END
