#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "engine/Half.hpp"
#include "engine/kernels/Kernel.hpp"

/// The text of a tensor: nested brackets, elements of equal width, the middle of long dimensions
/// left out.
namespace ipujax::engine {
namespace {

/// poplar::PrintTensorFmt, as given by the attributes.
struct PrintFormat {
  enum class Floats : std::uint8_t { kAuto, kFixed, kScientific, kShort };

  explicit PrintFormat(const StepDesc& step) {
    const auto& numbers = step.attributes.integers("format");
    const std::string& marks = step.attributes.text("marks");
    most_elements = numbers[0];
    edge = numbers[1];
    line_width = static_cast<std::size_t>(numbers[2]);
    digits = static_cast<int>(std::min<std::int64_t>(numbers[3], 64));
    floats = static_cast<Floats>(numbers[4]);
    separator = marks[0];
    open = marks[1];
    close = marks[2];
  }

  std::int64_t most_elements = 0;
  std::int64_t edge = 0;
  std::size_t line_width = 0;
  int digits = 0;
  Floats floats = Floats::kAuto;
  char separator = ' ';
  char open = '[';
  char close = ']';
};

bool isFloat(ElementType type) { return type >= ElementType::kHalf; }

double floatAt(ElementType type, const std::byte* p) {
  if (type == ElementType::kHalf) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, p, sizeof bits);
    return halfToFloat(bits);
  }
  if (type == ElementType::kFloat) {
    float value = 0;
    std::memcpy(&value, p, sizeof value);
    return value;
  }
  double value = 0;
  std::memcpy(&value, p, sizeof value);
  return value;
}

std::string integerText(ElementType type, const std::byte* p) {
  return withInteger(type, [&]<class T>(T value) {
    std::memcpy(&value, p, sizeof(T));
    if (type == ElementType::kBool) return std::string(value ? "1" : "0");
    return std::to_string(value);
  });
}

std::string formatted(const char* format, int precision, double value) {
  std::array<char, 512> text{};
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg): C++20's format is not in all compilers
  std::snprintf(text.data(), text.size(), format, precision, value);
  return text.data();
}

class TensorText {
 public:
  TensorText(const OperandDesc& o, const PrintFormat& format, const std::byte* data)
      : o_(o), format_(format), data_(data) {
    is_cut_ = format.most_elements != 0 && o.numElements() > format.most_elements;
    std::vector<std::int64_t> shown;
    collect(0, 0, shown);
    chooseFloats(shown);
    for (const auto i : shown) width_ = std::max(width_, element(i).size());
    if (format.digits == 0) width_ = 0;
  }

  std::string text() {
    write(0, 0);
    return std::move(text_);
  }

 private:
  std::int64_t dim(std::size_t d) const { return o_.shape[d]; }
  bool isCut(std::size_t d) const { return is_cut_ && dim(d) > 2 * format_.edge; }
  /// How many elements one step along a dimension passes.
  std::int64_t stepOf(std::size_t d) const {
    std::int64_t step = 1;
    for (std::size_t k = d + 1; k < o_.shape.size(); ++k) step *= dim(k);
    return step;
  }

  /// Calls fn(i) for each index shown, and gap() once for those left out.
  template <class F, class G>
  void along(std::size_t d, const F& fn, const G& gap) const {
    const bool cut = isCut(d);
    for (std::int64_t i = 0; i < dim(d); ++i) {
      if (cut && i == format_.edge) {
        gap();
        i = dim(d) - format_.edge;
        if (i == dim(d)) break;
      }
      fn(i);
    }
  }

  void collect(std::size_t d, std::int64_t at, std::vector<std::int64_t>& shown) const {
    if (d == o_.shape.size()) return shown.push_back(at);
    const std::int64_t step = stepOf(d);
    along(
        d, [&](std::int64_t i) { collect(d + 1, at + i * step, shown); }, [] {});
  }

  double valueAt(std::int64_t i) const {
    return floatAt(o_.type, data_ + i * static_cast<std::int64_t>(sizeOf(o_.type)));
  }

  /// Chooses one precision for all elements, such that the largest has the wanted digits.
  void chooseFloats(const std::vector<std::int64_t>& shown) {
    if (!isFloat(o_.type)) return;
    double largest = 0;
    double smallest = std::numeric_limits<double>::infinity();
    for (const auto i : shown) {
      const double value = std::abs(valueAt(i));
      if (!std::isfinite(value) || value == 0) continue;
      largest = std::max(largest, value);
      smallest = std::min(smallest, value);
    }
    const int whole = largest < 1 ? 1 : static_cast<int>(std::floor(std::log10(largest))) + 1;
    floats_ = format_.digits == 0 ? PrintFormat::Floats::kShort : format_.floats;
    if (floats_ == PrintFormat::Floats::kAuto) {
      const bool fits = whole <= format_.digits &&
                        (largest == 0 || smallest >= std::pow(10.0, -format_.digits / 2));
      floats_ = fits ? PrintFormat::Floats::kFixed : PrintFormat::Floats::kScientific;
    }
    precision_ = floats_ == PrintFormat::Floats::kFixed ? std::max(format_.digits - whole, 0)
                                                        : std::max(format_.digits - 1, 0);
  }

  std::string element(std::int64_t i) const {
    if (!isFloat(o_.type))
      return integerText(o_.type, data_ + i * static_cast<std::int64_t>(sizeOf(o_.type)));
    const double value = valueAt(i);
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    switch (floats_) {
      case PrintFormat::Floats::kFixed:
        return formatted("%.*f", precision_, value);
      case PrintFormat::Floats::kScientific:
        return formatted("%.*e", precision_, value);
      default:
        return formatted("%.*g", format_.digits == 0 ? 6 : format_.digits, value);
    }
  }

  void write(std::size_t d, std::int64_t at) {
    if (d == o_.shape.size()) {
      text_ += element(at);
      return;
    }
    text_ += format_.open;
    if (d + 1 == o_.shape.size()) {
      writeRow(d, at);
    } else {
      const std::int64_t step = stepOf(d);
      bool first = true;
      const auto next = [&] {
        if (!first) text_ += "\n" + std::string(d + 1, ' ');
        first = false;
      };
      along(
          d,
          [&](std::int64_t i) {
            next();
            write(d + 1, at + i * step);
          },
          [&] {
            next();
            text_ += "...";
          });
    }
    text_ += format_.close;
  }

  void writeRow(std::size_t d, std::int64_t at) {
    std::size_t column = d + 1;
    bool first = true;
    const auto put = [&](const std::string& word) {
      const std::size_t size = word.size() + 1;
      if (!first && format_.line_width != 0 && column + size > format_.line_width) {
        if (format_.separator != ' ') text_ += format_.separator;
        text_ += "\n" + std::string(d + 1, ' ');
        column = d + 1;
      } else if (!first) {
        text_ += format_.separator;
      }
      text_ += word;
      column += size;
      first = false;
    };
    along(
        d,
        [&](std::int64_t i) {
          const std::string word = element(at + i);
          put(std::string(width_ - std::min(width_, word.size()), ' ') + word);
        },
        [&] { put("..."); });
  }

  const OperandDesc& o_;
  const PrintFormat& format_;
  const std::byte* data_;
  bool is_cut_ = false;
  std::size_t width_ = 0;
  PrintFormat::Floats floats_ = PrintFormat::Floats::kShort;
  int precision_ = 0;
  std::string text_;
};

/// Prints to the engine's stream, or to stderr as Poplar does. Replicas print one after another.
class PrintKernel final : public Kernel {
 public:
  explicit PrintKernel(const StepDesc& step)
      : operand_(step.operands[0]), title_(step.attributes.text("title")), format_(step) {}
  bool callsHost() const override { return true; }
  void run(RunContext& context, std::span<std::byte* const> pointers) const override {
    const std::string line = title_ + ": " + TensorText(operand_, format_, pointers[0]).text();
    if (context.streams)
      context.streams->print(line);
    else
      std::fprintf(stderr, "%s\n", line.c_str());
  }

 private:
  OperandDesc operand_;
  std::string title_;
  PrintFormat format_;
};

void checkPrint(StepCheck& check) {
  check.operands(1);
  check.read(0).isContiguous();
  check.text("title");
  const auto& format = check.integers("format", 5);
  const bool good = std::ranges::all_of(
      format, [](std::int64_t n) { return n >= 0 && n <= StepCheck::kMostElements; });
  check.need(good && format[4] <= 3, "a format of four numbers and one of the formats of floats");
  check.need(check.text("marks").size() == 3, "three marks");
}

const RegisterKernel kPrint{"engine.print", makeKernel<PrintKernel>, checkPrint};

}  // namespace
}  // namespace ipujax::engine
