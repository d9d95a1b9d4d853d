#pragma once
#include <cstddef>

namespace poplar {

/// How a PrintTensor program writes a tensor: rows of elements, with brackets around each
/// dimension.
class PrintTensorFmt {
 public:
  /// Auto chooses between the next two by the greatest and the least of the elements; None is as
  /// short as each number allows.
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

  /// Nothing left out, no line broken, numbers as short as each allows.
  static PrintTensorFmt disableFormatting() { return {0, 0, 0, 0, FloatFormat::None}; }

  unsigned summariseThreshold;  ///< of more elements only the outer ones are written; 0: never
  unsigned edgeItems;           ///< that are written at each end of a dimension that is cut short
  unsigned maxLineWidth;        ///< longer rows are continued on the next line; 0: they are not
  unsigned digits;              ///< significant ones of a float; 0: elements are not aligned
  FloatFormat floatFormat;
  char separator;
  char openBracket;
  char closeBracket;
};

}  // namespace poplar
