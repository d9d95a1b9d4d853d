#include "engine/loop/ScalarRows.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "engine/kernels/move/CopyWindows.hpp"
#include "engine/loop/Regions.hpp"
#include "engine/loop/ScalarControl.hpp"

namespace ipujax::engine::loop {
namespace {

constexpr std::int64_t kMostPieces = 8;
constexpr std::int64_t kMostBytes = 4096;

/// Elements that are contiguous on both sides.
struct Piece {
  std::int64_t large = 0;  ///< bytes from the row's first element
  std::int64_t small = 0;
};

/// A row as the code moves it: as single elements or as one piece.
struct Row {
  const StepDesc& step;
  std::uint64_t number;
  std::vector<Piece> pieces;
  std::size_t piece_bytes = 0;

  const OperandDesc& large() const { return step.operands[0]; }
  const OperandDesc& indices() const { return step.operands[1]; }
  const std::vector<std::int64_t>& integers(const char* name) const {
    return step.attributes.integers(name);
  }
};

/// Windows that wrap around are in one piece only if they have one element per indexed dimension.
bool isOnePiece(const Row& row, Outside outside, bool stores) {
  if (outside == Outside::kFail || (outside == Outside::kSkip && !stores)) return false;
  const auto& sizes = row.integers("sizes");
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] < 1 || sizes[d] > row.large().shape[d]) return false;
  return outside != Outside::kWrap || std::ranges::all_of(row.integers("map"), [&](auto d) {
           return sizes[static_cast<std::size_t>(d)] == 1;
         });
}

std::optional<Row> findRow(const Image& image, std::uint64_t number, bool stores) {
  const StepDesc& step = image.steps[number];
  if (step.operands.size() != 3) return std::nullopt;
  if (step.attributes.integers("map").empty()) return std::nullopt;  // always the same row
  Row row{step, number, {}, sizeOf(step.operands[0].type)};
  if (!isOnePiece(row, outsideOf(step.attributes), stores)) return std::nullopt;
  if (row.indices().numElements() != static_cast<std::int64_t>(row.integers("map").size()))
    return std::nullopt;
  const OperandDesc& small = step.operands[2];
  if (!areApart(footprintOf(image, row.large()), footprintOf(image, small))) return std::nullopt;
  const Windows windows(row.large(), row.indices(), small, step.attributes);
  const std::int64_t elements = windows.windowElements();
  if (windows.count() != 1 || elements < 1) return std::nullopt;
  const auto bytes = static_cast<std::int64_t>(row.piece_bytes);
  if (isRowMajor(windows.shape(), windows.largeStrides()) &&
      isRowMajor(windows.shape(), windows.smallStrides()) && elements * bytes <= kMostBytes) {
    row.piece_bytes *= static_cast<std::size_t>(elements);
    row.pieces.emplace_back();
    return row;
  }
  if (elements > kMostPieces) return std::nullopt;
  const auto large_at = elementsOf(windows.shape(), windows.largeStrides());
  const auto small_at = elementsOf(windows.shape(), windows.smallStrides());
  for (std::size_t i = 0; i < large_at.size(); ++i)
    row.pieces.push_back({large_at[i] * bytes, small_at[i] * bytes});
  return row;
}

/// Word 0: the largest index of a dimension; word 1: bytes per index.
Place limitsOf(const Row& row, std::size_t k, ScalarCode& code) {
  const auto d = static_cast<std::size_t>(row.integers("map")[k]);
  const auto bytes = static_cast<std::int64_t>(sizeOf(row.large().type));
  return code.record(
      {row.large().shape[d] - row.integers("sizes")[d], row.large().strides[d] * bytes});
}

/// A slot with the address of the row's first element.
Place addAddress(const Row& row, ScalarCode& code) {
  const Place address = code.slot();
  const std::int64_t index_bytes =
      row.indices().strides.back() * static_cast<std::int64_t>(sizeOf(row.indices().type));
  const bool clamps = outsideOf(row.step.attributes) == Outside::kClamp;
  const ElementType type = row.indices().type;
  for (std::size_t k = 0; k < row.integers("map").size(); ++k) {
    const bool may = clamps && type != ElementType::kUInt64;
    const Meaning locates{.kind = may ? Meaning::Kind::kLocate : Meaning::Kind::kCall,
                          .index = type,
                          .from_address = k > 0};
    const Place index = code.operand(row.number, 1).at(static_cast<std::int64_t>(k) * index_bytes);
    code.add(scalar::locate(row.indices().type, outsideOf(row.step.attributes), k > 0),
             {.a = index,
              .b = k > 0 ? address : code.operand(row.number, 0),
              .c = limitsOf(row, k, code),
              .out = address},
             0, locates);
  }
  return address;
}

/// Whether one operation can load the row.
bool isElement(const Row& row) {
  const ElementType index = row.indices().type;
  return (index == ElementType::kInt32 || index == ElementType::kUInt32) &&
         outsideOf(row.step.attributes) == Outside::kClamp && row.integers("map").size() == 1 &&
         row.pieces.size() == 1 && row.piece_bytes == sizeOf(row.large().type) &&
         row.large().type != ElementType::kHalf;
}

std::int64_t immediateOf(const Row& row, const Piece& piece) {
  return scalar::isWord(row.piece_bytes) ? piece.large : static_cast<std::int64_t>(row.piece_bytes);
}

Meaning meaningOf(Meaning::Kind kind, const Row& row) {
  if (!scalar::isWord(row.piece_bytes)) return {};
  return {.kind = kind, .bytes = row.piece_bytes};
}

/// The operation that combines elements, if the row is always in range and moves by elements.
std::optional<expr::Op> combinerIn(const Row& row) {
  const ElementType type = row.large().type;
  const bool skips = outsideOf(row.step.attributes) == Outside::kSkip;
  if (skips || type == ElementType::kHalf || row.piece_bytes != sizeOf(type)) return std::nullopt;
  const auto op = combinerOf(row.step.attributes.text("body"), type);
  return op && simd::findScalar({*op, type, type}) ? op : std::nullopt;
}

}  // namespace

bool addRowLoad(const Image& image, std::uint64_t number, ScalarCode& code) {
  const auto row = findRow(image, number, false);
  if (!row) return false;
  const Place to = code.operand(number, 2);
  if (isElement(*row)) {
    const ElementType index = row->indices().type;
    const ElementType type = row->large().type;
    code.addHolding(index, type, [&](bool held) { return scalar::loadElement(index, type, held); },
                    {.a = code.operand(number, 1),
                     .b = code.operand(number, 0),
                     .c = limitsOf(*row, 0, code),
                     .out = to},
                    {.kind = Meaning::Kind::kLoadElement, .bytes = sizeOf(type), .index = index});
    return true;
  }
  const Place address = addAddress(*row, code);
  for (const Piece& piece : row->pieces)
    code.add(scalar::loadAt(row->piece_bytes), {.a = address, .out = to.at(piece.small)},
             immediateOf(*row, piece), meaningOf(Meaning::Kind::kLoadAt, *row));
  code.freeSlots();
  return true;
}

bool addRowStore(const Image& image, std::uint64_t number, ScalarCode& code) {
  const auto row = findRow(image, number, true);
  if (!row) return false;
  const ElementType type = row->large().type;
  const bool replaces = row->step.attributes.text("body") == "replace";
  const auto combine = combinerIn(*row);
  if (!replaces && !combine) return false;
  const Place from = code.operand(number, 2);
  const Place address = addAddress(*row, code);
  for (const Piece& piece : row->pieces) {
    Place value = from.at(piece.small);
    if (!replaces) {
      const Place found = code.slot();
      code.add(scalar::loadAt(row->piece_bytes), {.a = address, .out = found},
               immediateOf(*row, piece), meaningOf(Meaning::Kind::kLoadAt, *row));
      code.addValue({*combine, type, type}, {.a = found, .b = value, .out = found});
      value = found;
    }
    code.add(scalar::storeAt(row->piece_bytes), {.a = value, .out = address},
             immediateOf(*row, piece), meaningOf(Meaning::Kind::kStoreAt, *row));
  }
  code.freeSlots();
  return true;
}

}  // namespace ipujax::engine::loop
