#pragma once
#include <cstddef>

namespace poplar {

/// How a PrintTensor program writes a tensor: rows of elements, with brackets around each
/// dimension.
class PrintTensorFmt {
 public:
  /// Auto chooses Fixed or Scientific by the largest and smallest elements; None writes each number
  /// as short as possible.
  enum class FloatFormat { Auto, Fixed, Scientific, None };

  PrintTensorFmt(unsigned summariseThreshold = 1000, unsigned edgeItems = 3,
                 unsigned maxLineWidth = 75, unsigned digits = 8,
                 FloatFormat floatFormat = FloatFormat::Auto, char separator = ' ',
                 char openBracket = '[', char closeBracket = ']')
      : summariseThreshold(summariseThreshold),
        edgeItems(edgeItems),
        maxLineWidth(maxLineWidth),
        digits(digits),
        floatFormat(floatFormat),
        separator(separator),
        openBracket(openBracket),
        closeBracket(closeBracket) {}

  /// No omitted elements, no line breaks, and each number as short as possible.
  static PrintTensorFmt disableFormatting() { return {0, 0, 0, 0, FloatFormat::None}; }

  unsigned summariseThreshold;  ///< larger tensors are summarised; 0: never
  unsigned edgeItems;           ///< elements kept at each end of a summarised dimension
  unsigned maxLineWidth;        ///< longer rows continue on the next line; 0: they do not
  unsigned digits;              ///< significant digits of floats; 0: elements are not aligned
  FloatFormat floatFormat;
  char separator;
  char openBracket;
  char closeBracket;
};

}  // namespace poplar
