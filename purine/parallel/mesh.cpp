#include "purine/parallel/mesh.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>

#include "purine/core/error.h"

namespace purine::parallel {

Mesh::Mesh(std::initializer_list<std::string_view> devices) {
  for (const std::string_view device : devices) locations_.push_back(Location::parse(device));
  axes_.push_back({"data", size()});
  check();
}

Mesh::Mesh(std::vector<Location> locations, std::string_view axis) : locations_(std::move(locations)) {
  axes_.push_back({std::string(axis), size()});
  check();
}

Mesh::Mesh(std::string_view axes, std::vector<Location> locations) : locations_(std::move(locations)) {
  std::string_view rest = axes;
  while (true) {
    const std::string_view part = rest.substr(0, rest.find(','));
    const auto equals = part.find('=');
    const std::string_view number = equals == std::string_view::npos ? "" : part.substr(equals + 1);
    MeshAxis axis{std::string(part.substr(0, equals))};
    const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), axis.size);
    if (axis.name.empty() || number.empty() || code != std::errc() || end != number.data() + number.size() ||
        axis.size < 1) {
      throw Error("mesh", fmt::format("'{}' is no axis of a mesh", part),
                  "write names and sizes: data=2,model=4");
    }
    axes_.push_back(std::move(axis));
    if (part.size() == rest.size()) break;
    rest.remove_prefix(part.size() + 1);
  }
  check();
}

void Mesh::check() {
  // Axes come from text, and their product may be past any integer; it needs to be known up to size() only.
  std::int64_t product = 1;
  bool is_exact = true;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    is_exact = is_exact && product <= std::numeric_limits<std::int32_t>::max();
    if (is_exact) product *= axes_[i].size;
    for (std::size_t j = 0; j < i; ++j) {
      if (axes_[i].name == axes_[j].name) {
        throw Error("mesh", fmt::format("the axis {} is named twice", axes_[i].name));
      }
    }
  }
  if (locations_.empty()) throw Error("mesh", "has no locations");
  if (!is_exact || product != size()) {
    throw Error("mesh",
                fmt::format("{} needs {}{} location{}, {} {} given", text(), is_exact ? "" : "more than ",
                            product, product == 1 ? "" : "s", size(), size() == 1 ? "is" : "are"));
  }
  std::vector<Location> sorted = locations_;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) throw Error("mesh", fmt::format("{} is named twice", twice->text()));
}

Mesh& Mesh::set_shares(std::string_view name, std::vector<std::int64_t> shares) {
  MeshAxis& changed = axes_[static_cast<std::size_t>(axis(name))];
  const bool positive =
      std::all_of(shares.begin(), shares.end(), [](std::int64_t share) { return share > 0; });
  if (shares.size() != static_cast<std::size_t>(changed.size) || !positive) {
    throw Error("mesh", fmt::format("the shares of axis {} are {}; {} positive numbers are needed", name,
                                    shares, changed.size));
  }
  changed.shares = std::move(shares);
  return *this;
}

int Mesh::axis(std::string_view name) const {
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name == name) return static_cast<int>(i);
  }
  throw Error("mesh", fmt::format("{} has no axis {}", text(), name),
              axes_.size() == 1 ? fmt::format("Mesh(locations, \"{}\") has it alone", name) : "");
}

int Mesh::stride(int axis) const {
  int stride = 1;
  for (int i = axis + 1; i < axis_count(); ++i) stride *= axis_size(i);
  return stride;
}

int Mesh::coordinate(int location, int axis) const {
  return location / stride(axis) % axis_size(axis);
}

std::vector<int> Mesh::group(int location, int axis) const {
  const int step = stride(axis);
  const int first = location - coordinate(location, axis) * step;
  std::vector<int> members;
  for (int i = 0; i < axis_size(axis); ++i) members.push_back(first + i * step);
  return members;
}

Range Mesh::part(int axis, std::int64_t units, int coordinate) const {
  const MeshAxis& divided = axes_[static_cast<std::size_t>(axis)];
  if (divided.shares.empty()) {
    const std::int64_t each = units / divided.size;
    const std::int64_t more = units % divided.size;
    const auto begin = [&](std::int64_t i) { return each * i + std::min(i, more); };
    return {begin(coordinate), begin(coordinate + 1)};
  }
  const auto sum = [&](int count) {
    return std::accumulate(divided.shares.begin(), divided.shares.begin() + count, std::int64_t{0});
  };
  const std::int64_t all = sum(divided.size);
  const auto begin = [&](int i) { return (units * sum(i) * 2 + all) / (all * 2); };
  return {begin(coordinate), begin(coordinate + 1)};
}

std::string Mesh::text() const {
  std::string text;
  for (const MeshAxis& axis : axes_)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, axis.size);
  return text;
}

}  // namespace purine::parallel
