// A grid of locations.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "purine/core/location.h"

namespace purine::parallel {

/// Elements or units [begin, end).
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  bool operator==(const Range& other) const = default;
};

struct MeshAxis {
  std::string name;
  int size = 1;
  /// How large each coordinate's share of what is divided is, in proportion; none: all are equal.
  std::vector<std::int64_t> shares = {};
};

/// Locations in a grid with named axes; the last axis varies fastest. Example: `data=2,model=2` over emu:0 to
/// emu:3 has emu:0 and emu:1 at data 0, emu:0 and emu:2 at model 0.
class Mesh {
 public:
  /// One axis, `data`: `Mesh{"cpu:0", "cpu:1"}`.
  Mesh(std::initializer_list<std::string_view> devices);
  explicit Mesh(std::vector<Location> locations, std::string_view axis = "data");
  /// `Mesh("data=2,model=2", locations)`. Throws Error for a text that can't be read, for sizes that don't
  /// multiply to the number of locations, and for an axis or location that is named twice.
  Mesh(std::string_view axes, std::vector<Location> locations);

  /// Divides along an axis in these proportions, positive integers one a coordinate: `{3, 1}` gives a device
  /// that is three times as fast three samples of four.
  Mesh& set_shares(std::string_view axis, std::vector<std::int64_t> shares);

  int size() const { return static_cast<int>(locations_.size()); }
  const std::vector<Location>& locations() const { return locations_; }
  const std::vector<MeshAxis>& axes() const { return axes_; }
  int axis_count() const { return static_cast<int>(axes_.size()); }
  /// The index of an axis; throws Error naming the axes that there are.
  int axis(std::string_view name) const;
  int axis_size(int axis) const { return axes_[static_cast<std::size_t>(axis)].size; }
  /// The coordinate along an axis of the location of an index.
  int coordinate(int location, int axis) const;
  /// The locations, by index, that differ from this one along one axis alone, by their coordinate on it.
  std::vector<int> group(int location, int axis) const;
  /// Which of `units` units are a coordinate's. With equal shares the first ones get one more where it
  /// doesn't come out even: 5 over 2 are 3 and 2.
  Range part(int axis, std::int64_t units, int coordinate) const;
  /// `data=2,model=2`.
  std::string text() const;

 private:
  void check();
  int stride(int axis) const;

  std::vector<MeshAxis> axes_;
  std::vector<Location> locations_;
};

}  // namespace purine::parallel
