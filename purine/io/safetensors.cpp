#include "purine/io/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "purine/core/error.h"
#include "purine/core/json_helpers.h"
#include "purine/core/json_problem.h"
#include "purine/io/atomic_file.h"

namespace purine::io {
namespace {

static_assert(std::endian::native == std::endian::little, "the bytes of tensors are written as they are");

using Json = nlohmann::json;

constexpr std::uint64_t largest_header = 100'000'000;  // the format's limit
constexpr std::string_view metadata_key = "__metadata__";

struct DTypeName {
  DType dtype;
  std::string_view name;
};
/// In the order in which tensors lie in a file.
constexpr std::array<DTypeName, 5> dtype_names{
    {{DType::i64, "I64"}, {DType::f64, "F64"}, {DType::f32, "F32"}, {DType::i32, "I32"}, {DType::u8, "U8"}}};

std::size_t place_of(DType dtype) {
  const auto* found = std::ranges::find(dtype_names, dtype, &DTypeName::dtype);
  return static_cast<std::size_t>(found - dtype_names.begin());
}

Error format_error(std::string_view message, std::string_view hint = {}) {
  return Error("safetensors", message, hint);
}

// ---- writing ----

std::string json_text(std::string_view text) {
  try {
    return Json(text).dump();
  } catch (const Json::exception&) {
    throw format_error("a name or metadata text is not UTF-8: " +
                       Json(text).dump(-1, ' ', true, Json::error_handler_t::replace));
  }
}

std::string header_text(std::span<const HostTensor* const> tensors, const Metadata& metadata) {
  std::string text = "{";
  if (!metadata.empty()) {
    text += json_text(metadata_key) + ":{";
    for (const auto& [key, value] : metadata) text += json_text(key) + ":" + json_text(value) + ",";
    text.back() = '}';
    text += ',';
  }
  std::uint64_t offset = 0;
  for (const HostTensor* tensor : tensors) {
    const std::uint64_t end = offset + tensor->data.size();
    text += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}},",
                        json_text(tensor->name), dtype_names[place_of(tensor->info.dtype)].name,
                        fmt::join(tensor->info.shape.extents(), ","), offset, end);
    offset = end;
  }
  if (text.back() == ',') text.pop_back();
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

std::vector<const HostTensor*> in_file_order(std::span<const HostTensor> tensors) {
  std::vector<const HostTensor*> order;
  for (const HostTensor& tensor : tensors) {
    if (tensor.name == metadata_key) throw format_error("no tensor can have the name __metadata__");
    if (tensor.data.size() != tensor.info.bytes()) {
      throw format_error(fmt::format("tensor `{}` is {}, {} bytes, but its data has {}", tensor.name,
                                     tensor.info.text(), tensor.info.bytes(), tensor.data.size()));
    }
    order.push_back(&tensor);
  }
  std::ranges::sort(order, {}, [](const HostTensor* tensor) {
    return std::tuple(place_of(tensor->info.dtype), std::string_view(tensor->name));
  });
  std::set<std::string_view> names;
  for (const HostTensor* tensor : order) {
    if (!names.insert(tensor->name).second)
      throw format_error("two tensors have the name `" + tensor->name + "`");
  }
  return order;
}

// ---- reading ----

/// Parses the header's text; refuses keys that come twice, which the parser itself would let pass, and
/// nesting that no header has.
Json parse_header(std::string_view text) {
  std::array<std::set<std::string>, 3> keys;  // by depth: those of the object that is open there
  const auto check = [&keys](int depth, Json::parse_event_t event, Json& parsed) {
    const bool opens_object = event == Json::parse_event_t::object_start;
    const bool opens = opens_object || event == Json::parse_event_t::array_start;
    if (opens && depth > (opens_object ? 1 : 2)) throw format_error("the header is nested too deeply");
    if (opens && depth < 2) keys[static_cast<std::size_t>(depth) + 1].clear();
    if (event == Json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys.at(static_cast<std::size_t>(depth)).insert(key).second) {
        throw format_error("the header has the name `" + key + "` twice");
      }
    }
    return true;
  };
  const std::size_t end = text.find_last_not_of(' ');
  text = text.substr(0, end == std::string_view::npos ? 0 : end + 1);
  if (!text.starts_with('{') || !text.ends_with('}')) throw format_error("the header is not a JSON object");
  try {
    return parse_json(text, check);
  } catch (const Json::exception& error) {
    throw format_error("the header " + json_problem(text, error));
  }
}

/// One entry of the header: a tensor's description.
class EntryParser {
 public:
  EntryParser(const std::string& name, const Json& json) : name_(name), json_(json) {}

  /// The entry with the end of its data.
  std::pair<SafetensorsEntry, std::uint64_t> parse() const {
    if (!json_.is_object()) fail("is described by something else than an object");
    for (const auto& [key, value] : json_.items()) {
      if (key != "dtype" && key != "shape" && key != "data_offsets")
        fail("has the unknown field `" + key + "`");
    }
    const TensorInfo info{shape(), dtype()};
    const Json& offsets = field("data_offsets");
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned()) {
      fail("has data_offsets that are not two natural numbers");
    }
    const auto begin = offsets[0].get<std::uint64_t>();
    const auto end = offsets[1].get<std::uint64_t>();
    if (end < begin) fail(fmt::format("ends at byte {}, before it begins at {}", end, begin));
    if (end - begin != info.bytes()) {
      fail(fmt::format("is {}, {} bytes, but its data_offsets hold {}", info.text(), info.bytes(),
                       end - begin));
    }
    return {{name_, info, begin}, end};
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw format_error("tensor `" + name_ + "` " + what);
  }

  const Json& field(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) fail(std::string("has no ") + key);
    return *found;
  }

  DType dtype() const {
    const Json& json = field("dtype");
    if (!json.is_string()) fail("has a dtype that is not a text");
    const auto& name = json.get_ref<const std::string&>();
    const auto* found = std::ranges::find(dtype_names, name, &DTypeName::name);
    if (found == dtype_names.end()) {
      throw format_error("tensor `" + name_ + "` has the dtype " + name,
                         "purine reads F32, F64, I32, I64 and U8; convert the file with the Python package");
    }
    return found->dtype;
  }

  Shape shape() const {
    const Json& json = field("shape");
    if (!json.is_array()) fail("has a shape that is not a list");
    if (json.size() > Shape::max_rank) {
      fail(fmt::format("has {} dimensions; at most {} are possible", json.size(), Shape::max_rank));
    }
    std::vector<std::int64_t> extents;
    std::int64_t elements = 1;
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 8;
    for (const Json& extent : json) {
      if (!extent.is_number_unsigned() || extent.get<std::uint64_t>() > most) {
        fail("has a shape with an extent that is not a natural number");
      }
      extents.push_back(extent.get<std::int64_t>());
      if (__builtin_mul_overflow(elements, extents.back(), &elements) || elements > most) {
        fail("has a shape with too many elements");
      }
    }
    return Shape(extents);
  }

  const std::string& name_;
  const Json& json_;
};

Metadata parse_metadata(const Json& json) {
  if (!json.is_object()) throw format_error("__metadata__ is not an object");
  Metadata metadata;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) throw format_error("the metadata `" + key + "` is not a text");
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

/// Checks that the tensors follow each other without gaps and fill the file.
void check_offsets(std::span<const std::pair<SafetensorsEntry, std::uint64_t>> parsed,
                   std::uint64_t data_bytes) {
  std::uint64_t expected = 0;
  for (const auto& [entry, end] : parsed) {
    if (end > data_bytes) {
      throw format_error(fmt::format("tensor `{}` ends at byte {}, but the file has {} bytes of data",
                                     entry.name, end, data_bytes),
                         "the file is cut short");
    }
    if (entry.offset != expected) {
      throw format_error(fmt::format("tensor `{}` begins at byte {}, {} {}", entry.name, entry.offset,
                                     entry.offset < expected ? "inside the one before it, which ends at"
                                                             : "after a gap; the one before it ends at",
                                     expected));
    }
    expected = end;
  }
  if (expected != data_bytes) {
    throw format_error(
        fmt::format("the tensors end at byte {}, but the file has {} bytes of data", expected, data_bytes));
  }
}

/// Reads and checks the header of an open file, and leaves the file at the first byte of data.
SafetensorsHeader read_header(File& file) {
  const std::uint64_t file_bytes = file.size();
  std::array<std::byte, 8> prefix{};
  if (file.read(prefix) < prefix.size()) {
    throw format_error(fmt::format("the file has {} bytes, too few for a header", file_bytes));
  }
  const auto header_bytes = std::bit_cast<std::uint64_t>(prefix);
  if (header_bytes > largest_header) {
    throw format_error(fmt::format("the header would be {} bytes long; {} is the format's limit",
                                   header_bytes, largest_header),
                       "this is probably not a safetensors file");
  }
  std::string text(static_cast<std::size_t>(std::min(header_bytes, file_bytes)), '\0');
  const std::size_t got = file.read(std::as_writable_bytes(std::span(text)));
  if (got < header_bytes) {
    throw format_error(
        fmt::format("the header is {} bytes long, but the file ends after {} of them", header_bytes, got),
        "the file is cut short, or is not a safetensors file");
  }
  const Json json = parse_header(text);
  SafetensorsHeader header;
  std::vector<std::pair<SafetensorsEntry, std::uint64_t>> parsed;
  for (const auto& [name, value] : json.items()) {
    if (name == metadata_key) {
      header.metadata = parse_metadata(value);
    } else {
      parsed.push_back(EntryParser(name, value).parse());
    }
  }
  std::ranges::sort(parsed, {}, [](const auto& item) {
    return std::tuple(item.first.offset, item.second, std::string_view(item.first.name));
  });
  check_offsets(parsed, file_bytes - prefix.size() - header_bytes);
  for (auto& [entry, end] : parsed) header.entries.push_back(std::move(entry));
  return header;
}

}  // namespace

void save_safetensors(const std::filesystem::path& path, std::span<const HostTensor> tensors,
                      const Metadata& metadata) {
  with_path(path, [&] {
    const std::vector<const HostTensor*> order = in_file_order(tensors);
    const std::string header = header_text(order, metadata);
    if (header.size() > largest_header) {
      throw format_error(fmt::format("the header would be {} bytes long; {} is the format's limit",
                                     header.size(), largest_header));
    }
    AtomicFile file(path);
    const auto header_bytes =
        std::bit_cast<std::array<std::byte, 8>>(static_cast<std::uint64_t>(header.size()));
    file.write(header_bytes);
    file.write(header);
    for (const HostTensor* tensor : order) file.write(tensor->data);
    file.commit();
  });
}

Safetensors load_safetensors(const std::filesystem::path& path) {
  return with_path(path, [&] {
    File file = File::open_to_read(path);
    SafetensorsHeader header = read_header(file);
    Safetensors content;
    content.metadata = std::move(header.metadata);
    for (SafetensorsEntry& entry : header.entries) {
      HostTensor tensor{std::move(entry.name), entry.info, std::vector<std::byte>(entry.info.bytes())};
      if (file.read(tensor.data) < tensor.data.size()) {
        throw format_error("the file ended inside tensor `" + tensor.name + "` while it was read");
      }
      content.tensors.push_back(std::move(tensor));
    }
    return content;
  });
}

SafetensorsHeader load_safetensors_header(const std::filesystem::path& path) {
  return with_path(path, [&] {
    File file = File::open_to_read(path);
    return read_header(file);
  });
}

}  // namespace purine::io
