#include "poplar/ProfileValue.hpp"

#include <bit>
#include <charconv>
#include <cmath>

#include "poplar/exceptions.hpp"

namespace poplar {
namespace {

void check(const ProfileValue& value, ProfileValue::Type type, const char* what) {
  if (value.type() == type) return;
  throw type_error(std::string("[ProfileValue] needs a ") + what +
                   "; got a value of another type. Ask for its type() first.");
}

bool isInteger(double number) { return std::trunc(number) == number && std::abs(number) < 0x1p63; }

void writeNumber(std::ostream& out, double number) {
  char text[32];
  const auto end = isInteger(number)
                       ? std::to_chars(text, text + sizeof text, static_cast<std::int64_t>(number))
                       : std::to_chars(text, text + sizeof text, number);
  if (std::isfinite(number)) {
    out.write(text, end.ptr - text);
  } else {
    out << "null";  // JSON has no NaN or infinity
  }
}

void writeText(std::ostream& out, const std::string& text) {
  constexpr char kHex[] = "0123456789abcdef";
  out << '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out << '\\' << c;
    } else if (c == '\n') {
      out << "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out << "\\u00" << kHex[c >> 4] << kHex[c & 15];
    } else {
      out << c;
    }
  }
  out << '"';
}

struct JsonWriter {
  std::ostream& out;
  bool pretty;

  void newLine(int depth) const {
    if (pretty) out << '\n' << std::string(2 * static_cast<std::size_t>(depth), ' ');
  }

  void write(const ProfileValue& value, int depth) const {
    switch (value.type()) {
      case ProfileValue::Type::BOOL:
        out << (value.asBool() ? "true" : "false");
        return;
      case ProfileValue::Type::NUMBER:
        return writeNumber(out, value.asDouble());
      case ProfileValue::Type::STRING:
        return writeText(out, value.asString());
      case ProfileValue::Type::NULL_VALUE:
        out << "null";
        return;
      default:
        return writeEntries(value, depth + 1);
    }
  }

  void writeEntries(const ProfileValue& value, int depth) const {
    const bool is_map = value.type() == ProfileValue::Type::MAP;
    out << (is_map ? '{' : '[');
    const char* separator = "";
    if (is_map) {
      for (const auto& [key, entry] : value.asMap()) {
        out << std::exchange(separator, ",");
        newLine(depth);
        writeText(out, key);
        out << (pretty ? ": " : ":");
        write(entry, depth);
      }
    } else {
      for (const auto& entry : value.asVector()) {
        out << std::exchange(separator, ",");
        newLine(depth);
        write(entry, depth);
      }
    }
    if (value.size() > 0) newLine(depth - 1);
    out << (is_map ? '}' : ']');
  }
};

/// Writes a head of RFC 8949: the major type, and a number in the fewest bytes.
void writeHead(std::ostream& out, unsigned major, std::uint64_t number) {
  const unsigned bytes = number < 24           ? 0
                         : number < 1u << 8    ? 1
                         : number < 1u << 16   ? 2
                         : number < 1ull << 32 ? 4
                                               : 8;
  const unsigned info = bytes == 0 ? static_cast<unsigned>(number)
                                   : 24 + static_cast<unsigned>(std::countr_zero(bytes));
  out.put(static_cast<char>(major << 5 | info));
  for (unsigned i = bytes; i-- > 0;) out.put(static_cast<char>(number >> 8 * i));
}

void writeCborNumber(std::ostream& out, double number) {
  if (isInteger(number)) {
    const auto whole = static_cast<std::int64_t>(number);
    if (whole >= 0) return writeHead(out, 0, static_cast<std::uint64_t>(whole));
    return writeHead(out, 1, static_cast<std::uint64_t>(-1 - whole));
  }
  out.put(static_cast<char>(7 << 5 | 27));
  const auto bits = std::bit_cast<std::uint64_t>(number);
  for (unsigned i = 8; i-- > 0;) out.put(static_cast<char>(bits >> 8 * i));
}

void writeCborText(std::ostream& out, const std::string& text) {
  writeHead(out, 3, text.size());
  out << text;
}

}  // namespace

const ProfileValue& ProfileValue::null() {
  static const ProfileValue kNull;
  return kNull;
}

bool ProfileValue::asBool() const {
  check(*this, Type::BOOL, "truth value");
  return number_ != 0;
}
double ProfileValue::asDouble() const {
  check(*this, Type::NUMBER, "number");
  return number_;
}
const std::string& ProfileValue::asString() const {
  check(*this, Type::STRING, "text");
  return text_;
}
const ProfileValue::Vector& ProfileValue::asVector() const {
  check(*this, Type::VECTOR, "list");
  return list_;
}
const ProfileValue::Map& ProfileValue::asMap() const {
  check(*this, Type::MAP, "map");
  return map_;
}

std::vector<unsigned> ProfileValue::toUintVector() const {
  std::vector<unsigned> numbers;
  for (const auto& entry : asVector()) numbers.push_back(entry.asUint());
  return numbers;
}

double ProfileValue::sumDouble() const {
  double sum = 0;
  for (const auto& entry : asVector()) sum += entry.asDouble();
  return sum;
}

std::int64_t ProfileValue::sum2DInt() const {
  double sum = 0;
  for (const auto& entry : asVector()) sum += entry.sumDouble();
  return static_cast<std::int64_t>(sum);
}

std::size_t ProfileValue::size() const {
  if (type() == Type::VECTOR) return asVector().size();
  return type() == Type::MAP ? asMap().size() : 0;
}

const ProfileValue& ProfileValue::at(std::size_t i) const {
  const Vector& entries = asVector();
  if (i < entries.size()) return entries[i];
  throw index_error("[ProfileValue] needs an index below " + std::to_string(entries.size()) +
                    "; got " + std::to_string(i) + ". Use one of the list.");
}

const ProfileValue& ProfileValue::operator[](const std::string& key) const {
  const Map& entries = asMap();
  const auto entry = entries.find(key);
  if (entry != entries.end()) return entry->second;
  std::string keys;
  for (const auto& [name, _] : entries) keys += (keys.empty() ? "" : ", ") + name;
  throw index_error("[ProfileValue] needs one of the keys " + keys + "; got '" + key +
                    "'. Use one of these names.");
}

const ProfileValue& ProfileValue::getOrNull(const std::string& key) const {
  if (type() != Type::MAP) return null();
  const auto entry = asMap().find(key);
  return entry == asMap().end() ? null() : entry->second;
}

void serializeToJSON(std::ostream& out, const ProfileValue& value, bool prettyPrint) {
  JsonWriter{out, prettyPrint}.write(value, 0);
}

void serializeToCBOR(std::ostream& out, const ProfileValue& value) {
  switch (value.type()) {
    case ProfileValue::Type::BOOL:
      return writeHead(out, 7, value.asBool() ? 21 : 20);
    case ProfileValue::Type::NULL_VALUE:
      return writeHead(out, 7, 22);
    case ProfileValue::Type::NUMBER:
      return writeCborNumber(out, value.asDouble());
    case ProfileValue::Type::STRING:
      return writeCborText(out, value.asString());
    case ProfileValue::Type::VECTOR:
      writeHead(out, 4, value.size());
      for (const auto& entry : value.asVector()) serializeToCBOR(out, entry);
      return;
    case ProfileValue::Type::MAP:
      writeHead(out, 5, value.size());
      for (const auto& [key, entry] : value.asMap()) {
        writeCborText(out, key);
        serializeToCBOR(out, entry);
      }
  }
}

std::ostream& operator<<(std::ostream& out, const ProfileValue& value) {
  serializeToJSON(out, value);
  return out;
}

}  // namespace poplar
