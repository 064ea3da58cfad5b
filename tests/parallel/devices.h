// Emulated accelerators of one process, in meshes of one axis.
#pragma once

#include <vector>

#include "purine/parallel/mesh.h"

namespace purine::test {

inline std::vector<Location> devices(int count) {
  std::vector<Location> locations;
  for (int i = 0; i < count; ++i) locations.push_back({0, DeviceKind::emu, i});
  return locations;
}

inline parallel::Mesh stages(int count) {
  return parallel::Mesh(devices(count), "stage");
}

}  // namespace purine::test
