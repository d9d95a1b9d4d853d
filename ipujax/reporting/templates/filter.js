// Shows the rows of the chosen table that contain the text, and draws the first of them.
const table = tables[choice === null ? 0 : choice.active];
const text = (box.value_input ?? "").toLowerCase(); // as it is typed
const names = Object.keys(table);
const kept = [];
for (let i = 0; i < table[names[0]].length; ++i) {
  if (names.some((name) => typeof table[name][i] === "string" && table[name][i].toLowerCase().includes(text))) {
    kept.push(i);
  }
}
const data = {};
for (const name of names) data[name] = kept.map((i) => table[name][i]);
source.data = data;
if (bars !== null) {
  const drawn = {};
  for (const name of names) drawn[name] = data[name].slice(0, most);
  drawn.label = drawn.name.map((name, i) => `${i + 1}. ${name}`);
  bars.data = drawn;
  figure.y_range.factors = [...drawn.label].reverse();
}
