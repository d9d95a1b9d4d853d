#include "hosts/ProcessRecord.hpp"

#include <algorithm>
#include <utility>

#include "hosts/PeerError.hpp"
#include "support/Serial.hpp"

namespace ipujax::hosts {
namespace {

constexpr std::uint64_t kFormat = 1;
constexpr std::size_t kLeastCommon = 16;  // two lengths

std::string keyOf(std::uint32_t process) { return "record/" + std::to_string(process); }

std::string nameOf(std::uint32_t process, const ProcessRecord& record) {
  return "process " + std::to_string(process) + " (" + record.host + ")";
}

void requireSame(const std::vector<ProcessRecord>& records) {
  const auto& first = records.front();
  for (std::uint32_t p = 1; p < records.size(); ++p) {
    for (std::size_t i = 0; i < first.common.size(); ++i) {
      const Common& expected = first.common[i];
      const auto& theirs = records[p].common;
      const std::string got = i < theirs.size() ? theirs[i].value : "nothing";
      if (got == expected.value) continue;
      throw PeerError("[hosts] needs all processes to have the same " + expected.name + "; got \"" +
                      expected.value + "\" in " + nameOf(0, first) + " and \"" + got + "\" in " +
                      nameOf(p, records[p]) + ". Start all processes with the same.");
    }
  }
}

}  // namespace

std::string ProcessRecord::write() const {
  runtime::Writer writer;
  writer.put(kFormat);
  writer.list(common, kLeastCommon, [&](const Common& each) { writer(each.name, each.value); });
  writer(host, ipus);
  return writer.take();
}

ProcessRecord ProcessRecord::read(const std::string& bytes, std::uint32_t process) {
  try {
    runtime::Reader reader(std::as_bytes(std::span(bytes)));
    ProcessRecord record;
    if (reader.get<std::uint64_t>() == kFormat) {
      reader.list(record.common, kLeastCommon,
                  [&](Common& each) { reader(each.name, each.value); });
      reader(record.host, record.ipus);
      if (reader.atEnd()) return record;
    }
  } catch (const std::out_of_range&) {  // the error below says it
  }
  throw PeerError(
      "[hosts] needs all processes to have the same version of ipujax; got another one "
      "in process " +
      std::to_string(process) + ". Install the same everywhere.");
}

std::vector<ProcessRecord> agree(KeyValueStore& store, std::uint32_t self, std::uint32_t count,
                                 const ProcessRecord& own, std::chrono::milliseconds patience) {
  store.put(keyOf(self), own.write());
  std::vector<ProcessRecord> records;
  for (std::uint32_t p = 0; p < count; ++p)
    records.push_back(ProcessRecord::read(store.get(keyOf(p), patience), p));
  requireSame(records);
  return records;
}

}  // namespace ipujax::hosts
