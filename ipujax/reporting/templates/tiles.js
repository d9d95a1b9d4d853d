// Draws the tiles of the chosen IPU.
source.data = { ...source.data, ...ipus[Number(choice.value)] };
